PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := runs/quick

# The CUDA build of jax where a GPU answers: CUDA 13 needs driver 580 or newer.
DRIVER := $(shell nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | cut -d. -f1 | grep -E '^[0-9]+$$')
EXTRA := $(if $(DRIVER),$(shell [ "$(DRIVER)" -ge 580 ] 2>/dev/null && echo cuda13 || echo cuda12))
comma := ,
# CUDA is gigabytes: show what comes.
PIP_INSTALL := -m pip install $(if $(EXTRA),,--quiet)

HOST := 127.0.0.1
PORT := 8000

.PHONY: train play test test-slow lint gpu clean

# Two cores are busier as two devices than as one; a GPU takes no notice.
train: export JAX_NUM_CPU_DEVICES := 2
train: $(VENV)/installed  ## Train the quick config into runs/quick; goes on where it stopped.
	$(BIN)/python scripts/train.py --run_dir $(RUN) \
		$(if $(wildcard $(RUN)/config.yaml),--resume,--config configs/quick.yaml)

play: $(VENV)/installed-web  ## Play and analyse in the browser.
	$(BIN)/python scripts/play.py --web --host $(HOST) --port $(PORT)

# Three workers keep two cores busy: a browser and other processes are waited for.
test: $(VENV)/installed-dev lint  ## Lint and run the tests.
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

test-slow: $(VENV)/installed-dev  ## The long studies that `make test` leaves out.
	$(BIN)/python -m pytest -m slow

gpu: $(VENV)/installed  ## On a GPU: train 5x5 from scratch and export it, then measure its speed.
	PYTHON=$(BIN)/python bash scripts/gpu.sh
	PYTHON=$(BIN)/python bash scripts/gpu_measure.sh

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "jaxzero needs Python 3.11 or newer; set PYTHON=python3.12, say"; exit 2; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP_INSTALL) --editable ".$(if $(EXTRA),[$(EXTRA)])"
	touch $@

$(VENV)/installed-web: $(VENV)/installed
	$(BIN)/python -m pip install --quiet --editable ".[web$(if $(EXTRA),$(comma)$(EXTRA))]"
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[dev$(if $(EXTRA),$(comma)$(EXTRA))]"
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) .cache

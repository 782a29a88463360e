PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUN := runs/quick

# The CUDA build of jax where a GPU answers: CUDA 13 needs driver 580 or newer.
DRIVER := $(shell nvidia-smi --query-gpu=driver_version --format=csv,noheader 2>/dev/null | head -n 1 | cut -d. -f1)
EXTRA := $(if $(DRIVER),$(shell [ "$(DRIVER)" -ge 580 ] 2>/dev/null && echo cuda13 || echo cuda12))
comma := ,

.PHONY: train test test-slow lint benchmark clean

# Two cores are busier as two devices than as one; a GPU takes no notice.
train: export JAX_NUM_CPU_DEVICES := 2
train: $(VENV)/installed  ## Train the quick config into runs/quick; goes on where it stopped.
	$(BIN)/python scripts/train.py --config configs/quick.yaml --run_dir $(RUN) \
		$(if $(wildcard $(RUN)/config.yaml),--resume)

test: $(VENV)/installed-dev lint  ## Lint and run the tests.
	$(BIN)/python -m pytest -n 2 --dist loadfile

test-slow: $(VENV)/installed-dev  ## The long studies that `make test` leaves out.
	$(BIN)/python -m pytest -m slow

# Results of this machine's device, for docs/results: about nine minutes in all on one large GPU.
RESULTS := docs/results/$(shell nvidia-smi --query-gpu=name --format=csv,noheader 2>/dev/null | head -n 1 | tr ' ' '_')
benchmark: $(VENV)/installed  ## Benchmark two networks and sweep the batch size.
	mkdir -p $(RESULTS)
	$(BIN)/python scripts/benchmark.py --config configs/gpu_80gb.yaml --seconds 90 --json $(RESULTS)/128x10.json
	$(BIN)/python scripts/benchmark.py --config configs/gpu_8gb.yaml --selfplay.games 16384 --seconds 60 --json $(RESULTS)/64x6.json
	$(BIN)/python scripts/sweep.py --config configs/gpu_80gb.yaml --out $(RESULTS)/sweep \
		--selfplay.games 1024,2048,4096,8192,16384 --learner.updates_per_iteration 8 --rounds 1

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "jaxzero needs Python 3.11 or newer; set PYTHON=python3.12, say"; exit 2; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".$(if $(EXTRA),[$(EXTRA)])"
	touch $@

$(VENV)/installed-dev: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --editable ".[dev$(if $(EXTRA),$(comma)$(EXTRA))]"
	touch $@ $(VENV)/installed

clean:
	rm -rf $(VENV) .cache

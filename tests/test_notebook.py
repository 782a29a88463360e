"""The example notebook runs in a kernel, from its first cell to its last."""

from __future__ import annotations

import nbformat
from nbclient import NotebookClient
from script_runner import ITERATION, ROOT

TRAINING = "jaxzero.train(PRESET, settings,"
SHORT = dict(option.removeprefix("--").split("=") for option in ITERATION)
SHORT |= {"evaluation.simulations": 0, "iterations": 20, "evaluation.evaluate_every": 20}
SHORT |= {"evaluation.opponents": "random", "evaluation.games": 8}


def test_the_example_runs_and_shows_pictures(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.delenv("MPLBACKEND")  # a kernel sets its own backend
    notebook = nbformat.read(ROOT / "docs" / "notebook.ipynb", as_version=4)
    (training,) = [cell for cell in notebook.cells if TRAINING in cell.source]
    training.source = training.source.replace(TRAINING, f"jaxzero.train('tiny', {SHORT},")
    NotebookClient(notebook, timeout=600).execute()
    shown = [part for cell in notebook.cells for part in cell.get("outputs", ())]
    assert [part.name for part in shown if part.output_type == "stream"].count("stderr") == 0
    assert sum("image/png" in part.get("data", {}) for part in shown) == 2
    assert notebook.cells[-1].outputs[0].text.count("--") > 2  # edges of both sides

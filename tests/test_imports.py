"""Test that imports are declared and that importing the package changes no other library."""

from __future__ import annotations

import ast
import re
import sys
import tomllib
from importlib.metadata import packages_distributions

from script_runner import ROOT, python

# Import the libraries that the package uses, then compare their state before and after it.
CHANGES = """
import importlib, logging, os, pkgutil, sys, warnings
import absl.logging, chex, flax, jax, jsonargparse, matplotlib.figure, mctx, numba, numpy, optax
import orbax.checkpoint, rich, starlette, tensorboardX

NAMES = ("excepthook", "unraisablehook", "stdin", "stdout", "stderr")
loggers = {n: one for n, one in logging.root.manager.loggerDict.items() if "level" in dir(one)}

def state():
    return {
        "logging": {n: (one.level, [*one.filters], [*one.handlers]) for n, one in loggers.items()},
        "warnings": {str(one): one for one in warnings.filters},
        "matplotlib": dict(matplotlib.rcParams),
        "numpy": numpy.geterr() | numpy.get_printoptions(),
        "jax": dict(jax.config.values),
        "environment": dict(os.environ),
        "sys": {name: getattr(sys, name) for name in NAMES},
    }

before = state()
import jaxzero
for name in [one.name for one in pkgutil.walk_packages(jaxzero.__path__, "jaxzero.")]:
    if name.split(".")[1] not in ("adapters", "configs", "scripts"):  # these need their libraries
        importlib.import_module(name)
after = state()
for part, values in before.items():
    for name in {**values, **after[part]}:
        if values.get(name) != after[part].get(name):
            print(part, name, values.get(name), after[part].get(name))

from jaxzero.game import DotsAndBoxes, box_neighbours, box_sides_table, edge_permutations
board = DotsAndBoxes(5, 5)
tables = box_neighbours(board), box_sides_table(board), edge_permutations(board)
print([table.shape for table in tables])
jax.devices()
"""


def test_importing_the_package_changes_no_other_library_and_geometry_touches_no_device():
    """JAX fails as soon as code needs a device, as the last line does: there is no platform."""
    done = python("-c", CHANGES, JAX_PLATFORMS="nowhere")
    assert done.stdout == "[(60, 2), (25, 4), (8, 60)]\n", done.stderr[-2000:]
    assert "backend 'nowhere'" in done.stderr


def plain(name: str) -> str:
    """Return the normalised name of a distribution."""
    return re.sub(r"[-_.]+", "-", name).lower()


def test_what_is_imported_is_declared():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    declared = {plain(re.match(r"[\w.-]+", line)[0]) for line in lines}
    providers = packages_distributions() | {"pynvml": ["nvidia-ml-py"]}
    undeclared = set()
    for path in [*(ROOT / "jaxzero").rglob("*.py"), *(ROOT / "scripts").glob("*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module] if isinstance(node, ast.ImportFrom) else []
            names += [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            for name in {name.split(".")[0] for name in names} - {"jaxzero"}:
                if name not in sys.stdlib_module_names:
                    given = {plain(one) for one in providers.get(name, [name])}
                    undeclared |= set() if given & declared else {name}
    assert undeclared == set()

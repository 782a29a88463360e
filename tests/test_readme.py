"""Every command in the README runs, as it stands there, on configs made small."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SMALL = """
game: {rows: 2, cols: 2}
network: {trunk: dense, channels: 16, blocks: 1}
search: {simulations: 4}
selfplay: {games: 16, opening_plies: 2}
replay: {capacity: 500}
learner: {batch_size: 32, updates_per_iteration: 2}
evaluation: {evaluate_every: 2, games: 4, final_games: 4, simulations: 4}
iterations: 2
"""


def readme_commands() -> list[str]:
    """Return the command lines of the README's bash blocks, without comments."""
    blocks = re.findall(r"```bash\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    text = "\n".join(blocks).replace("\\\n", " ")
    return [line.split("  #")[0].strip() for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def clone(tmp_path_factory) -> Path:
    """A directory like a clone of the project whose configs are all small."""
    folder = tmp_path_factory.mktemp("clone")
    for name in ("scripts", "Makefile", "jaxzero", "pyproject.toml"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "configs").mkdir()
    for config in (ROOT / "configs").glob("*.yaml"):
        (folder / "configs" / config.name).write_text(SMALL)
    return folder


def test_the_readme_has_commands():
    commands = readme_commands()
    assert "make train" in commands and "make test" in commands
    assert any(command.startswith("python scripts/train.py") for command in commands)


def test_every_command_runs_in_order(clone):
    for command in readme_commands():
        words = shlex.split(command)
        if words[0] == "make":  # what it would do; the tests are themselves run by make
            words.insert(1, "--dry-run")
        elif words[0] == "python":
            words[0] = sys.executable
        else:
            pytest.fail(f"the README has a command of another kind: {command}")
        done = subprocess.run(words, cwd=clone, capture_output=True, text=True)
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"

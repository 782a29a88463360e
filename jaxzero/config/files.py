"""Read, check and write settings files: presets and the configs of runs."""

from __future__ import annotations

import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import yaml

from jaxzero.config import Config
from jaxzero.config.ranges import fits, type_in_words
from jaxzero.errors import LONGEST_VALUE, InputError, one_line, shortened
from jaxzero.host.files import shipped_folder, write_text
from jaxzero.host.readers import is_file, read_yaml, why_no_file

# Settings of earlier versions, with their new names.
RENAMED = {
    "search.value_scale": "search.value_scale_per_box: divide it by the boxes of the board",
    "search.considered": "search.max_considered_actions",
    "search.reduction": "search.nodes: all in place of none, quiet in place of exact",
    "learner.decay_share": "learner.decay_fraction",
}
# Settings with a new name. Files may still use the old name.
NEW_NAMES = {
    "selfplay.games": "selfplay.games_per_iteration",
    "selfplay.start_ply": "selfplay.late_start_moves",
    "selfplay.start_falls": "selfplay.late_start_until",
    "selfplay.opening_plies": "selfplay.random_opening_moves",
    "selfplay.sampled_plies": "selfplay.sampled_moves",
    "selfplay.deviations": "selfplay.random_move_fraction",
    "selfplay.adjudicate_below": "selfplay.solver_below_edges",
    "selfplay.solved_per_game": "selfplay.solver_positions_per_game",
    "selfplay.solved_nearness": "selfplay.solver_depth_draws",
    "selfplay.td_above": "selfplay.td_above_edges",
    "evaluation.opening_plies": "evaluation.random_opening_moves",
}
RENAMED |= NEW_NAMES
# Removed settings with the value that had no effect. Older files may contain this value.
GONE = {
    "network.squeeze_excitation": False,
    "search.visit_offset": 50.0,
    "search.win_weight": 0.0,
    "learner.ema_decay": 0.0,
    "learner.policy_loss_weight": 1.0,
    "learner.margin_loss_weight": 1.0,
    "learner.final_rate_fraction": 0.02,
    "learner.skipped_updates": 20,
    "learner.augmentation": True,
    "learner.final_rate": 0.02,
    "learner.symmetries": True,
}


def config_of_file(field: str, path: Path) -> Config:
    """Read a Config from a YAML file, such as the config of a run. Raises: InputError."""
    return _build(Config, read_config(str(path), field))


def config_of(content: dict[str, Any], where: str) -> Config:
    """Return the Config of a mapping of settings. Raises: InputError naming `where`."""
    update_names(content)
    check_fields(content, where)
    return _build(Config, content)


def _build(cls: type, content: dict[str, Any]) -> Any:
    """Build a dataclass from nested mappings that `check_fields` has checked."""
    kinds = typing.get_type_hints(cls)
    return cls(
        **{
            name: _build(kinds[name], value) if is_dataclass(kinds[name]) else value
            for name, value in content.items()
        }
    )


def save_config(config: Config, path: Path) -> None:
    """Write every field to a YAML file that `load_config` reads back."""
    write_text(path, yaml.safe_dump(asdict(config), sort_keys=False))


def read_config(path: str, field: str = "config") -> dict[str, Any]:
    """Read a YAML mapping of settings and check its fields and types. Raises: InputError."""
    if why := why_no_file(Path(path), "cannot be read (no such file)"):
        hint = f"; shipped are {', '.join(shipped_configs())}" * (field == "config")
        raise InputError(f"{field}: {shortened(path)} {why}{hint}")
    content = read_yaml(field, Path(path)) or {}
    if not isinstance(content, dict):
        shown = shortened(repr(content))
        raise InputError(f"{field}: {path} holds {shown}, not a mapping of fields")
    if isinstance(content.get("config"), dict):  # the record of a checkpoint
        content = content["config"]
    update_names(content)
    check_fields(content, path)
    if not dict(dotted(content)):
        raise InputError(f"{field}: {path} holds no setting; {presets()}")
    return content


def update_names(content: dict[str, Any]) -> None:
    """Rename the old settings of a file; delete removed settings that had no effect."""
    for name in (*NEW_NAMES, *GONE):
        section, _, leaf = name.partition(".")
        fields_of = content.get(section)
        if not isinstance(fields_of, dict) or leaf not in fields_of:
            continue
        new = NEW_NAMES.get(name, "").partition(".")[2]
        if new and new not in fields_of:  # with both names, `check_fields` refuses the old one
            fields_of[new] = fields_of.pop(leaf)
        elif name in GONE and fields_of[leaf] == GONE[name]:
            del fields_of[leaf]


def find_config(name: str) -> str:
    """Return the path of the shipped config `name`; an existing file of that name comes first.

    `quick` and `configs/quick.yaml` both name a shipped config. Other names stay as they are.
    """
    path, shipped = Path(name), shipped_configs().get(Path(name).stem)
    named = shipped is not None and path in (Path(path.stem), Path("configs", shipped.name))
    return str(shipped) if named and not is_file(path) else name


def shipped_configs() -> dict[str, Path]:
    """Return the path of each shipped config by its name, such as `quick`."""
    return {path.stem: path for path in sorted(shipped_folder("configs").glob("*.yaml"))}


# Presets for GPUs, by the least memory in MiB.
GPU_PRESETS = {70_000: "gpu_80gb", 20_000: "gpu_24gb", 0: "gpu_8gb"}
RESERVED = 0.75  # fraction of the memory of a GPU that JAX reserves


def gpu_preset(memory_mib: float) -> str:
    """Return the preset for a GPU with this much memory, in MiB."""
    return next(name for least, name in GPU_PRESETS.items() if memory_mib >= least)


def presets() -> str:
    """List the shipped configs with their boards, and the config that suits the present device."""
    import jax  # slow to import

    boards = {name: read_yaml("config", path)["game"] for name, path in shipped_configs().items()}
    names = (f"{name} ({board['rows']}x{board['cols']})" for name, board in boards.items())
    device, suits = jax.devices()[0], "cpu"
    if device.platform != "cpu":
        limit = (device.memory_stats() or {}).get("bytes_limit", 0)
        suits = gpu_preset(limit / RESERVED / 2**20)
    return (
        f"{suits} suits the device found ({device.device_kind}), quick shows the first results; "
        f"presets: {', '.join(names)}"
    )


def check_fields(content: dict[str, Any], where: str) -> None:
    """Raise an InputError for a field that does not exist and for a value of the wrong type."""
    known = dict(typed_fields(Config))
    for name, value in dotted(content):
        shown = f"{shortened(one_line(repr(value)))} in {where}"
        if name not in known:
            raise no_such_field(name, shown, known)
        if not fits(value, known[name]):
            raise InputError(f"{name}: {shown} must be {type_in_words(known[name])}")


def no_such_field(name: str, shown: str, known: Iterable[str]) -> InputError:
    """Return the error for an unknown, renamed or removed setting; `shown` is its value."""
    words = f"no such field{did_you_mean(name, known)}"
    if name in RENAMED:
        words = f"is now {RENAMED[name]}"
    elif name in GONE:
        words = "there is no such setting any more; CHANGELOG.md says why"
    return InputError(f"{shortened(one_line(name))}: {shown}: {words}")


def typed_fields(cls: type, prefix: str = "") -> Iterator[tuple[str, type]]:
    """Yield the dotted names of all fields of nested dataclasses with their types."""
    for name, kind in typing.get_type_hints(cls).items():
        yield prefix + name, kind
        if is_dataclass(kind):
            yield from typed_fields(kind, f"{prefix}{name}.")


def dotted(content: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the dotted name and the value of every leaf of nested mappings."""
    for name, value in content.items():
        if isinstance(value, Mapping) and prefix.count(".") < 2:  # settings have one dot
            yield from dotted(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return ", did you mean X?" for the field nearest to a wrong name, or an empty string.

    A name with a known section is compared only with the fields of that section. Hyphens, initials
    such as lr, and names without a section match too.
    """
    section, _, leaf = name[:LONGEST_VALUE].replace("-", "_").lower().rpartition(".")
    inside = [field for field in known if section and field.startswith(f"{section}.")]
    by_leaf: dict[str, str] = {}
    for field in sorted(inside or known, key=lambda field: field.count(".")):
        last = field.rpartition(".")[2]
        by_leaf.setdefault(last, field)
        by_leaf.setdefault("".join(word[:1] for word in last.split("_")), field)
    close = get_close_matches(leaf, by_leaf, n=1)
    return f", did you mean {by_leaf[close[0]]}?" if close else ""

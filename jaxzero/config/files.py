"""Read and write settings files: presets and the configs of runs."""

from __future__ import annotations

import typing
from collections.abc import Iterator, Mapping
from dataclasses import asdict, is_dataclass
from pathlib import Path
from typing import Any

import yaml

from jaxzero.config import Config
from jaxzero.errors import InputError
from jaxzero.host.files import shipped_folder, write_text


def config_of_file(path: Path) -> Config:
    """Read the config of a run from its YAML file or from the record of a checkpoint.

    Raises: InputError.
    """
    content = yaml.safe_load(path.read_text(encoding="utf-8"))
    return config_of(content.get("config", content), str(path))


def config_of(content: dict[str, Any], where: str) -> Config:
    """Return the Config of a mapping of settings. Raises: InputError that ends with `where`."""
    try:
        return build_config(content)
    except InputError as error:
        raise InputError(f"{error}, in {where}") from error


def build_config(content: dict[str, Any], cls: type = Config, section: str = "") -> Any:
    """Return the Config, or with `cls` a section of it, of a mapping. Raises: InputError."""
    if not isinstance(content, dict):
        raise InputError(f"{section}: {content!r} is not a mapping of settings")
    kinds, values = typing.get_type_hints(cls), {}
    for name, value in content.items():
        field = f"{section}.{name}".lstrip(".")
        if name not in kinds:
            raise InputError(f"{field}: there is no such setting")
        nested = is_dataclass(kinds[name])
        values[name] = build_config(value, kinds[name], field) if nested else value
    return cls(**values)


def save_config(config: Config, path: Path) -> None:
    """Write every field to a YAML file that `config_of_file` reads back."""
    write_text(path, yaml.safe_dump(asdict(config), sort_keys=False))


def find_config(name: str) -> str:
    """Return the path of the shipped config `name`; an existing file of that name comes first.

    `quick` and `configs/quick.yaml` both name a shipped config. Other names stay as they are.
    """
    path, shipped = Path(name), shipped_configs().get(Path(name).stem)
    named = shipped is not None and path in (Path(path.stem), Path("configs", shipped.name))
    return str(shipped) if named and not path.is_file() else name


def shipped_configs() -> dict[str, Path]:
    """Return the path of each shipped config by its name, such as `quick`."""
    return {path.stem: path for path in sorted(shipped_folder("configs").glob("*.yaml"))}


# Presets for GPUs, by the least memory in MiB.
GPU_PRESETS = {70_000: "gpu_80gb", 20_000: "gpu_24gb", 0: "gpu_8gb"}
RESERVED = 0.75  # fraction of the memory of a GPU that JAX reserves


def presets() -> str:
    """List the shipped configs with their boards, and the config that suits the present device."""
    import jax  # slow to import

    boards = {name: config_of_file(path).game.board for name, path in shipped_configs().items()}
    names = (f"{name} ({board})" for name, board in boards.items())
    device, suits = jax.devices()[0], "cpu"
    if device.platform != "cpu":
        limit = (device.memory_stats() or {}).get("bytes_limit", 0)
        memory = limit / RESERVED / 2**20
        suits = next(name for least, name in GPU_PRESETS.items() if memory >= least)
    return (
        f"{suits} suits the device found ({device.device_kind}), quick shows the first results; "
        f"presets: {', '.join(names)}"
    )


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

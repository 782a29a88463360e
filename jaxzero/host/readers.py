"""Files of others are data: one reader for each kind, which never runs what it reads.

Every reader checks sizes before it allocates, and turns every failure into one InputError that
names the field and the file. There is no pickle, no YAML tag and no YAML alias.
"""

from __future__ import annotations

import json
import math
import re
import stat
import zipfile
from collections.abc import Callable, Hashable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np
import yaml

from jaxzero.errors import InputError, shortened
from jaxzero.host.memory import available_host_bytes

MOST_JSON = 2**26  # bytes; results have some thousand
MOST_JSON_LINES = 2**30  # bytes of a file
MOST_YAML = 2**16  # bytes, in plain Python a second
MOST_DEPTH = 32  # of nested lists and mappings
MOST_ARRAY_BYTES = 2**32  # of an npz file, unpacked: the largest table has 2^31
MOST_RATIO = 1100  # deflate packs at most so well
MOST_TENSOR_BYTES = 2**33  # of a safetensors file


def check_readable(field: str, path: Path, most: int) -> None:
    """Raise an InputError unless a file of at most `most` bytes can be read."""
    try:
        _refuse_special(path)
        with path.open("rb"):
            size = path.stat().st_size
    except (OSError, ValueError) as error:
        raise unreadable(field, path, error) from error
    if size > most:
        raise InputError(f"{field}: {path} has more than {most} bytes")


def read_bytes(field: str, path: Path, most: int) -> bytes:
    """Read a file of at most `most` bytes. Raises: InputError naming the field."""
    try:
        _refuse_special(path)
        with path.open("rb") as file:
            content = file.read(most + 1)
    except (OSError, ValueError) as error:
        raise unreadable(field, path, error) from error
    if len(content) > most:
        raise InputError(f"{field}: {path} has more than {most} bytes")
    return content


def is_text(value: str) -> bool:
    """Return whether a word of a command line can be written in UTF-8, as bytes need not be."""
    try:
        return "\0" not in value.encode().decode()
    except UnicodeError:
        return False


def is_file(path: Path) -> bool:
    """Return whether a regular file is there; a name too long to be one is none."""
    try:
        return path.is_file()
    except OSError:
        return False


def why_no_file(path: Path, absent: str) -> str:
    """Return why no file can be read at `path`, `absent` where nothing is; "" where one can."""
    try:
        _refuse_special(path)
        return "is a folder" if path.is_dir() else ""
    except FileNotFoundError:
        return absent
    except (OSError, ValueError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"


def is_folder(path: Path) -> bool:
    """Return whether a folder is there."""
    try:
        return path.is_dir()
    except OSError:
        return False


def read_text(field: str, path: Path, most: int) -> str:
    """Read a text file of at most `most` bytes. Raises: InputError naming the field."""
    try:
        return read_bytes(field, path, most).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise InputError(f"{field}: {path} is not text in UTF-8") from error


def unreadable(field: str, path: Path, error: Exception) -> InputError:
    """Return the error of a file that cannot be read."""
    words = getattr(error, "strerror", None) or shortened(" ".join(str(error).split()), 200)
    return InputError(f"{field}: {path} cannot be read ({words or type(error).__name__})")


def _refuse_special(path: Path) -> None:
    """Raise an OSError for pipes and devices: to open them may wait for ever.

    Those that the system makes for a command line, such as /dev/stdin, pass.
    """
    mode = path.stat().st_mode
    special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    if special and path.parts[:2] != ("/", "dev"):
        raise ValueError("it is no regular file")


# JSON


def parse_json(text: str) -> Any:
    """Return the content of a JSON text. Raises: ValueError, also for nan, inf and deep nesting."""
    try:
        return json.loads(text, parse_constant=_refuse_constant, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"{shortened(text)} is too large")
    return found


def read_json(field: str, path: Path, most: int = MOST_JSON) -> Any:
    """Read a JSON file. Raises: InputError."""
    text = read_text(field, path, most)
    try:
        return parse_json(text)
    except ValueError as error:
        words = shortened(str(error), 200)
        raise InputError(f"{field}: {path} is not JSON or damaged ({words})") from error


def read_mapping(field: str, path: Path, kinds: Mapping[str, type | UnionType]) -> dict[str, Any]:
    """Read a JSON file with a mapping that has at least these keys. Raises: as `check_mapping`."""
    return check_mapping(field, path, read_json(field, path), kinds)


def check_mapping(
    field: str, path: Path, content: Any, kinds: Mapping[str, type | UnionType]
) -> dict[str, Any]:
    """Return what was read from a file if it is a mapping with at least these keys.

    `kinds` gives the type of each; numbers are at least 0. Raises: InputError.
    """
    if not isinstance(content, dict):
        raise InputError(f"{field}: {path} holds no mapping of names to values")
    for name, kind in kinds.items():
        value = content.get(name)
        wrong = not isinstance(value, kind) or isinstance(value, bool) or name not in content
        if wrong or (isinstance(value, int | float) and not 0 <= value < 2**63):
            shown = shortened(repr(value)) if name in content else "missing"
            raise InputError(f"{field}: {name} in {path} is {shown}, not as jaxzero writes it")
    return content


def read_json_lines(field: str, path: Path) -> Iterator[dict[str, Any]]:
    """Yield the mappings of a file with one in each line; other lines are left out.

    A crash may cut off a line. Raises: InputError where the file cannot be read.
    """
    for line in read_bytes(field, path, MOST_JSON_LINES).splitlines():
        try:
            content = json.loads(line.decode("utf-8", errors="replace"))
        except (ValueError, RecursionError):
            continue
        if isinstance(content, dict):
            yield content


# YAML


class _PlainLoader(yaml.SafeLoader):
    """Mappings, lists, text, numbers, true, false and null; nothing else, and no deep nesting."""

    depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias (*) is not allowed")
        self.depth += 1
        if self.depth > MOST_DEPTH:
            raise yaml.YAMLError(f"it is nested more than {MOST_DEPTH} deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def construct_plain_mapping(self, node: yaml.MappingNode) -> dict:
        content = {}
        for key_node, value_node in node.value:
            key = self.construct_object(key_node, deep=True)
            if not isinstance(key, Hashable):
                raise yaml.YAMLError("a key is a list or a mapping")
            if key in content:
                raise yaml.YAMLError(f"{shortened(repr(key))} is there twice")
            content[key] = self.construct_object(value_node, deep=True)
        return content

    def refuse(self, node: yaml.Node) -> None:
        raise yaml.YAMLError(f"the type {shortened(node.tag)} is not allowed")


def _tag(name: str) -> str:
    return f"tag:yaml.org,2002:{name}"


_PlainLoader.yaml_constructors = {
    _tag("null"): yaml.SafeLoader.construct_yaml_null,
    _tag("bool"): yaml.SafeLoader.construct_yaml_bool,
    _tag("int"): yaml.SafeLoader.construct_yaml_int,
    _tag("float"): yaml.SafeLoader.construct_yaml_float,
    _tag("str"): yaml.SafeLoader.construct_yaml_str,
    _tag("seq"): lambda loader, node: loader.construct_sequence(node, deep=True),
    _tag("map"): _PlainLoader.construct_plain_mapping,
    None: _PlainLoader.refuse,
}
# Dates and merge keys are text here, and 1e-3 is a number as in YAML 1.2.
_PlainLoader.yaml_implicit_resolvers = {
    first: [(tag, form) for tag, form in known if tag.rpartition(":")[2] in ("null", "bool", "int")]
    for first, known in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_PlainLoader.add_implicit_resolver(
    _tag("float"),
    re.compile(
        r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+"
        r"|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?|\.(?:inf|Inf|INF))$|\.(?:nan|NaN|NAN)$"
    ),
    list("-+0123456789."),
)


# A tag may ask for a value of a type that the text is not of.
_TAG_ERRORS = AttributeError, LookupError, ArithmeticError


def parse_yaml(text: str) -> Any:
    """Return the content of a YAML text of plain types. Raises: ValueError, one line."""
    if len(text) > MOST_YAML:
        raise ValueError(f"it has more than {MOST_YAML} characters")
    try:
        return yaml.load(text, _PlainLoader)
    except (yaml.YAMLError, ValueError, RecursionError, *_TAG_ERRORS) as error:
        raise ValueError(shortened(" ".join(str(error).split()), 300)) from error


def read_yaml(field: str, path: Path) -> Any:
    """Read a YAML file of plain types. Raises: InputError."""
    text = read_text(field, path, MOST_YAML)
    try:
        return parse_yaml(text)
    except ValueError as error:
        raise InputError(f"{field}: {path} is not YAML ({error})") from error


# Arrays


def read_arrays(
    field: str, path: Path, kinds: Mapping[str, str], optional: tuple[str, ...] = ()
) -> dict[str, np.ndarray]:
    """Read arrays of an npz file. Raises: InputError.

    `kinds` gives for each name the kinds of numbers it may have, and its axes: `bu2` for two axes
    of bool or unsigned. Sizes are read from the headers before anything is unpacked.
    """
    check_readable(field, path, MOST_ARRAY_BYTES)
    try:
        with zipfile.ZipFile(path) as archive:
            found = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
            wanted = [name for name in kinds if name in found or name not in optional]
            if missing := [name for name in wanted if name not in found]:
                raise ValueError(f"{missing[0]} is missing")
            if len(found) > 2 * len(kinds) + 8:
                raise ValueError("it holds other arrays")
            _refuse_bombs([found[name] for name in wanted], path.stat().st_size)
            return {name: _member(archive, found[name], name, kinds[name]) for name in wanted}
    # Damaged archives raise many kinds, those of zlib and struct among them.
    except Exception as error:
        raise unreadable(field, path, error) from error


def _refuse_bombs(members: list[zipfile.ZipInfo], size: int) -> None:
    """Raise a ValueError where the parts of a file claim more than it can hold."""
    for member in members:
        if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise ValueError(f"{member.filename} is packed in another way")
        if member.file_size > MOST_RATIO * max(member.compress_size, 1) or member.file_size < 0:
            raise ValueError(f"{member.filename} claims {member.file_size} bytes")
    if sum(member.compress_size for member in members) > size:
        raise ValueError("its parts are larger than the file")
    most = min(MOST_ARRAY_BYTES, available_host_bytes() or MOST_ARRAY_BYTES)
    if (total := sum(member.file_size for member in members)) > most:
        raise ValueError(f"its arrays have {total} bytes, more than {most}")


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, name: str, kind: str) -> np.ndarray:
    """Read one array of an archive, after its header has been compared with its size."""
    npy = np.lib.format
    with archive.open(info) as file:
        version = npy.read_magic(file)
        readers: dict[tuple, Callable] = {
            (1, 0): npy.read_array_header_1_0,
            (2, 0): npy.read_array_header_2_0,
        }
        if version not in readers:
            raise ValueError(f"{name} is of another format")
        shape, _, dtype = readers[version](file)
        if dtype.hasobject or dtype.kind not in kind[:-1] or len(shape) != int(kind[-1]):
            raise ValueError(f"{name} is {dtype} with {len(shape)} axes")
        if min(shape, default=1) < 0 or math.prod(shape) * dtype.itemsize > info.file_size:
            raise ValueError(f"{name} claims the shape {shortened(str(shape))}")
    with archive.open(info) as file:
        array = npy.read_array(file, allow_pickle=False)
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"{name} is not finite")
    return array


def read_tensors(field: str, path: Path) -> dict[str, np.ndarray]:
    """Read the float16 and float32 arrays of a safetensors file. Raises: InputError."""
    from safetensors.numpy import load_file  # slow to import; options are checked before

    check_readable(field, path, MOST_TENSOR_BYTES)
    try:
        # The library compares the header with the size of the file before it allocates.
        tensors = load_file(path)
    except Exception as error:  # of several kinds; an unknown type of numbers is a KeyError
        raise unreadable(field, path, error) from error
    for name, array in tensors.items():
        if array.dtype not in (np.float16, np.float32):
            raise InputError(f"{field}: {shortened(name)} in {path} is {array.dtype}, not float16")
        if not np.isfinite(array).all():
            raise InputError(f"{field}: {shortened(name)} in {path} is not finite")
    return tensors

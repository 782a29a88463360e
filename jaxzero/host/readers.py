"""Read untrusted files as data: one reader for each kind, which never runs what it reads.

Every reader turns every failure into one InputError that names the field and the file. Pickle is
refused. YAML may have plain types only, and no aliases.
"""

from __future__ import annotations

import json
import math
import os
import re
import stat
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import Any

import numpy as np
import yaml

from jaxzero.errors import InputError, shortened

MOST_JSON = 2**26  # bytes; results have a few thousand
MOST_JSON_LINES = 2**30  # bytes of a file
MOST_YAML = 2**16  # bytes; plain Python parses them in a second


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
    """Return whether a word of a command line is valid UTF-8 without a NUL."""
    try:
        return "\0" not in value.encode().decode()
    except UnicodeError:
        return False


def is_file(path: Path) -> bool:
    """Return whether a regular file is at `path`; False for a name that is too long."""
    return os.path.isfile(path)


def why_no_file(path: Path, absent: str) -> str:
    """Return why no file can be read at `path`: `absent` if nothing is there, "" if one can."""
    try:
        _refuse_special(path)
        return "is a folder" if path.is_dir() else ""
    except FileNotFoundError:
        return absent
    except (OSError, ValueError) as error:
        return f"cannot be read ({getattr(error, 'strerror', None) or error})"


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
    """Raise a ValueError for pipes and devices, because opening them may wait forever.

    Those under /dev pass: the system makes some for a command line, such as /dev/stdin.
    """
    mode = path.stat().st_mode
    special = not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))
    if special and path.parts[:2] != ("/", "dev"):
        raise ValueError("it is no regular file")


# JSON


def read_json(field: str, path: Path) -> Any:
    """Read a JSON file without nan, inf and deep nesting. Raises: InputError."""
    text = read_text(field, path, MOST_JSON)
    try:
        return json.loads(text, parse_constant=_finite, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        words = shortened(str(error), 200)
        raise InputError(f"{field}: {path} is not JSON or damaged ({words})") from error


def _finite(text: str) -> float:
    if not math.isfinite(found := float(text)):
        raise ValueError(f"{shortened(text)} is no number")
    return found


def read_mapping(field: str, path: Path, kinds: Mapping[str, type | UnionType]) -> dict[str, Any]:
    """Read a JSON file with a mapping that has at least these keys. Raises: as `check_mapping`."""
    return check_mapping(field, path, read_json(field, path), kinds)


def check_mapping(
    field: str, path: Path, content: Any, kinds: Mapping[str, type | UnionType]
) -> dict[str, Any]:
    """Return the content of a file if it is a mapping with at least the keys of `kinds`.

    `kinds` gives the type of each value; numbers must be at least 0. Raises: InputError.
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
    """Yield the mappings of a file with one in each line; skip other lines.

    A crash may cut off a line. Raises: InputError if the file cannot be read.
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
    """A loader of plain types that refuses aliases and repeated names."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("an alias (*) is not allowed")
        return super().compose_node(parent, index)

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        content = super().construct_mapping(node, deep)
        for name, count in Counter(key.value for key, _ in node.value).items():
            if count > 1:
                raise yaml.YAMLError(f"{shortened(repr(name))} is there twice")
        return content


# Numbers are decimal, as options are: 010, 0x10, 1_000 and 1:30 are texts, 1e-3 is a number.
_PlainLoader.yaml_implicit_resolvers = {
    first: [pair for pair in pairs if not pair[0].endswith((":int", ":float"))]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
for kind, numbers in {
    "int": r"[-+]?(0|[1-9][0-9]*)$",
    "float": r"[-+]?(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE][-+]?\d+)?$",
}.items():
    _PlainLoader.add_implicit_resolver(
        f"tag:yaml.org,2002:{kind}", re.compile(numbers, re.ASCII), list("-+0123456789.")
    )
# A tag may name a type that does not fit its text.
_TAG_ERRORS = AttributeError, LookupError, ArithmeticError, TypeError


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

    `kinds` gives for each name the allowed kinds of numbers and the number of axes: `bu2` means
    bool or unsigned with two axes.
    """
    arrays = {}
    try:
        _refuse_special(path)
        with np.load(path, allow_pickle=False) as archive:
            for name in kinds:
                if name in archive or name not in optional:
                    arrays[name] = archive[name]
    # Damaged archives raise many kinds of errors, such as those of zlib and struct.
    except Exception as error:
        raise unreadable(field, path, error) from error
    for name, array in arrays.items():
        if array.dtype.kind not in kinds[name][:-1] or array.ndim != int(kinds[name][-1]):
            words = f"{name} is {array.dtype} with {array.ndim} axes"
            raise InputError(f"{field}: {path} cannot be used ({words})")
        _refuse_infinite(field, path, name, array)
    return arrays


def read_tensors(field: str, path: Path) -> dict[str, np.ndarray]:
    """Read the float16 and float32 arrays of a safetensors file. Raises: InputError."""
    from safetensors.numpy import load_file  # slow to import; options are checked first

    try:
        _refuse_special(path)
        tensors = load_file(path)
    except Exception as error:  # of several kinds; an unknown dtype is a KeyError
        raise unreadable(field, path, error) from error
    for name, array in tensors.items():
        if array.dtype not in (np.float16, np.float32):
            raise InputError(f"{field}: {shortened(name)} in {path} is {array.dtype}, not float16")
        _refuse_infinite(field, path, name, array)
    return tensors


def _refuse_infinite(field: str, path: Path, name: str, array: np.ndarray) -> None:
    """Raise an InputError for an array that has nan or inf."""
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"{field}: {shortened(name)} in {path} is not finite")

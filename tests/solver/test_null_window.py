"""The compiled search and its cache on disk."""

from __future__ import annotations

from pathlib import Path
from zlib import crc32

from jaxzero.solver import bitboards, null_window


def test_a_change_of_the_bitboards_invalidates_the_compiled_search():
    """numba looks at one file only, so the file of the search holds a checksum of the other."""
    checksum = crc32(Path(bitboards.__file__).read_bytes())
    assert checksum == null_window.BITBOARDS_CHECKSUM, f"set it to {checksum:#010x}"

"""What programs say to an engine, and what it answers, line by line.

A line that cannot be understood gets an answer that says why; the game stays as it was.
"""

from __future__ import annotations

from jaxzero.play.botzone import botzone
from jaxzero.play.engine import Session
from jaxzero.play.gtp import gtp
from jaxzero.play.sau import sau

PROTOCOLS = {"gtp": gtp, "sau": sau, "botzone": botzone}


def answer(protocol: str, engine: Session, line: str) -> list[str]:
    """Return the lines that answer a line of one of the PROTOCOLS."""
    # Without control characters, as a byte order mark or the end of a line.
    line = "".join(sign for sign in line if sign.isprintable() or sign.isspace())
    return PROTOCOLS[protocol](engine, line)

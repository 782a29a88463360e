"""Answer the lines that a program sends to an engine.

An invalid line gets an answer with the reason and does not change the game.
"""

from __future__ import annotations

from jaxzero.play.botzone import botzone
from jaxzero.play.engine import Session
from jaxzero.play.gtp import gtp
from jaxzero.play.sau import sau

PROTOCOLS = {"gtp": gtp, "sau": sau, "botzone": botzone}


def answer(protocol: str, engine: Session, line: str) -> list[str]:
    """Return the answer to a line in one of the PROTOCOLS."""
    # Drop control characters, such as a byte order mark, but keep white space.
    line = "".join(sign for sign in line if sign.isprintable() or sign.isspace())
    return PROTOCOLS[protocol](engine, line)

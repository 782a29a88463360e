"""The players by name: a new player is one entry. Imports no jax: command lines use it."""

import re
from typing import NamedTuple

from jaxzero.errors import InputError


class Kind(NamedTuple):
    """A kind of player; its name may have an argument after a colon."""

    make: str  # MODULE:FUNCTION, which takes (name, argument, board, agent) and returns the player
    help: str
    argument: str = ""  # its name in lists; empty: none
    pattern: str = ""  # of the argument
    uses_network: bool = False


HERE = "jaxzero.players.players:"
KINDS = {
    "random": Kind(HERE + "random_player", "any edge"),
    "greedy": Kind(HERE + "greedy_player", "takes a box, else gives none away if it can"),
    "rules": Kind(HERE + "rules_player", "greedy, and exact with few edges left; never compiles"),
    "perfect": Kind(
        HERE + "perfect_player",
        "exact play, or with SHARE this share of random moves, such as perfect:0.1",
        "SHARE",
        r"(0|1|0?\.\d+)?",
    ),
    "policy": Kind(HERE + "network_player", "the network without search", uses_network=True),
    "search": Kind(
        HERE + "network_player",
        "the network with up to 99999 simulations, such as search:64",
        "SIMULATIONS",
        r"[1-9]\d{0,4}",
        uses_network=True,
    ),
    "expert": Kind(
        HERE + "expert_player",
        "the network and the exact solver, with seconds for a decision, such as expert:1",
        "SECONDS",
        r"(?=.*[1-9])\d{0,4}(\.\d+)?",
        uses_network=True,
    ),
    "level": Kind(HERE + "level_player", "a level of strength", "LEVEL", ".+", uses_network=True),
}


def kind_of(name: str, field: str = "player") -> tuple[Kind, str]:
    """Return the kind and the argument of a player's name. Raises: InputError naming `field`."""
    word, _, argument = name.partition(":")
    if word not in KINDS:
        raise InputError(f"{field}: {name!r} is unknown (known: {', '.join(known_names())})")
    kind = KINDS[word]
    if not re.fullmatch(kind.pattern, argument, re.ASCII):
        needs = f"{word}:{kind.argument} is {kind.help}" if kind.argument else "takes no argument"
        raise InputError(f"{field}: {name!r}: {needs}")
    return kind, argument


def known_names() -> list[str]:
    """Return the names of all players, those with an argument as `search:SIMULATIONS`."""
    names = []
    for name, kind in KINDS.items():
        names += [name] * bool(re.fullmatch(kind.pattern, ""))
        names += [f"{name}:{kind.argument}"] * bool(kind.argument)
    return names


def uses_network(name: str) -> bool:
    """Return whether the player of a known name plays with a network."""
    return KINDS[name.partition(":")[0]].uses_network


def name_shown(player: str, network: str, networks: int) -> str:
    """Return the name of a player; with several networks, the name includes the network."""
    return f"{player} of {network}" if networks > 1 and uses_network(player) else player

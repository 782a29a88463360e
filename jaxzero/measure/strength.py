"""Measure strength: matches, and the record of exported weights."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import jax

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.host.progress import working
from jaxzero.measure.arena import MAX_AT_ONCE, batch_size, play_match
from jaxzero.measure.scoring import player_answers, score
from jaxzero.measure.suite import choose_suite
from jaxzero.measure.suite_report import format_scores
from jaxzero.network.network import Agent
from jaxzero.players.levels import find_level
from jaxzero.players.players import LEARNT, make_player, make_players
from jaxzero.runs.memory import NODE_BYTES, mebibytes, memory_limit_bytes
from jaxzero.runs.source import Source
from jaxzero.runs.weights import (
    LoadedAgent,
    from_half,
    read_record,
    to_half,
    training_record,
)


def play_matches(
    loaded: LoadedAgent, opponents: str, simulations: int, games: int, opening_plies: int, seed: int
) -> dict[str, dict]:
    """Play a match against each of `opponents`; print and return the results."""
    board = loaded.agent.network.board
    refuse_search("simulations", simulations, games, board)
    players = make_players(opponents, board, loaded.agent, "opponents")
    refuse_searches("opponents", [player.name for player in players], games, board)
    me = make_player(f"search:{simulations}", board, loaded.agent)
    results = {}
    for opponent in players:
        print(f"Playing {games} games against {opponent.name} ...", flush=True)
        with working(f"playing {games} games against {opponent.name}"):
            result = play_match(board, me, opponent, games, opening_plies, seed)
        print(f"{me.name} against {opponent.name:<14} {result}", flush=True)
        results[opponent.name] = result.to_dict()
    return results


def match_networks(
    networks: dict[str, Agent], names: list[str], games: int, opening_plies: int, seed: int
) -> dict[str, dict]:
    """Play a match between two networks for each player in `names`; print and return the results.

    Each result is that of the first network. Raises: InputError for a player without a network.
    """
    (one, first), (other, second) = networks.items()
    board, results = first.network.board, {}
    for name in names:
        if not name.startswith(LEARNT):
            raise InputError(f"players: {name} uses no network, so two networks cannot be matched")
    for name in names:
        players = (make_player(name, board, agent) for agent in (first, second))
        with working(f"playing {games} games of {name}"):
            result = play_match(board, *players, games, opening_plies, seed)
        print(f"{name}: {one} against {other} {result}", flush=True)
        results[name] = result.to_dict()
    return results


def measure_weights(
    source: Source, loaded: LoadedAgent, opponents: str, games: int, simulations: int
) -> tuple[LoadedAgent, dict[str, Any]]:
    """Return the network of a source and the record of its training and its measured strength.

    The network of a run is measured with the rounded weights of the export. Strength is measured in
    matches if there are opponents, and on the test suite of the board if it exists.
    """
    if source.folder is None:
        record = read_record(source.weights)
    else:
        record = {"training": training_record(source, loaded)}
        params = from_half(to_half(loaded.agent.params))
        loaded = loaded._replace(agent=replace(loaded.agent, params=params))
    if opponents:
        record["versus"] = play_matches(
            loaded, opponents, simulations, games, opening_plies=4, seed=0
        )
    suite = choose_suite("auto", loaded.config.game.board, half="test")
    if suite is not None:
        record["suite_name"], record["suite"] = suite.name, {}
        for name in ("policy", f"search:{simulations}"):
            with working(f"scoring {name} on suite {suite.name}"):
                player = make_player(name, suite.board, loaded.agent)
                record["suite"][name] = score(suite, player_answers(suite, player))
        print(format_scores(record["suite"]))
    return loaded, record


def refuse_searches(
    field: str, names: Iterable[str], games: int, board: DotsAndBoxes, positions: int = 0
) -> None:
    """Raise an InputError if a search of a player in `names` needs too much memory."""
    for name in names:
        kind, _, simulations = name.partition(":")
        if kind == "level":
            kind, _, simulations = find_level(simulations).player.partition(":")
        if kind == "search":
            refuse_search(field, int(simulations), games, board, positions)


def refuse_search(
    field: str, simulations: int, games: int, board: DotsAndBoxes, positions: int = 0
) -> None:
    """Raise an InputError if the search trees of a match do not fit into the memory.

    The trees of `positions` positions, searched at once in other work, must fit too.
    """
    limit = memory_limit_bytes(jax.local_devices()[:1])
    batch = max(batch_size(min(games, MAX_AT_ONCE)), positions)
    needed = batch * (simulations + 1) * board.num_edges * NODE_BYTES
    if limit is not None and needed > limit:
        raise InputError(
            f"{field}: {simulations} takes {mebibytes(needed)} for {batch} games at once, the "
            f"device has {mebibytes(limit)}: lower it"
        )

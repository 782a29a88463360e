"""Assess a trained run: matches, suites of solved positions, a ladder of its checkpoints."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from jaxzero.agent.players import make_player, make_players
from jaxzero.errors import InputError
from jaxzero.evaluation.arena import play_match
from jaxzero.evaluation.examine import examine_agent
from jaxzero.evaluation.rating import elo_ratings, format_ratings, ladder_pairs, play_pairs
from jaxzero.evaluation.report import draw_ladder, draw_scores, format_scores
from jaxzero.evaluation.suite import calibration, load_suite, score
from jaxzero.files import make_folder
from jaxzero.training.checkpoint import Checkpoints
from jaxzero.training.loading import LoadedAgent, load_agent

ANCHORS = "random,greedy"


def meet(
    loaded: LoadedAgent, opponents: str, simulations: int, games: int, opening_plies: int, seed: int
) -> dict[str, dict]:
    """Play a match against each of `opponents`, print and return the results."""
    game = loaded.config.game.board
    players = make_players(opponents, game, loaded.agent)
    me = make_player(f"search:{simulations}", game, loaded.agent)
    results = {}
    for opponent in players:
        print(f"Playing {games} games against {opponent.name} ...", flush=True)
        result = play_match(game, me, opponent, games, opening_plies, seed)
        print(f"{me.name} against {opponent.name:<14} {result}", flush=True)
        results[opponent.name] = result.to_dict()
    return results


def sit(loaded: LoadedAgent, name: str, simulations: int, figures: Path) -> dict[str, dict]:
    """Examine policy and search on a suite, print, draw and return the scores."""
    print(f"Scoring the suite {name} ...", flush=True)
    suite = load_suite(name, loaded.config.game.board)
    scores, calibrations = {}, {}
    for player, count in (("policy", 0), (f"search:{simulations}", simulations)):
        answers = examine_agent(suite, loaded.agent, count)
        scores[player] = score(suite, answers)
        if answers.win is not None:
            calibrations[player] = calibration(suite, answers)
    print(f"\nsuite {name}, {len(suite):,} positions with exact values")
    print(format_scores(scores))
    path = figures / f"suite_{name}.png"
    make_folder("figures", figures)
    title = f"{loaded.config.game.board}, iteration {loaded.iteration}, suite {name}"
    draw_scores(path, title, scores, calibrations)
    print(path)
    return {"suite_name": name, "suite": scores, "calibration": calibrations}


def climb(
    run_dir: Path, simulations: int, games: int, opening_plies: int, seed: int, figures: Path
) -> list[dict]:
    """Rate the checkpoints of a run by matches between neighbours and anchors; print and draw."""
    loaded = load_agent(run_dir)
    with Checkpoints(run_dir) as checkpoints:
        iterations = checkpoints.iterations()
    game = loaded.config.game.board
    # One player, many weights: its matches are compiled once.
    player = make_player(f"search:{simulations}", game, loaded.agent)
    rungs = {}
    for iteration in iterations:
        try:
            params = load_agent(run_dir, iteration).agent.params
        except InputError as error:
            print(f"skipped: {error}")
            continue
        rungs[f"iteration {iteration}"] = (iteration, replace(player, params=params))
    climbers = [replace(rung, name=name) for name, (_, rung) in rungs.items()]
    pairs = ladder_pairs(climbers, make_players(ANCHORS, game))
    matches = play_pairs(game, pairs, games, opening_plies, seed)
    ratings = elo_ratings(matches, anchor="random")
    print(f"\n{format_ratings(ratings)}")
    ladder = [
        {"iteration": rungs.get(rating.name, (None,))[0], **rating._asdict()} for rating in ratings
    ]
    make_folder("figures", figures)
    draw_ladder(figures / "ladder.png", ladder)
    print(figures / "ladder.png")
    return ladder

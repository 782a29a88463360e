"""Every setting of a run, with its default, unit and meaning.

The dataclasses are the single source of defaults and of help texts. Each type states the range of
its setting; values are checked once, at construction. Counts of games, positions and samples are
totals over all devices. `plan` computes the sizes that follow from the settings.
"""

import typing
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, NamedTuple

import yaml
from jsonargparse import set_loader
from jsonargparse.typing import ClosedUnitInterval, restricted_number_type

from jaxzero.errors import InputError
from jaxzero.game import DotsAndBoxes
from jaxzero.game.quiet import max_decisions, min_decisions
from jaxzero.host.files import read_text

# The types of all numbers from outside, in settings, options and calls: finite and bounded.
_MOST, _LARGEST, _LONGEST = ("<=", 2**31 - 1), ("<=", 99_999), ("<=", 1e9)
BoardSide = restricted_number_type("BoardSide", int, [(">=", 1), ("<=", 20)])
Size = restricted_number_type("Size", int, [(">=", 1), _LARGEST])
SizeOrZero = restricted_number_type("SizeOrZero", int, [(">=", 0), _LARGEST])
Count = restricted_number_type("Count", int, [(">=", 1), _MOST])
CountOrZero = restricted_number_type("CountOrZero", int, [(">=", 0), _MOST])
Amount = restricted_number_type("Amount", float, [(">", 0), _LONGEST])
AmountOrZero = restricted_number_type("AmountOrZero", float, [(">=", 0), _LONGEST])
LearningRate = restricted_number_type("LearningRate", float, [(">", 0), ("<=", 10)])
Seed = restricted_number_type("Seed", int, [(">=", 0), ("<", 2**63)])


@dataclass(frozen=True)
class GameConfig:
    """The board."""

    rows: BoardSide = 5
    """Rows of boxes. A 5x5 board has 6x6 dots."""
    cols: BoardSide = 5
    """Columns of boxes."""

    def __post_init__(self):
        check_types(self, "game")

    @property
    def board(self) -> DotsAndBoxes:
        return DotsAndBoxes(self.rows, self.cols)


@dataclass(frozen=True)
class NetworkConfig:
    """The residual network."""

    trunk: Literal["conv", "dense"] = "conv"
    """Kind of network. conv: a ResNet on the grid of dots. dense: fully connected residual
    blocks; ten times cheaper per position on a CPU, where presets use it up to 3x3."""
    features: Literal["raw", "structure"] = "structure"
    """Input of the network. raw: only the edges. structure: also free boxes, chains, loops and
    their counts, computed from the edges on the device. structure learns several times faster."""
    channels: Size = 128
    """Width: channels per grid point (conv), units per layer (dense). Larger is stronger and
    slower."""
    blocks: Size = 10
    """Depth: number of residual blocks."""
    attention_heads: SizeOrZero = 0
    """Heads of a self-attention layer over grid points after the last block; 0: no such layer. Must
    divide channels. For conv only."""
    safe_end: bool = False
    """Also predict the position without safe moves: who must open the first chain, and how many
    chains and loops of at least three boxes there are. The search does not use this prediction;
    the trunk learns from it what decides the game. For conv only."""
    compute_dtype: Literal["auto", "bfloat16", "float16", "float32"] = "auto"
    """Number format of activations and matrix products; parameters are always float32. auto: what
    the device computes fast. float32 on a CPU; on a GPU of compute capability 8.0 or more (Ampere)
    bfloat16, of 7.0 or more (T4, V100) float16, else float32. With float16, learning still computes
    in float32. Leave auto."""

    def __post_init__(self):
        check_types(self, "network")
        if self.attention_heads and self.channels % self.attention_heads:
            raise InputError(
                f"network.attention_heads: {self.attention_heads} does not divide "
                f"network.channels {self.channels}"
            )


@dataclass(frozen=True)
class SearchConfig:
    """The tree search of self-play: Gumbel AlphaZero with sequential halving."""

    simulations: Size = 16
    """Simulations per move; each is one network evaluation. More simulations make better targets
    and slower games. The presets have 8 to 32."""
    max_considered_actions: Size = 16
    """Largest number of root moves that the search compares by sequential halving; never more than
    simulations."""
    value_scale_per_box: AmountOrZero = 0.05
    """Weight of values against the policy of the network (c_scale of Gumbel AlphaZero). One box
    more adds value_scale_per_box * (50 + visits of the most visited move) to the logit of a move,
    at first 2.5 with the defaults. The setting means the same on boards of any size."""
    nodes: Literal["all", "quiet"] = "quiet"
    """Positions in the search tree. quiet: only positions without a box to take; an exact rule
    plays the captures, so captures cost no simulations. Each round of simulations is one batch; a
    position with few moves gets fewer simulations. all: every position, for comparisons; the
    library mctx searches in self-play, one simulation after the other."""

    def __post_init__(self):
        check_types(self, "search")


@dataclass(frozen=True)
class SelfplayConfig:
    """Games of the network against itself."""

    games_per_iteration: Count = 1024
    """Games per iteration, all devices together. All games run in parallel: more games use a GPU
    better and take more memory. With late_start_moves a quarter of the games runs at a time."""
    late_start_moves: SizeOrZero = 0
    """Number of random moves before self-play starts. They are not stored. Half of the games or
    more start later still; games that cannot finish within the step budget are skipped. Later
    starts give shorter games and cleaner value targets. On 5x5 use three quarters of the moves, and
    let late_start_until lower them to 0. Captures do not count. Needs search.nodes quiet."""
    late_start_until: ClosedUnitInterval = 0.0
    """Fraction of the run over which late_start_moves falls linearly to 0; 0: it does not fall.
    Openings are learnt only after the endgames that follow them are played well. A twelfth of the
    games runs at a time. Once games are long, fewer than games_per_iteration are played."""
    random_opening_moves: SizeOrZero = 6
    """Self-play begins each game with 0 to this many uniformly random moves, so that games differ.
    They have policy targets, but no margin targets. Captures count with search.nodes all only."""
    sampled_moves: SizeOrZero = 8
    """Number of first moves of each game that are sampled from the policy of the search
    (temperature 1). Random opening moves count among them, but stay uniformly random. The search
    chooses later moves, still with Gumbel noise."""
    random_move_fraction: ClosedUnitInterval = 0.0
    """Fraction of games with one uniformly random move after the opening. Value targets before it
    are masked. Self-play then also learns to refute moves that it never plays. 0.2 in all presets
    but tiny. A game that ends before the chosen ply has no such move."""
    surprise_weight: ClosedUnitInterval = 0.0
    """Fraction of the stored positions that are sampled in proportion to how much the search
    changed the policy of the network (policy surprise weighting of KataGo). The others are sampled
    uniformly. 0.5 in all presets but tiny."""
    td_lambda: ClosedUnitInterval = 1.0
    """Lambda of the margin targets of early positions (TD(lambda), Sutton 1988). 1: the result of
    the game. Lower: the result mixed with the values of the searches after the next moves, the
    k-th with weight (1 - td_lambda) * td_lambda^(k - 1). Far from the end of a game, its result is
    a noisy target."""
    td_above_edges: SizeOrZero = 24
    """With at most this many undrawn edges in the searched position, the result is the target."""

    def __post_init__(self):
        check_types(self, "selfplay")
        if self.late_start_until and not self.late_start_moves:
            raise InputError(
                f"selfplay.late_start_until: {self.late_start_until} needs "
                "selfplay.late_start_moves above 0, not 0"
            )


@dataclass(frozen=True)
class ReplayConfig:
    """The ring buffer of recent positions, on the device."""

    capacity: Count = 1_000_000
    """Number of newest positions to keep, all devices together; rounded up to whole iterations. A
    position takes about 2.2 bytes per edge."""

    def __post_init__(self):
        check_types(self, "replay")


@dataclass(frozen=True)
class LearnerConfig:
    """Gradient descent with clipping, warm-up and a late cosine decay."""

    batch_size: Count = 1024
    """Positions per update, all devices together; divisible by the number of devices. A larger
    batch raises the replay ratio."""
    updates_per_iteration: CountOrZero = 64
    """Updates after the games of each iteration. With batch_size it sets the replay ratio: how
    often an average position is sampled. The presets have a replay ratio of 3 to 8, lower on large
    boards; at 10 a 5x5 network memorised noisy results."""
    optimizer: Literal["adamw", "muon"] = "adamw"
    """Optimiser. muon: steps of weight matrices are equally long in all directions (Jordan et al.
    2024). With conv and a learning_rate of 3e-3, muon learnt more in short runs, but less in two
    hours on 5x5. muon takes more time with wide layers."""
    learning_rate: LearningRate = 1e-3
    """Learning rate after the warm-up. Lower it when the loss is unstable."""
    warmup_updates: CountOrZero = 100
    """Updates over which the learning rate rises from zero."""
    decay_fraction: ClosedUnitInterval = 0.5
    """Last fraction of the run over which the learning rate falls along a cosine to 2 % of its
    value; 0: it never falls. The run ends at iterations or minutes, whichever comes first."""
    weight_decay: AmountOrZero = 1e-4
    """Decoupled weight decay of matrices and kernels, not of biases and scales."""
    gradient_clip: Amount = 1.0
    """Largest global norm of a gradient; larger gradients are scaled down to it."""

    def __post_init__(self):
        check_types(self, "learner")


@dataclass(frozen=True)
class EvaluationConfig:
    """Matches and solved positions that measure the network, during training and after it."""

    evaluate_every: CountOrZero = 10
    """Iterations between evaluations of the network without search; 0: only at the end."""
    games: Count = 128
    """Games per match during training, even: each opening is played twice with swapped seats."""
    final_games: Count = 512
    """Games per match at the end of the run, even. As many as `games` compile no new program."""
    simulations: SizeOrZero = 64
    """Simulations per move of the network at the end of the run; 0: the policy without search."""
    random_opening_moves: SizeOrZero = 4
    """Each pair of games begins with 0 to this many random edges; here captures count too."""
    opponents: str = "random,greedy"
    """Players to play against, separated by commas: random, greedy, perfect, or perfect:SHARE,
    which plays this share of its moves at random. Empty: no matches."""
    suite: str = "auto"
    """Suite of exactly solved positions to score the network on: table, a stored suite such as
    5x5_tuning, a file of make_suite.py, or none. auto: table (positions of random play) on boards
    of up to 24 edges, else the stored tuning half for the board, if there is one. Keep the test
    half for the final result."""

    def __post_init__(self):
        check_types(self, "evaluation")
        for name in ("games", "final_games"):
            if getattr(self, name) % 2:
                raise InputError(
                    f"evaluation.{name}: {getattr(self, name)} must be even "
                    "(pairs with swapped seats)"
                )


@dataclass(frozen=True)
class Config:
    """Settings of a training run."""

    game: GameConfig = field(default_factory=GameConfig)
    network: NetworkConfig = field(default_factory=NetworkConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    selfplay: SelfplayConfig = field(default_factory=SelfplayConfig)
    replay: ReplayConfig = field(default_factory=ReplayConfig)
    learner: LearnerConfig = field(default_factory=LearnerConfig)
    evaluation: EvaluationConfig = field(default_factory=EvaluationConfig)
    seed: Seed = 0
    """Seed of all random numbers. The same seed, config and devices repeat a run exactly."""
    iterations: CountOrZero = 100
    """Iterations of the whole run; each is self-play, then learning. 0: no limit; only minutes ends
    the run."""
    minutes: AmountOrZero = 0.0
    """Minutes of self-play and learning of the whole run, over all resumes; compiling and
    evaluations take extra time. The iteration in which the minutes run out is the last. 0: no
    limit. Time-limited runs are not reproducible: the learning rate follows the clock."""
    devices: SizeOrZero = 0
    """Number of GPUs to use; 0: all. A CPU is one device unless JAX_NUM_CPU_DEVICES is set."""
    checkpoint_every: Count = 20
    """Iterations between checkpoints; the last iteration always has one."""
    save_replay: bool = True
    """Save the replay buffer with the newest two checkpoints. A resumed run then equals an
    uninterrupted run. The buffer is the largest part of a checkpoint."""

    def __post_init__(self):
        check_types(self)
        if not self.iterations and not self.minutes:
            raise InputError("iterations: 0 needs minutes above 0, or the run has no end")
        if self.selfplay.late_start_moves and self.search.nodes != "quiet":
            raise InputError(
                f"selfplay.late_start_moves: {self.selfplay.late_start_moves} needs search.nodes "
                f"quiet, not {self.search.nodes}"
            )
        if shortest_game(self) <= self.selfplay.late_start_moves:
            raise InputError(
                f"selfplay.late_start_moves: {self.selfplay.late_start_moves} must be below "
                f"{shortest_game(self)}, the length of the shortest {self.game.board} game"
            )
        for name in ("selfplay", "evaluation"):
            plies = getattr(self, name).random_opening_moves
            check_opening(f"{name}.random_opening_moves", plies, self.game.board)

    def progress(self, iterations: int, minutes: float) -> float:
        """Return the progress of a run, 0 to 1, by iterations or by minutes.

        The larger fraction counts, so schedules reach their end whichever limit comes first.
        """
        of_iterations = iterations / self.iterations if self.iterations else 0.0
        of_minutes = minutes / self.minutes if self.minutes else 0.0
        return min(1.0, max(of_iterations, of_minutes))

    @property
    def replay_ratio(self) -> float:
        """Times each position is sampled for learning, on average."""
        return self.samples_per_iteration / plan(self).positions

    @property
    def samples_per_iteration(self) -> int:
        """Samples of all updates of an iteration, on all devices."""
        return self.learner.updates_per_iteration * self.learner.batch_size

    def check_devices(self, devices: int) -> None:
        """Raise an InputError unless games and samples divide evenly over `devices`."""
        for name, value in (
            ("selfplay.games_per_iteration", self.selfplay.games_per_iteration),
            ("learner.batch_size", self.learner.batch_size),
        ):
            if value % devices:
                raise InputError(f"{name}: {value} is not divisible by {devices} devices")


class Plan(NamedTuple):
    """Sizes of an iteration: those of one device.

    A decision is a search and its move. A lane is one place in the batch of parallel games. Whole
    games differ little in length: each has a lane. Late games are short and differ much in length:
    a lane plays several of them, one after the other.
    """

    games: int
    lanes: int  # games that run in parallel
    steps: int  # largest number of decisions of a lane
    decisions: int  # of all lanes; a whole game counts as the shortest, a late one fills its lane
    positions: int  # stored; about the mean number of decisions of a game, times the games
    iterations_kept: int  # in the full replay


def plan(config: Config, devices: int = 1) -> Plan:
    """Return the sizes of an iteration on each of `devices` devices."""
    settings, all_games = config.selfplay, config.selfplay.games_per_iteration
    games, late = all_games // devices, settings.late_start_moves
    shortest, longest = shortest_game(config), longest_game(config)
    steps = longest if settings.late_start_until else longest - late
    # Half of the late games begin later still, so on average they take half of the longest one.
    together = max(1, round(2 * steps / (longest - late))) if late else 1
    lanes = max(1, games // together)
    decisions = lanes * (steps if late else shortest)
    positions = max(1, 3 * steps // (4 * together)) if late else shortest
    return Plan(
        games=games,
        lanes=lanes,
        steps=steps,
        decisions=decisions,
        positions=games * positions,
        iterations_kept=-(-config.replay.capacity // (all_games * positions)),
    )


def shortest_game(config: Config) -> int:
    """Return the decisions of the shortest game from the first move on; quiet 3x3: 15."""
    board = config.game.board
    return min_decisions(board) if config.search.nodes == "quiet" else board.num_edges


def longest_game(config: Config) -> int:
    """Return the decisions of the longest game from the first move on; quiet 3x3: 17."""
    board = config.game.board
    return max_decisions(board) if config.search.nodes == "quiet" else board.num_edges


def check_number(field: str, value: Any, kind: type) -> int | float:
    """Return a value as a plain number of a type such as Count. Raises: InputError."""
    try:
        return (int if issubclass(kind, int) else float)(kind(value))
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(f"{field}: {value!r} is not a {kind.__name__} ({error})") from error


def check_types(settings: Any, section: str = "") -> None:
    """Check the fields of a frozen dataclass by their types, and make its numbers plain.

    Raises: InputError naming the field and its value.
    """
    for name, kind in typing.get_type_hints(type(settings)).items():
        value, field = getattr(settings, name), f"{section}.{name}".lstrip(".")
        if choices := typing.get_args(kind):  # of a Literal
            if value not in choices:
                raise InputError(f"{field}: {value!r} is not one of {', '.join(choices)}")
        elif issubclass(kind, int | float) and kind is not bool:
            object.__setattr__(settings, name, check_number(field, value, kind))
        elif not isinstance(value, kind):
            raise InputError(f"{field}: {value!r} is not a {kind.__name__}")


def check_opening(field: str, plies: int, board: DotsAndBoxes) -> None:
    """Raise an InputError for an opening with more moves than the board has edges."""
    if plies > board.num_edges:
        raise InputError(f"{field}: {plies} is more than the {board.num_edges} edges of {board}")


def config_of_file(path: Path, field: str = "config") -> Config:
    """Read the config of a run from its YAML file or from the record of a checkpoint.

    Raises: InputError that begins with `field` if the file is of another kind.
    """
    content = read_mapping(field, path)
    record = content.get("config")
    return config_of(record if isinstance(record, dict) else content, str(path))


def read_mapping(field: str, path: Path) -> dict[str, Any]:
    """Read a YAML file of settings. Raises: InputError that begins with `field`."""
    try:
        content = load_yaml(read_text(field, path))
    except (yaml.YAMLError, RecursionError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"{field}: {path} is not YAML ({said})") from error
    if not isinstance(content, dict):
        raise InputError(f"{field}: {path} is not a mapping of settings")
    return content


def load_yaml(text: str) -> Any:
    """Return the content of a YAML text. Raises: yaml.YAMLError, also for a double key."""
    return yaml.load(text, _Loader)


class _Loader(yaml.SafeLoader):
    """Refuses double keys, and leaves dates as texts: a folder may be named 2026-11-27."""

    yaml_implicit_resolvers: typing.ClassVar = {
        first: [(tag, form) for tag, form in forms if not tag.endswith("timestamp")]
        for first, forms in yaml.SafeLoader.yaml_implicit_resolvers.items()
    }

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict:
        keys = [key.value for key, _ in node.value]
        for number, (key, _) in enumerate(node.value):
            if key.value in keys[:number]:
                words = f"line {key.start_mark.line + 1}: the key {key.value!r} stands twice"
                raise yaml.constructor.ConstructorError(problem=words)
        return super().construct_mapping(node, deep)


set_loader("settings", load_yaml, (yaml.YAMLError,))  # the `parser_mode` of command lines


def config_of(content: dict[str, Any], where: str) -> Config:
    """Return the Config of a stored mapping of settings. Raises: InputError that ends with `where`.

    Settings that this version does not have are dropped if they are off (0 or false).
    """
    known = {name for name, _ in typed_fields(Config)}
    try:
        for section, settings in content.items():
            if isinstance(settings, dict) and section in known:
                off = [name for name in settings if f"{section}.{name}" not in known]
                settings = {k: v for k, v in settings.items() if v or k not in off}
                content = {**content, section: settings}
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
            raise InputError(unknown_setting(field, (known for known, _ in typed_fields(Config))))
        nested = is_dataclass(kinds[name])
        values[name] = build_config(value, kinds[name], field) if nested else value
    return cls(**values)


def unknown_setting(name: str, known: Iterable[str]) -> str:
    """Return the error of a name that is not `known`, with the most similar one that is."""
    similar = get_close_matches(name, known, 1)
    return f"{name}: there is no such setting" + (
        f"; did you mean {similar[0]}?" if similar else ""
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

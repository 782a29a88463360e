"""Read the kernels and loops of a compiled GPU program from its text.

XLA writes a program as computations of instructions (HLO). After optimisation nearly every
instruction is one kernel launch: a fusion, a library call or a copy. A loop with a known number of
rounds launches its kernels that many times. For any other loop, and for a branch, the host must
read the condition back from the GPU before it can launch the next kernels.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

# Instructions that launch nothing.
FREE = {
    *("parameter", "constant", "tuple", "get-tuple-element", "bitcast", "after-all", "call"),
    *("while", "conditional", "partition-id", "replica-id", "optimization-barrier"),
    *("get-dimension-size", "async-start", "async-update", "async-done"),
}
PRODUCTS = ("__cudnn$", "__cublas$", "__triton_gemm", "__triton_nested_gemm")


class Instruction(NamedTuple):
    """One line of HLO."""

    op: str
    line: str

    def attribute(self, name: str) -> str | None:
        """Return the computation or the quoted text that the line names."""
        found = re.search(rf'\b{name}=(?:%?([\w.\-]+)|"([^"]*)")', self.line)
        return found and (found[1] or found[2])


Computations = dict[str, list[Instruction]]


class Kernel(NamedTuple):
    """One launch."""

    source: str  # operation of the traced program that it belongs to
    product: bool  # a convolution or a matrix product of a library

    @property
    def of_network(self) -> bool:
        return self.product or "Network" in self.source


class Loop(NamedTuple):
    """The launches of a program, or of one round of a loop, in the order of the text."""

    source: str
    rounds: int | None  # None: not known before it runs
    kernels: list[Kernel]
    loops: list[Loop]
    branches: int  # branches; the host reads back the condition of each

    def walk(self) -> Iterator[Loop]:
        """Yield this loop and all loops in it."""
        yield self
        for loop in self.loops:
            yield from loop.walk()

    @property
    def unknown(self) -> list[Loop]:
        """The loops of unknown length in this loop, itself included."""
        return [loop for loop in self.walk() if loop.rounds is None]


class Launches(NamedTuple):
    """The launches of one run of a program, and how often the host reads back."""

    total: float
    products: float
    reads_back: float


def read_program(text: str) -> Loop:
    """Read optimised HLO; the program itself is a loop of one round."""
    parts = computations(text)
    entry = re.search(r"^ENTRY %?([\w.\-]+)", text, re.MULTILINE)
    return read_loop(parts, [entry[1]], "program", 1)


def count_launches(program: Loop, rounds_of: Callable[[Loop], float]) -> Launches:
    """Count the launches of one run; `rounds_of` guesses the rounds of unknown loops."""
    unknown = program.rounds is None
    rounds = rounds_of(program) if unknown else program.rounds
    inner = [count_launches(loop, rounds_of) for loop in program.loops]
    total = len(program.kernels) + sum(loop.total for loop in inner)
    products = sum(kernel.product for kernel in program.kernels)
    products += sum(loop.products for loop in inner)
    reads_back = program.branches + unknown + sum(loop.reads_back for loop in inner)
    # A loop of unknown length reads its condition once more than it has rounds.
    return Launches(rounds * total, rounds * products, rounds * reads_back + unknown)


def computations(text: str) -> Computations:
    """Split HLO into its computations."""
    found: Computations = {}
    current: list[Instruction] = []
    for line in re.sub(r"/\*.*?\*/", "", text).splitlines():
        head = re.match(r"(?:ENTRY )?%?([\w.\-]+) \(.*\) -> .*\{$", line)
        if head:
            current = found.setdefault(head[1], [])
        elif one := _instruction(line):
            current.append(one)
    return found


def read_loop(parts: Computations, names: list[str], source: str, rounds: int | None) -> Loop:
    """Read the launches of the computations `names`, taken together."""
    loop, waiting = Loop(source, rounds, [], [], 0), list(names)
    while waiting:
        for one in parts[waiting.pop(0)]:
            if one.op == "while":
                known = re.search(r'"known_trip_count":\{"n":"(\d+)"', one.line)
                bodies = [one.attribute("body")] + ([] if known else [one.attribute("condition")])
                times = int(known[1]) if known else None
                loop.loops.append(read_loop(parts, bodies, one.attribute("op_name") or "", times))
            elif one.op in ("call", "async-start"):
                called = one.attribute("to_apply") or one.attribute("calls")
                waiting += [called] if called in parts else []
            elif one.op == "conditional":
                loop = loop._replace(branches=loop.branches + 1)
                several = re.search(r"branch_computations=\{([^}]*)\}", one.line)
                two = [one.attribute(f"{truth}_computation") for truth in ("true", "false")]
                waiting += re.findall(r"[\w.\-]+", several[1]) if several else two
            elif one.op not in FREE and not one.op.endswith(("-done", "-update")):
                product = any(name in one.line for name in PRODUCTS)
                loop.kernels.append(Kernel(one.attribute("op_name") or "", product))
    return loop


def _instruction(line: str) -> Instruction | None:
    """Read one line, or return None if it holds no instruction."""
    found = re.match(r"\s+(?:ROOT )?%?[\w.\-]+ = (?:\([^=]*?\)|\S+) ([\w\-]+)\(", line)
    return Instruction(found[1], line) if found else None

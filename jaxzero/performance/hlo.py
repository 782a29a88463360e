"""What a compiled program does on a GPU, read from its text: kernels, loops and bytes.

XLA writes a program as computations of instructions (HLO). After optimisation nearly every
instruction is one kernel that is launched: a fusion, a library call or a copy. A loop whose number
of rounds is known is launched so many times. Of any other loop, and of a branch, the host must read
the condition back from the GPU before it can launch what follows.
"""

from __future__ import annotations

import math
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
SLICES = {"gather", "dynamic-slice", "slice"}
WRITES = {"dynamic-update-slice": 1, "scatter": 2}  # operand that is written


class Instruction(NamedTuple):
    """One line of HLO."""

    name: str
    op: str
    bytes: int  # of the result
    operands: list[str]
    line: str

    def attribute(self, name: str) -> str | None:
        """Return the computation or the quoted text that the line names."""
        found = re.search(rf'\b{name}=(?:%?([\w.\-]+)|"([^"]*)")', self.line)
        return found and (found[1] or found[2])

    @property
    def called(self) -> str | None:
        return self.attribute("to_apply") or self.attribute("calls")


Computations = dict[str, list[Instruction]]


class Kernel(NamedTuple):
    """One launch."""

    op: str  # fusion, copy, or the name of a library's function
    source: str  # operation of the traced program that it belongs to
    bytes: int  # read and written
    product: bool  # a convolution or a matrix product of a library

    @property
    def of_network(self) -> bool:
        return self.product or "Network" in self.source


class Loop(NamedTuple):
    """What a program or the body of a loop launches in one round, in the order of the text."""

    source: str
    rounds: int | None  # None: not known before it runs
    kernels: list[Kernel]
    loops: list[Loop]
    branches: int  # whose condition the host reads back

    def walk(self) -> Iterator[Loop]:
        """Yield this loop and all loops in it."""
        yield self
        for loop in self.loops:
            yield from loop.walk()

    @property
    def unknown(self) -> list[Loop]:
        """Loops of unknown length in here."""
        return [loop for loop in self.walk() if loop.rounds is None]


class Launches(NamedTuple):
    """How often one run of a program launches each of its kernels, and what the host reads back."""

    kernels: list[tuple[Kernel, float]]  # kernel and number of its launches
    reads_back: float

    @property
    def total(self) -> float:
        return sum(times for _, times in self.kernels)

    @property
    def products(self) -> float:
        return sum(times for kernel, times in self.kernels if kernel.product)


def read_program(text: str) -> Loop:
    """Read optimised HLO; the program itself is a loop of one round."""
    parts = computations(text)
    entry = re.search(r"^ENTRY %?([\w.\-]+)", text, re.MULTILINE)
    return read_loop(parts, [entry[1]], "program", 1)


def count_launches(program: Loop, rounds_of: Callable[[Loop], float]) -> Launches:
    """Count the launches of one run; `rounds_of` guesses for loops of unknown length."""
    kernels: list[tuple[Kernel, float]] = []
    reads_back = 0.0

    def visit(loop: Loop, times: float) -> None:
        nonlocal reads_back
        inside = times * (rounds_of(loop) if loop.rounds is None else loop.rounds)
        if loop.rounds is None:
            reads_back += times + inside  # once more than there are rounds
        reads_back += inside * loop.branches
        kernels.extend((kernel, inside) for kernel in loop.kernels)
        for inner in loop.loops:
            visit(inner, inside)

    visit(program, 1.0)
    return Launches(kernels, reads_back)


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
    """Read what the computations `names` launch together."""
    loop, waiting = Loop(source, rounds, [], [], 0), list(names)
    while waiting:
        inside = parts[waiting.pop(0)]
        sizes = {one.name: one.bytes for one in inside}
        for one in inside:
            if one.op == "while":
                known = re.search(r'"known_trip_count":\{"n":"(\d+)"', one.line)
                bodies = [one.attribute("body")] + ([] if known else [one.attribute("condition")])
                times = int(known[1]) if known else None
                loop.loops.append(read_loop(parts, bodies, one.attribute("op_name") or "", times))
            elif one.op in ("call", "async-start"):
                waiting += [called for called in [one.called] if called in parts]
            elif one.op == "conditional":
                loop = loop._replace(branches=loop.branches + 1)
                several = re.search(r"branch_computations=\{([^}]*)\}", one.line)
                two = [one.attribute(f"{truth}_computation") for truth in ("true", "false")]
                waiting += re.findall(r"[\w.\-]+", several[1]) if several else two
            elif one.op not in FREE and not one.op.endswith(("-done", "-update")):
                loop.kernels.append(_kernel(parts, one, sizes))
    return loop


def _kernel(parts: Computations, one: Instruction, sizes: dict[str, int]) -> Kernel:
    target = one.attribute("custom_call_target")
    product = any(name in one.line for name in PRODUCTS)
    fused = parts.get(one.called or "") if one.op.startswith("fusion") else None
    if fused:
        moved = _fusion_bytes(fused)
    else:
        moved = one.bytes + sum(sizes.get(name, 0) for name in one.operands)
    return Kernel(target or one.op, one.attribute("op_name") or "", moved, product)


def _fusion_bytes(fused: list[Instruction]) -> int:
    """Return what a fusion reads and writes: of an array that it slices, the slices alone."""
    by_name = {one.name: one for one in fused}
    root = fused[-1]
    results = [by_name[name] for name in root.operands] if root.op == "tuple" else [root]
    moved = sum(_written(result, by_name) for result in results)
    for array in fused:
        if array.op == "parameter":
            moved += min(array.bytes, _read(array, array.bytes, fused))
    return moved


def _read(array: Instruction, whole: int, fused: list[Instruction]) -> int:
    """Return what the instructions of a fusion read of an array of `whole` bytes."""
    read = 0
    for user in fused:
        if array.name in user.operands:
            first = user.operands[0] == array.name
            if user.op == "bitcast":
                read += _read(user, whole, fused)
            elif first and user.op in SLICES:
                read += user.bytes
            elif not (first and user.op in WRITES):  # which leave the rest of it as it is
                read += whole
    return read


def _written(result: Instruction, by_name: dict[str, Instruction]) -> int:
    """Return what a result of a fusion writes: into an array that is updated, the update alone."""
    while result.op == "bitcast":
        result = by_name[result.operands[0]]
    if result.op in WRITES:
        return by_name[result.operands[WRITES[result.op]]].bytes
    return result.bytes


def _instruction(line: str) -> Instruction | None:
    """Read one line, or return None where it holds no instruction."""
    found = re.match(r"\s+(?:ROOT )?%?([\w.\-]+) = (\([^=]*?\)|\S+) ([\w\-]+)\(([^)]*)\)", line)
    if not found:
        return None
    name, result, op, operands = found.groups()
    return Instruction(name, op, _bytes(result), re.findall(r"%([\w.\-]+)", operands), line)


def _bytes(type_: str) -> int:
    """Return the size of a type such as bf16[8,2]{1,0}, or of a tuple of them."""
    total = 0
    for kind, sides in re.findall(r"([a-z]+\d*\w*)\[([\d,]*)\]", type_):
        bits = re.search(r"\d+", kind)
        items = math.prod(int(side) for side in sides.split(",") if side)
        total += items * (int(bits[0]) if bits else 8) // 8
    return total

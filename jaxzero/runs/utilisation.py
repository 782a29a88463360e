"""True utilisation: the share of a device's speed that a run puts to use.

A GPU that `nvidia-smi` calls busy may compute at a few percent of its speed. Here only what a run
needs counts: the evaluations that its searches ask for and the samples that it learns from.
"""

from typing import NamedTuple


class Work(NamedTuple):
    """The operations that a run needs, and how fast its devices multiply matrices."""

    per_evaluation: float  # FLOP
    per_sample: float  # FLOP, of the gradient and the optimiser
    peak: float  # FLOP/s of matrix products, all devices together

    def rates(self, evaluations: float, samples: float, seconds: float) -> dict[str, float]:
        """Return the useful TFLOP/s of so much work in `seconds`, and their share of the peak."""
        useful = (evaluations * self.per_evaluation + samples * self.per_sample) / seconds
        return {"useful_tflops": useful / 1e12, "utilisation": useful / self.peak}

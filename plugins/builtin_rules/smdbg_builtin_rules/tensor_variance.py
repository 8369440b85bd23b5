"""TensorVariance."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_builtin_rules.streaks import Streaks
from smdbg_core import DEEP_LEARNING, Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule, constraint


class TensorVariance(TensorRule):
    """Fires when the variance of a tensor is too high or too low.

    Why it matters: activations that spread ever wider or narrow down to a point drive gradients with them.
    What to do: choose the initialisation for the activation, and normalise between layers.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    presets: ClassVar = {"recommended": {"min_dimensions": 2, "patience": 3}}
    requires: ClassVar = (("collection_names", "tensor_regex"), ("max_threshold", "min_threshold"))

    collection_names: Annotated[tuple[str, ...], Meta(description="Collections to inspect.")] = ()
    tensor_regex: Annotated[tuple[Regex, ...], Meta(description="Patterns of names to inspect.")] = ()
    max_threshold: Annotated[float | None, Meta(ge=0, description="A variance above this fires.")] = None
    min_threshold: Annotated[float | None, Meta(ge=0, description="A variance below this fires.")] = None

    min_dimensions: Annotated[
        int, Meta(ge=0, unit="axes", description="Tensors with fewer axes are left out.", local=True)
    ] = 0
    patience: Annotated[
        int, Meta(ge=1, unit="saved steps", description="Violations in a row that fire.", local=True)
    ] = 1

    @constraint("min_threshold", "max_threshold")
    def _in_order(self) -> str | None:
        if None not in (self.min_threshold, self.max_threshold) and (
            (self.min_threshold or 0) > (self.max_threshold or 0)
        ):
            return f"min_threshold={self.min_threshold} is above max_threshold={self.max_threshold}"
        return None

    def reads(self) -> Reads:
        """The selected tensors, or their saved variances."""
        return Reads(
            collections=self.collection_names, patterns=self.tensor_regex, statistics=("size", "variance")
        )

    def start(self, run: RuleRun) -> None:
        """Forget all streaks."""
        self._streaks = Streaks(self, self.patience)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the variance of every selected tensor."""
        for tensor in step.tensors():
            if len(tensor.shape) < self.min_dimensions:
                self.skip(tensor, "too few axes", have=len(tensor.shape), need=self.min_dimensions)
                continue
            variance = tensor.statistics.variance
            if tensor.statistics.size == 1 and self.max_threshold is None:
                self.skip(tensor, "a single number has no variance")
                continue
            for comparison, limit in ((">", self.max_threshold), ("<", self.min_threshold)):
                if limit is not None:
                    yield from self._streaks.judge(tensor, "variance", variance, comparison, limit)

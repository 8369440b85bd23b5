"""ExplodingTensor."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_core import DEEP_LEARNING, Finding, Meta, Reads, Regex, StepView, TensorRule, TensorView


class ExplodingTensor(TensorRule):
    """Fires when a tensor holds NaN or infinite values.

    Why it matters: non-finite values spread with every step; what is trained after them is lost.
    What to do: go back before the first such step; lower the learning rate, clip gradients, and
    check the input data and divisions or logarithms for zeros.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    severity: ClassVar = "critical"

    collection_names: Annotated[
        tuple[str, ...], Meta(description="Collections to inspect; all tensors without any selector.")
    ] = ()
    tensor_regex: Annotated[tuple[Regex, ...], Meta(description="Patterns of names to inspect.")] = ()
    only_nan: Annotated[bool, Meta(description="Whether only NaN counts, not infinities.")] = False

    def reads(self) -> tuple[Reads, ...]:
        """The selected tensors, and saved reductions of those that were not saved raw."""
        everything = not (self.collection_names or self.tensor_regex)
        raw = Reads(
            group="raw",
            collections=self.collection_names,
            patterns=self.tensor_regex,
            everything=everything,
            statistics=("nan_count",) if self.only_nan else ("nan_count", "non_finite"),
            source="raw",
            optional=True,
        )
        return raw, raw._replace(group="reductions", statistics=("max_abs",), source="reductions")

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge every tensor of the step."""
        for tensor in step.tensors("raw"):
            counts = tensor.statistics
            if self.only_nan:
                yield from self.judge(tensor, "nan_count", counts.nan_count, ">", 0, non_finite=0)
            else:
                infinite = counts.non_finite - counts.nan_count
                text = f"{counts.nan_count:.0f} NaN and {infinite:.0f} infinite elements"
                yield from self.judge(
                    tensor, "non_finite", counts.non_finite, ">", 0, message=text, non_finite=0
                )
        for tensor in step.tensors("reductions"):
            yield from self._judge_reductions(tensor)

    def _judge_reductions(self, tensor: TensorView) -> Iterator[Finding]:
        """A non-finite reduction proves non-finite elements; the reverse takes minimum and maximum."""
        saved = tensor.reductions
        if self.only_nan:
            bad = {name: value for name, value in saved.items() if math.isnan(value)}
        else:
            bad = {name: value for name, value in saved.items() if not math.isfinite(value)}
        if not bad and not (saved.keys() >= {"min", "max"} or "abs_max" in saved):
            self.skip(tensor, "raw value not saved")
            return
        text = f"saved reductions are not finite: {', '.join(f'{n} {v}' for n, v in sorted(bad.items()))}"
        yield from self.judge(tensor, "non_finite_reductions", len(bad), ">", 0, message=text, non_finite=0)

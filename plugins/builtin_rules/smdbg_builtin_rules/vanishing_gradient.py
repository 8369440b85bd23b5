"""VanishingGradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_core import DEEP_LEARNING, Collection, Finding, Meta, Reads, StepView, TensorRule


class VanishingGradient(TensorRule):
    """Fires when the mean absolute value of a gradient falls below a threshold.

    Why it matters: the layer stops learning, while the loss may still move because others learn.
    What to do: look at the first layers first; check initialisation, activations and depth, and add
    normalisation or skip connections.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    collections_to_save: ClassVar = (Collection("gradients", save_interval=500),)

    threshold: Annotated[float, Meta(gt=0, description="A mean absolute gradient below this fires.")] = 1e-7

    def reads(self) -> Reads:
        """The gradients, or their saved mean absolute values."""
        return Reads(collections=("gradients",), statistics=("mean_abs",))

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge every gradient of the step."""
        for tensor in step.tensors():
            yield from self.judge(tensor, "mean_abs", tensor.statistics.mean_abs, "<", self.threshold)

"""VanishingGradient."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_builtin_rules.streaks import Streaks
from smdbg_core import DEEP_LEARNING, Collection, Finding, Meta, Reads, RuleRun, StepView, TensorRule


class VanishingGradient(TensorRule):
    """Fires when the mean absolute value of a gradient falls below a threshold.

    Why it matters: the layer stops learning, while the loss may still move because others learn.
    What to do: look at the first layers first; check initialisation, activations and depth, and add
    normalisation or skip connections.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    presets: ClassVar = {
        "recommended": {"exclude": ("bias",), "threshold": 1e-10, "ratio_threshold": 1e-4, "patience": 3}
    }
    collections_to_save: ClassVar = (Collection("gradients", save_interval=500),)

    threshold: Annotated[float, Meta(gt=0, description="A mean absolute gradient below this fires.")] = 1e-7

    ratio_threshold: Annotated[
        float,
        Meta(
            ge=0,
            lt=1,
            unit="ratio",
            description="A smaller mean, as a share of the largest of the step, fires as well.",
            local=True,
        ),
    ] = 0.0
    patience: Annotated[
        int, Meta(ge=1, unit="saved steps", description="Violations in a row that fire.", local=True)
    ] = 1

    def reads(self) -> Reads:
        """The gradients, or their saved mean absolute values."""
        return Reads(collections=("gradients",), statistics=("mean_abs",))

    def start(self, run: RuleRun) -> None:
        """Forget all streaks."""
        self._streaks = Streaks(self, self.patience)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge every gradient of the step."""
        means = {(view.name, view.worker): view.statistics.mean_abs for view in step.tensors()}
        largest = max((mean for mean in means.values() if mean == mean), default=0.0)
        for tensor in step.tensors():
            mean = means[tensor.name, tensor.worker]
            yield from self._streaks.judge(tensor, "mean_abs", mean, "<", self.threshold)
            # Below the threshold the layer is found already.
            if self.ratio_threshold and largest > 0 and not mean < self.threshold:
                yield from self._streaks.judge(
                    tensor, "share_of_largest", mean / largest, "<", self.ratio_threshold
                )

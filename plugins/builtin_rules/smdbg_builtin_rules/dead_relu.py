"""DeadRelu."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np

from smdbg_builtin_rules.activity import RecentActivity
from smdbg_core import DEEP_LEARNING, Collection, Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule


class DeadRelu(TensorRule):
    """Fires when too many ReLU units of a layer output nothing for nearly all samples.

    Why it matters: a dead unit has no gradient, and so stays dead.
    What to do: lower the learning rate, check the biases and the input scale, or use a leaky activation.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    presets: ClassVar = {"recommended": {"window": 3, "threshold_layer": 60.0}}
    collections_to_save: ClassVar = (
        Collection("relu_output", include_regex=".*relu_output", save_interval=500),
    )

    tensor_regex: Annotated[
        tuple[Regex, ...],
        Meta(
            description="Outputs of ReLU layers.",
            also=(r"(?i)(?<![a-z])re_?lu\w*_output", r"(?i)(?<![a-z])re_?lu\w*/(?!inputs|weights)"),
        ),
    ] = (".*relu_output",)
    threshold_inactivity: Annotated[
        float,
        Meta(
            ge=0, le=100, unit="percent", description="A unit active in a smaller share of samples is dead."
        ),
    ] = 1.0
    threshold_layer: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="A larger share of dead units fires.")
    ] = 50.0
    unit_axis: Annotated[
        int | None,
        Meta(
            description="Axis whose positions are the units; every position after the batch by default.",
            local=True,
        ),
    ] = None

    window: Annotated[
        int,
        Meta(
            ge=1, unit="saved steps", description="A unit counts as dead over so many last steps.", local=True
        ),
    ] = 1

    @property
    def _activity(self) -> tuple[str, float, None, int | None]:
        return "active_counts", 0.0, None, self.unit_axis

    def reads(self) -> tuple[Reads, ...]:
        """The outputs of ReLU layers; their saved maxima can prove that all units are dead."""
        raw = Reads(
            group="raw",
            patterns=self.patterns("tensor_regex"),
            statistics=(self._activity,),
            source="raw",
            optional=True,
        )
        return raw, raw._replace(group="reductions", statistics=(), source="reductions")

    def start(self, run: RuleRun) -> None:
        """Forget all activity."""
        self._recent = RecentActivity(self.window)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the share of dead units of every layer."""
        for tensor in step.tensors("reductions"):
            highest = tensor.reductions.get("max")
            if highest is None or highest > 0 or self.threshold_layer >= 100:
                self.skip(tensor, "raw value not saved")
                continue
            text = f"100 % of the units are dead > {self.threshold_layer:g} % (saved maximum {highest:g})"
            yield from self.judge(tensor, "dead_percent", 100.0, ">", self.threshold_layer, message=text)
        for tensor in step.tensors("raw"):
            activity = tensor.measure(*self._activity)
            units = len(activity.counts)
            if not units or not activity.samples:
                self.skip(tensor, "empty tensor")
                continue
            recent = self._recent.add(tensor, activity)
            if recent is None:
                self.skip(tensor, "too few saved steps", need=self.window)
                continue
            counts, samples = recent
            dead = np.count_nonzero(100 * counts < self.threshold_inactivity * samples)
            percent = 100 * dead / units
            text = f"{percent:.4g} % of {units} units are dead > {self.threshold_layer:g} %"
            yield from self.judge(
                tensor, "dead_percent", percent, ">", self.threshold_layer, message=text, non_finite=0
            )

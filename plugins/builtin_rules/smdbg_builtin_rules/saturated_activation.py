"""SaturatedActivation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

import numpy as np

from smdbg_builtin_rules.activity import RecentActivity
from smdbg_core import (
    DEEP_LEARNING,
    Finding,
    Meta,
    Reads,
    Regex,
    RuleRun,
    StepView,
    TensorRule,
    TensorView,
    constraint,
)

_Range = tuple[float, float]


class SaturatedActivation(TensorRule):
    """Fires when the inputs of most units of a tanh or sigmoid layer lie where the curve is flat.

    Why it matters: where the curve is flat the gradient is zero, and the layers before do not learn.
    What to do: smaller initial weights, normalised inputs, normalisation before the activation, or ReLU.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    presets: ClassVar = {
        "recommended": {
            "threshold_tanh_min": -3.0,
            "threshold_tanh_max": 3.0,
            "threshold_sigmoid_min": -6.0,
            "threshold_sigmoid_max": 6.0,
            "threshold_inactivity": 30.0,
            "window": 3,
        }
    }

    collection_names: Annotated[tuple[str, ...], Meta(description="Collections of activation inputs.")] = ()
    tensor_regex: Annotated[
        tuple[Regex, ...],
        Meta(description="Activation inputs.", also=(r"(?i)(tanh|sigmoid)\w*(_input|/inputs)",)),
    ] = (".*tanh_input|.*sigmoid_input",)
    threshold_tanh_min: Annotated[float, Meta(description="Lower end of the usable range of tanh.")] = -9.4999
    threshold_tanh_max: Annotated[float, Meta(description="Upper end of the usable range of tanh.")] = 9.4999
    threshold_sigmoid_min: Annotated[
        float, Meta(description="Lower end of the usable range of sigmoid.")
    ] = -23.0
    threshold_sigmoid_max: Annotated[float, Meta(description="Upper end of the usable range of sigmoid.")] = (
        16.99999
    )
    threshold_inactivity: Annotated[
        float,
        Meta(ge=0, le=100, unit="percent", description="A unit in range in fewer samples is saturated."),
    ] = 1.0
    threshold_layer: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="A larger share of saturated units fires.")
    ] = 50.0

    window: Annotated[
        int,
        Meta(
            ge=1,
            unit="saved steps",
            description="A unit counts as saturated over so many last steps.",
            local=True,
        ),
    ] = 1

    @constraint("threshold_tanh_min", "threshold_tanh_max")
    def _tanh_in_order(self) -> str | None:
        return _disorder("threshold_tanh", self._tanh)

    @constraint("threshold_sigmoid_min", "threshold_sigmoid_max")
    def _sigmoid_in_order(self) -> str | None:
        return _disorder("threshold_sigmoid", self._sigmoid)

    @property
    def _tanh(self) -> _Range:
        return self.threshold_tanh_min, self.threshold_tanh_max

    @property
    def _sigmoid(self) -> _Range:
        return self.threshold_sigmoid_min, self.threshold_sigmoid_max

    def reads(self) -> tuple[Reads, ...]:
        """The inputs of tanh and sigmoid layers; saved bounds can prove that all units are saturated."""
        raw = Reads(
            group="raw",
            collections=self.collection_names,
            patterns=self.patterns("tensor_regex"),
            statistics=(("active_counts", *self._tanh), ("active_counts", *self._sigmoid)),
            source="raw",
            optional=True,
        )
        return raw, raw._replace(group="reductions", statistics=(), source="reductions")

    def start(self, run: RuleRun) -> None:
        """Forget all activity."""
        self._recent = RecentActivity(self.window)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the share of saturated units of every layer."""
        for tensor in step.tensors():
            limits = self._range_of(tensor.name)
            if limits is None:
                self.skip(tensor, "the name says neither tanh nor sigmoid")
            elif tensor.from_reductions:
                yield from self._judge_reductions(tensor, limits)
            else:
                yield from self._judge_values(tensor, limits)

    def _range_of(self, name: str) -> _Range | None:
        """The usable range of the activation that the name speaks of; the later word counts."""
        tanh, sigmoid = name.lower().rfind("tanh"), name.lower().rfind("sigmoid")
        if tanh == sigmoid:
            return None
        return self._tanh if tanh > sigmoid else self._sigmoid

    def _judge_reductions(self, tensor: TensorView, limits: _Range) -> Iterator[Finding]:
        """Judge a layer by its saved minimum and maximum, which prove saturation only."""
        saved = tensor.reductions
        outside = saved.get("min", limits[0]) >= limits[1] or saved.get("max", limits[1]) <= limits[0]
        if not outside or self.threshold_layer >= 100:
            self.skip(tensor, "raw value not saved")
            return
        text = f"100 % of the units are saturated > {self.threshold_layer:g} % (by saved bounds)"
        yield from self.judge(tensor, "saturated_percent", 100.0, ">", self.threshold_layer, message=text)

    def _judge_values(self, tensor: TensorView, limits: _Range) -> Iterator[Finding]:
        activity = tensor.measure("active_counts", *limits)
        units = len(activity.counts)
        if not units or not activity.samples:
            self.skip(tensor, "empty tensor")
            return
        recent = self._recent.add(tensor, activity)
        if recent is None:
            self.skip(tensor, "too few saved steps", need=self.window)
            return
        counts, samples = recent
        saturated = np.count_nonzero(100 * counts < self.threshold_inactivity * samples)
        percent = 100 * saturated / units
        text = f"{percent:.4g} % of {units} units are saturated > {self.threshold_layer:g} %"
        yield from self.judge(
            tensor, "saturated_percent", percent, ">", self.threshold_layer, message=text, non_finite=0
        )


def _disorder(name: str, limits: _Range) -> str | None:
    if limits[0] >= limits[1]:
        return f"{name}_min={limits[0]:g} must be below {name}_max={limits[1]:g}"
    return None

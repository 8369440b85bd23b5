"""PoorWeightInitialization."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Annotated, ClassVar

from smdbg_core import (
    DEEP_LEARNING,
    AcrossWorkers,
    Collection,
    Finding,
    Meta,
    Reads,
    Regex,
    RuleRun,
    StepView,
    TensorRule,
    TensorView,
)

_SPREAD = ("quantiles", 0.05, 0.95)


class PoorWeightInitialization(TensorRule):
    """Fires in the first steps when layers differ too much in spread, gradients collapse, or the loss stays.

    Why it matters: a network that begins badly may never learn, whatever comes after.
    What to do: use an initialisation made for the activation (He for ReLU, Glorot for tanh), and
    normalise the inputs.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    presets: ClassVar = {
        "recommended": {"exclude": ("bias",), "threshold": 1000.0, "gradient_ratio": 1e-4, "patience": 10}
    }
    collections_to_save: ClassVar = (
        Collection("relu_input", include_regex=".*relu_input", save_interval=500),
    )

    activation_inputs_regex: Annotated[
        tuple[Regex, ...],
        Meta(description="Inputs of activations.", also=(r"(?i)re_?lu\w*(_input|/inputs)",)),
    ] = (".*relu_input",)
    threshold: Annotated[
        float, Meta(ge=1, unit="ratio", description="A larger ratio of the variances of two layers fires.")
    ] = 10.0
    distribution_range: Annotated[
        float, Meta(ge=0, description="A smaller spread of a gradient, 5th to 95th percentile, fires.")
    ] = 0.001
    gradient_ratio: Annotated[
        float | None,
        Meta(
            ge=0,
            lt=1,
            unit="ratio",
            description="Judge instead the spread of a gradient as a share of the widest of the step: "
            "a smaller one fires.",
            local=True,
        ),
    ] = None
    patience: Annotated[
        int, Meta(ge=1, unit="observations", description="Observations without a lower loss that fire.")
    ] = 5
    steps: Annotated[
        int, Meta(ge=1, unit="observations", description="How many first saved steps are judged.")
    ] = 10

    def reads(self) -> tuple[Reads, ...]:
        """Activation inputs, gradients and losses of the first training steps."""
        first = Reads(modes=("TRAIN", "GLOBAL"), first=self.steps, optional=True)
        return (
            first._replace(
                group="activations",
                patterns=self.patterns("activation_inputs_regex"),
                statistics=("size", "variance"),
            ),
            first._replace(
                group="gradients", collections=("gradients",), statistics=("size", _SPREAD), source="raw"
            ),
            first._replace(group="losses", collections=("losses",), statistics=("mean",)),
        )

    def start(self, run: RuleRun) -> None:
        """Forget all losses."""
        self._best: dict[str, float] = {}
        self._stale: dict[str, int] = {}

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Make the three checks."""
        yield from self._judge_activations(
            [v for v in step.tensors("activations") if not v.statistics.size < 2]
        )
        gradients = [view for view in step.tensors("gradients") if view.statistics.size >= 2]
        yield from self._judge_gradients(gradients)
        for name, views in step.by_tensor("losses"):
            yield from self._judge_loss(name, AcrossWorkers(views))

    def _judge_activations(self, views: Sequence[TensorView]) -> Iterator[Finding]:
        """Compare the layers of each worker."""
        for worker in sorted({view.worker for view in views}):
            layers = [view for view in views if view.worker == worker]
            widest = max(layers, key=lambda view: _variance(view, -math.inf))
            narrowest = min(layers, key=lambda view: _variance(view, math.inf))
            high, low = widest.statistics.variance, narrowest.statistics.variance
            if len(layers) < 2 or not high > 0:
                continue
            ratio = high / low if low else math.inf
            text = f"variance {ratio:.4g} times that of {narrowest.name} > {self.threshold:g}"
            yield from self.judge(widest, "variance_ratio", ratio, ">", self.threshold, message=text)

    def _judge_gradients(self, views: Sequence[TensorView]) -> Iterator[Finding]:
        """Compare the spread of every gradient with a fixed range, or with the widest."""
        bounds = [view.measure(*_SPREAD) for view in views]
        spreads = [high - low for low, high in bounds]
        widest = max((spread for spread in spreads if spread == spread), default=0.0)
        for view, spread in zip(views, spreads, strict=True):
            if self.gradient_ratio is None:
                text = f"gradient spread {spread:.4g} < {self.distribution_range:g}"
                yield from self.judge(
                    view, "gradient_spread", spread, "<", self.distribution_range, message=text
                )
            elif widest > 0:
                text = f"gradient spread {spread:.4g}, of the widest {widest:.4g}"
                yield from self.judge(
                    view, "gradient_share", spread / widest, "<", self.gradient_ratio, message=text
                )

    def _judge_loss(self, name: str, loss: AcrossWorkers) -> Iterator[Finding]:
        if not loss.non_finite and loss.mean < self._best.get(name, math.inf):
            self._best[name], self._stale[name] = loss.mean, 0
        else:
            self._stale[name] = self._stale.get(name, 0) + 1
        stale = self._stale[name]
        text = f"the loss has not fallen for {stale} saved steps"
        yield from self.judge(loss, "stale_loss", stale, ">=", self.patience, message=text, non_finite=0)


def _variance(view: TensorView, otherwise: float) -> float:
    variance = view.statistics.variance
    return float(variance) if variance == variance else otherwise

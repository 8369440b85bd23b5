"""Overtraining."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from smdbg_builtin_rules.phases import VALIDATION_PREFIXES, Phase, first_scale, is_increasing, metric_of
from smdbg_core import AcrossWorkers, Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule

_CHANGES = 50
"""How many of the last changes the noise is estimated from."""

_DEVIATION_OF_CHANGE = 1.4826 / math.sqrt(2)
"""Normal noise: its deviation, from the median size of the difference of two values."""

_KINDS = {"TRAIN": "training", "EVAL": "validation"}


class Overtraining(TensorRule):
    """Fires when training goes on although the training or the validation loss has stopped improving.

    Why it matters: further steps cost time, and often make the model worse on new data.
    What to do: stop at the best step, keep its checkpoint, or lower the learning rate there.
    """

    group: ClassVar = "universal"
    presets: ClassVar = {
        "recommended": {"rise": 0.1, "noise": 3.0, "patience_validation": 4, "patience_train": 6}
    }
    severity: ClassVar = "info"

    patience_train: Annotated[
        int,
        Meta(ge=1, unit="observations", description="Observations of the training loss without improvement."),
    ] = 5
    patience_validation: Annotated[
        int,
        Meta(
            ge=1, unit="observations", description="Observations of the validation loss without improvement."
        ),
    ] = 10
    delta: Annotated[float, Meta(ge=0, unit="loss units", description="What counts as an improvement.")] = (
        0.01
    )
    tensor_regex: Annotated[
        tuple[Regex, ...], Meta(description="Losses; the collection `losses` without.", local=True)
    ] = ()
    granularity: Annotated[
        Literal["phase", "step"],
        Meta(description="One observation: the mean of a phase, or every saved step.", local=True),
    ] = "phase"

    rise: Annotated[
        float,
        Meta(
            ge=0,
            unit="fraction",
            description="Count as without improvement only what lies further above the best than this "
            "share of the first loss saved.",
            local=True,
        ),
    ] = 0.0

    noise: Annotated[
        float,
        Meta(
            ge=0,
            unit="standard deviations",
            description="Count only what lies further above the best than this multiple of the noise.",
            local=True,
        ),
    ] = 0.0

    def reads(self) -> Reads:
        """The losses."""
        return Reads(
            collections=() if self.tensor_regex else ("losses",),
            patterns=self.tensor_regex,
            statistics=("mean",),
        )

    def start(self, run: RuleRun) -> None:
        """Forget all optima."""
        self._trackers: dict[tuple[str, str], _Tracker] = {}
        self._scales: dict[str, float] = {}
        self._phases: dict[str, tuple[str, Phase, AcrossWorkers]] = {}

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Observe finished phases; where there are no modes, every step."""
        losses = {name: AcrossWorkers(views) for name, views in step.by_tensor()}
        for name, loss in losses.items():
            self._scales.setdefault(name, first_scale(name, _loss(loss)))
        if step.mode == "GLOBAL":
            for name, loss in losses.items():
                split, metric = metric_of(name) or ("train", name)
                if not is_increasing(metric):
                    kind = "validation" if split in VALIDATION_PREFIXES else "training"
                    yield from self._observe(loss, kind, _loss(loss))
            return
        if step.mode not in _KINDS:
            return
        kind = _KINDS[step.mode]
        for name, loss in losses.items():
            if self.granularity == "step":
                yield from self._observe(loss, kind, _loss(loss))
                continue
            current = self._phases.get(name)
            if current is not None and current[0] != kind:
                yield from self._observe(loss, current[0], current[1].mean)
                current = None
            phase = current[1] if current is not None else Phase()
            phase.add(_loss(loss))
            self._phases[name] = kind, phase, loss

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        """Observe the last phase, which no other has closed."""
        for kind, phase, loss in self._phases.values():
            yield from self._observe(loss, kind, phase.mean)

    def _observe(self, loss: AcrossWorkers, kind: str, value: float) -> Iterator[Finding]:
        tracker = self._trackers.setdefault((loss.name, kind), _Tracker())
        margin = max(
            self.rise * self._scales[loss.name] if self.rise else 0.0,
            self.noise * tracker.noise if self.noise else 0.0,
        )
        tracker.observe(value, self.delta, margin)
        patience = self.patience_train if kind == "training" else self.patience_validation
        text = (
            f"the {kind} loss has not improved by {self.delta:g} for {tracker.stale} observations "
            f"(best {tracker.best:.4g})"
        )
        yield from self.judge(
            loss, f"stale_{kind}", tracker.stale, ">=", patience, message=text, non_finite=0
        )


class _Tracker:
    """The best value so far, and how many observations ago it was improved on."""

    def __init__(self) -> None:
        self.best = math.inf
        self.stale = 0
        self._last = math.nan
        self._changes: deque[float] = deque(maxlen=_CHANGES)

    @property
    def noise(self) -> float:
        """Standard deviation of a series of which the changes have this median size."""
        return statistics.median(self._changes) * _DEVIATION_OF_CHANGE if self._changes else 0.0

    def observe(self, value: float, delta: float, margin: float) -> None:
        """Take in an observation; one that is not a number is no improvement."""
        change = abs(value - self._last)
        self._last = value
        if math.isfinite(change):
            self._changes.append(change)
        if value < self.best - delta:
            self.best, self.stale = value, 0
        elif margin and value <= self.best + margin:
            self.stale = 0
        else:
            self.stale += 1


def _loss(loss: AcrossWorkers) -> float:
    return math.nan if loss.non_finite else loss.mean

"""LossNotDecreasing."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from smdbg_builtin_rules.phases import VALIDATION_PREFIXES, first_scale, is_share, metric_of
from smdbg_core import (
    AcrossWorkers,
    Collection,
    Finding,
    Meta,
    Reads,
    Regex,
    RuleRun,
    StepView,
    TensorRule,
)


class LossNotDecreasing(TensorRule):
    """Fires when a loss does not fall fast enough, rises too much, or is not a number.

    Why it matters: the model does not learn any more, or has never begun to.
    What to do: check the learning rate first, then initialisation, the labels and the input pipeline.
    """

    group: ClassVar = "universal"
    presets: ClassVar = {
        "recommended": {
            "prefer": "TRAIN",
            "relative_to": "first",
            "smoothing": 5,
            "diff_percent": 0.0,
            "increase_threshold_percent": 99.0,
            "least_progress_percent": 10.0,
        }
    }
    severity: ClassVar = "critical"
    collections_to_save: ClassVar = (Collection("losses", save_interval=500),)

    collection_names: Annotated[tuple[str, ...], Meta(description="Collections of losses.")] = ()
    tensor_regex: Annotated[tuple[Regex, ...], Meta(description="Patterns of names of scalar losses.")] = ()
    use_losses_collection: Annotated[bool, Meta(description="Whether to read `losses` as well.")] = True
    num_steps: Annotated[
        int, Meta(ge=1, unit="steps of the mode", description="Least distance of comparisons and of checks.")
    ] = 10
    diff_percent: Annotated[
        float, Meta(ge=0, lt=100, unit="percent", description="A smaller decrease than this fires.")
    ] = 0.1
    increase_threshold_percent: Annotated[
        float, Meta(ge=0, lt=100, unit="percent", description="A larger increase than this fires.")
    ] = 5.0
    mode: Annotated[
        Literal["TRAIN", "EVAL", "GLOBAL"] | None,
        Meta(
            description="Mode whose steps are read; without one the first of EVAL, TRAIN, GLOBAL with data."
        ),
    ] = None

    prefer: Annotated[
        Literal["EVAL", "TRAIN"],
        Meta(description="Which mode is read first where `mode` names none.", local=True),
    ] = "EVAL"
    relative_to: Annotated[
        Literal["earlier", "first"],
        Meta(
            description="What changes are measured by: the earlier loss, or the first one saved, "
            "which does not go to zero.",
            local=True,
        ),
    ] = "earlier"
    smoothing: Annotated[
        int,
        Meta(ge=1, unit="saved steps", description="Losses are means of the last so many.", local=True),
    ] = 1
    least_progress_percent: Annotated[
        float | None,
        Meta(
            lt=100,
            unit="percent",
            description="At the end, a loss that lies less than this below its first value fires.",
            local=True,
        ),
    ] = None

    def reads(self) -> tuple[Reads, ...]:
        """The selected losses; without any selector and collection, every scalar."""
        modes = ("EVAL", "TRAIN", "GLOBAL") if self.prefer == "EVAL" else ("TRAIN", "EVAL", "GLOBAL")
        losses = Reads(
            group="losses",
            collections=("losses",) if self.use_losses_collection else (),
            statistics=("size", "mean"),
            modes=(self.mode,) if self.mode else modes,
            optional=True,
        )
        selected = losses._replace(
            group="selected", collections=self.collection_names, patterns=self.tensor_regex
        )
        if not (self.collection_names or self.tensor_regex):
            selected = selected._replace(everything=True, fallback=True)
        return losses, selected

    def start(self, run: RuleRun) -> None:
        """Forget the past of all losses."""
        self._past: dict[tuple[str, str], list[tuple[int, float]]] = {}
        self._checked: dict[tuple[str, str], int] = {}
        self._series: dict[tuple[str, str], _Series] = {}

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Compare each loss with an earlier one, at most every `num_steps` steps."""
        seen: set[str] = set()
        for group in step.groups:
            for name, views in step.by_tensor(group):
                loss = AcrossWorkers(views)
                if name in seen:
                    continue
                seen.add(name)
                # Per-sample losses of the collection are averaged; other tensors may be anything.
                if group != "losses" and views[0].statistics.size != 1:
                    self.skip(loss, "not a scalar")
                else:
                    yield from self._judge_loss(loss, step)

    def _judge_loss(self, loss: AcrossWorkers, step: StepView) -> Iterator[Finding]:
        key = loss.name, step.mode
        now = step.mode_step
        if loss.non_finite:
            yield from self.judge(
                loss, "non_finite", loss.non_finite, ">", 0, message="the loss is not finite", non_finite=0
            )
            return
        series = self._series.setdefault(key, _Series(self.smoothing))
        series.add(loss)
        past = self._past.setdefault(key, [])
        earlier = [index for index, (at, _) in enumerate(past) if at <= now - self.num_steps]
        if series.full:
            past.append((now, series.mean))
        if not earlier or not series.full:
            have = now - past[0][0] if past else 0
            self.skip(loss, "too few saved steps", have=have, need=self.num_steps)
            return
        reference_step, reference = past[earlier[-1]]
        del past[: earlier[-1]]
        if key in self._checked and now - self._checked[key] < self.num_steps:
            return
        self._checked[key] = now
        yield from self._compare(series, reference_step, reference, now)

    def finish(self, run: RuleRun) -> Iterator[Finding]:
        """Judge how far every loss has come, where that is asked for."""
        least = self.least_progress_percent
        for series in self._series.values() if least is not None else ():
            first, last = series.ends
            # Of boosting, validation losses and shares begin where the first tree has led them.
            name = series.loss.name
            if series.steps < self.num_steps or _is_validation(name) or is_share(name):
                continue
            progress = _decrease(first, last, first)
            text = f"loss {first:.6g} at first, {last:.6g} at last: decrease {progress:.4g} % < {least:g} %"
            yield from self.judge(series.loss, "progress_percent", progress, "<", least or 0.0, message=text)

    def _compare(self, series: _Series, reference_step: int, reference: float, now: int) -> Iterator[Finding]:
        loss, value = series.loss, series.mean
        scale = reference if self.relative_to == "earlier" else first_scale(loss.name, series.first)
        percent = _decrease(reference, value, scale)
        change = (
            f"loss {reference:.6g} at {loss.location['mode']} step {reference_step}, {value:.6g} at {now}"
        )
        if percent < 0:
            text = f"{change}: increase {-percent:.4g} % > {self.increase_threshold_percent:g} %"
            yield from self.judge(
                loss, "increase_percent", -percent, ">", self.increase_threshold_percent, message=text
            )
            return
        # A loss that does not move at all violates any demand, also that of no decrease; unless the end
        # tells whether it has stopped before it came anywhere, or after.
        comparison = "<=" if percent == 0 and self.least_progress_percent is None else "<"
        text = f"{change}: decrease {percent:.4g} % {comparison} {self.diff_percent:g} %"
        yield from self.judge(loss, "decrease_percent", percent, comparison, self.diff_percent, message=text)


class _Series:
    """The losses of one tensor in one mode: its last ones, and its first.

    Args:
        smoothing: Of how many losses means are taken.
    """

    loss: AcrossWorkers
    """The last one."""

    def __init__(self, smoothing: int) -> None:
        self._smoothing = smoothing
        self._recent: deque[float] = deque(maxlen=smoothing)
        self._first: list[float] = []
        self._begin = 0
        self._count = 0

    def add(self, loss: AcrossWorkers) -> None:
        """Take in a finite loss."""
        self.loss = loss
        self._recent.append(loss.mean)
        if not self._first:
            self._begin = loss.location["mode_step"]
        if len(self._first) < self._smoothing:
            self._first.append(loss.mean)
        self._count += 1

    @property
    def full(self) -> bool:
        """Whether there are enough losses for a mean."""
        return self._count >= self._smoothing

    @property
    def first(self) -> float:
        """Mean of the first losses."""
        return math.fsum(self._first) / len(self._first)

    @property
    def mean(self) -> float:
        """Mean of the last losses."""
        return math.fsum(self._recent) / len(self._recent)

    @property
    def steps(self) -> int:
        """Steps of the mode from the first loss to the last."""
        return int(self.loss.location["mode_step"]) - self._begin

    @property
    def ends(self) -> tuple[float, float]:
        """Mean of the first and of the last losses, of fewer where there are few."""
        width = max(1, min(self._smoothing, self._count // 4))
        first, last = self._first[:width], list(self._recent)[-width:]
        return math.fsum(first) / len(first), math.fsum(last) / len(last)


def _is_validation(name: str) -> bool:
    parts = metric_of(name)
    return parts is not None and parts[0] in VALIDATION_PREFIXES


def _decrease(before: float, after: float, scale: float) -> float:
    """Decrease in percent of the magnitude of `scale`."""
    if scale == 0:
        return 0.0 if after == before else math.copysign(math.inf, before - after)
    return 100 * (before - after) / abs(scale)

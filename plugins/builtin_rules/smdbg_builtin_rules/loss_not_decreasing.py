"""LossNotDecreasing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

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

    def reads(self) -> tuple[Reads, ...]:
        """The selected losses; without any selector and collection, every scalar."""
        losses = Reads(
            group="losses",
            collections=("losses",) if self.use_losses_collection else (),
            statistics=("size", "mean"),
            modes=(self.mode,) if self.mode else ("EVAL", "TRAIN", "GLOBAL"),
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
        past = self._past.setdefault(key, [])
        earlier = [index for index, (at, _) in enumerate(past) if at <= now - self.num_steps]
        past.append((now, loss.mean))
        if not earlier:
            self.skip(loss, "too few saved steps", have=now - past[0][0], need=self.num_steps)
            return
        reference_step, reference = past[earlier[-1]]
        del past[: earlier[-1]]
        if key in self._checked and now - self._checked[key] < self.num_steps:
            return
        self._checked[key] = now
        yield from self._compare(loss, reference_step, reference, now)

    def _compare(
        self, loss: AcrossWorkers, reference_step: int, reference: float, now: int
    ) -> Iterator[Finding]:
        percent = _decrease(reference, loss.mean)
        change = (
            f"loss {reference:.6g} at {loss.location['mode']} step {reference_step}, {loss.mean:.6g} at {now}"
        )
        if percent < 0:
            text = f"{change}: increase {-percent:.4g} % > {self.increase_threshold_percent:g} %"
            yield from self.judge(
                loss, "increase_percent", -percent, ">", self.increase_threshold_percent, message=text
            )
            return
        # A loss that does not move at all violates any demand, also that of no decrease.
        comparison = "<=" if percent == 0 else "<"
        text = f"{change}: decrease {percent:.4g} % {comparison} {self.diff_percent:g} %"
        yield from self.judge(loss, "decrease_percent", percent, comparison, self.diff_percent, message=text)


def _decrease(before: float, after: float) -> float:
    """Decrease in percent of the magnitude before."""
    if before == 0:
        return 0.0 if after == 0 else math.copysign(math.inf, -after)
    return 100 * (before - after) / abs(before)

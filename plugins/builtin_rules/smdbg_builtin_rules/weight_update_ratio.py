"""WeightUpdateRatio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from smdbg_builtin_rules.streaks import Streaks
from smdbg_builtin_rules.trained import trained_parameters
from smdbg_core import DEEP_LEARNING, Collection, Compare, Finding, Meta, Reads, RuleRun, StepView, TensorRule


class WeightUpdateRatio(TensorRule):
    """Fires when weights change far too much or far too little, relative to their size.

    Why it matters: huge updates throw away what was learnt; tiny ones mean that a layer is not trained.
    What to do: raise or lower the learning rate; check that the optimizer has the layer's parameters.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning"
    presets: ClassVar = {
        "recommended": {"trained_only": True, "untrained_only": True, "patience": 3, "small_threshold": 1e-7}
    }
    collections_to_save: ClassVar = (Collection("weights", save_interval=500),)

    num_steps: Annotated[
        int | None,
        Meta(ge=1, unit="steps of the mode", description="How far to look back; by default one saved step."),
    ] = None
    large_threshold: Annotated[float, Meta(gt=0, description="A ratio above this fires.")] = 10.0
    small_threshold: Annotated[float, Meta(ge=0, description="A ratio below this fires.")] = 1e-8
    epsilon: Annotated[float, Meta(gt=0, description="Keeps the denominator away from zero.")] = 1e-9
    norm: Annotated[Literal["l2", "l1"], Meta(description="Norm of update and weights.", local=True)] = "l2"

    patience: Annotated[
        int, Meta(ge=1, unit="saved steps", description="Violations in a row that fire.", local=True)
    ] = 1
    trained_only: Annotated[
        bool,
        Meta(
            description="Whether weights without a saved gradient are left out, where any have one.",
            local=True,
        ),
    ] = False
    untrained_only: Annotated[
        bool,
        Meta(
            description="Whether a weight that has once changed is left alone from then on: it is trained, "
            "and schedules end near zero.",
            local=True,
        ),
    ] = False

    @property
    def _update(self) -> Compare:
        return Compare("difference_norms", (2 if self.norm == "l2" else 1,), within=self.num_steps)

    def reads(self) -> Reads:
        """The weights of training steps, each compared with its value some steps before."""
        return Reads(
            collections=("weights",),
            compare=(self._update,),
            modes=("TRAIN", "GLOBAL"),
            source="raw",
            min_points=2,
        )

    def start(self, run: RuleRun) -> None:
        """Forget all streaks."""
        self._streaks = Streaks(self, self.patience)
        self._moved: set[tuple[str, str]] = set()
        self._trained = trained_parameters(run.trial.tensor_names()) if self.trained_only else frozenset()

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the update of every weight since its earlier value."""
        for tensor in step.tensors():
            if self._trained and tensor.name not in self._trained:
                self.skip(tensor, "no gradient is saved: frozen by intent")
                continue
            earlier = tensor.compare(self._update)
            if not earlier:
                self.skip(tensor, "too few saved steps", have=1, need=2)
                continue
            norms = earlier[0].value
            if norms is None:
                self.skip(tensor, "the shape has changed")
                continue
            change, before = (
                (norms.l2_difference, norms.l2_other)
                if self.norm == "l2"
                else (norms.l1_difference, norms.l1_other)
            )
            ratio = change / (before + self.epsilon)
            steps = f"{tensor.mode} step {earlier[0].mode_step} to {tensor.mode_step}"
            text = f"update ratio {ratio:.4g} from {steps}"
            small = self.small_threshold
            if self.untrained_only:
                if ratio >= small:
                    self._moved.add((tensor.name, tensor.worker))
                small = 0.0 if (tensor.name, tensor.worker) in self._moved else small
            for comparison, limit in ((">", self.large_threshold), ("<", small)):
                yield from self._streaks.judge(
                    tensor, "update_ratio", ratio, comparison, limit, message=f"{text} {comparison} {limit:g}"
                )

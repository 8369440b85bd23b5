"""UnchangedTensor."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_builtin_rules.trained import trained_parameters
from smdbg_core import Compare, Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule


class UnchangedTensor(TensorRule):
    """Fires when a tensor has the same value, within a tolerance, at several saved steps in a row.

    Why it matters: weights that do not move are not trained; a loss that does not move is stuck.
    What to do: check that the parameters are given to the optimizer and require gradients, and that
    the learning rate is not zero.
    """

    group: ClassVar = "universal"
    presets: ClassVar = {"recommended": {"trained_only": True, "untrained_only": True, "num_steps": 5}}
    requires: ClassVar = (("collection_names", "tensor_regex"),)

    collection_names: Annotated[tuple[str, ...], Meta(description="Collections to inspect.")] = ()
    tensor_regex: Annotated[tuple[Regex, ...], Meta(description="Patterns of names to inspect.")] = ()
    num_steps: Annotated[
        int, Meta(ge=2, unit="saved steps", description="How many saved steps in a row must agree.")
    ] = 3
    rtol: Annotated[float, Meta(ge=0, description="Relative tolerance, of the current value.")] = 1e-5
    atol: Annotated[float, Meta(ge=0, description="Absolute tolerance.")] = 1e-8
    equal_nan: Annotated[bool, Meta(description="Whether NaN equals NaN.")] = False

    trained_only: Annotated[
        bool,
        Meta(
            description="Whether to judge training steps only, and there, where gradients are saved, only "
            "tensors that have one.",
            local=True,
        ),
    ] = False
    untrained_only: Annotated[
        bool,
        Meta(
            description="Whether a tensor that has once changed is left alone from then on: it is trained, "
            "and schedules end near zero.",
            local=True,
        ),
    ] = False

    @property
    def _closeness(self) -> Compare:
        return Compare("closeness", (self.rtol, self.atol, self.equal_nan), last=self.num_steps - 1)

    def reads(self) -> Reads:
        """The selected tensors, each compared with its saved steps before."""
        return Reads(
            collections=self.collection_names,
            patterns=self.tensor_regex,
            compare=(self._closeness,),
            source="raw",
            modes=("TRAIN", "GLOBAL") if self.trained_only else None,
            strings=True,
            min_points=self.num_steps,
        )

    def start(self, run: RuleRun) -> None:
        """Find out which tensors are trained."""
        self._changed: set[tuple[str, str]] = set()
        self._trained = trained_parameters(run.trial.tensor_names()) if self.trained_only else frozenset()

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Compare every selected tensor with its last saved steps in the same mode."""
        for tensor in step.tensors():
            if self._trained and tensor.name not in self._trained:
                self.skip(tensor, "no gradient is saved: frozen by intent")
                continue
            earlier = tensor.compare(self._closeness)
            if not all(one.value.all_close for one in earlier):
                self._changed.add((tensor.name, tensor.worker))
            have = len(earlier) + 1
            if have < self.num_steps:
                self.skip(tensor, "too few saved steps", have=have, need=self.num_steps)
                continue
            agreeing = sum(one.value.all_close for one in earlier)
            if self.untrained_only and (tensor.name, tensor.worker) in self._changed:
                agreeing = 0
            steps = ", ".join(str(one.mode_step) for one in earlier)
            yield from self.judge(
                tensor,
                "unchanged_steps",
                agreeing + 1,
                ">=",
                self.num_steps,
                message=f"unchanged over {tensor.mode} steps {steps}, {tensor.mode_step}",
                non_finite=0 if self.equal_nan else None,
            )

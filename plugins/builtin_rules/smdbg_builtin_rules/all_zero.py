"""AllZero."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_builtin_rules.streaks import Streaks
from smdbg_core import Finding, Meta, Reads, Regex, RuleRun, StepView, TensorRule


class AllZero(TensorRule):
    """Fires when all elements of a tensor, or at least a given share of them, are zero.

    Why it matters: zeros in gradients, weights or activations mean units that take no part.
    What to do: check initialisation and activations of that layer, the masks and the input data.
    """

    group: ClassVar = "universal"
    presets: ClassVar = {"recommended": {"patience": 5}}
    requires: ClassVar = (("collection_names", "tensor_regex"),)

    collection_names: Annotated[tuple[str, ...], Meta(description="Collections to inspect.")] = ()
    tensor_regex: Annotated[tuple[Regex, ...], Meta(description="Patterns of names to inspect.")] = ()
    threshold: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="Share of zeros from which on it fires.")
    ] = 100.0

    patience: Annotated[
        int, Meta(ge=1, unit="saved steps", description="Violations in a row that fire.", local=True)
    ] = 1

    def reads(self) -> tuple[Reads, ...]:
        """The selected tensors; saved reductions suffice only to tell whether all elements are zero."""
        raw = Reads(
            group="raw",
            collections=self.collection_names,
            patterns=self.tensor_regex,
            statistics=("size", "zeros"),
            source="raw",
            optional=True,
        )
        return raw, raw._replace(group="reductions", statistics=(), source="reductions")

    def start(self, run: RuleRun) -> None:
        """Forget all streaks."""
        self._streaks = Streaks(self, self.patience)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge every selected tensor of the step."""
        for tensor in step.tensors("raw"):
            size, zeros = tensor.statistics.size, tensor.statistics.zeros
            if not size:
                self.skip(tensor, "empty tensor")
                continue
            # From integers, so that a share exactly at the threshold is on the right side of it.
            percent = self.threshold if 100 * zeros == self.threshold * size else 100 * zeros / size
            text = f"{percent:.4g} % zeros >= {self.threshold:g} %"
            yield from self._streaks.judge(
                tensor, "zero_percent", percent, ">=", self.threshold, message=text, non_finite=0
            )
        for tensor in step.tensors("reductions"):
            saved = tensor.reductions
            bounds = [abs(saved[name]) for name in ("abs_max", "l1", "l2") if name in saved]
            if {"min", "max"} <= saved.keys():
                bounds.append(max(abs(saved["min"]), abs(saved["max"])))
            if self.threshold < 100 or not bounds:
                self.skip(tensor, "raw value not saved")
                continue
            yield from self._streaks.judge(
                tensor, "max_abs", min(bounds), "<=", 0, message="100 % zeros >= 100 %"
            )

"""NLPSequenceRatio."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_builtin_rules.streaks import Streaks
from smdbg_core import (
    DEEP_LEARNING,
    Collection,
    Finding,
    Meta,
    Reads,
    Regex,
    RuleRun,
    StepView,
    TensorRule,
    constraint,
)


class NLPSequenceRatio(TensorRule):
    """Fires when special tokens, such as padding, make up too much of an input batch.

    Why it matters: the network spends its time on tokens that carry nothing.
    What to do: put sequences of similar length into a batch, or shorten the maximum length.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning application"
    presets: ClassVar = {"recommended": {"patience": 3}}
    severity: ClassVar = "info"
    collections_to_save: ClassVar = (
        Collection("input_sequence", include_regex=".*embedding0_input_0", save_interval=500),
    )

    tensor_regex: Annotated[
        tuple[Regex, ...],
        Meta(description="Tensors of token ids.", also=(r"(?i)embedding\w*(_input_0|/inputs)",)),
    ] = (".*embedding0_input_0",)
    token_values: Annotated[tuple[float, ...], Meta(unit="token id", description="Tokens to count.")] = (0.0,)
    token_thresholds_percent: Annotated[
        tuple[Annotated[float, Meta(ge=0, le=100)], ...],
        Meta(unit="percent", description="Largest share of each token, or one for all."),
    ] = (50.0,)

    patience: Annotated[
        int, Meta(ge=1, unit="saved steps", description="Violations in a row that fire.", local=True)
    ] = 1

    @constraint("token_thresholds_percent", "token_values")
    def _one_limit_each(self) -> str | None:
        if len(self.token_thresholds_percent) not in (1, len(self.token_values)):
            return (
                f"token_thresholds_percent has {len(self.token_thresholds_percent)} limits "
                f"for {len(self.token_values)} token_values: give one, or one for each"
            )
        return None

    @property
    def _counts(self) -> tuple[object, ...]:
        return ("value_counts", *self.token_values)

    def reads(self) -> Reads:
        """The tensors of token ids."""
        return Reads(patterns=self.patterns("tensor_regex"), statistics=("size", self._counts), source="raw")

    def start(self, run: RuleRun) -> None:
        """Forget all streaks."""
        self._streaks = Streaks(self, self.patience)

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Judge the share of every token."""
        limits = self.token_thresholds_percent
        if len(limits) == 1:
            limits *= len(self.token_values)
        for tensor in step.tensors():
            size = tensor.statistics.size
            if not size:
                self.skip(tensor, "empty tensor")
                continue
            counts = tensor.measure("value_counts", *self.token_values)
            for token, limit, count in zip(self.token_values, limits, counts, strict=True):
                # From integers, so that a share exactly at the limit does not fire.
                percent = limit if 100 * count == limit * size else 100 * count / size
                text = f"token {token:g} makes up {percent:.4g} % > {limit:g} %"
                yield from self._streaks.judge(
                    tensor, f"percent_of_token_{token:g}", percent, ">", limit, message=text, non_finite=0
                )

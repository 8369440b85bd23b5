"""SimilarAcrossRuns."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_core import Compare, Finding, Meta, Reads, Regex, RunURI, StepView, TensorRule


class SimilarAcrossRuns(TensorRule):
    """Fires when tensors differ from the same tensors of other runs, at the same step.

    Why it matters: runs that should be equal, after a change of code, data or machine, are not.
    What to do: look at the first tensor and step that differ; what feeds that tensor has changed.
    """

    group: ClassVar = "universal"
    requires: ClassVar = (("other_trials",),)

    other_trials: Annotated[
        tuple[RunURI, ...],
        Meta(
            description="Finished runs to compare with.",
            aliases=("other_trial", "other_trial_<n>", "other_trials_s3_input_paths"),
        ),
    ] = ()
    collection_names: Annotated[
        tuple[str, ...], Meta(description="Collections to compare; all tensors without any selector.")
    ] = ()
    tensor_regex: Annotated[tuple[Regex, ...], Meta(description="Patterns of names to compare.")] = ()
    rtol: Annotated[float, Meta(ge=0, description="Relative tolerance.", local=True)] = 1e-5
    atol: Annotated[float, Meta(ge=0, description="Absolute tolerance.", local=True)] = 1e-8

    @property
    def _closeness(self) -> Compare:
        return Compare("closeness", (self.rtol, self.atol, True, "other"), runs=self.other_trials)

    def reads(self) -> Reads:
        """The selected tensors, each compared with its value in the other runs."""
        return Reads(
            collections=self.collection_names,
            patterns=self.tensor_regex,
            everything=not (self.collection_names or self.tensor_regex),
            compare=(self._closeness,),
            source="raw",
            strings=True,
        )

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Compare every selected tensor with each other run."""
        for tensor in step.tensors():
            others = tensor.compare(self._closeness)
            if not others:
                self.skip(tensor, "not in the other runs at this step")
            for other in others:
                found = other.value
                text = (
                    f"{found.differing} of {found.size} elements differ from {other.run}, "
                    f"by up to {found.max_abs_difference:.4g}"
                )
                yield from self.judge(
                    tensor, "differing", found.differing, ">", 0, message=text, non_finite=0
                )

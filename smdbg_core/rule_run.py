"""The run as one rule meets it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from smdbg_core.errors import MissingDataError

if TYPE_CHECKING:
    from smdbg_core.outcomes import Outcome
    from smdbg_core.runs.profiler import Profiler
    from smdbg_core.runs.run import Run
    from smdbg_core.runs.trial import Trial

__all__ = ["RuleRun"]


class RuleRun:
    """What `start` and `finish` of a rule are given.

    Args:
        run: The run that is evaluated.
        others: Opened runs by the `RunURI` parameter that names them.
    """

    def __init__(self, run: Run, others: Mapping[str, Sequence[Run]]) -> None:
        self._run = run
        self._others = others
        self.outcomes: dict[str, Outcome] = {}
        """At `finish`: outcomes of the rules from `children()`, by instance name."""

        self.warnings: list[str] = []
        """What the rule warned of; the report shows it."""

    @property
    def uri(self) -> str:
        """Where the run lies."""
        return self._run.uri

    @property
    def trial(self) -> Trial:
        """The saved tensors.

        Raises:
            MissingDataError: The run has no trial.
        """
        if self._run.trial is None:
            raise MissingDataError(self.uri, "this run has no saved tensors")
        return self._run.trial

    @property
    def profiler(self) -> Profiler:
        """The profiler output.

        Raises:
            MissingDataError: The run has none.
        """
        if self._run.profiler is None:
            raise MissingDataError(self.uri, "this run has no profiler output")
        return self._run.profiler

    def warn(self, text: str) -> None:
        """Tell users of something that limits the verdict."""
        self.warnings.append(text)

    def other(self, parameter: str) -> Sequence[Run]:
        """The runs that the `RunURI` parameter names, opened."""
        return self._others[parameter]

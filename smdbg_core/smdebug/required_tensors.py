"""The tensors that a rule says it needs at a step."""

from __future__ import annotations

import re
from collections.abc import Iterable

from smdbg_core.smdebug.exceptions import TensorUnavailable
from smdbg_core.smdebug.tensor import CustomTensor
from smdbg_core.smdebug.trial import CustomTrial

__all__ = ["RequiredTensors"]


class RequiredTensors:
    """What `set_required_tensors` collects; a step at which any of it is missing is not judged.

    Args:
        base_trial: The trial that is meant where none is named.
    """

    def __init__(self, base_trial: CustomTrial) -> None:
        self._base = base_trial
        self._steps: dict[CustomTrial, dict[str, list[int]]] = {}

    def add(
        self,
        name: str,
        steps: Iterable[int],
        trial: CustomTrial | None = None,
        should_match_regex: bool = False,
    ) -> None:
        """Ask for a tensor at global steps, or for all whose names begin with a match of a pattern."""
        trial = trial or self._base
        if should_match_regex:
            names = [known for known in trial.tensor_names() if re.match(name, known)]
        else:
            names = [name] if trial.has_tensor(name) else []
        if not names:
            raise TensorUnavailable(name)
        for one in names:
            wanted = self._steps.setdefault(trial, {}).setdefault(one, [])
            wanted += [step for step in steps if step not in wanted]

    def get(self, trial: CustomTrial | None = None) -> list[CustomTensor]:
        """The tensors that were asked for."""
        trial = trial or self._base
        return [trial.tensor(name) for name in self.get_names(trial)]

    def get_names(self, trial: CustomTrial | None = None) -> list[str]:
        """Their names."""
        return list(self._steps.get(trial or self._base, {}))

    def get_tensor_steps(self, name: str, trial: CustomTrial | None = None) -> list[int]:
        """The steps for which one was asked."""
        return list(self._steps.get(trial or self._base, {}).get(name, []))

    def clear(self) -> None:
        """Ask for nothing any more."""
        self._steps.clear()

    def fetch(self) -> None:
        """Complain about what is missing. Nothing is read: the rule reads what it looks at."""
        for trial, by_name in self._steps.items():
            for name, steps in by_name.items():
                for step in steps:
                    trial.tensor(name).workers(step)

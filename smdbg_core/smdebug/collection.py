"""A collection, as rules written for smdebug change it."""

from __future__ import annotations

import re

from smdbg_core.runs.trial import Collection

__all__ = ["CustomCollection"]


class CustomCollection(Collection):
    """A named group of tensors, to which a rule can add."""

    @classmethod
    def of(cls, known: Collection) -> CustomCollection:
        """A copy of a trial's collection: what a rule adds is for that rule alone."""
        return cls(
            known.name,
            known.include_regex,
            known.tensor_names,
            known.reduction_config,
            known.save_config,
            known.save_histogram,
        )

    def include(self, regex: str | list[str]) -> None:
        """Let tensors belong whose names match a pattern, or one of several."""
        for pattern in [regex] if isinstance(regex, str) else regex:
            self.include_regex.append(pattern)
            self._patterns.append(re.compile(pattern))

    def add_tensor_name(self, name: str) -> None:
        """Let a tensor belong."""
        self.tensor_names.add(name)

"""Selection: which tensors of a trial each group of `reads` means."""

from __future__ import annotations

import re
from collections.abc import Iterable

from smdbg_core.reads import Reads
from smdbg_core.runs.trial import Trial
from smdbg_core.spelling import nearest

__all__ = ["Selection"]

STANDARD_COLLECTIONS = {
    "weights": r"^(?!gradient).*weight",
    "biases": r"^(?!gradient).*bias",
    "gradients": r"^gradient",
    "losses": r"(?i)loss(?!.*input)",
}
"""What the collections that every hook makes contain, for trials that were saved without any."""


class Selection:
    """The tensors that one group of `reads` means in one trial.

    Args:
        reads: The declaration.
        exclude: Patterns of names to leave out.
        trial: Where the collections are looked up.
    """

    def __init__(self, reads: Reads, exclude: Iterable[str], trial: Trial) -> None:
        self.reads = reads
        self._trial = trial
        self._patterns = [re.compile(pattern) for pattern in reads.patterns]
        self._exclude = [re.compile(pattern) for pattern in exclude]
        self._collections = [
            trial.collections[name] for name in reads.collections if name in trial.collections
        ]
        self._patterns += [
            re.compile(STANDARD_COLLECTIONS[name])
            for name in reads.collections
            if name not in trial.collections and name in STANDARD_COLLECTIONS
        ]
        self._known: dict[str, bool] = {}

    def __contains__(self, name: str) -> bool:
        known = self._known.get(name)
        if known is None:
            known = self._known[name] = self._matches(name)
        return known

    def _matches(self, name: str) -> bool:
        if any(pattern.search(name) for pattern in self._exclude):
            return False
        return (
            self.reads.everything
            or any(collection.matches(name) for collection in self._collections)
            or any(pattern.search(name) for pattern in self._patterns)
        )

    def names(self) -> list[str]:
        """The tensors of the trial that belong to the group, sorted."""
        return [name for name in self._trial.tensor_names() if name in self]

    def complaint(self) -> str:
        """Why nothing was selected: what was looked for, what exists, and the nearest name."""
        reads = self.reads
        sought = [f"collection {name}" for name in reads.collections]
        sought += [f"pattern {pattern}" for pattern in reads.patterns]
        names = self._trial.tensor_names()
        if not names:
            return "nothing matched: the trial has no tensors"
        text = f"nothing matched {' or '.join(sought) or 'the selection'}"
        if self._exclude and not all(self._plain(name) for name in names):
            text += " after `exclude`"
        filled = sorted(
            name for name, c in self._trial.collections.items() if any(c.matches(tensor) for tensor in names)
        )
        if filled:
            text += f"; collections with tensors: {', '.join(filled)}"
        shown = ", ".join(names[:5]) + (f", ... ({len(names)} in all)" if len(names) > 5 else "")
        text += f"; tensors: {shown}"
        words = [*reads.collections, *(re.sub(r"[^\w/]+", "", p) for p in reads.patterns)]
        for word in words:
            hint = nearest(word, [*filled, *names], list_up_to=0)
            if hint:
                return text + hint
        return text

    def _plain(self, name: str) -> bool:
        return not any(pattern.search(name) for pattern in self._exclude)

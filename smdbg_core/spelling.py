"""Suggestions for misspelt names."""

from __future__ import annotations

from collections.abc import Iterable

__all__ = ["nearest"]


def nearest(spelling: str, known: Iterable[str], *, list_up_to: int = 12) -> str:
    """The end of a complaint: `; did you mean 'x'?`, else what exists if that is short, else nothing."""
    import difflib  # only complaints need it

    by_folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(spelling.casefold(), by_folded, n=1, cutoff=0.6)
    if close:
        return f"; did you mean {by_folded[close[0]]!r}?"
    if 0 < len(by_folded) <= list_up_to:
        return f"; there are {', '.join(sorted(by_folded.values()))}"
    return ""

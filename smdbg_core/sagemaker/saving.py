"""The saving plan: which collections a job saves, at which steps, and whether that is enough for a rule."""

from __future__ import annotations

import heapq
import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, count, islice, pairwise, takewhile
from typing import Final, Literal, NamedTuple

from smdbg_core.reads import Reads
from smdbg_core.sagemaker.collections import DEFAULT_COLLECTIONS

__all__ = ["Decision", "SavingPlan", "glob_hint"]

_DEFAULT_INTERVAL = 500
_MODES = ("train", "eval", "predict", "global")
_LOOK_AT = 10_000
"""Saved steps that are looked at to find two that are close enough."""

_MADE_BY_HOOKS: Final = (
    *("all", "biases", "default", "gradients", "inputs", "layers", "losses", "metrics", "sm_metrics"),
    *("optimizer_variables", "outputs", "scalars", "weights"),
    *("average_shap", "feature_importance", "full_shap", "hyperparameters", "labels", "predictions", "trees"),
)
"""Collections that a hook fills by itself; others need a pattern."""


class Decision(NamedTuple):
    """Whether a rule can ever decide."""

    answer: Literal["yes", "no", "unknown"]
    why: str = ""
    from_step: int | None = None
    """First step of a mode at which it can."""


class SavingPlan:
    """What a job saves.

    Args:
        collections: Parameters of each collection.
        hook_parameters: Those of the hook; its save interval holds where a collection has none.
        total_steps: How long training is, if that is known.
    """

    def __init__(
        self,
        collections: Mapping[str, Mapping[str, str]],
        hook_parameters: Mapping[str, str] | None = None,
        total_steps: int | None = None,
    ) -> None:
        self.collections: dict[str, dict[str, str]] = {name: {} for name in DEFAULT_COLLECTIONS} | {
            name: dict(parameters) for name, parameters in collections.items()
        }
        self._asked = set(collections)
        self._hook = dict(hook_parameters or {})
        self._total = total_steps

    def steps(self, name: str, mode: str | None = None) -> Iterator[int]:
        """The steps of a mode at which a collection is saved, in order."""
        own = self.collections[name]
        parameters = {**self._hook, **own}
        if mode is not None:
            parameters |= {k.removeprefix(f"{mode}."): v for k, v in own.items() if k.startswith(f"{mode}.")}
        interval = _integer(parameters.get("save_interval")) or _DEFAULT_INTERVAL
        start, end = _integer(parameters.get("start_step")) or 0, _integer(parameters.get("end_step"))
        listed = sorted(
            {n for text in parameters.get("save_steps", "").split(",") if (n := _integer(text)) is not None}
        )
        regular: Iterable[int] = count(-(-start // interval) * interval, interval)
        if end is not None:
            regular = takewhile(lambda step: step < end, regular)
        previous = -1
        for step in heapq.merge(listed, regular):
            if self._total is not None and step >= self._total:
                return
            if step != previous:
                yield step
            previous = step

    def complaints(self, name: str) -> list[str]:
        """Why a collection saves nothing."""
        found = []
        parameters = self.collections[name]
        if name in self._asked and name not in _MADE_BY_HOOKS and not parameters.get("include_regex"):
            found.append(f"collection {name} saves nothing: no hook fills it, and it has no include_regex")
        if all(next(self.steps(name, mode), None) is None for mode in (None, *_MODES)):
            found.append(f"collection {name} saves nothing: no step of the training is one that it saves")
        for pattern in parameters.get("include_regex", "").split(","):
            hint = glob_hint(pattern.strip())
            if hint:
                found.append(f"collection {name}: include_regex {hint}")
        return found

    def decide(self, groups: Iterable[Reads]) -> Decision:
        """Whether what is saved is enough for a rule that reads these groups."""
        alternatives: list[list[Reads]] = []
        groups = list(groups)
        if groups and all(reads.optional for reads in groups):
            alternatives = [groups]  # none is needed, but nothing can be judged without any
        for reads in () if alternatives else groups:
            if reads.fallback and alternatives:
                alternatives[-1].append(reads)
            elif not reads.optional:
                alternatives.append([reads])
        decisions = [_best(self._decide(reads) for reads in group) for group in alternatives]
        for answer in ("no", "unknown"):
            for decision in decisions:
                if decision.answer == answer:
                    return decision
        return Decision("yes", from_step=max((d.from_step or 0 for d in decisions), default=0))

    def _decide(self, reads: Reads) -> Decision:
        serving = [name for name in self.collections if self._serves(name, reads)]
        sought = [f"collection {name}" for name in reads.collections]
        sought += [f"pattern {pattern}" for pattern in reads.patterns]
        text = " or ".join(sought)
        if not serving and reads.patterns:
            return Decision("unknown", f"nothing in the saving plan is known to save {text}")
        if not serving:
            return Decision("no", f"nothing saves {text or 'what it reads'}: add it to the collections")
        return _best(self._timely(name, mode, reads) for name in serving for mode in (None, *_MODES))

    def _serves(self, name: str, reads: Reads) -> bool:
        if reads.everything or name == "all" or name in reads.collections:
            return True
        patterns = self.collections[name].get("include_regex", "").split(",")
        return any(
            _overlap(wanted, saved)
            for wanted in reads.patterns
            for saved in (*filter(None, map(str.strip, patterns)), name)
        )

    def _timely(self, name: str, mode: str | None, reads: Reads) -> Decision:
        """Whether the steps at which a collection is saved are enough."""
        needed = max(
            [reads.min_points, *(1 + c.last for c in reads.compare if c.within is None and not c.runs)]
        )
        if reads.first is not None and reads.first < needed:
            return Decision("no", f"it reads {reads.first} steps and needs {needed}")
        steps = list(islice(self.steps(name, mode), needed))
        if len(steps) < needed:
            of = "" if self._total is None else f" in {self._total} steps"
            return Decision("no", f"collection {name} is saved {len(steps)} times{of}; {needed} are needed")
        first = steps[-1] if steps else 0
        within = [c.within for c in reads.compare if c.within is not None]
        if within:
            near = min(within)
            saved = pairwise(islice(self.steps(name, mode), _LOOK_AT))
            second = next((b for a, b in saved if b - a <= near), None)
            if second is None:
                why = f"collection {name} is never saved twice within {near} steps: shorten its save_interval"
                return Decision("no", why)
            first = max(first, second)
        return Decision("yes", from_step=first)


def glob_hint(pattern: str) -> str | None:
    """A complaint if a pattern is a glob and not the regular expression that it is taken for."""
    if pattern.startswith("*") or re.search(r"(?<!\\)[A-Za-z0-9_/-]\*", pattern):
        meant = re.sub(r"(^|(?<=[A-Za-z0-9_/-]))\*", ".*", pattern)
        return f"{pattern!r} looks like a glob; as a regular expression, what is meant is {meant!r}"
    return None


def _best(decisions: Iterable[Decision]) -> Decision:
    """The best of alternatives."""
    order = {"yes": 0, "unknown": 1, "no": 2}
    return min(decisions, key=lambda one: (order[one.answer], one.from_step or 0))


def _overlap(one: str, other: str) -> bool:
    """Whether two patterns are likely to match a name in common."""
    for pattern, text in ((one, other), (other, one)):
        for words in chain([text], text.split("|")):
            plain = re.sub(r"\(\?[a-zA-Z!=<:]*|\\.|[.*+?^$()\[\]{}|]", "", words)
            try:
                if pattern == text or (plain and re.search(pattern, plain)):
                    return True
            except (re.error, RecursionError):
                continue
    return False


def _integer(text: str | None) -> int | None:
    return int(text) if text is not None and re.fullmatch(r"\s*[0-9]+\s*", text) else None

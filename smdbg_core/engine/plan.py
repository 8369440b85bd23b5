"""Planning: from the declarations of all rules to one list of measurements for each file.

Nothing is read here. The plan of a file depends on its layout, its mode and the rules that are in
range, so that the thousands of files of a trial share a handful of plans.
"""

from __future__ import annotations

import sys
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

from smdbg_core.engine.reductions import derivable
from smdbg_core.engine.selection import Selection
from smdbg_core.errors import ConfigError
from smdbg_core.reads import Compare, Reads, StatisticRef
from smdbg_core.rule import TensorRule
from smdbg_core.runs.run import Run
from smdbg_core.runs.trial import Entry, StepFile, Trial
from smdbg_core.runs.views import Wanted
from smdbg_core.stats import FUSED, lookup
from smdbg_core.storage import Storage

__all__ = ["FilePlan", "FileTask", "Item", "Member", "Plan", "Reference", "RulePlan"]

NOT_SAVED_RAW = "raw value not saved"

_PLANS = 256
"""How many plans are kept."""


class Item(NamedTuple):
    """One tensor of one file, and what to measure of it."""

    name: str
    span: tuple[int, int] | None
    """Offset and length of the record in the event file, when the raw value was saved."""

    reductions: tuple[tuple[str, tuple[int, int]], ...]
    """Saved reductions to use instead."""

    wanted: Wanted
    shape: tuple[int, ...] | None = None
    """Shape, where it was saved on its own."""


class Reference(NamedTuple):
    """Another value of the same tensor, to compare with."""

    mode_step: int
    run: str | None
    storage: Storage
    event_file: str
    span: tuple[int, int]


class FileTask(NamedTuple):
    """What to measure in one event file; plain data, for any executor."""

    session: int
    """The same for all tasks of one plan: what was read for another may have changed since."""

    storage: Storage
    event_file: str
    items: tuple[Item, ...]
    raw: tuple[int, ...]
    """Indexes of the items with a raw value."""

    records: tuple[tuple[str, tuple[int, int]], ...]
    """Their names and spans; the same object for all files of a plan."""

    modules: tuple[tuple[str, str], ...]
    """Modules of plugins' statistics, and their files; other processes have to import them."""

    references: tuple[tuple[tuple[Reference, ...], ...], ...] = ()
    """For each item, for each of its comparisons, the values to compare with; empty if none has any."""


class Member(NamedTuple):
    """A tensor of a file plan belongs to a group of a rule."""

    item: int
    rule: int
    group: int


class FilePlan(NamedTuple):
    """What all rules together want of the files of one layout."""

    items: tuple[Item, ...]
    measured: tuple[int, ...]
    """Indexes of the items that need the event file; the others are only seen."""

    task: FileTask
    """What measuring a file takes, but for the name of the file."""

    members: tuple[Member, ...]
    skips: tuple[tuple[int, str], ...]
    """Rule and reason, for each tensor that a rule reads but cannot judge here."""

    nbytes: int
    """Bytes that measuring reads, about."""


class RulePlan:
    """One rule, and what it reads in this run."""

    def __init__(self, rule: TensorRule, trial: Trial) -> None:
        self.rule = rule
        declared = rule.reads()
        self.reads: list[Reads] = []
        self.selections: list[Selection] = []
        for reads in (declared,) if isinstance(declared, Reads) else declared:
            if reads.fallback and any(selection.names() for selection in self.selections):
                continue
            self.reads.append(reads)
            self.selections.append(Selection(reads, rule.exclude, trial))

    def misses(self, reads: Reads) -> bool:
        """Whether the rule is to be told of tensors that lack what this group needs."""
        return reads.source != "reductions" and all(one.source != "reductions" for one in self.reads)

    def in_range(self, step: int) -> bool:
        """Whether the rule judges this global step."""
        end = self.rule.end_step
        return self.rule.start_step <= step and (end is None or step < end)

    def complaint(self) -> str | None:
        """Why the rule can judge nothing, if a group that it needs selects nothing."""
        for selection in self.selections:
            if not selection.reads.optional and not selection.names():
                return selection.complaint()
        if not any(selection.names() for selection in self.selections):
            return self.selections[0].complaint()
        return None


class Plan:
    """The measurements that a set of rules needs of a trial.

    Args:
        trial: What is judged.
        rules: The rules, each already planned.
        others: The opened runs behind the `RunURI` parameters of all rules, by URI.
    """

    def __init__(self, trial: Trial, rules: Sequence[RulePlan], others: Mapping[str, Run]) -> None:
        self._session = time.monotonic_ns()
        self._trial = trial
        self._rules = rules
        self._others = others
        self._cache: dict[Hashable, FilePlan] = {}
        self._steps_of_mode: dict[str, list[int]] = defaultdict(list)
        self._limited = [
            (index, number, reads.first)
            for index, rule in enumerate(rules)
            for number, reads in enumerate(rule.reads)
            if reads.first is not None
        ]
        self._history: dict[tuple[str, str], list[tuple[int, StepFile]]] = defaultdict(list)

    def file(self, file: StepFile) -> FilePlan:
        """The plan of one file."""
        active = tuple(index for index, plan in enumerate(self._rules) if plan.in_range(file.step))
        over = self._groups_that_are_over(file)
        key = (id(file.layout), file.mode, active, over)
        plan = self._cache.get(key)
        if plan is None:
            # Where every file has a layout of its own, as boosting runs do, plans are not used again.
            if len(self._cache) >= _PLANS:
                self._cache.clear()
            plan = self._cache[key] = self._plan(file, active, over)
        return plan

    def _groups_that_are_over(self, file: StepFile) -> frozenset[tuple[int, int]]:
        """Rules and groups that read only the first steps of a mode, and have."""
        if not self._limited:
            return frozenset()
        steps = self._steps_of_mode[file.mode]
        if not steps or steps[-1] != file.step:
            steps.append(file.step)
        return frozenset(
            (index, number)
            for index, number, first in self._limited
            if len(steps) - bisect_left(steps, self._rules[index].rule.start_step) > first
        )

    def task(self, file: StepFile, plan: FilePlan) -> FileTask:
        """The measuring task of one file; files must come in the order of steps."""
        task = plan.task._replace(event_file=file.event_file or "")
        if not any(item.wanted.compares for item in task.items):
            return task
        references = tuple(
            tuple(tuple(self._references(file, item.name, Compare(*key))) for key in item.wanted.compares)
            for item in task.items
        )
        return task._replace(references=references)

    def passed(self, file: StepFile) -> None:
        """Remember a file as the past of later ones."""
        self._history[file.mode, file.worker].append((file.mode_step, file))

    def _plan(self, file: StepFile, active: tuple[int, ...], over: frozenset[tuple[int, int]]) -> FilePlan:
        items: list[Item] = []
        members: list[Member] = []
        skips: list[tuple[int, str]] = []
        for name in file.layout.names:
            entry = file.layout.entries[name]
            wanted: dict[bool, list[Reads]] = {True: [], False: []}
            readers = []
            for index in active:
                for number, selection in enumerate(self._rules[index].selections):
                    reads = selection.reads
                    if reads.modes is not None and file.mode not in reads.modes:
                        continue
                    if (index, number) in over or name not in selection:
                        continue
                    if not _available(reads, entry):
                        if self._rules[index].misses(reads):
                            skips.append((index, NOT_SAVED_RAW))
                        continue
                    readers.append((index, number))
                    wanted[entry.span is not None].append(reads)
            if readers:
                members += [Member(len(items), index, number) for index, number in readers]
                items.append(_item(entry, wanted[True] or wanted[False]))
        measured = tuple(
            i
            for i, item in enumerate(items)
            if item.wanted.fused or item.wanted.extras or item.wanted.compares
        )
        nbytes = sum(_length(items[index]) for index in measured)
        chosen = tuple(items[index] for index in measured)
        raw = tuple(index for index, item in enumerate(chosen) if item.span is not None)
        records = tuple((chosen[index].name, chosen[index].span) for index in raw)
        modules = _modules(chosen)
        task = FileTask(self._session, self._trial.storage, "", chosen, raw, records, modules)  # type: ignore[arg-type]
        return FilePlan(tuple(items), measured, task, tuple(members), tuple(skips), nbytes)

    def _references(self, file: StepFile, name: str, compare: Compare) -> Iterator[Reference]:
        if compare.runs:
            yield from self._elsewhere(file, name, [self._others[uri] for uri in compare.runs])
            return
        found = []
        for mode_step, earlier in reversed(self._history[file.mode, file.worker]):
            if compare.within is not None and mode_step < file.mode_step - compare.within:
                break
            entry = earlier.layout.entries.get(name)
            if entry is None or entry.span is None or earlier.event_file is None:
                continue
            found.append(Reference(mode_step, None, self._trial.storage, earlier.event_file, entry.span))
            if compare.within is None and len(found) == compare.last:
                break
        yield from found[-1:] if compare.within is not None else reversed(found)

    def _elsewhere(self, file: StepFile, name: str, runs: Sequence[Run]) -> Iterator[Reference]:
        for run in runs:
            trial = run.trial
            step = trial.global_step(file.mode, file.mode_step) if trial is not None else None
            if trial is None or step is None:
                continue
            having = [f for f in trial.files(step) if (e := f.layout.entries.get(name)) and e.span]
            same = [f for f in having if f.worker == file.worker] or having
            if same and same[0].event_file is not None:
                span = same[0].layout.entries[name].span
                if span is not None:
                    yield Reference(file.mode_step, run.uri, trial.storage, same[0].event_file, span)


def _available(reads: Reads, entry: Entry) -> bool:
    """Whether the entry holds what the group needs."""
    if reads.source == "reductions":
        return entry.span is None and bool(entry.reductions)
    if not (reads.statistics or reads.compare or reads.values):
        return True
    if entry.span is not None:
        return True
    if reads.source == "raw" or reads.values or reads.compare:
        return False
    return derivable(reads.statistics, entry.reductions)


def _item(entry: Entry, readers: Sequence[Reads]) -> Item:
    """One item for all groups that read the tensor."""
    names: set[str] = set()
    extras: dict[tuple[Hashable, ...], None] = {}
    compares: dict[Compare, None] = {}
    for reads in readers:
        for ref in map(_key, reads.statistics):
            if len(ref) == 1 and ref[0] in FUSED:
                names.add(str(ref[0]))
            else:
                extras[ref] = None
        compares |= dict.fromkeys(reads.compare)
    looks = any(reads.values or reads.source == "reductions" for reads in readers)
    if names or extras or compares or looks:
        # Whether a value is finite decides whether its point can be clean, whatever is asked.
        names.add("non_finite")
    fused = tuple(name for name in FUSED if name in names)
    wanted = Wanted(fused, tuple(extras), tuple(tuple(compare) for compare in compares))
    reductions = () if entry.span is not None else tuple(sorted(entry.reductions.items()))
    return Item(entry.name, entry.span, reductions, wanted, entry.shape)


def _modules(items: Sequence[Item]) -> tuple[tuple[str, str], ...]:
    """Modules of the statistics that the core does not bring, and their files."""
    names = {str(one[0]) for item in items for one in (*item.wanted.extras, *item.wanted.compares)}
    modules = set()
    for name in names:
        with suppress(ConfigError):  # an unknown statistic is the complaint of the rule that asks for it
            modules.add(lookup(name).function.__module__)
    foreign = sorted(module for module in modules if not module.startswith("smdbg_core."))
    return tuple((module, getattr(sys.modules.get(module), "__file__", None) or "") for module in foreign)


def _key(ref: StatisticRef) -> tuple[Hashable, ...]:
    return (ref,) if isinstance(ref, str) else ref


def _length(item: Item) -> int:
    return item.span[1] * (1 + len(item.wanted.compares)) if item.span else 64

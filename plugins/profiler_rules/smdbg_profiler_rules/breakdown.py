"""Time by phase, operator and category: where framework events spent it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Any

from smdbg_core import Events

__all__ = ["Breakdown"]

_SHOWN = 0.02
"""Operators with at most this share of their class are left out."""


class Breakdown:
    """Durations of events, summed by what kind of event they are.

    Each event goes to the first class that its phase fits: operators on the CPU, on the GPU, steps,
    forward and backward passes of submodules, Horovod's events by name, all others by phase.
    """

    def __init__(self) -> None:
        self._cpu: Counter[tuple[str, str]] = Counter()
        self._gpu: Counter[tuple[str, str]] = Counter()
        self._steps: Counter[str] = Counter()
        self._passes: Counter[str] = Counter()
        self._general: Counter[str] = Counter()
        self._horovod: Counter[str] = Counter()

    def add(self, batches: Iterable[Events]) -> None:
        """Count events once each, with their full durations."""
        for events in batches:
            durations = (events.ends - events.starts).tolist()
            horovod = events.source == "horovod"
            totals: dict[tuple[str, str], int] = {}
            keys = zip(events.phases.tolist(), events.names.tolist(), strict=True)
            for key, duration in zip(keys, durations, strict=True):
                totals[key] = totals.get(key, 0) + duration
            # Events are many, kinds of events few.
            for (phase, name), total in totals.items():
                self._count(phase, name, total, horovod)

    def _count(self, phase: str, name: str, duration: int, horovod: bool) -> None:
        folded = phase.lower()
        if "cpu" in folded:
            self._cpu[phase, name] += duration
        elif "gpu" in folded:
            self._gpu[phase, name] += duration
        elif "Step" in phase:
            self._steps[phase] += duration
        elif phase == "Forward-SubModuleInternal":
            self._passes["Forward pass"] += duration
        elif phase == "Backward-SubModuleInternal":
            self._passes["Backward pass"] += duration
        elif not horovod:
            self._general[phase] += duration
        elif not name.isdigit():  # numbers are ranks that report ready, not work
            self._horovod[name] += duration

    def details(self, others: int | None = None) -> dict[str, Any]:
        """The blocks as the service's report files have them; percentages, and totals in microseconds.

        Args:
            others: Microseconds between steps, if that is known.
        """
        operators = self._gpu + self._cpu
        by_phase: Counter[str] = Counter()
        for (phase, _), duration in operators.items():
            by_phase[phase] += duration
        found: dict[str, Any] = {"ratio": _percentages(by_phase)}
        for key, chosen in (("CPU", self._cpu), ("GPU", self._gpu)):
            by_name: Counter[str] = Counter()
            for (_, name), duration in chosen.items():
                by_name[name] += duration
            shown = _large(by_name)
            if shown:
                found[key] = _percentages(shown)
                found[f"{key}_total"] = dict(shown)
        steps = Counter(self._steps)
        if steps and others is not None:
            steps["others"] = others
        found |= {"phase": _percentages(steps), "phase_time": {}}
        if sum(self._general.values()):
            found["general"] = _percentages(self._general)
        if len(self._passes) == 2:
            found["forward_backward"] = _percentages(self._passes)
        if _large(self._horovod):
            found["horovod"] = _percentages(_large(self._horovod))
        return found


def _percentages(durations: Counter[str]) -> dict[str, float]:
    total = sum(durations.values())
    return {name: 100 * duration / total for name, duration in durations.items()} if total else {}


def _large(durations: Counter[str]) -> Counter[str]:
    total = sum(durations.values())
    return Counter(
        {name: duration for name, duration in durations.most_common() if duration > _SHOWN * total}
    )

"""OverallSystemUsage: statistics of the machines, for the report."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from smdbg_core import Finding, Measurements, ProfilerRule, RuleRun, ScanReads, ScanWindow
from smdbg_core.stats import EmpiricalDistribution

__all__ = ["OverallSystemUsage"]

_BLOCKS = (
    ("Network", "Algorithm"),
    ("GPU", "GPUUtilization"),
    ("CPU", "CPUUtilization"),
    ("CPU memory", "MemoryUsedPercent"),
    ("GPU memory", "GPUMemoryUtilization"),
    ("I/O", "I/OWaitPercentage"),
)
_QUANTILES = {"p99": 0.99, "p95": 0.95, "p50": 0.5}


class OverallSystemUsage(ProfilerRule):
    """Measures how much of each machine was used; never fires.

    Why it matters: the percentiles show at a glance which resource is scarce and which is wasted.
    What to do: nothing; read them beside the verdicts of the other rules.
    """

    def reads(self) -> ScanReads:
        """Every measure that the report shows."""
        return ScanReads(series=tuple(measure for _, measure in _BLOCKS), optional=True)

    def start(self, run: RuleRun) -> None:
        """A distribution for each measure and node."""
        self._usage: dict[str, dict[str, EmpiricalDistribution]] = {block: {} for block, _ in _BLOCKS}

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Take in the window."""
        for block, measure in _BLOCKS:
            # Bytes received and sent add up; what is a percentage of each device is averaged.
            for series in window.averages(measure, total=block == "Network"):
                self._usage[block].setdefault(series.node, EmpiricalDistribution()).add(series.values)
                self.observe(series)
        yield from ()

    def measurements(self) -> Measurements:
        """Percentiles of each measure and node."""
        details = {
            block: {node: _statistics(values) for node, values in nodes.items()}
            for block, nodes in self._usage.items()
        }
        cpu = list(self._usage["CPU"].values())
        return Measurements(datapoints=cpu[0].size if cpu else 0, details=details)


def _statistics(values: EmpiricalDistribution) -> dict[str, Any]:
    found = {"max": values.max}
    found |= dict(zip(_QUANTILES, values.quantiles(*_QUANTILES.values()), strict=True))
    found["min"] = values.min
    return {name: round(value, 2) if value > 0 else 0 for name, value in found.items()}

"""LowGPUUtilization: GPUs that have little to do, or not all the time."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from smdbg_core import Finding, Measurements, Meta, ProfilerRule, RuleRun, ScanReads, ScanWindow
from smdbg_profiler_rules.history import History, box

__all__ = ["LowGPUUtilization"]


class LowGPUUtilization(ProfilerRule):
    """Fires when the utilisation of a GPU is low, or fluctuates between low and high.

    Why it matters: an idle accelerator is the most expensive part of the machine.
    What to do: look at the bottleneck rules first; then fewer blocking calls, a larger batch, another
    distribution strategy, or a smaller instance.
    """

    threshold_p95: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="Low below this 95th percentile.")
    ] = 70
    threshold_p5: Annotated[
        float,
        Meta(
            ge=0, le=100, unit="percent", description="Fluctuating below this 5th percentile, when not low."
        ),
    ] = 10
    window: Annotated[int, Meta(gt=0, unit="samples", description="Latest samples that are judged.")] = 500
    patience: Annotated[int, Meta(gt=0, unit="samples", description="Samples before the first verdict.")] = (
        1000
    )

    def reads(self) -> ScanReads:
        """GPU utilisation."""
        return ScanReads(series=("GPUUtilization",))

    def start(self, run: RuleRun) -> None:
        """A history for each GPU."""
        self._gpus: dict[tuple[str, str], History] = {}
        self._fired = 0
        self._datapoints = 0
        self._details: dict[str, Any] = {}

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Take in the window, then judge every GPU."""
        for series in window.series("GPUUtilization"):
            self._gpus.setdefault((series.node, series.device), History(self.window)).add(series.values)
        for (node, gpu), history in self._gpus.items():
            place = window.place(f"{gpu} GPUUtilization", node=node)
            self._datapoints = history.size
            if history.size <= self.patience:
                self.skip(place, "fewer samples than patience", history.size, self.patience + 1)
                continue
            p95, p5 = history.recent_quantile(0.95), history.recent_quantile(0.05)
            if p95 > self.threshold_p95:
                message = f"fluctuating: the 5th percentile is {p5:.4g} %, the 95th {p95:.4g} %"
                found = self.judge(place, "p5", p5, "<", self.threshold_p5, message=message)
            else:
                kind = "unused: never above 0 %" if history.whole.max <= 0 else "low"
                message = f"{kind}: the 95th percentile is {p95:.4g} %, below {self.threshold_p95:g} %"
                found = self.judge(place, "p95", p95, "<", self.threshold_p95, message=message)
            if found:
                self._fired += 1
                self._details.setdefault(node, {})[gpu] = {
                    "gpu_max": float(history.recent.max()),
                    "gpu_95": p95,
                    "gpu_5": p5,
                    **box(history.whole),
                }
                self._details.pop("last_timestamp", None)
                self._details["last_timestamp"] = window.start
            yield from found

    def measurements(self) -> Measurements:
        """Box plots of the GPUs that fired."""
        return Measurements(
            triggered=self._fired,
            violations=self._fired,
            datapoints=self._datapoints,
            details=self._details,
        )

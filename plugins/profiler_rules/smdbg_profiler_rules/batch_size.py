"""BatchSize: batches too small for the hardware."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from smdbg_core import Finding, Measurements, Meta, ProfilerRule, RuleRun, ScanReads, ScanWindow
from smdbg_profiler_rules.history import History, box

__all__ = ["BatchSize"]

_TOO_FEW = "fewer samples than window and patience"


class BatchSize(ProfilerRule):
    """Fires when CPU, GPU and GPU memory of a node are all little used.

    Why it matters: the hardware could do more work at once; the same training would take less time, or
    a smaller machine.
    What to do: raise the batch size until GPU memory is well filled, or move to a smaller instance.
    """

    cpu_threshold_p95: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="Only below this 95th percentile of CPU use.")
    ] = 70
    gpu_threshold_p95: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="Only below this 95th percentile of GPU use.")
    ] = 70
    gpu_memory_threshold_p95: Annotated[
        float,
        Meta(ge=0, le=100, unit="percent", description="Only below this 95th percentile of GPU memory use."),
    ] = 70
    patience: Annotated[int, Meta(gt=0, unit="samples", description="Samples before the first verdict.")] = (
        1000
    )
    window: Annotated[int, Meta(gt=0, unit="samples", description="Latest samples that are judged.")] = 500

    def reads(self) -> ScanReads:
        """CPU, GPU and GPU memory utilisation."""
        return ScanReads(series=("CPUUtilization", "GPUUtilization", "GPUMemoryUtilization"))

    def start(self, run: RuleRun) -> None:
        """Histories for each node and GPU."""
        self._cpu: dict[str, History] = {}
        self._gpu: dict[tuple[str, str], History] = {}
        self._memory: dict[tuple[str, str], History] = {}
        self._fired = 0
        self._details: dict[str, Any] = {}

    def evaluate(self, window: ScanWindow) -> Iterator[Finding]:
        """Take in the window, then judge every GPU."""
        for series in window.averages("CPUUtilization"):
            self._cpu.setdefault(series.node, History(self.window)).add(series.values)
        for measure, histories in (("GPUUtilization", self._gpu), ("GPUMemoryUtilization", self._memory)):
            for series in window.series(measure):
                gpu = series.node, series.device
                histories.setdefault(gpu, History(self.window)).add(series.values)
        of_node = {node: cpu.recent_quantile(0.95) for node, cpu in self._cpu.items()}
        for (node, name), history in self._gpu.items():
            cpu, memory = self._cpu.get(node), self._memory.get((node, name))
            place = window.place(f"{name} GPUUtilization", node=node)
            if cpu is None or memory is None:
                self.skip(place, "no samples of the CPU or of GPU memory")
                continue
            have, need = min(cpu.size, history.size), max(self.window, self.patience) + 1
            if cpu.size < need or history.size <= self.window:
                self.skip(place, _TOO_FEW, have, need)
                continue
            p95 = {
                "CPU": (of_node[node], self.cpu_threshold_p95),
                "GPU": (history.recent_quantile(0.95), self.gpu_threshold_p95),
                "GPU memory": (memory.recent_quantile(0.95), self.gpu_memory_threshold_p95),
            }
            # All three are below their limits exactly when the largest share of a limit is below one.
            share = max(value / limit if limit else float("inf") for value, limit in p95.values())
            said = ", ".join(f"{what} {value:.4g} < {limit:g} %" for what, (value, limit) in p95.items())
            message = f"95th percentiles of the latest {self.window} samples: {said}"
            if memory.recent.max() - memory.recent.min() <= 1:
                message += "; GPU memory is constant, perhaps reserved as a whole by the framework"
            found = self.judge(place, "largest p95 / threshold", share, "<", 1.0, message=message)
            if found:
                self._fired += 1
                block = self._details.setdefault(node, {})
                block |= {
                    "cpu": box(cpu.whole),
                    name: box(history.whole),
                    f"{name}_memory": box(memory.whole),
                }
                self._details.pop("last_timestamp", None)
                self._details["last_timestamp"] = window.start
            yield from found

    def measurements(self) -> Measurements:
        """Box plots of what fired last."""
        cpu = list(self._cpu.values())
        return Measurements(
            triggered=self._fired,
            violations=self._fired,
            datapoints=cpu[-1].size if cpu else 0,
            details=self._details,
        )

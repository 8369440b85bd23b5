"""CPUBottleneck: GPUs wait for the CPU."""

from __future__ import annotations

from typing import Annotated, ClassVar

from smdbg_core import Meta
from smdbg_profiler_rules.bottleneck import Bottleneck

__all__ = ["CPUBottleneck"]


class CPUBottleneck(Bottleneck):
    """Fires when for much of the time a GPU idles while a CPU core is saturated.

    Why it matters: the accelerator waits for preprocessing or for a single busy thread.
    What to do: more data loader processes, prefetching, lighter or precomputed preprocessing, an
    instance with more cores for each GPU.
    """

    measure: ClassVar = "CPUUtilization"
    core_limit: ClassVar = "cpu_threshold"
    said: ClassVar = "a saturated core"

    threshold: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="Share of snapshots above which it fires.")
    ] = 50
    gpu_threshold: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="A GPU below this is idle.")
    ] = 10
    cpu_threshold: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="A core above this is saturated.")
    ] = 90
    patience: Annotated[
        int, Meta(gt=0, unit="snapshots", description="Snapshots before the first verdict.")
    ] = 1000

    def limits(self) -> tuple[float, float, float, int]:
        """Share of snapshots, limits of GPU and core, patience."""
        return self.threshold, self.gpu_threshold, self.cpu_threshold, self.patience

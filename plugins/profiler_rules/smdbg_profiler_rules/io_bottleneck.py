"""IOBottleneck: GPUs wait for storage."""

from __future__ import annotations

from typing import Annotated, ClassVar

from smdbg_core import Meta
from smdbg_profiler_rules.bottleneck import Bottleneck

__all__ = ["IOBottleneck"]


class IOBottleneck(Bottleneck):
    """Fires when for much of the time a GPU idles while a CPU core waits for storage.

    Why it matters: the accelerator waits for data that is read too slowly.
    What to do: prefetch, store samples in few large files, cache, or use faster storage or a faster
    input mode.
    """

    measure: ClassVar = "I/OWaitPercentage"
    core_limit: ClassVar = "io_threshold"
    said: ClassVar = "a core that waits for I/O"

    threshold: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="Share of snapshots above which it fires.")
    ] = 50
    gpu_threshold: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="A GPU below this is idle.")
    ] = 10
    io_threshold: Annotated[
        float, Meta(ge=0, le=100, unit="percent", description="A core above this waits for I/O.")
    ] = 50
    patience: Annotated[
        int, Meta(gt=0, unit="snapshots", description="Snapshots before the first verdict.")
    ] = 1000

    def limits(self) -> tuple[float, float, float, int]:
        """Share of snapshots, limits of GPU and core, patience."""
        return self.threshold, self.gpu_threshold, self.io_threshold, self.patience

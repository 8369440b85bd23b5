"""NVIDIA GPUs, through the vendor's management library where it is present."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

__all__ = ["NvidiaGpus"]


class NvidiaGpus:
    """The GPUs of this machine; none without `nvidia-ml-py`, a driver or a GPU.

    Attributes:
        count: How many GPUs there are.
    """

    def __init__(self) -> None:
        self._library: Any = None
        self._handles: list[Any] = []
        try:
            import pynvml
        except ImportError:
            return
        try:
            pynvml.nvmlInit()
        except pynvml.NVMLError:
            return  # the package without a driver
        self._library = pynvml
        with suppress(pynvml.NVMLError):
            self._handles = [
                pynvml.nvmlDeviceGetHandleByIndex(index) for index in range(pynvml.nvmlDeviceGetCount())
            ]

    @property
    def count(self) -> int:
        """How many GPUs there are."""
        return len(self._handles)

    def read(self) -> list[tuple[str, str, str, float]]:
        """Utilisation and occupied memory of each GPU in percent, as `MetricsWriter.tick` takes them.

        What a GPU does not tell (a partitioned one has no utilisation, one that fell off the bus has
        nothing) is left out.
        """
        found = []
        for index, handle in enumerate(self._handles):
            name = f"gpu{index}"
            with suppress(self._library.NVMLError):
                used = float(self._library.nvmlDeviceGetUtilizationRates(handle).gpu)
                found.append(("gpu", name, "GPUUtilization", used))
            with suppress(self._library.NVMLError):
                memory = self._library.nvmlDeviceGetMemoryInfo(handle)
                if memory.total:
                    share = 100 * memory.used / memory.total
                    found.append(("gpu", name, "GPUMemoryUtilization", share))
        return found

    def close(self) -> None:
        """Let go of the library."""
        if self._library is not None:
            with suppress(self._library.NVMLError):
                self._library.nvmlShutdown()
        self._library, self._handles = None, []

"""What a machine does at one moment: CPU, memory, disk, network and GPUs."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from smdbg_core.capture.nvidia import NvidiaGpus
from smdbg_core.errors import ConfigError

__all__ = ["Sampler"]

Measured = tuple[str, str, str, float]

_IN_OTHERS = ("guest", "guest_nice")
"""Linux counts these in `user` and `nice` already."""


_LOOPBACKS = ("lo", "lo0", "Loopback Pseudo-Interface 1")


class Sampler:
    """Reads the machine's counters; rates are over the time since the reading before.

    The first reading has no rates. What cannot be measured is left out, never zero: a value that a
    platform does not count (there is no I/O wait outside Linux), a counter that went back, a reading
    that fails.

    Raises:
        ConfigError: psutil is not installed.
    """

    def __init__(self) -> None:
        try:
            import psutil
        except ImportError:
            message = "capturing needs psutil: pip install 'smdbg-core[capture]'"
            raise ConfigError(message) from None
        self._psutil = psutil
        self._gpus = NvidiaGpus()
        self._at: float | None = None
        self._cores: list[Any] = []
        self._disk: Any = None
        self._network: tuple[int, int] | None = None

    def read(self) -> list[Measured]:
        """Samples of now, as `MetricsWriter.tick` takes them; percentages are 0 to 100."""
        now = time.perf_counter()
        passed = 0.0 if self._at is None else now - self._at
        self._at = now
        return [
            *self._gpus.read(),
            *self._cpu(),
            *self._memory(),
            *self._disks(passed),
            *self._networks(passed),
        ]

    def close(self) -> None:
        """Let go of the GPUs' library."""
        self._gpus.close()

    def _asked(self, read: Callable[[], Any]) -> Any:
        """What psutil says, `None` where it cannot: `/proc` may be restricted, a counter missing."""
        try:
            return read()
        except (OSError, RuntimeError, NotImplementedError, ValueError, self._psutil.Error):
            return None

    def _cpu(self) -> Iterator[Measured]:
        now = self._asked(lambda: self._psutil.cpu_times(percpu=True)) or []
        before, self._cores = self._cores, now
        if len(before) != len(now):
            return  # the first reading, or a core went off line
        for number, (first, last) in enumerate(zip(before, now, strict=True)):
            # The kernel's idle counters may go back by a little.
            spent = {
                name: max(0.0, after - earlier)
                for name, earlier, after in zip(last._fields, first, last, strict=True)
                if name not in _IN_OTHERS
            }
            total = sum(spent.values())
            if total <= 0:
                continue
            waited = spent.get("iowait")
            busy = total - spent["idle"] - (waited or 0.0)
            yield "cpu", f"cpu{number}", "CPUUtilization", 100 * busy / total
            if waited is not None:
                yield "cpu", f"cpu{number}", "I/OWaitPercentage", 100 * waited / total

    def _memory(self) -> Iterator[Measured]:
        memory = self._asked(self._psutil.virtual_memory)
        if memory is not None and memory.total:
            yield "memory", "MemoryUsedPercent", "", float(memory.percent)

    def _disks(self, passed: float) -> Iterator[Measured]:
        now = self._asked(self._psutil.disk_io_counters)
        before, self._disk = self._disk, now
        if before is None or now is None or passed <= 0:
            return
        operations = now.read_count + now.write_count - before.read_count - before.write_count
        for name, change in (
            ("IOPS", operations),
            ("ReadThroughputInBytesPerSecond", now.read_bytes - before.read_bytes),
            ("WriteThroughputInBytesPerSecond", now.write_bytes - before.write_bytes),
        ):
            if change >= 0:
                yield "i/o", name, "", change / passed

    def _networks(self, passed: float) -> Iterator[Measured]:
        """All interfaces but the loopback: traffic within the machine is no network traffic."""
        cards = self._asked(lambda: self._psutil.net_io_counters(pernic=True))
        outward = [
            card for name, card in (cards or {}).items() if name != "lo" and not name.startswith("lo0")
        ]
        received = sum(card.bytes_recv for card in outward)
        sent = sum(card.bytes_sent for card in outward)
        before, self._network = self._network, (received, sent) if outward else None
        if before is None or self._network is None or passed <= 0:
            return
        for name, change in (
            ("ReceiveBytesPerSecond", received - before[0]),
            ("TransmitBytesPerSecond", sent - before[1]),
        ):
            if change >= 0:
                yield "network", name, "Algorithm", change / passed

"""Reading a machine's counters."""

from __future__ import annotations

import sys
import types
from collections import namedtuple

import pytest

from smdbg_core import ConfigError
from smdbg_core.capture.nvidia import NvidiaGpus
from smdbg_core.capture.sampler import Sampler

Times = namedtuple("Times", "user idle iowait guest")
NoWait = namedtuple("NoWait", "user idle")
Disk = namedtuple("Disk", "read_count write_count read_bytes write_bytes")
Card = namedtuple("Card", "bytes_recv bytes_sent")
Memory = namedtuple("Memory", "total percent")


def fake(monkeypatch: pytest.MonkeyPatch, **readings: list[object]) -> Sampler:
    """A sampler over the readings of a machine, one after the other; an exception is raised."""
    module = types.ModuleType("psutil")
    module.Error = OSError  # type: ignore[attr-defined]

    def reader(values: list[object]) -> object:
        rest = iter(values)

        def read(**options: object) -> object:
            value = next(rest)
            if isinstance(value, Exception):
                raise value
            return value

        return read

    for name in ("cpu_times", "virtual_memory", "disk_io_counters", "net_io_counters"):
        setattr(module, name, reader(readings.get(name, [OSError()] * 9)))
    monkeypatch.setitem(sys.modules, "psutil", module)
    monkeypatch.setitem(sys.modules, "pynvml", None)
    return Sampler()


def values(sampler: Sampler) -> dict[tuple[str, str], float]:
    return {(name, dimension): value for _, name, dimension, value in sampler.read()}


def test_rates_need_a_reading_before(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = fake(
        monkeypatch,
        cpu_times=[[Times(0, 0, 0, 0)], [Times(3, 5, 2, 3)]],
        virtual_memory=[Memory(100, 40.0), Memory(100, 41.0)],
    )
    assert values(sampler) == {("MemoryUsedPercent", ""): 40}
    # The guest's time is in `user` already.
    assert values(sampler) == {
        ("cpu0", "CPUUtilization"): 30,
        ("cpu0", "I/OWaitPercentage"): 20,
        ("MemoryUsedPercent", ""): 41,
    }


def test_what_a_platform_does_not_count_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = fake(
        monkeypatch,
        cpu_times=[[NoWait(0, 0)], [NoWait(1, 3)]],
        disk_io_counters=[None, None],
        net_io_counters=[{"lo": Card(1, 1)}, {"lo": Card(9, 9)}],
    )
    sampler.read()
    assert values(sampler) == {("cpu0", "CPUUtilization"): 25}


def test_counters_that_go_back_give_no_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = fake(
        monkeypatch,
        disk_io_counters=[Disk(10, 10, 500, 500), Disk(5, 5, 600, 100)],
        net_io_counters=[{"eth0": Card(10, 10), "lo": Card(0, 0)}, {"eth0": Card(5, 30), "lo": Card(99, 99)}],
    )
    sampler.read()
    assert sorted(name for name, _ in values(sampler)) == [
        "ReadThroughputInBytesPerSecond",
        "TransmitBytesPerSecond",
    ]


def test_a_core_that_went_off_line_costs_one_tick(monkeypatch: pytest.MonkeyPatch) -> None:
    two, one = [NoWait(0, 0), NoWait(0, 0)], [NoWait(1, 1)]
    sampler = fake(monkeypatch, cpu_times=[two, one, [NoWait(2, 2)]])
    assert [len(values(sampler)) for _ in range(3)] == [0, 0, 1]


def test_a_core_that_did_not_count_has_no_utilisation(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = fake(monkeypatch, cpu_times=[[NoWait(1, 1)], [NoWait(1, 1)]])
    sampler.read()
    assert values(sampler) == {}


def test_psutil_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psutil", None)
    with pytest.raises(ConfigError, match=r"pip install 'smdbg-core\[capture\]'"):
        Sampler()


def nvml(monkeypatch: pytest.MonkeyPatch, *, driver: bool = True) -> types.ModuleType:
    """A stand-in for the management library: two GPUs, the second of which is partitioned."""
    module = types.ModuleType("pynvml")

    class NVMLError(Exception):
        pass

    def start() -> None:
        if not driver:
            raise NVMLError

    def utilisation(handle: int) -> object:
        if handle == 1:
            raise NVMLError
        return types.SimpleNamespace(gpu=97, memory=3)

    for name, value in {
        "NVMLError": NVMLError,
        "nvmlInit": start,
        "nvmlShutdown": lambda: None,
        "nvmlDeviceGetCount": lambda: 2,
        "nvmlDeviceGetHandleByIndex": lambda index: index,
        "nvmlDeviceGetUtilizationRates": utilisation,
        "nvmlDeviceGetMemoryInfo": lambda handle: types.SimpleNamespace(used=25, total=100),
    }.items():
        setattr(module, name, value)
    monkeypatch.setitem(sys.modules, "pynvml", module)
    return module


def test_gpus_tell_what_they_can(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml(monkeypatch)
    gpus = NvidiaGpus()
    assert gpus.count == 2
    assert gpus.read() == [
        ("gpu", "gpu0", "GPUUtilization", 97),
        ("gpu", "gpu0", "GPUMemoryUtilization", 25),
        ("gpu", "gpu1", "GPUMemoryUtilization", 25),
    ]
    gpus.close()
    assert gpus.read() == []


def test_without_a_driver_there_are_no_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    nvml(monkeypatch, driver=False)
    gpus = NvidiaGpus()
    assert gpus.read() == []
    gpus.close()

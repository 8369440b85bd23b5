"""Profiler output: system metrics and framework events, read and cut into scan windows."""

from __future__ import annotations

from smdbg_core.runs.profiler.events import Args, Events
from smdbg_core.runs.profiler.files import ProfilerFile
from smdbg_core.runs.profiler.metrics_writer import MetricsWriter
from smdbg_core.runs.profiler.profiler import (
    FOLDERS,
    Batch,
    Profiler,
    ProfilerReader,
    find_profiler,
    open_profiler,
    read_profiler,
)
from smdbg_core.runs.profiler.samples import Samples, SeriesKey
from smdbg_core.runs.profiler.timeline_writer import TimelineWriter
from smdbg_core.runs.profiler.windows import Place, ScanWindow, Series, Snapshots, Step

__all__ = [
    "Args",
    "FOLDERS",
    "Batch",
    "Events",
    "MetricsWriter",
    "Place",
    "Profiler",
    "ProfilerFile",
    "ProfilerReader",
    "Samples",
    "ScanWindow",
    "Series",
    "SeriesKey",
    "Snapshots",
    "Step",
    "TimelineWriter",
    "find_profiler",
    "open_profiler",
    "read_profiler",
]

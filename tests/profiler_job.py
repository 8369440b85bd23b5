"""The builder of profiler outputs, under the name that the tests use."""

from __future__ import annotations

from smdbg_core.testing import T0
from smdbg_core.testing import ProfilerBuilder as Job

__all__ = ["T0", "Job"]

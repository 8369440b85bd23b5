"""Fixtures for the tests of plugins; pytest loads this module by its entry point.

Nothing is imported before a test asks for it: this module is loaded in every environment that has smdbg.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from smdbg_core.testing.actions import ActionRecorder
    from smdbg_core.testing.profiler_builder import ProfilerBuilder
    from smdbg_core.testing.trial_builder import TrialBuilder


@pytest.fixture
def smdbg_trial() -> TrialBuilder:
    """An empty trial: `smdbg_trial.step(0, {"gradient/a": [1e-9]}).write(tmp_path)`."""
    from smdbg_core.testing.trial_builder import TrialBuilder

    return TrialBuilder()


@pytest.fixture
def smdbg_profiler() -> ProfilerBuilder:
    """An empty profiler output: `smdbg_profiler.series("GPUUtilization", [5.0] * 20).write(tmp_path)`."""
    from smdbg_core.testing.profiler_builder import ProfilerBuilder

    return ProfilerBuilder()


@pytest.fixture
def smdbg_actions() -> ActionRecorder:
    """A hook plugin that records dispatches; nothing is carried out."""
    from smdbg_core.testing.actions import ActionRecorder

    return ActionRecorder()

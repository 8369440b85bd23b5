"""Fixtures of the profiler's readers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.builders import write_trial


@pytest.fixture
def sick_trial(tmp_path: Path) -> str:
    """A small trial."""
    return write_trial(tmp_path / "trial", {0: {"gradient/a": np.array([1e-9])}}, mode="TRAIN")

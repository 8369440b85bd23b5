"""Fixtures that the whole suite shares."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with real trials and profiler samples, when a checkout has it beside it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SMDBG_SHARED_DATA", default))
    if not (folder / "trials").is_dir():
        pytest.skip("no shared data: set SMDBG_SHARED_DATA to a folder with trials/")
    return folder

"""Fixtures that the whole suite shares."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest


@pytest.fixture(scope="session", autouse=True)
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What commands keep between runs stays out of the home folder."""
    with pytest.MonkeyPatch.context() as patch:
        for name in ("XDG_CACHE_HOME", "XDG_STATE_HOME"):
            patch.setenv(name, str(tmp_path_factory.mktemp(name.lower())))
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Folder with real trials and profiler samples, when a checkout has it beside it."""
    default = Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = Path(os.environ.get("SMDBG_SHARED_DATA", default))
    if not (folder / "trials").is_dir():
        pytest.skip("no shared data: set SMDBG_SHARED_DATA to a folder with trials/")
    return folder

"""Local files: what a listing tells, and when a file is another one."""

from __future__ import annotations

import os
from pathlib import Path

from smdbg_core.storage import LocalStorage


def test_entries_after_a_name_leave_out_what_sorts_before(tmp_path: Path) -> None:
    for name in ("a/1/x", "a/1/y", "a/2/x", "b/x"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    storage = LocalStorage(str(tmp_path))
    assert sorted(entry.name for entry in storage.entries("a")) == ["a/1/x", "a/1/y", "a/2/x"]
    assert sorted(entry.name for entry in storage.entries("a", "a/1/x")) == ["a/1/y", "a/2/x"]
    assert [entry.name for entry in storage.entries("a", "a/2")] == ["a/2/x"]
    assert list(storage.entries("missing")) == []


def test_a_file_that_takes_the_place_of_another_has_another_token(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("old")
    (before,) = storage.entries("a")
    (tmp_path / "a" / "new").write_text("new")
    os.replace(tmp_path / "a" / "new", tmp_path / "a" / "x")
    (after,) = storage.entries("a")
    assert before.name == after.name
    assert before.token != after.token


def test_a_changed_file_has_another_version(tmp_path: Path) -> None:
    storage = LocalStorage(str(tmp_path))
    file = tmp_path / "x"
    file.write_text("old")
    os.utime(file, ns=(1, 1))
    before = storage.version("x")
    file.write_text("new")
    after = storage.version("x")
    assert before is not None
    assert after is not None
    assert (before.size, after.size) == (3, 3)
    assert before != after
    assert storage.version("y") is None
    assert storage.version("../x") is None

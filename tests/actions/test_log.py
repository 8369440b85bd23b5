"""Log: a line of JSON, or a line through logging."""

from __future__ import annotations

import json
import logging
from pathlib import Path

import pytest

from smdbg_actions import Log
from smdbg_core import ActionError, Event


def test_lines_are_appended_as_json(tmp_path: Path, event: Event) -> None:
    path = tmp_path / "events.jsonl"
    action = Log(path=str(path))
    assert "would write" in action.dispatch(event, dry_run=True).detail
    assert not path.exists()
    action.dispatch(event)
    action.dispatch(event)
    assert [json.loads(line) for line in path.read_text().splitlines()] == [event.document()] * 2
    with pytest.raises(ActionError, match="cannot be written"):
        Log(path=str(tmp_path)).dispatch(event)


@pytest.mark.parametrize("level", ["info", "warning", "error"])
def test_without_a_path_the_line_is_logged(
    event: Event, caplog: pytest.LogCaptureFixture, level: str
) -> None:
    with caplog.at_level(logging.DEBUG, "smdbg.actions"):
        Log(level=level).dispatch(event)  # type: ignore[arg-type]
    (record,) = caplog.records
    assert (record.name, record.levelname) == ("smdbg.actions", level.upper())
    assert "VanishingGradient fired on demo-1" in record.getMessage()

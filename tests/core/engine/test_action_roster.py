"""The roster of actions: who takes part, under which name."""

from __future__ import annotations

from typing import Any

import pytest

from smdbg_actions import Log, StopFile
from smdbg_core import ActionConfig, Registry
from smdbg_core.engine.action_roster import ActionRoster


def roster(*everywhere: Any, **options: Any) -> ActionRoster:
    return ActionRoster(Registry(), everywhere, **options)


@pytest.mark.parametrize(
    "asked", ["Log", "LOG", "smdbg-actions[Log]", Log, Log(), ActionConfig("log"), ActionConfig("Log", "Log")]
)
def test_actions_are_named_in_many_ways(asked: Any) -> None:
    (entry,) = roster(asked).of(())
    assert (entry.name, entry.type, type(entry.action)) == ("Log", "Log", Log)
    assert entry.plugin.startswith("smdbg-actions==")


def test_own_actions_come_first_and_each_once() -> None:
    page = ActionConfig("Log", "page", {"path": "x"})
    made = roster("Log", own=[page])
    assert [entry.name for entry in made.of([page, "log"])] == ["page", "Log"]
    assert [entry.name for entry in made.of(())] == ["Log"]
    assert made
    assert not roster()


def test_parameters_go_where_they_belong() -> None:
    given = {"log": {"level": "info"}, "PAGE": {"path": "y"}, "AllZero": {"threshold": 1}, "other": {}}
    made = roster("Log", ActionConfig("StopFile", "page", {"path": "x"}), parameters=given)
    assert [entry.action.parameters.get("path") for entry in made.of(())] == [None, "y"]
    assert made.other_parameters == {"AllZero": {"threshold": 1}, "other": {}}
    assert made.problems == []


def test_one_problem_is_told_once_however_many_rules_have_the_action() -> None:
    bad = ActionConfig("StopFile", "halt")
    assert roster(bad, own=[bad, bad]).problems == ["StopFile (halt): path needs a value: text"]
    twice = roster(StopFile(path="a"), StopFile(path="b"))
    assert twice.problems == ["two actions are named 'StopFile': give each instance a name of its own"]

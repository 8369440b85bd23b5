"""Events: what actions are told, in words and as data."""

from __future__ import annotations

import json
import pickle

import pytest

from smdbg_core import Action, ActionError, Event, Finding, UnknownOutcomeError

EVENT = Event(
    id="1",
    run="/data/run",
    job_name="demo-1",
    rule="AllZero",
    name="strict",
    plugin="p",
    state="fired",
    finding=Finding(subject="a", message="m", step=3, mode="TRAIN", worker="w", value=float("inf")),
    time=0.0,
)


def test_an_event_in_words() -> None:
    assert EVENT.headline == "strict fired on demo-1"
    assert EVENT.text.splitlines() == [
        "rule: strict (AllZero)",
        "job: demo-1",
        "run: /data/run",
        "a: m",
        "at: step 3, TRAIN, w",
    ]
    bare = Event(id="1", run="r", rule="R", name="R", plugin="p", state="cleared", time=0.0)
    assert (bare.headline, bare.text) == ("R cleared", "rule: R\nrun: r")
    end = Event(
        id="1",
        run="r",
        rule="R",
        name="R",
        plugin="p",
        state="fired",
        time=0.0,
        finding=Finding(subject="a", message="m"),
    )
    assert end.text.endswith("at: the end of the data")


def test_an_event_as_data_is_strict_json() -> None:
    document = json.loads(json.dumps(EVENT.document(), allow_nan=False))
    assert document["finding"]["value"] == "inf"
    assert set(document) == set(EVENT.__struct_fields__)


def test_what_every_action_has() -> None:
    assert list(Action.__parameters__) == ["states", "min_interval", "max_per_hour", "retry_unknown"]
    assert all(
        parameter.meta.local and parameter.meta.description for parameter in Action.__parameters__.values()
    )
    with pytest.raises(TypeError):
        Action.dispatch(EVENT)  # type: ignore[arg-type, call-arg]


def test_errors_survive_pickling() -> None:
    for error in (ActionError("a"), UnknownOutcomeError("b")):
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied)) == (type(error), str(error))

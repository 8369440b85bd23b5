"""References to environment variables."""

from __future__ import annotations

import pytest

from smdbg_actions.environment import expand, has_reference
from smdbg_core import ActionError


def test_references_are_expanded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_1", "${B}")
    monkeypatch.setenv("B", "never")
    assert expand("x${A_1}y$A_1 ${} $$") == "x${B}y$A_1 ${} $$"
    assert has_reference("x${A_1}")
    assert not has_reference("$A_1 ${1}")


@pytest.mark.parametrize("value", [None, ""])
def test_a_variable_that_is_not_set_is_named(monkeypatch: pytest.MonkeyPatch, value: str | None) -> None:
    monkeypatch.delenv("MISSING", raising=False)
    if value is not None:
        monkeypatch.setenv("MISSING", value)
    with pytest.raises(ActionError, match="environment variable MISSING is not set"):
        expand("${MISSING}")

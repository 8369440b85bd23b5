"""Back-off: doubling, bounded, with jitter."""

from __future__ import annotations

import pytest

from smdbg_actions import backoff


def test_waits_double_up_to_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backoff, "FIRST", 0.5)
    waits = list(backoff.delays(9))
    for wait, ideal in zip(waits, [0.5, 1, 2, 4, 8, 16, 20, 20, 20], strict=True):
        assert 0.75 * ideal <= wait <= 1.25 * ideal
    assert list(backoff.delays(0)) == []

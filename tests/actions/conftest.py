"""Fixtures of the actions: the stand-in for AWS, a receiver of webhooks, an event."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from botocore import loaders

from smdbg_actions import backoff
from smdbg_core import Event, Finding
from tests.actions.cloud import Cloud, serve, serve_cloud
from tests.actions.receiver import Handler, Receiver

FINDING = Finding(
    subject="gradient/a", worker="worker_0", step=12, mode="TRAIN", mode_step=12, statistic="mean_abs",
    value=3e-9, worst=3e-9, comparison="<", limit=1e-7, message="mean_abs 3e-09 < 1e-07",
)  # fmt: skip


SERVICE_MODELS = (
    loaders.create_loader()
)  # shared by all clients: reading them anew takes most of a test's time


@pytest.fixture
def event() -> Event:
    return Event(
        id="0123456789abcdef",
        run="/data/run",
        job_name="demo-1",
        rule="VanishingGradient",
        name="VanishingGradient",
        plugin="smdbg-builtin-rules==0.1.0[VanishingGradient]",
        state="fired",
        finding=FINDING,
        time=1_700_000_000.0,
    )


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Back-off without waiting, and no proxy or configuration of this machine."""
    monkeypatch.setattr(backoff, "FIRST", 0.001)
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "AWS_PROFILE", "AWS_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")


@pytest.fixture
def cloud(monkeypatch: pytest.MonkeyPatch) -> Iterator[Cloud]:
    monkeypatch.setattr(loaders, "create_loader", lambda _: SERVICE_MODELS)
    with serve_cloud() as cloud:
        for name, value in cloud.variables().items():
            monkeypatch.setenv(name, value)
        yield cloud


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    with serve(Handler, receiver=receiver) as receiver.url:
        yield receiver

"""Calls to AWS: what is repeated, and what errors say."""

from __future__ import annotations

import pickle
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import pytest
from botocore.exceptions import ClientError

from smdbg_actions.aws import AwsError, call, make_client
from tests.actions.cloud import Cloud, Lost, Refusal


def test_lost_answers_of_harmless_calls_are_asked_for_again(cloud: Cloud) -> None:
    cloud.faults = {"CreateTopic": [Lost(), Refusal("Throttling"), None]}
    with closing(make_client("sns")) as client:
        assert call(client, "create_topic", Name="t")["TopicArn"].endswith(":t")
    assert cloud.operations() == ["CreateTopic"] * 3


def test_refusals_keep_their_code(cloud: Cloud) -> None:
    cloud.faults = {"CreateTopic": [Refusal("InvalidParameter", "bad name")]}
    with closing(make_client("sns")) as client, pytest.raises(AwsError) as caught:
        call(client, "create_topic", Name="t")
    copied = pickle.loads(pickle.dumps(caught.value))
    assert (copied.code, copied.denied) == ("InvalidParameter", False)
    assert str(copied) == "SNS CreateTopic: InvalidParameter: bad name"


def test_calls_of_the_chain_are_not_mistaken_for_ours(cloud: Cloud) -> None:
    def refuse(**_: Any) -> None:
        raise ClientError({"Error": {"Code": "AccessDenied", "Message": "no role"}}, "AssumeRole")

    with closing(make_client("sns")) as client:
        other = SimpleNamespace(meta=client.meta, publish=refuse)
        with pytest.raises(AwsError, match="SNS Publish: AssumeRole was refused: AccessDenied: no role"):
            call(other, "publish")


def test_clients_follow_the_chain(cloud: Cloud) -> None:
    with closing(make_client("sns")) as ours, closing(make_client("sns", "us-west-2")) as other:
        assert (ours.meta.region_name, ours.meta.endpoint_url) == (cloud.region, cloud.url)
        assert other.meta.region_name == "us-west-2"

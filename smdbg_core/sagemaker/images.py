"""Where AWS keeps the image that evaluates built-in rules, as its documentation lists it.

`rule_image` in the configuration takes precedence, for regions that are not here and for other images.
"""

from __future__ import annotations

from typing import Final

from smdbg_core.errors import ConfigError
from smdbg_core.spelling import nearest

__all__ = ["rule_image"]

_ACCOUNTS: Final = {
    "af-south-1": "314341159256",
    "ap-east-1": "199566480951",
    "ap-northeast-1": "430734990657",
    "ap-northeast-2": "578805364391",
    "ap-northeast-3": "479947661362",
    "ap-south-1": "904829902805",
    "ap-southeast-1": "972752614525",
    "ap-southeast-2": "184798709955",
    "ca-central-1": "519511493484",
    "cn-north-1": "618459771430",
    "cn-northwest-1": "658757709296",
    "eu-central-1": "482524230118",
    "eu-north-1": "314864569078",
    "eu-south-1": "563282790590",
    "eu-west-1": "929884845733",
    "eu-west-2": "250201462417",
    "eu-west-3": "447278800020",
    "me-south-1": "986000313247",
    "sa-east-1": "818342061345",
    "us-east-1": "503895931360",
    "us-east-2": "915447279597",
    "us-gov-west-1": "515509971035",
    "us-west-1": "685455198987",
    "us-west-2": "895741380848",
}


def rule_image(region: str) -> str:
    """URI of the image that evaluates built-in rules in a region.

    Raises:
        ConfigError: AWS documents none for this region.
    """
    account = _ACCOUNTS.get(region)
    if account is None:
        message = (
            f"sagemaker.region {region!r}: AWS documents no image of the built-in rules for it"
            f"{nearest(region, _ACCOUNTS, list_up_to=0)}; give the image as sagemaker.rule_image"
        )
        raise ConfigError(message)
    domain = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    return f"{account}.dkr.ecr.{region}.{domain}/sagemaker-debugger-rules:latest"

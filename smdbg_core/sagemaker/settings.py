"""The table `[sagemaker]` of the configuration file: what a request needs besides rules."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from smdbg_core.errors import ConfigError
from smdbg_core.rule import ALL_FRAMEWORKS
from smdbg_core.sagemaker.images import rule_image
from smdbg_core.spelling import nearest

__all__ = ["INTERVALS", "Settings"]

INTERVALS: Final = (100, 200, 500, 1000, 5000, 60000)
"""Milliseconds between samples of system metrics that the service offers."""


class Settings(msgspec.Struct, kw_only=True, frozen=True):
    """How the job saves, and where its rules run."""

    region: str | None = None
    """Region of the job; it chooses the image of the rules."""

    rule_image: str | None = None
    """URI of the image of the rules, instead."""

    s3_output_path: str | None = None
    """Below this the job saves tensors and metrics."""

    profiler_s3_output_path: str | None = None
    """Below this the job saves metrics, where that is another place."""

    rule_s3_output_path: str | None = None
    """Below this the rules write their files; the service's own choice by default."""

    local_path: str | None = None
    """Folder in the container in which tensors are written first."""

    framework: str | None = None
    """Framework of the training, for checks."""

    hook_parameters: dict[str, Any] = {}
    collections: dict[str, dict[str, Any]] = {}
    """What is saved besides and instead of what rules want, by collection."""

    profiling_interval_ms: int | None = None
    profiling_parameters: dict[str, Any] = {}
    disable_profiler: bool | None = None

    @classmethod
    def read(cls, table: Mapping[str, Any], source: str = "") -> Settings:
        """Read the table.

        Raises:
            ConfigError: Keys that mean nothing, or values of another type; all unknown keys together.
        """
        place = f"{source}: sagemaker" if source else "sagemaker"
        unknown = [
            f"{place}: no key {key!r}{nearest(key, cls.__struct_fields__)}"
            for key in table
            if key not in cls.__struct_fields__
        ]
        if unknown:
            raise ConfigError("\n".join(unknown))
        try:
            settings = msgspec.convert(dict(table), cls)
        except msgspec.ValidationError as error:
            message = f"{place}: {error}"
            raise ConfigError(message) from None
        if settings.framework is not None and settings.framework.lower() not in ALL_FRAMEWORKS:
            message = f"{place}.framework: {settings.framework!r} is none of {', '.join(ALL_FRAMEWORKS)}"
            raise ConfigError(message)
        return settings

    def image(self) -> str:
        """The image of the rules.

        Raises:
            ConfigError: Neither an image nor a region with a known one is given.
        """
        if self.rule_image is not None:
            return self.rule_image
        if self.region is None:
            message = (
                "the image of the rules depends on the region: give sagemaker.region or sagemaker.rule_image"
            )
            raise ConfigError(message)
        return rule_image(self.region)

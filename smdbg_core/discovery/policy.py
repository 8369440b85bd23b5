"""The policy: which plugins may take part."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from smdbg_core.discovery.finder import PluginSpec
from smdbg_core.discovery.identity import Identity
from smdbg_core.errors import ConfigError
from smdbg_core.spelling import nearest

__all__ = ["FIRST_PARTY", "Policy"]

FIRST_PARTY: Final = frozenset({"smdbg-actions", "smdbg-builtin-rules", "smdbg-profiler-rules"})
"""Distributions whose names no other can take."""

_FALSE = frozenset({"0", "false", "no", "off"})


class Policy(NamedTuple):
    """Which plugins may take part.

    Spellings are those that `smdbg plugins` shows: a name, a distribution, `distribution[Name]`,
    `distribution==version[Name]`.
    """

    pinned: tuple[str, ...] | None = None
    """Load nothing but these."""

    disabled: tuple[str, ...] = ()
    third_party: bool = True
    """Whether plugins of others than the first-party distributions take part."""

    strict: bool = False
    """Whether a problem with any plugin is fatal."""

    required: tuple[str, ...] = ()
    """Plugins without which nothing is judged."""

    @classmethod
    def from_environment(cls, configured: Policy | None = None) -> Policy:
        """The configured policy, with what the environment adds.

        `SMDBG_PLUGINS` pins, `SMDBG_DISABLE` adds to the disabled ones, `SMDBG_THIRD_PARTY=0` switches all
        third parties off, `SMDBG_STRICT=1` makes problems fatal. Lists are comma-separated.
        """
        policy = configured or cls()
        pinned = os.environ.get("SMDBG_PLUGINS")
        third_party = os.environ.get("SMDBG_THIRD_PARTY", "").strip().lower()
        strict = os.environ.get("SMDBG_STRICT", "").strip().lower()
        return policy._replace(
            pinned=policy.pinned if pinned is None else _words(pinned),
            disabled=policy.disabled + _words(os.environ.get("SMDBG_DISABLE", "")),
            third_party=policy.third_party if not third_party else third_party not in _FALSE,
            strict=policy.strict if not strict else strict not in _FALSE,
        )

    def reason_against(self, spec: PluginSpec) -> str | None:
        """Why a plugin may not take part, `None` if it may."""
        if any(_means(spelling, spec) for spelling in self.disabled):
            return "disabled"
        if self.pinned is not None and not any(_means(spelling, spec) for spelling in self.pinned):
            return "not among the pinned plugins"
        if not self.third_party and spec.distribution not in FIRST_PARTY:
            return "third-party plugins are switched off"
        return None

    def misspelt(self, specs: Iterable[PluginSpec]) -> list[str]:
        """Complaints about spellings that name nothing that is installed."""
        specs = list(specs)
        known: Mapping[str, None] = dict.fromkeys(
            text for spec in specs for text in (spec.name, spec.distribution, spec.qualified)
        )
        complaints = []
        for setting, spellings in (
            ("disabled", self.disabled),
            ("pinned", self.pinned or ()),
            ("required", self.required),
        ):
            complaints += [
                f"{setting} plugin {spelling!r} is not installed{nearest(spelling, known, list_up_to=0)}"
                for spelling in spellings
                if not any(_means(spelling, spec) for spec in specs)
            ]
        return complaints

    def requires(self, spec: PluginSpec) -> bool:
        """Whether nothing may be judged without the plugin."""
        return any(_means(spelling, spec) for spelling in self.required)

    def require(self, specs: Iterable[PluginSpec]) -> None:
        """Complain if a required plugin is not there or may not take part.

        Raises:
            ConfigError: It names all of them.
        """
        allowed = [spec for spec in specs if self.reason_against(spec) is None]
        absent = [one for one in self.required if not any(_means(one, spec) for spec in allowed)]
        if absent:
            message = f"required plugins are not there: {', '.join(absent)}"
            raise ConfigError(message)


def _means(spelling: str, spec: PluginSpec) -> bool:
    identity = Identity.parse(spelling)
    return identity is not None and identity.means(spec.distribution, spec.name)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())

"""The table of requests, original against ours, in docs/sagemaker.md.

    python -m tests.core.sagemaker.comparison

writes it from the committed facts; that ours are the same is what `test_rule_configs.py` finds with the SDKs.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.core.sagemaker import drive_sdk
from tests.core.sagemaker.test_rule_configs import CASES, FAULTS

PAGE = Path(__file__).resolve().parents[3] / "docs" / "sagemaker.md"
BEGIN, END = "<!-- comparison: made by tests/core/sagemaker/comparison.py -->", "<!-- end of comparison -->"


def table() -> str:
    """The three tables."""
    return "\n".join([BEGIN, "", *_debugger(), "", *_profiler(), "", *_actions(), "", END])


def _debugger() -> Iterator[str]:
    yield "| debugger rule | `RuleParameters` and collections with the original | with ours |"
    yield "| --- | --- | --- |"
    for name in drive_sdk.DEBUGGER:
        case = CASES[f"rule {name}"]
        parameters = _entries(case["rule"]["RuleParameters"])
        saved = [
            f"{one['CollectionName']} ({_entries(one['CollectionParameters'])})"
            for one in case["collections"]
        ]
        yield f"| `{name}()` | {parameters}{'; ' if saved else ''}{', '.join(saved)} | {_ours(f'rule {name}')} |"


def _profiler() -> Iterator[str]:
    yield "| profiler rule | `RuleParameters` with the original | with ours |"
    yield "| --- | --- | --- |"
    for name, calls in drive_sdk.PROFILER.items():
        for arguments in ({}, *calls):
            shown = ", ".join(
                map(repr, arguments)
                if isinstance(arguments, tuple)
                else (f"{key}={value!r}" for key, value in arguments.items())
            )
            case = f"rule {name} {arguments}"
            yield f"| `{name}({shown})` | {_entries(CASES[case]['RuleParameters'])} | {_ours(case)} |"


def _actions() -> Iterator[str]:
    yield "| action | `action_json` with the original | with ours |"
    yield "| --- | --- | --- |"
    for name in drive_sdk.ACTIONS:
        case = CASES[f"rule with {name}"]
        text = f"`{case['rule']['RuleParameters']['action_json']}`" if "rule" in case else case["error"]
        ours = _ours(f"rule with {name}")
        if ours != "same":
            ours = f"`{CASES[f'action {name}']}`: {FAULTS[f'rule with {name}']}"
        yield f"| `{name}` | {text} | {ours} |"


def _ours(case: str) -> str:
    return FAULTS.get(case, "same")


def _entries(values: dict[str, Any]) -> str:
    return "`" + ", ".join(f"{key}={value}".replace("|", r"\|") for key, value in values.items()) + "`"


def update() -> None:
    """Put the tables into the page."""
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    PAGE.write_text(before + table() + rest.partition(END)[2])


if __name__ == "__main__":
    update()

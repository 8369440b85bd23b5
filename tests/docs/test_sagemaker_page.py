"""docs/sagemaker.md against the code: the tables of requests, and every fault that is not copied."""

from __future__ import annotations

import re

from smdbg_core.sagemaker.settings import Settings
from tests.core.sagemaker.comparison import PAGE, table
from tests.core.sagemaker.test_rule_configs import FAULTS


def test_the_comparison_is_up_to_date() -> None:
    assert table() in PAGE.read_text()


def test_every_fault_is_listed() -> None:
    text = " ".join(PAGE.read_text().split())
    for reason in FAULTS.values():
        assert reason in text


def test_every_setting_is_documented() -> None:
    documented = set(re.findall(r"^\| `(\w+)` \|", PAGE.read_text(), re.MULTILINE))
    assert set(Settings.__struct_fields__) <= documented

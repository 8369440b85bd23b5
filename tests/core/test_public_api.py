"""What can be imported, and what importing costs."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import smdbg_core

HEAVY = ("numpy", "scipy", "msgspec", "pluggy", "structlog", "click", "boto3")


def modules_after(code: str) -> set[str]:
    """Top-level modules that are loaded after running `code` in a fresh interpreter."""
    program = f"{code}\nimport sys; print(*sorted({{m.partition('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return set(done.stdout.splitlines()[-1].split())


def test_every_public_name_is_there() -> None:
    assert smdbg_core.__all__ == sorted(smdbg_core.__all__)
    for name in smdbg_core.__all__:
        assert getattr(smdbg_core, name) is not None
    assert set(smdbg_core.__all__) <= set(dir(smdbg_core))
    with pytest.raises(AttributeError, match="no attribute 'nope'"):
        _ = smdbg_core.nope  # type: ignore[attr-defined]


def test_importing_the_package_loads_nothing_and_does_nothing() -> None:
    code = """
import logging, os, threading, warnings
def state():
    handlers, filters = logging.root.handlers[:], warnings.filters[:]
    return handlers, filters, threading.active_count(), os.listdir("/proc/self/fd")
before = state()
import smdbg_core
assert state() == before
"""
    assert not modules_after(code) & set(HEAVY)


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_load_only_click(option: str) -> None:
    code = f"from smdbg_core.cli.main import main\ntry: main(['{option}'])\nexcept SystemExit: pass"
    assert modules_after(code) & set(HEAVY) == {"click"}


def test_listing_rules_loads_no_scipy() -> None:
    code = "from smdbg_core.cli.main import main\ntry: main(['rules'])\nexcept SystemExit: pass"
    assert not modules_after(code) & {"scipy", "boto3", "structlog"}


def test_judging_loads_no_scipy(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    code = f"""
import smdbg_core
with smdbg_core.TrialWriter({path!r}) as writer, writer.step() as step:
    step.add("gradient/a", 1.0)
smdbg_core.evaluate({path!r})
"""
    assert not modules_after(code) & {"scipy", "boto3", "structlog", "click"}


def test_a_run_without_aws_actions_imports_no_aws_package(tmp_path: Path) -> None:
    path = str(tmp_path / "t")
    (tmp_path / "c.toml").write_text(
        "[actions.mail]\ntype = 'Email'\nemail_address = 'a@example.com'\n"
        "[actions.stop]\ntype = 'StopFile'\npath = 'STOP'\n"
        "[[rules]]\nrule = 'VanishingGradient'\nactions = ['stop', 'Log']\n"
    )
    code = f"""
import os, smdbg_core
os.chdir({str(tmp_path)!r})
with smdbg_core.TrialWriter({path!r}) as writer, writer.step() as step:
    step.add("gradient/a", 1e-9)
from smdbg_core.cli.main import main
try: main(["run", {path!r}, "--config", "c.toml", "--state", "state"])
except SystemExit as error: assert error.code == 1, error.code
assert os.path.exists("STOP")
"""
    assert not modules_after(code) & {"boto3", "botocore", "s3transfer", "email_validator", "scipy"}


def test_versions_agree() -> None:
    root = Path(smdbg_core.__file__).parents[1]
    projects = [root / "pyproject.toml", *sorted(root.glob("plugins/*/pyproject.toml"))]
    versions = {tomllib.loads(path.read_text())["project"]["version"] for path in projects}
    assert versions == {smdbg_core.__version__}

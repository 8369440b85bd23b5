"""`smdbg new`."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from smdbg_core import ConfigError
from smdbg_core.cli.new import write_bundle


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("new") / "acme-ml-rules"
    write_bundle("acme-ml-rules", folder)
    return folder


def run(bundle: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(bundle)}
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=bundle,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_its_tests_pass_at_once(bundle: Path) -> None:
    done = run(bundle, "pytest", "-q", "-p", "no:cacheprovider")
    assert done.returncode == 0, done.stdout
    assert "49 passed" in done.stdout


def test_it_is_clean_at_once(bundle: Path) -> None:
    for command in (("ruff", "check", "."), ("ruff", "format", "--check", ".")):
        done = run(bundle, *command)
        assert done.returncode == 0, done.stdout


def test_entry_points_name_what_is_there(bundle: Path) -> None:
    project = tomllib.loads((bundle / "pyproject.toml").read_text())["project"]
    assert project["dependencies"] == ["smdbg-core>=0.1,<0.2"]
    for group in project["entry-points"].values():
        for name, target in group.items():
            module, _, attribute = target.partition(":")
            source = (bundle / (module.replace(".", "/") + ".py")).read_text()
            assert name == attribute
            assert f"class {attribute}(" in source
            assert f"`{name}`" in (bundle / "README.md").read_text()
    assert "$" not in "".join(path.read_text() for path in bundle.rglob("*.py"))
    assert "${{ matrix.python }}" in (bundle / ".github/workflows/test.yml").read_text()


@pytest.mark.parametrize("name", ["Acme", "acme_rules", "1acme", "", "acme-", "../acme", "acme rules"])
def test_other_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ConfigError, match="is no name for a distribution"):
        write_bundle(name, tmp_path / "x")
    assert not (tmp_path / "x").exists()


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "mine.txt").write_text("mine")
    with pytest.raises(ConfigError, match="is there already"):
        write_bundle("acme", tmp_path / "acme")
    assert [path.name for path in (tmp_path / "acme").iterdir()] == ["mine.txt"]


def test_fixtures_are_there_wherever_smdbg_is_installed(tmp_path: Path) -> None:
    (tmp_path / "test_it.py").write_text(
        "from smdbg_core import evaluate\n"
        "def test_trial(smdbg_trial, tmp_path):\n"
        "    path = smdbg_trial.step(0, {'gradient/a': [1e-9]}).write(tmp_path / 'run')\n"
        "    assert evaluate(path, ['VanishingGradient']).fired\n"
        "def test_others(smdbg_profiler, smdbg_actions):\n"
        "    assert smdbg_actions.events == []\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stdout

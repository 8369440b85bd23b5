"""Real wheels in a real environment: what pip installs is what discovery finds."""

from __future__ import annotations

import json
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

from tests.distributions import RULE

ROOT = Path(__file__).resolve().parents[3]


def wheel(folder: Path, name: str, rule: str, *, version: str = "1.0") -> Path:
    """A wheel with one rule, written by hand."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": RULE.format(name=rule),
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": f"[smdbg.rules]\n{rule} = {name}:{rule}\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment that sees this one's packages; returns its interpreter."""
    folder = tmp_path_factory.mktemp("venv")
    venv.create(folder, with_pip=True)
    site = next(folder.glob("lib/python*/site-packages"))
    places = [path for path in sys.path if path.endswith("site-packages")]
    (site / "outer.pth").write_text("\n".join([*places, str(ROOT)]) + "\n")
    return folder / "bin" / "python"


def pip(python: Path, *arguments: str) -> None:
    command = [str(python), "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
    subprocess.run(command, check=True, capture_output=True)


def plugins(python: Path) -> dict[str, tuple[str, str]]:
    code = "from smdbg_core.cli.main import main; main(['plugins', '--load', '--format', 'json'])"
    done = subprocess.run([str(python), "-c", code], check=True, capture_output=True, text=True)
    return {row["disable"]: (row["version"], row["state"]) for row in json.loads(done.stdout)}


def test_a_clash_is_the_same_in_both_orders_of_installation(environment: Path, tmp_path: Path) -> None:
    wheels = [wheel(tmp_path, name, "Clashing") for name in ("first_dist", "second_dist")]
    seen = []
    for order in (wheels, wheels[::-1]):
        for path in order:
            pip(environment, "install", "--no-deps", "--no-index", str(path))
        found = plugins(environment)
        seen.append({key: state for key, state in found.items() if "Clashing" in key})
        pip(environment, "uninstall", "--yes", "first_dist", "second_dist")
    assert seen[0] == seen[1]
    assert {state for _, state in seen[0].values()} == {"conflict"}


def test_an_upgrade_leaves_one_and_a_removed_module_is_broken(environment: Path, tmp_path: Path) -> None:
    for version in ("1.0", "2.0"):
        pip(
            environment,
            "install",
            "--no-deps",
            "--no-index",
            str(wheel(tmp_path, "changing", "Changing", version=version)),
        )
    assert plugins(environment)["changing[Changing]"] == ("2.0", "loaded")
    next(environment.parents[1].glob("lib/python*/site-packages/changing.py")).unlink()
    assert plugins(environment)["changing[Changing]"] == ("2.0", "broken")

"""Wheels, and fresh environments to install them into with pip."""

from __future__ import annotations

import os
import site
import subprocess
import venv
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path

from tests.command import Done

__all__ = ["Environment", "finished", "wheel"]


def wheel(
    folder: Path,
    distribution: str,
    points: Mapping[str, Mapping[str, str]],
    modules: Mapping[str, str],
    *,
    version: str = "1.0",
    requires: Iterable[str] = (),
) -> Path:
    """A wheel, written by hand.

    Args:
        folder: Where.
        distribution: Its name.
        points: Entry points by group.
        modules: Sources by module.
        version: Its version.
        requires: What it requires.
    """
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{distribution.replace('-', '_')}-{version}"
    info = f"{stem}.dist-info"
    lines = ["Metadata-Version: 2.1", f"Name: {distribution}", f"Version: {version}"]
    lines += [f"Requires-Dist: {text}" for text in requires]
    sections = [
        "\n".join([f"[{group}]", *(f"{name} = {value}" for name, value in entries.items())])
        for group, entries in points.items()
    ]
    files = {f"{name}.py": source for name, source in modules.items()} | {
        f"{info}/METADATA": "\n".join(lines) + "\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{info}/entry_points.txt": "\n\n".join(sections) + "\n",
    }
    files[f"{info}/RECORD"] = "".join(f"{path},,\n" for path in [*files, f"{info}/RECORD"])
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for member, text in files.items():
            archive.writestr(member, text)
    return path


class Environment:
    """A fresh virtual environment, in which smdbg and what it needs are those of this one.

    Args:
        folder: Where it is made.
    """

    def __init__(self, folder: Path) -> None:
        venv.create(folder, with_pip=True)
        self.python = folder / "bin" / "python"
        (self.site,) = folder.glob("lib/python*/site-packages")
        ours = [path for path in site.getsitepackages() if Path(path).is_dir()]
        # `addsitedir` reads the `.pth` files of editable installs as well; a bare line would not.
        lines = [f"import site; site.addsitedir({path!r})" for path in ours]
        (self.site / "outer.pth").write_text("\n".join(lines) + "\n")

    def pip(self, *arguments: str | Path) -> None:
        """Run pip."""
        command = [self.python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr

    def install(self, *wheels: Path) -> None:
        """Install wheels as they are; nothing is looked up anywhere."""
        self.pip("install", "--no-deps", "--no-index", *wheels)

    def start(self, *arguments: str | Path, **variables: str) -> subprocess.Popen[str]:
        """Start `smdbg` with variables of the environment besides those that are there."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("SMDBG_")}
        code = "import sys; from smdbg_core.cli.main import main; main(sys.argv[1:])"
        return subprocess.Popen(
            [self.python, "-c", code, *arguments],
            env={**kept, **variables},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def smdbg(self, *arguments: str | Path, **variables: str) -> Done:
        """Run `smdbg` to its end."""
        return finished(self.start(*arguments, **variables))


def finished(process: subprocess.Popen[str]) -> Done:
    """What a started command left behind."""
    out, err = process.communicate(timeout=120)
    return Done(process.returncode, out, err)

"""What `smdbg --help` costs beside a number of installed distributions."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["help_ratio"]


def help_ratio(folder: Path, distributions: int, repeats: int = 15) -> float:
    """Median of the time of `smdbg --help` over that of `python -c "import numpy"`, taken in turn."""
    site = folder / f"site{distributions}"
    for number in range(distributions):
        info = site / f"dist{number}-1.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist{number}\nVersion: 1\n")
        (info / "entry_points.txt").write_text("[console_scripts]\nx = y:z\n")
    environment = {**os.environ, "PYTHONPATH": str(site)}
    help_command = [sys.executable, "-c", "from smdbg_core.cli.main import main; main(['--help'])"]
    ratios = []
    for _ in range(repeats):
        numpy = _seconds([sys.executable, "-c", "import numpy"], environment)
        ratios.append(_seconds(help_command, environment) / numpy)
    return statistics.median(ratios)


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started

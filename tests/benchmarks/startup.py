"""What installed distributions cost: at `smdbg --help`, and when plugins are looked for."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

__all__ = ["discovery_milliseconds", "help_ratio"]


def help_ratio(folder: Path, distributions: int, repeats: int = 15) -> float:
    """Median of the time of `smdbg --help` over that of `python -c "import numpy"`, taken in turn."""
    environment = _environment(folder, distributions, "console_scripts")
    help_command = [sys.executable, "-c", "from smdbg_core.cli.main import main; main(['--help'])"]
    ratios = []
    for _ in range(repeats):
        numpy = _seconds([sys.executable, "-c", "import numpy"], environment)
        ratios.append(_seconds(help_command, environment) / numpy)
    return statistics.median(ratios)


def discovery_milliseconds(folder: Path, distributions: int, group: str, repeats: int = 15) -> float:
    """Median of the time to find and classify all plugins, each time in a fresh process.

    Args:
        folder: Where the distributions are made.
        distributions: How many.
        group: Group of the one entry point that each has: one of ours, or another.
        repeats: How many processes.
    """
    environment = _environment(folder, distributions, group)
    code = (
        "import time; from smdbg_core.discovery.registry import Registry\n"
        "started = time.perf_counter(); Registry().states(); print(time.perf_counter() - started)"
    )
    command = [sys.executable, "-c", code]
    runs = [subprocess.run(command, env=environment, check=True, capture_output=True) for _ in range(repeats)]
    return 1000 * statistics.median(float(done.stdout) for done in runs)


def _environment(folder: Path, distributions: int, group: str) -> dict[str, str]:
    """Variables with which a process finds so many distributions more."""
    site = folder / f"{group}{distributions}"
    for number in range(distributions):
        info = site / f"dist{number}-1.dist-info"
        info.mkdir(parents=True, exist_ok=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: dist{number}\nVersion: 1\n")
        (info / "entry_points.txt").write_text(f"[{group}]\nX{number} = y:z\n")
    return {**os.environ, "PYTHONPATH": str(site)}


def _seconds(command: list[str], environment: dict[str, str]) -> float:
    started = time.perf_counter()
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - started

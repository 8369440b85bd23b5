"""Measure how well the rules find faults: `python -m tests.detection [--output DIR]`, or `make detection`."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from tests.detection.report import embed, render, to_json
from tests.detection.runs import judge_all

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.detection", description=__doc__)
    parser.add_argument("--split", choices=("tuning", "reporting"), default="reporting")
    parser.add_argument("--healthy", type=int, default=220, help="healthy networks to train")
    parser.add_argument("--boosted", type=int, default=45, help="healthy boosted models to train")
    parser.add_argument("--faulty", type=int, default=20, help="runs of every fault")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--output", type=Path, help="folder for detection.json and detection.md")
    parser.add_argument("--document", type=Path, help="page into which the tables are written")
    given = parser.parse_args()
    # The matrices are small: threads would only wait for each other.
    os.environ.update(dict.fromkeys(_THREADS, "1"))
    with ProcessPoolExecutor(given.jobs, get_context("spawn")) as executor:
        judged = judge_all(given.split, given.healthy, given.boosted, given.faulty, executor)
    text = render(judged, given.split)
    print(text)
    if given.output is not None:
        given.output.mkdir(parents=True, exist_ok=True)
        (given.output / "detection.md").write_text(text, encoding="utf-8")
        (given.output / "detection.json").write_text(to_json(judged, given.split), encoding="utf-8")
    if given.document is not None:
        page = given.document.read_text(encoding="utf-8")
        given.document.write_text(embed(page, text), encoding="utf-8")


if __name__ == "__main__":
    main()

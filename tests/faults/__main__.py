"""The fault table: `python -m tests.faults [--seed N] [--cuts N] [--flips N] [--kind TEXT]`.

Exits with 1 where a case crashed, hung, lost readable data, or did not name its damage.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from pathlib import Path

from tests.faults.damages import Case, cases
from tests.faults.fabricated import fabricated
from tests.faults.sandbox import Ended, confined
from tests.faults.subjects import Judged, judge, profiler_output, trial
from tests.faults.table import Row, show

__all__: list[str] = []


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--seed", type=int, default=12, help="chooses bytes to cut at and bits to flip")
    parser.add_argument("--cuts", type=int, default=12, help="cuts at random bytes of each file")
    parser.add_argument("--flips", type=int, default=24, help="bits flipped in each file")
    parser.add_argument("--sample", type=int, help="only so many cases, chosen at random")
    parser.add_argument("--kind", default="", help="only kinds that contain this text")
    parser.add_argument(
        "--fabricated",
        action=argparse.BooleanOptionalAction,
        help="only data that no accident makes; or none",
    )
    options = parser.parse_args()
    rng = random.Random(options.seed)
    rows: dict[str, Row] = {}
    complaints: list[str] = []
    with tempfile.TemporaryDirectory(prefix="smdbg-faults-") as folder:
        os.environ["XDG_CACHE_HOME"] = os.environ["XDG_STATE_HOME"] = folder
        subjects = [trial(Path(folder) / "trial"), profiler_output(Path(folder) / "profiler")]
        planned = [case for one in subjects for case in cases(one, rng, options.cuts, options.flips)]
        if options.fabricated:
            planned.clear()
        if options.fabricated is not False:
            planned += fabricated(*subjects)
        planned = [case for case in planned if options.kind in case.kind]
        if options.sample is not None and options.sample < len(planned):
            planned = rng.sample(planned, options.sample)
        judge(Path(folder) / "trial")  # what has been imported here is not imported in each child
        for number, case in enumerate(planned):
            place = Path(folder) / "case" / f"{number}"
            ended = damaged(case, place)
            found = problems(case, ended)
            rows.setdefault(case.kind, Row(case.kind)).add(case, ended, found)
            complaints += [
                f"{case.kind}: {case.subject.name}: {case.file} [{case.begin}]: {text}" for text in found
            ]
            shutil.rmtree(place)
            if sys.stderr.isatty():
                print(f"\r{number + 1} of {len(planned)}", end="", file=sys.stderr, flush=True)
    print(show(rows.values()))
    for text in complaints[:40]:
        print(text)
    if len(complaints) > 40:
        print(f"and {len(complaints) - 40} more")
    return 1 if complaints else 0


def damaged(case: Case, place: Path) -> Ended:
    """What came of judging a damaged copy of the subject."""
    for name, content in case.subject.files.items():
        path = place / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    case.apply(place / case.file)
    return confined(lambda: judge(place))


def problems(case: Case, ended: Ended) -> list[str]:
    """What is wrong with how a case ended; nothing where all is as it should be."""
    if ended.problem is not None:
        return [ended.problem.strip().splitlines()[-1]]
    judged: Judged = ended.result
    found = [f"a rule failed: {error}" for error in judged.errors]
    allowed = case.lost()
    if allowed != case.subject.points:
        beyond = case.subject.points - allowed - judged.points
        if beyond:
            found.append(
                f"lost {len(beyond)} readable points such as {min(beyond, key=repr)}: {judged.warnings or judged.refused}"
            )
    lost = case.subject.points - judged.points
    named = case.is_named((*judged.warnings, judged.refused or ""))
    if lost and not named and not case.unseen:
        found.append(f"not named; {len(lost)} points lost; {judged.warnings or judged.refused}")
    return found


if __name__ == "__main__":
    sys.exit(main())

"""kill -9 at random points of following a job: no notice is lost, and none has two ids."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from smdbg_core import RuleConfig, evaluate
from smdbg_core.engine.journal import Journal
from tests.actions.receiver import Receiver
from tests.builders import write_trial
from tests.schedules import END_MARKER, Arrival, ScheduledClock, files

KILLS = int(os.environ.get("SMDBG_KILLS", "8"))
STEPS = 40

NURSERY = """
import os, signal, sys, time
from pathlib import Path
from smdbg_core import RuleConfig, follow
from smdbg_actions import Webhook

path, url, state, cache, steps = sys.argv[1], sys.argv[2], Path(sys.argv[3]), sys.argv[4], int(sys.argv[5])

def work():
    rules = [RuleConfig("VanishingGradient", f"from-{n}", {"start_step": n}) for n in range(steps)]
    options = {"actions": [Webhook(url=url, retries=0)], "state": state, "cache": cache}
    report = follow(path, rules, poll=0.02, idle_timeout=60, **options)
    os._exit(0 if {one.status for one in report.actions} <= {"sent", "already_sent"} else 1)

for line in sys.stdin:  # the seconds to live, 60 for as long as it takes; each life is a process
    child = os.fork()
    if child == 0:
        work()
    if float(line) < 60:
        time.sleep(float(line))
        os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    print("killed" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_no_notice_is_lost_and_each_has_one_id(receiver: Receiver, tmp_path: Path) -> None:
    source, target = tmp_path / "source", tmp_path / "run"
    write_trial(source, {n: {"gradient/a.weight": np.full((64, 64), 1e-9)} for n in range(STEPS)})
    chance = random.Random(4)
    lives = [chance.uniform(0, 0.4) for _ in range(KILLS)]
    pause = sum(lives) / STEPS
    arrivals = [
        Arrival((int(Path(name).name.split("_")[0]) if name[0] in "ei" else 0) * pause, name)
        for name in files(source)
        if name != END_MARKER
    ]
    clock = ScheduledClock(source, target, arrivals)

    def write() -> None:
        while clock.rest:
            time.sleep(pause)
            clock.sleep(pause)

    arguments = [sys.executable, "-c", NURSERY, target, receiver.url, tmp_path / "state", tmp_path / "cache"]
    job = threading.Thread(target=write)
    job.start()
    kills = 0
    with subprocess.Popen(
        [*map(str, arguments), str(STEPS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        for life in lives:
            nursery.stdin.write(f"{life}\n")
            nursery.stdin.flush()
            assert nursery.stdout.readline().strip() == "killed"
            kills += 1
        job.join()
        (target / END_MARKER).touch()
        nursery.stdin.write("60\n")
        nursery.stdin.flush()
        nursery.stdin.close()
        assert nursery.stdout.readline().strip() == "0"
    with Journal(tmp_path / "state") as journal:
        rows = journal.rows()
    rules = [RuleConfig("VanishingGradient", f"from-{n}", {"start_step": n}) for n in range(STEPS)]
    assert {row.rule for row in rows} == {rule.name for rule in rules}
    assert {row.status for row in rows} == {"sent"}
    assert receiver.keys == {row.event for row in rows}
    assert len(rows) == len(receiver.keys) == STEPS
    # Each kill can have cost one repetition, and no more.
    assert STEPS <= len(receiver.received) <= STEPS + kills
    assert len(evaluate(target, rules).fired) == STEPS

"""kill -9 at many random points: every event arrives, under one id however often it is sent."""

from __future__ import annotations

import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from smdbg_core.engine.journal import Journal
from tests.actions.receiver import Receiver
from tests.builders import write_trial

RULES = 15
KILLS = 40

NURSERY = """
import os, signal, sys, time
from pathlib import Path
from smdbg_core import RuleConfig, evaluate
from smdbg_actions import Webhook

path, url, state, rules = sys.argv[1], sys.argv[2], Path(sys.argv[3]), int(sys.argv[4])

def work(round):
    configs = [RuleConfig("VanishingGradient", f"r{round}-{n}") for n in range(rules)]
    report = evaluate(path, configs, actions=[Webhook(url=url, retries=0)], state=state)
    os._exit(0 if {one.status for one in report.actions} <= {"sent", "already_sent"} else 1)

for line in sys.stdin:  # a round and the seconds to live; each life is a process of its own
    round, seconds = line.split()
    child = os.fork()
    if child == 0:
        work(round)
    time.sleep(float(seconds))
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    print("killed" if os.WIFSIGNALED(status) else os.WEXITSTATUS(status), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no kill -9")
def test_no_event_is_lost_and_each_has_one_id(receiver: Receiver, tmp_path: Path) -> None:
    path = write_trial(tmp_path / "sick", {n: {"gradient/a.weight": np.full(3, 1e-9)} for n in range(3)})
    arguments = [sys.executable, "-c", NURSERY, path, receiver.url, tmp_path / "state", str(RULES)]
    chance = random.Random(9)
    kills = rounds = 0
    receiver.delay = 0.002
    with subprocess.Popen(arguments, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None
        while kills < KILLS:
            rounds += 1
            ended = "killed"
            while ended == "killed":
                nursery.stdin.write(f"{rounds} {chance.uniform(0, 0.12)}\n")
                nursery.stdin.flush()
                ended = nursery.stdout.readline().strip()
                kills += ended == "killed"
            assert ended == "0"
        nursery.stdin.close()
    with Journal(tmp_path / "state") as journal:
        rows = journal.rows()
    assert {row.status for row in rows} == {"sent"}
    assert len(rows) == rounds * RULES
    assert receiver.keys == {row.event for row in rows}
    # Each kill can have cost one repetition, and no more.
    assert len(rows) <= len(receiver.received) <= len(rows) + kills
    assert max(row.attempts for row in rows) > 1

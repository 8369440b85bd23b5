"""`follow`: judge a run while it is written; what `smdbg run --follow` calls."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from smdbg_core.engine.assignment import Assignment
from smdbg_core.engine.clock import Clock, SystemClock
from smdbg_core.engine.follower import Follower, Pace
from smdbg_core.engine.roster import RuleConfig
from smdbg_core.engine.scope import Scope
from smdbg_core.outcomes import Report
from smdbg_core.rule import Rule

if TYPE_CHECKING:
    from smdbg_core.findings import Finding

__all__ = ["follow"]


def follow(
    run: str | Path,
    rules: Iterable[str | Rule | type[Rule] | RuleConfig] | None = None,
    *,
    poll: float | None = None,
    grace: float = 30.0,
    idle_timeout: float = 3600.0,
    clock: Clock | None = None,
    job_end: Callable[[], str | None] | None = None,
    on_wait: Callable[[str], None] | None = None,
    on_finding: Callable[[str, Finding], None] | None = None,
    executor: Executor | None = None,
    steps: tuple[int | None, int | None] = (None, None),
    mode: str | None = None,
    period: tuple[float | None, float | None] = (None, None),
    stop_on_first: bool = False,
    output: Path | None = None,
    **others: Any,
) -> Report:
    """Judge a run while it is written: each step, and each scan window, as it completes.

    Findings are told and dispatched at once. It ends with the data: at the end marker, when `job_end`
    says so, or when nothing came for a while. The report is then that of `evaluate` on all data, but
    for what rules find in silence (`Rule.idle`).

    Args:
        run: Path of the run; it need not be there yet.
        rules: As `evaluate` takes them.
        poll: Seconds between two looks; by default 0.5, and 10 on S3.
        grace: Seconds for which a worker's file is waited for once a later step is complete.
        idle_timeout: Following ends when nothing came for so many seconds.
        clock: What time it goes by; by default this machine's.
        job_end: Tells why the job is over, `None` while it is not.
        on_wait: Told at each look what is waited for.
        on_finding: Told the rule instance and each finding, once.
        executor: Where tensors are measured, as for `evaluate`.
        steps: Global steps to judge, as for `evaluate`.
        mode: Judge only steps of this mode.
        period: Of profiler output, judge only scan windows that begin in it.
        stop_on_first: End as soon as anything fires.
        output: Folder for the files that rules write.
        others: `actions`, `parameters`, `preset`, `registry`, `max_findings`, `dry_run`, `state`,
            `job_name`, `cache` and `evidence`, as for `evaluate`.

    Raises:
        ConfigError: Something asked for makes no sense; nothing was waited for.
        PluginError: A plugin that was asked for is broken.
        DataError: The run cannot be read, or never came.
    """
    assignment = Assignment(str(run), rules, **others)
    with contextlib.closing(assignment.dispatcher), np.errstate(all="ignore"):
        return Follower(
            assignment,
            str(run),
            scope=Scope(steps, mode, period, stop_on_first),
            pace=Pace(poll, grace, idle_timeout),
            clock=clock or SystemClock(),
            executor=executor,
            output=output,
            on_finding=on_finding,
            on_wait=on_wait,
            job_end=job_end,
        ).follow()

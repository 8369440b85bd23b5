"""Times smdebug 1.0.34 on a trial: `peer.py CASE PATH`, run by an interpreter that has it.

Prints seconds. Cases: `index`, `values`, `rule` (mean magnitude of every gradient through its rule loop),
`metrics` and `trace` (all events of profiler output).
"""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("SMDEBUG_LOG_LEVEL", "error")
os.environ.setdefault("SMDEBUG_TRAINING_END_DELAY_REFRESH", "0")


def main(case: str, path: str) -> float:
    from smdebug.rules import Rule, invoke_rule  # type: ignore[import-not-found, unused-ignore]
    from smdebug.trials import create_trial  # type: ignore[import-not-found, unused-ignore]

    class Vanishing(Rule):  # type: ignore[misc, unused-ignore]
        def invoke_at_step(self, step: int) -> bool:
            for name in self.base_trial.tensor_names(collection="gradients"):
                self.base_trial.tensor(name).reduction_value(step, "mean", abs=True) < 1e-7  # noqa: B015
            return False

    if case in ("metrics", "trace"):
        return decode(case, path)
    started = time.perf_counter()
    trial = create_trial(path)
    if case == "values":
        for name in trial.tensor_names():
            tensor = trial.tensor(name)
            for step in tensor.steps():
                tensor.value(step)
    elif case == "rule":
        invoke_rule(Vanishing(trial, action_str=""), end_step=trial.steps()[-1] + 1)
    return time.perf_counter() - started


def decode(kind: str, path: str) -> float:
    """Read all profiler events of a kind."""
    if kind == "metrics":
        from smdebug.profiler.system_metrics_reader import (  # type: ignore[import-not-found, unused-ignore]
            LocalSystemMetricsReader as Reader,
        )
    else:
        from smdebug.profiler.algorithm_metrics_reader import (  # type: ignore[import-not-found, unused-ignore]
            LocalAlgorithmMetricsReader as Reader,
        )
    started = time.perf_counter()
    reader = Reader(path)
    reader.get_events(0, 2**62 // 1000)
    return time.perf_counter() - started


if __name__ == "__main__":
    print(main(*sys.argv[1:3]))

"""Writing metrics and timelines."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import numpy as np
import pytest

from smdbg_core import MetricsWriter, TimelineWriter, evaluate, open_run
from smdbg_core.runs.profiler import Events, Samples
from smdbg_core.runs.profiler import timeline_writer as module

T0 = 1_700_000_040


def test_metrics_come_back(tmp_path: Path) -> None:
    with MetricsWriter(tmp_path) as writer:
        for number in range(200):
            writer.tick(
                T0 + number,
                [
                    ("cpu", "cpu0", "CPUUtilization", number / 3),
                    ("memory", "MemoryUsedPercent", "", float("nan")),
                ],
            )
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    assert (len(profiler.files), profiler.ended, profiler.nodes) == (4, True, ("algo-1",))
    parts = [batch.data for batch in profiler.reader() if isinstance(batch.data, Samples)]
    whole = Samples.join(parts)
    assert whole.values.tolist() == [round(number / 3, 2) for number in range(200)]
    assert profiler.damage == []


def test_a_tick_is_on_disk_at_once(tmp_path: Path) -> None:
    writer = MetricsWriter(tmp_path)
    writer.tick(T0, [("gpu", "gpu0", "GPUUtilization", 97)])
    (file,) = tmp_path.rglob("*.json")
    assert json.loads(file.read_text())["Value"] == 97
    writer.close()


def test_nodes_have_the_names_of_the_format(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'laptop' is not algo-<number>"):
        MetricsWriter(tmp_path, "laptop")


def test_steps_and_phases_come_back(tmp_path: Path) -> None:
    with TimelineWriter(tmp_path, rank=3) as timeline:
        timeline.settings(num_workers=2, pin_memory=True)
        for number in range(3):
            with timeline.step(number), timeline.phase("Forward", name="conv"):
                pass
            with timeline.loading(worker=1):
                pass
        with pytest.raises(RuntimeError), timeline.step(9, mode="EVAL"):
            raise RuntimeError
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    (batch,) = [batch.data for batch in profiler.reader() if isinstance(batch.data, Events)]
    assert (batch.worker, batch.node) == ("algo-1-3", "algo-1")
    assert batch.phases.tolist().count("Step:ModeKeys.TRAIN") == 3
    assert batch.phases.tolist()[-1] == "Step:ModeKeys.EVAL"
    assert [args.step_num for args in batch.args if args.step_num] == ["0", "1", "2", "9"]
    assert not list(tmp_path.rglob("*.tmp"))
    assert evaluate(str(tmp_path), ["OverallFrameworkMetrics"]).outcomes[0].status == "clean"


def test_files_rotate_and_are_named_by_their_last_event(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_CLOSE_BYTES", 2000)
    with TimelineWriter(tmp_path) as timeline:
        for number in range(100):
            timeline.add("a", T0 * 1_000_000 + number, T0 * 1_000_000 + number + 5)
    files = sorted(tmp_path.rglob("*_pythontimeline.json"))
    assert len(files) > 3
    for file in files:
        rows = json.loads(file.read_text())
        base = rows[0]["args"]["start_time_since_epoch_in_micros"]
        ends = [base + row["ts"] + row["dur"] for row in rows if row["ph"] == "X"]
        assert file.name.startswith(str(max(ends)))


def test_no_file_takes_the_name_of_another(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CLOSE_BYTES", 10)
    with TimelineWriter(tmp_path) as timeline:
        # What encloses another phase may end in the same microsecond, and falls into the next file.
        for name in ("inner", "outer"):
            timeline.add(name, T0 * 1_000_000, T0 * 1_000_000 + 5)
    assert len([*tmp_path.rglob("*_pythontimeline.json")]) == 2


def test_training_goes_on_without_its_timeline(tmp_path: Path) -> None:
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder would be")
    timeline = TimelineWriter(blocked / "x")

    def train() -> None:
        with timeline:
            for number in range(3):
                with timeline.step(number):
                    pass

    with pytest.warns(RuntimeWarning, match="the timeline cannot be written") as told:
        train()
    assert len(told) == 1
    assert timeline.lost == 5  # the time before the first step, three steps, the end marker


def test_threads_write_whole_rows(tmp_path: Path) -> None:
    with TimelineWriter(tmp_path) as timeline:

        def work() -> None:
            for number in range(200):
                with timeline.step(number):
                    pass

        threads = [threading.Thread(target=work) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    profiler = open_run(str(tmp_path)).profiler
    assert profiler is not None
    batches = [batch.data for batch in profiler.reader() if isinstance(batch.data, Events)]
    phases = [phase for batch in batches for phase in batch.phases.tolist()]
    assert (phases.count("Step:ModeKeys.TRAIN"), phases.count("Initialization")) == (800, 1)
    assert all(np.all(batch.ends >= batch.starts) for batch in batches)
    assert profiler.damage == []

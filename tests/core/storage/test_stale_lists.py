"""Lists that lag behind what there is, as some stores give them, and jobs that are followed meanwhile."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from smdbg_core import DataAccessError, Finding, evaluate, follow, open_run
from smdbg_core.storage import open_storage
from tests.builders import write_trial
from tests.core.storage.conftest import Proxy
from tests.core.storage.test_s3 import Upload, small, verdicts
from tests.profiler_job import Job
from tests.schedules import END_MARKER, Arrival, ScheduledClock, files

POLL, GRACE = 1.0, 6.0

INDEX = "index/000000000/000000000003_worker_1.json"
EVENTS = "events/000000000003/000000000003_worker_1.tfevents"


def hide(s3: Proxy, *ends: str) -> None:
    """Leave keys out of every list."""
    s3.relist = lambda entries: [one for key, one in entries.items() if not key.endswith(ends)]


def gone(s3: Proxy, *ends: str) -> None:
    """Answer 404 where keys are fetched."""
    s3.fault = lambda proxy, call, path: "404" if call == "GetObject" and path.endswith(ends) else None


def points(uri: str) -> int:
    return evaluate(uri, ["VanishingGradient"]).outcome("VanishingGradient").coverage.points


def test_an_event_file_that_no_list_shows_is_read_all_the_same(
    s3: Proxy, upload: Upload, tmp_path: Path
) -> None:
    local = small(tmp_path / "trial", steps=5)
    uri = upload(local, "stale/events")
    hide(s3, ".tfevents")
    assert verdicts(evaluate(uri), uri) == verdicts(evaluate(local), str(local))


def test_a_step_that_no_list_shows_comes_with_the_next_run(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    uri = upload(small(tmp_path / "trial", steps=5), "stale/index")
    hide(s3, INDEX)
    assert points(uri) == 9
    s3.relist = None
    assert points(uri) == 10


@pytest.mark.parametrize("name", [INDEX, EVENTS])
def test_what_is_listed_but_gone_is_named_as_missing(
    s3: Proxy, upload: Upload, tmp_path: Path, name: str
) -> None:
    uri = upload(small(tmp_path / "trial", steps=5), f"gone/{name[:5]}")
    gone(s3, name)
    report = evaluate(uri, ["VanishingGradient"])
    assert report.outcome("VanishingGradient").coverage.points == 9
    (warning,) = [text for text in report.warnings if name in text]
    assert "missing" in warning
    assert all(count == 1 for path, count in s3.gets.items())
    s3.fault = None
    assert points(uri) == 10


def test_pages_that_overlap_count_once(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    local = small(tmp_path / "trial", steps=5)
    uri = upload(local, "stale/pages")
    expected = verdicts(evaluate(local), str(local))
    s3.reset()
    s3.keys_in_page = 4
    earlier: list[bytes] = []

    def overlapping(entries: dict[str, bytes]) -> list[bytes]:
        page = earlier[-6:] + list(entries.values())
        earlier.extend(entries.values())
        return page

    s3.relist = overlapping
    assert verdicts(evaluate(uri), uri) == expected
    assert set(s3.gets.values()) == {1}
    assert s3.calls["ListObjectsV2"] == -(-len(earlier) // 4)


def test_a_server_that_sends_one_page_forever_is_an_error(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    uri = upload(small(tmp_path / "trial", steps=2), "stale/forever")
    s3.keys_in_page = 2
    pages: list[bytes] = []

    def first(page: bytes) -> bytes:
        pages.append(page)
        return pages[0]

    s3.rewrite = first
    with pytest.raises(DataAccessError, match=r"stale/forever: .* the same page again and again"):
        open_run(uri)
    assert len(pages) == 2


def test_a_later_look_finds_what_an_earlier_one_did_not(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    storage = open_storage(upload(small(tmp_path / "trial", steps=5), "stale/looks"))
    hide(s3, INDEX, EVENTS)
    assert INDEX not in {entry.name for entry in storage.entries("index")}
    assert storage.version(EVENTS) is None
    s3.relist = None
    assert INDEX in {entry.name for entry in storage.entries("index")}
    assert storage.version(EVENTS) is not None
    hide(s3, INDEX, EVENTS)  # a replica that is behind answers once more: what was seen stays
    assert len(list(storage.entries("index"))) == 9
    assert storage.version(EVENTS) is not None
    assert storage.exists(INDEX)


class UploadingClock(ScheduledClock):
    """Files arrive in a store rather than in a folder; lists and reads of each may lag behind."""

    def __init__(
        self,
        source: Path,
        put: Callable[[str], None],
        arrivals: list[Arrival],
        lag: Callable[[], float] = float,
    ) -> None:
        super().__init__(source, source, arrivals)
        self.listed_at: defaultdict[str, float] = defaultdict(float)
        self.there_at: defaultdict[str, float] = defaultdict(float)
        self._put = put
        self._lag = lag

    def _deliver(self, name: str) -> None:
        self.listed_at[name] = self.now + self._lag()
        self.there_at[name] = self.now + self._lag()
        self._put(name)

    def misguide(self, s3: Proxy, prefix: str) -> None:
        """Let the server answer as it would at the time of this clock."""
        start = f"{prefix}/"
        s3.relist = lambda entries: [
            one for key, one in entries.items() if self.listed_at[key.removeprefix(start)] <= self.now
        ]
        s3.fault = lambda proxy, call, path: (
            "404" if call == "GetObject" and self.there_at[path.partition(start)[2]] > self.now else None
        )


def written(source: Path, end: float) -> Iterator[Arrival]:
    """A step a second, index files last, and the end marker at the end."""
    for name in files(source):
        base = Path(name).name
        if base == END_MARKER:
            yield Arrival(end, name)
        else:
            step = int(base.split("_")[0]) if base[0].isdigit() else 0
            yield Arrival(1.0 + step + 0.1 * name.startswith("index"), name)


def putting(upload: Upload, source: Path, prefix: str) -> Callable[[str], None]:
    """Uploads one file of a folder."""

    def put(name: str) -> None:
        upload(source / name, f"{prefix}/{name}")

    return put


class Told:
    """When each step of each worker was first told of."""

    def __init__(self, clock: ScheduledClock) -> None:
        self.at: dict[tuple[int | None, str | None], float] = {}
        self._clock = clock

    def __call__(self, name: str, finding: Finding) -> None:
        self.at.setdefault((finding.step, finding.worker), self._clock.now)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two workers; gradients that vanish at some steps, and a loss that rises."""
    rng = np.random.default_rng(3)
    content = {
        step: {
            "gradient/a.weight": rng.normal(0, 1e-9 if step in (3, 8) else 1, (4, 4)),
            "a.weight": rng.normal(0, 1, (40, 40)),
            "CrossEntropyLoss_output_0": np.array(2.0 + step / 10),
        }
        for step in range(12)
    }
    folder = tmp_path_factory.mktemp("finished") / "trial"
    write_trial(folder, content, mode="TRAIN", workers=("worker_0", "worker_1"))
    return folder


def test_a_job_is_followed_on_s3_at_the_cost_of_what_is_new(
    s3: Proxy, upload: Upload, finished: Path, tmp_path: Path
) -> None:
    prefix = "follow/steady"
    uri = f"s3://runs/{prefix}"
    clock = UploadingClock(finished, putting(upload, finished, prefix), list(written(finished, 15.0)))
    told = Told(clock)
    waits: list[str] = []
    report = follow(
        uri,
        ["VanishingGradient"],
        clock=clock,
        poll=POLL,
        grace=GRACE,
        cache=tmp_path / "cache",
        on_finding=told,
        on_wait=waits.append,
    )
    assert set(told.at) == {(step, worker) for step in (3, 8) for worker in ("worker_0", "worker_1")}
    assert all(time <= 1.1 + (step or 0) + POLL for (step, _), time in told.at.items())
    assert verdicts(report, uri) == verdicts(evaluate(finished, ["VanishingGradient"]), str(finished))
    events = {path: count for path, count in s3.gets.items() if path.endswith(".tfevents")}
    assert len(events) == 24
    assert set(events.values()) == {1}  # the report at the end is from what was kept
    # Index files once while following, and once by the evaluation at the end.
    assert {count for path, count in s3.gets.items() if "/index/" in path} == {2}
    # Index, collections, end marker; new event files; a full list now and then.
    assert s3.calls["ListObjectsV2"] <= 5 * (len(waits) + 1)


@pytest.mark.parametrize("seed", range(4))
def test_nothing_is_lost_where_lists_and_reads_lag(
    s3: Proxy, upload: Upload, finished: Path, tmp_path: Path, seed: int
) -> None:
    rng = random.Random(seed)
    prefix = f"follow/{tmp_path.name}"
    uri = f"s3://runs/{prefix}"

    def lag() -> float:
        return rng.choice([0.0, 0.0, rng.uniform(0, 2), rng.uniform(0, 2 * GRACE)])

    arrivals = list(written(finished, 13.0 + 2 * GRACE))
    clock = UploadingClock(finished, putting(upload, finished, prefix), arrivals, lag)
    clock.misguide(s3, prefix)
    report = follow(uri, clock=clock, poll=POLL, grace=GRACE, cache=tmp_path / "cache")
    assert not clock.rest, report.warnings
    assert verdicts(report, uri) == verdicts(evaluate(finished), str(finished))


def test_a_comparison_that_could_not_be_made_is_made_the_next_time(
    s3: Proxy, upload: Upload, finished: Path, tmp_path: Path
) -> None:
    uri = upload(finished, "gone/reference")
    expected = verdicts(evaluate(finished, ["WeightUpdateRatio"]), str(finished))
    gone(s3, EVENTS)
    evaluate(uri, ["WeightUpdateRatio"], cache=tmp_path / "cache")
    s3.fault = None
    assert verdicts(evaluate(uri, ["WeightUpdateRatio"], cache=tmp_path / "cache"), uri) == expected


def test_an_index_file_that_cannot_be_fetched_at_first_is_judged_in_time(
    s3: Proxy, upload: Upload, finished: Path
) -> None:
    prefix = "follow/late"
    clock = UploadingClock(finished, putting(upload, finished, prefix), list(written(finished, 15.0)))
    clock.misguide(s3, prefix)
    fault = s3.fault
    assert fault is not None
    s3.fault = lambda proxy, call, path: (
        "404" if path.endswith(INDEX) and clock.now < 7.0 else fault(proxy, call, path)
    )
    told = Told(clock)
    follow(
        f"s3://runs/{prefix}",
        ["VanishingGradient"],
        clock=clock,
        poll=POLL,
        grace=60.0,
        on_finding=told,
    )
    assert 7.0 <= told.at[3, "worker_1"] <= 7.0 + POLL
    assert told.at[3, "worker_0"] == told.at[3, "worker_1"]


def test_an_index_file_that_stays_gone_does_not_keep_a_job_from_ending(
    s3: Proxy, upload: Upload, finished: Path
) -> None:
    prefix = "follow/gone"
    clock = UploadingClock(finished, putting(upload, finished, prefix), list(written(finished, 15.0)))
    gone(s3, INDEX)
    report = follow(f"s3://runs/{prefix}", ["VanishingGradient"], clock=clock, poll=POLL, grace=GRACE)
    assert clock.now <= 15.0 + GRACE + 2 * POLL
    assert report.run.ended
    assert any(INDEX in warning and "missing" in warning for warning in report.warnings)


def test_profiler_output_is_followed_on_s3(s3: Proxy, upload: Upload, tmp_path: Path) -> None:
    job = Job().ticks({("gpu0", "GPUUtilization"): [0.0] * 1300, ("cpu0", "CPUUtilization"): [99.0] * 1300})
    source = Path(job.steps([1.0] * 120).write(tmp_path / "job"))
    prefix = "follow/profiler"
    uri = f"s3://runs/{prefix}"
    rng = random.Random(0)
    names = list(files(source))
    data = [name for name in names if Path(name).name != END_MARKER]
    arrivals = [Arrival(10.0 + 5 * number, name) for number, name in enumerate(data)]
    ends = [Arrival(arrivals[-1].time + 25, name) for name in names if name not in data]
    clock = UploadingClock(
        source, putting(upload, source, prefix), [*arrivals, *ends], lambda: rng.uniform(0, 20)
    )
    clock.misguide(s3, prefix)
    report = follow(uri, clock=clock, poll=5.0, grace=GRACE)
    assert not clock.rest, report.warnings
    assert report.fired
    assert verdicts(report, uri) == verdicts(evaluate(source), str(source))

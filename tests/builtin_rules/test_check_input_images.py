"""CheckInputImages."""

from __future__ import annotations

import numpy as np
import pytest

from smdbg_builtin_rules.check_input_images import CheckInputImages
from tests.builtin_rules.conftest import Judge


def batches(count: int, value: float, shape: tuple[int, ...] = (64, 3, 8, 8)) -> dict[int, dict[str, object]]:
    return {n: {"hybridsequential0_input_0": np.full(shape, value, np.float32)} for n in range(count)}


def test_judges_once_there_are_enough_images(judge: Judge) -> None:
    outcome = judge(CheckInputImages(), batches(10, 0.5))
    (finding,) = outcome.findings
    assert (finding.step, finding.count) == (7, 3)
    assert outcome.coverage.skipped == {"too few images": 7}


@pytest.mark.parametrize(
    ("value", "status"), [(0.0, "clean"), (0.25, "clean"), (0.26, "fired"), (-0.3, "fired")]
)
def test_the_limit_is_of_the_absolute_mean(judge: Judge, value: float, status: str) -> None:
    steps = {0: {"hybridsequential0_input_0": np.full((500, 1, 2, 2), value)}}
    assert judge(CheckInputImages(threshold_mean=0.25), steps).status == status


def test_channels_are_judged_apart(judge: Judge) -> None:
    images = np.stack([np.full((500, 2, 2), v) for v in (1.0, -1.0, 0.0)], axis=1)
    assert judge(CheckInputImages(), {0: {"hybridsequential0_input_0": images}}).status == "fired"
    last = np.moveaxis(images, 1, -1)
    assert judge(CheckInputImages(channel=-1), {0: {"hybridsequential0_input_0": last}}).status == "fired"


def test_too_few_images_are_not_evaluated(judge: Judge) -> None:
    outcome = judge(CheckInputImages(), batches(2, 0.5))
    assert (outcome.status, outcome.reason) == ("not_evaluated", "too few images: at most 128, needs 500")


def test_nan_makes_the_sample_indeterminate(judge: Judge) -> None:
    steps = batches(9, 0.5)
    steps[0]["hybridsequential0_input_0"][0, 0, 0, 0] = np.nan  # type: ignore[index]
    assert judge(CheckInputImages(), steps).status == "not_evaluated"


@pytest.mark.parametrize("name", ["ResNet_input_0", "inputs", "inputs_0", "net0_hybridsequential0_input_0"])
def test_names_of_frameworks(judge: Judge, name: str) -> None:
    assert judge(CheckInputImages(), {0: {name: np.ones((500, 1, 2, 2))}}).status == "fired"


def test_the_default_leaves_what_is_no_image_alone(judge: Judge) -> None:
    assert judge(CheckInputImages(), {0: {"Net_input_0": np.ones((600, 5))}}).reason == "not images (1 point)"
    assert (
        judge(CheckInputImages(regex="Net_input_0"), {0: {"Net_input_0": np.ones((600, 5))}}).status
        == "fired"
    )
    assert "nothing matched" in str(
        judge(CheckInputImages(), {0: {"CrossEntropyLoss_input_0": np.ones((600, 5))}}).reason
    )


@pytest.mark.parametrize(
    ("spread", "status"), [(0.04, "fired"), (0.06, "clean"), (9.0, "clean"), (11.0, "fired")]
)
def test_the_spread_can_be_judged(judge: Judge, spread: float, status: str) -> None:
    images = np.tile(np.array([-spread, spread]), (500, 1, 2, 1))
    steps = {0: {"hybridsequential0_input_0": images}}
    assert judge(CheckInputImages(min_spread=0.05, max_spread=10), steps).status == status
    assert judge(CheckInputImages(), steps).status == "clean"


def test_the_spread_is_that_of_all_images(judge: Judge) -> None:
    steps = {n: {"hybridsequential0_input_0": np.full((300, 1, 2, 2), (-1.0) ** n)} for n in range(2)}
    assert judge(CheckInputImages(min_spread=0.9), steps).status == "clean"
    assert judge(CheckInputImages(min_spread=1.1), steps).status == "fired"

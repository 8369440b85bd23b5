"""CheckInputImages."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Annotated, ClassVar

from smdbg_core import (
    DEEP_LEARNING,
    Collection,
    Finding,
    Meta,
    Reads,
    Regex,
    RuleRun,
    StepView,
    TensorRule,
    TensorView,
)


class CheckInputImages(TensorRule):
    """Fires when input images are not centred: the mean of a colour channel is far from zero.

    Why it matters: networks train slowly or not at all on inputs that are all of one sign.
    What to do: subtract the mean of each channel over the training set, and divide by its deviation.
    """

    frameworks: ClassVar = DEEP_LEARNING
    group: ClassVar = "deep learning application"
    presets: ClassVar = {"recommended": {"threshold_mean": 0.5, "min_spread": 0.05, "max_spread": 10.0}}
    collections_to_save: ClassVar = (
        Collection("input_image", include_regex=".*hybridsequential0_input_0", save_interval=500),
    )

    threshold_mean: Annotated[
        float, Meta(ge=0, unit="pixel units", description="An absolute mean above this fires.")
    ] = 0.2
    threshold_samples: Annotated[
        int, Meta(ge=1, unit="images", description="Images needed before judging.")
    ] = 500
    regex: Annotated[
        tuple[Regex, ...],
        Meta(
            description="Input tensors.",
            also=(r"^(?!\w*Loss)[A-Z]\w*_input_0$", r"^inputs(_\d+)?$"),
        ),
    ] = (".*hybridsequential0_input_0",)
    channel: Annotated[int, Meta(description="Axis of the colour channels; may be negative.")] = 1

    min_spread: Annotated[
        float, Meta(ge=0, unit="pixel units", description="A smaller standard deviation fires.", local=True)
    ] = 0.0
    max_spread: Annotated[
        float | None,
        Meta(gt=0, unit="pixel units", description="A larger standard deviation fires.", local=True),
    ] = None

    @property
    def _sums(self) -> tuple[str, int]:
        return "channel_sums", self.channel

    @property
    def _judges_spread(self) -> bool:
        return self.min_spread > 0 or self.max_spread is not None

    def reads(self) -> Reads:
        """The input tensors."""
        spread = ("size", "mean", "variance") if self._judges_spread else ()
        return Reads(patterns=self.patterns("regex"), statistics=(self._sums, *spread), source="raw")

    def start(self, run: RuleRun) -> None:
        """Forget all images."""
        self._sum: dict[str, list[float]] = {}
        self._count: dict[str, list[int]] = {}
        self._images: dict[str, int] = {}
        self._non_finite: dict[str, int] = {}
        self._moments: dict[str, tuple[float, float, float]] = {}

    def evaluate(self, step: StepView) -> Iterator[Finding]:
        """Add the images of the step to those before, and judge once there are enough."""
        for tensor in step.tensors():
            # The default knows the inputs of many networks; only images have three and more dimensions.
            if len(tensor.shape) < 3 and self.is_default("regex"):
                self.skip(tensor, "not images")
            else:
                yield from self._judge_images(tensor)

    def _judge_images(self, tensor: TensorView) -> Iterator[Finding]:
        name = tensor.name
        sums = tensor.measure(*self._sums)
        total = self._sum.setdefault(name, [0.0] * len(sums.sums))
        count = self._count.setdefault(name, [0] * len(sums.sums))
        if len(total) != len(sums.sums):
            self.skip(tensor, "the number of channels has changed")
            return
        for channel, (value, number) in enumerate(zip(sums.sums, sums.counts, strict=True)):
            total[channel] += value
            count[channel] += number
        self._images[name] = images = self._images.get(name, 0) + sums.images
        self._non_finite[name] = self._non_finite.get(name, 0) + tensor.non_finite
        if self._judges_spread:
            self._add_moments(tensor)
        if images < self.threshold_samples:
            self.skip(tensor, "too few images", have=images, need=self.threshold_samples)
            return
        means = [abs(t / c) if c else math.nan for t, c in zip(total, count, strict=True)]
        worst = max(range(len(means)), key=lambda channel: means[channel])
        text = f"channel {worst}: absolute mean {means[worst]:.4g} > {self.threshold_mean:g}, {images} images"
        yield from self.judge(
            tensor,
            "abs_channel_mean",
            means[worst],
            ">",
            self.threshold_mean,
            message=text,
            non_finite=self._non_finite[name],
        )
        if self._judges_spread:
            yield from self._judge_spread(tensor)

    def _add_moments(self, tensor: TensorView) -> None:
        """Add up what the standard deviation over all images so far follows from."""
        size, mean = tensor.statistics.size - tensor.non_finite, tensor.statistics.mean
        if size > 0:
            number, total, squares = self._moments.get(tensor.name, (0.0, 0.0, 0.0))
            square = tensor.statistics.variance + mean**2
            self._moments[tensor.name] = number + size, total + size * mean, squares + size * square

    def _judge_spread(self, tensor: TensorView) -> Iterator[Finding]:
        number, total, squares = self._moments.get(tensor.name, (0.0, 0.0, 0.0))
        spread = math.sqrt(max(0.0, squares / number - (total / number) ** 2)) if number else math.nan
        hidden = self._non_finite[tensor.name]
        yield from self.judge(tensor, "spread", spread, "<", self.min_spread, non_finite=hidden)
        if self.max_spread is not None:
            yield from self.judge(tensor, "spread", spread, ">", self.max_spread, non_finite=hidden)

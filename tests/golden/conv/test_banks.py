"""Cycles of a request at the banks: those of pieces that meet, and of pieces that do not."""

import pytest

from tilewright.golden import CONV_PRESETS, ConvPlan, ConvShape, read_share, request_cycles

DEFAULT = CONV_PRESETS["default"]


def depthwise(channels, block_bytes, stride=1, kernel=3, rotation=True):
    shape = ConvShape.of((1, 56, 56, channels), channels, (kernel, kernel), (stride, stride), (1, 1, 1, 1),
                         operation="depthwise")  # fmt: skip
    return ConvPlan(shape, DEFAULT.replace(rotation=rotation), block_bytes)


@pytest.mark.parametrize(
    ("plan", "pixel", "cycles"),
    [
        # Four points of two chunks: 24 chunks apart they lie in the same two banks, 26 apart in all of them.
        (depthwise(384, 32), 384, 4),
        (depthwise(384, 32), 416, 1),
        (depthwise(144, 32), 144, 2),
        (depthwise(144, 32), 160, 1),
        # Eight points of a chunk, an odd number of chunks apart.
        (depthwise(144, 16), 144, 1),
        # With a stride of two two columns of the kernel come together: both that are fetched where rows rotate, of
        # three two.
        (depthwise(96, 32, stride=2), 96, 1),
        (depthwise(240, 16, stride=2), 240, 1),
        (depthwise(96, 32, stride=2, rotation=False), 96, 4 / 3),
        (depthwise(240, 16, stride=2, rotation=False), 240, 4 / 3),
        # But not if chunks of one column do not meet.
        (depthwise(240, 32, stride=2), 240, 1),
    ],
)
def test_lane_private_mode(plan, pixel, cycles):
    assert request_cycles(plan, pixel) == pytest.approx(cycles)


@pytest.mark.parametrize(("channels", "block_bytes", "cycles"), [(32, 32, 1), (40, 8, 2), (48, 8, 1), (64, 32, 1)])
def test_convolution(channels, block_bytes, cycles):
    """Blocks of eight bytes of eight points: 40 bytes apart two of them meet in a bank, 48 bytes apart none."""
    shape = ConvShape.of((1, 28, 28, channels), 64, (1, 1))
    assert request_cycles(ConvPlan(shape, DEFAULT, block_bytes), channels) == cycles


def first_layer(width, kernel=3, **plan):
    shape = ConvShape(1, 61, 2 * width, 3, 32, 30, width, (kernel,) * 2, (2, 2), (1, 1), adjoin=True)
    return ConvPlan(shape, DEFAULT, **plan)


@pytest.mark.parametrize(
    ("plan", "cycles", "share"),
    [
        # Lines of 57 points end within a request of 8 but for every eighth one.
        (first_layer(57, block_bytes=4, merge=3, raster=True), 1 + 26 / 214, 1 / 3),
        (first_layer(57, block_bytes=4, merge=3), 1, 1 / 3),
        (first_layer(56, block_bytes=4, merge=3, raster=True), 1, 1 / 3),
        (first_layer(56, kernel=7, block_bytes=8, merge=7), 1, 1 / 3),
        (first_layer(56, block_bytes=16, merge=3), 1, 1),
        # Eight windows of 81 bytes have more than eight chunks.
        (first_layer(56, kernel=27, block_bytes=8, merge=27), 1, 1),
        (depthwise(144, 16), 1, 1),
    ],
)
def test_blocks_of_the_same_points(plan, cycles, share):
    pixel = plan.shape.channels
    assert request_cycles(plan, pixel) == pytest.approx(cycles)
    assert read_share(plan, pixel) == pytest.approx(share)

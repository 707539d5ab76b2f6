"""Rows of the array and the order of work: by hand, and as a whole, multiplied cycle by cycle, against the jobs."""

from collections import Counter
from math import ceil

import numpy as np
import pytest

from tilewright.golden import CONV_PRESETS, Conv, ConvLayer, ConvPlan, ConvShape, dot, plan_convolution
from tilewright.golden.conv.rows import Rows, lane_order, work_order
from tilewright.spec.pe import MM_FAMILIES

FULL = CONV_PRESETS["full"]
SMALL = CONV_PRESETS["unit"].replace(types=MM_FAMILIES)
RNG = np.random.default_rng(8)


def test_rows_of_14_bytes_have_two_inserted():
    x = RNG.integers(1, 256, (1, 4, 20, 14), np.uint8)
    plan = plan_convolution(ConvShape.of(x.shape, 16, (3, 3)), FULL, "seed")
    assert (plan.block_bytes, plan.fold) == (16, 4)
    rows = Rows(plan, x, np.zeros((16, 3, 3, 14), np.int8), (0, 0))
    elements = rows.features(0, 1, 0, 2)  # kernel row 1, column 2
    for unit in range(4):
        for place in range(4):
            assert elements[unit, place].tolist() == [*x[0, 1, 4 * unit + place + 2], 0, 0]


def test_rows_of_47_bytes_are_three_blocks():
    x = RNG.integers(1, 256, (1, 4, 20, 47), np.uint8)
    plan = plan_convolution(ConvShape.of(x.shape, 16, (1, 1)), FULL, "seed")
    assert (plan.block_bytes, plan.blocks) == (16, 3)
    rows = Rows(plan, x, np.zeros((16, 1, 1, 47), np.int8), (7, 0))
    first, second, third = (rows.features(0, 0, block, 0)[2] for block in range(3))  # unit 2: pixels 8 to 11
    assert (np.concatenate([first, second, third], axis=1)[:, :47] == x[0, 0, 8:12]).all()
    assert third[:, 15].tolist() == [7] * 4  # what contributes nothing is the zero point


def test_stride_removal_of_the_seeds_example():
    """4 × 5 pixels, 3 × 3 and sw = 2: pixels of two, W and Kw filled up to even."""
    x = RNG.integers(1, 256, (1, 4, 5, 16), np.uint8)
    k = RNG.integers(1, 128, (16, 3, 3, 16), np.int8)
    plan = plan_convolution(ConvShape.of(x.shape, 16, (3, 3), (1, 2)), FULL, "seed")
    assert (plan.merge, plan.pixel_bytes, plan.block_bytes, plan.steps, plan.adjoin) == (2, 32, 32, 2, True)
    rows = Rows(plan, x, k)
    # Points 0 and 1 of the line: pixels 0–1 and 2–3; one step on pixels 2–3, and 4 with nothing after it.
    assert rows.features(0, 0, 0, 0)[0].tolist() == [x[0, 0, 0:2].ravel().tolist(), x[0, 0, 2:4].ravel().tolist()]
    assert rows.features(0, 0, 0, 1)[0].tolist() == [[*x[0, 0, 2], *[0] * 16], [*x[0, 0, 4], *[0] * 16]]
    assert rows.weights(3, 0, 0, 0).tolist() == k[3, 0, 0:2].ravel().tolist()
    assert rows.weights(3, 0, 0, 1).tolist() == [*k[3, 0, 2], *[0] * 16]


def test_windows_overlap():
    """7 columns of 3 channels at stride 2: 21 bytes at a pitch of 6, in three blocks of 8, and padding in front."""
    x = RNG.integers(1, 256, (1, 7, 64, 3), np.uint8)
    shape = ConvShape.of(x.shape, 64, (7, 7), (2, 2), (3, 3, 3, 3))
    rows = Rows(ConvPlan(shape, FULL, 8, 7, raster=True), x, np.zeros((64, 7, 7, 3), np.int8), (9, 0))
    line = np.concatenate([np.full(9, 9, np.uint8), x[0, 0].ravel()])
    elements = np.concatenate([rows.features(0, 3, block, 0) for block in range(3)], axis=2).reshape(32, 24)
    for point in range(25):
        assert elements[point].tolist() == [*line[6 * point :][:21], 9, 9, 9]


def test_points_in_raster_order_and_line_by_line():
    shape = ConvShape.of((2, 3, 7, 64), 16, (1, 1))
    raster = Rows(ConvPlan(shape, FULL, 64, raster=True), np.zeros((2, 3, 7, 64), np.uint8), None)
    assert [raster.points(tile).ravel().tolist() for tile in (1, 10)] == [[4, 5, 6, 7], [40, 41, -1, -1]]
    lines = Rows(ConvPlan(shape, FULL, 64), np.zeros((2, 3, 7, 64), np.uint8), None)
    assert [lines.points(tile).ravel().tolist() for tile in (1, 2, 11)] == [
        [4, 5, 6, -1],
        [7, 8, 9, 10],
        [39, 40, 41, -1],
    ]


PLANS = [
    # x, Co, kernel, stride, padding, dilation, block, merge, raster
    ((1, 4, 11, 3), 5, (3, 3), (1, 2), (1, 1, 1, 1), (1, 1), 4, 3, True),
    ((1, 4, 11, 3), 9, (3, 3), (2, 2), (0, 1, 2, 1), (1, 1), 8, 2, False),
    ((2, 3, 5, 20), 3, (1, 1), (1, 1), (0, 0, 0, 0), (1, 1), 16, 1, True),
    ((1, 3, 19, 2), 2, (2, 9), (1, 1), (0, 0, 3, 0), (1, 1), 16, 1, False),
    ((1, 5, 9, 6), 4, (2, 3), (1, 1), (1, 0, 2, 2), (2, 3), 4, 1, True),
]


def layer_of(kind, row, x_dtype, k_dtype):
    size, out_channels, kernel, stride, padding, dilation, block, merge, raster = row
    if kind == "f16":
        x, k = (RNG.standard_normal(shape).astype(np.float16) for shape in (size, (out_channels, *kernel, size[3])))
    else:
        x = RNG.integers(0, 256, size, np.uint8).view(x_dtype)
        k = RNG.integers(0, 256, (out_channels, *kernel, size[3]), np.uint8).view(k_dtype)
    plan = {"block_bytes": block, "merge": merge, "raster": raster}
    zeros = (0, 0) if kind == "f16" else (17, 0)
    layer = ConvLayer(
        x, k, kind, stride=stride, padding=padding, dilation=dilation, zeros=zeros, params=SMALL, plan=plan
    )
    return layer, x, k, zeros


@pytest.mark.parametrize("kind", ["u8s8", "f16"])
@pytest.mark.parametrize("row", PLANS, ids=str)
def test_cycle_by_cycle(kind, row):
    """Each slave and unit adds one row a cycle in the order of work, which makes the results of the job bit for bit."""
    layer, x, k, zeros = layer_of(kind, row, np.uint8, np.int8)
    plan, shape = layer.plan, layer.shape
    rows = Rows(plan, x.view(f"u{x.itemsize}"), k.view(f"u{k.itemsize}"), zeros)
    acc = np.zeros((shape.points, shape.out_channels), np.int64)
    features, weights, cycles = Counter(), Counter(), 0
    for step in work_order(plan):
        cycles += 1
        features[step.channel // 4, *step[:5]] += 1
        elements = rows.features(*step[:3], step.step)
        points = rows.points(step.point_tile)
        for slave in range(SMALL.slaves):
            channel = step.channel * SMALL.slaves + slave
            if channel >= shape.out_channels:
                continue
            weight = rows.weights(channel, step.kernel_row, step.block, step.step)
            weights[step.point_tile, channel, step.kernel_row, step.block, step.step] += points.size
            for unit, place in zip(*(points >= 0).nonzero(), strict=True):
                point = points[unit, place]
                if kind == "f16":
                    acc[point, channel] = dot(acc[point, channel], elements[unit, place], weight, kind)
                else:
                    acc[point, channel] += ((elements[unit, place].astype(int) - zeros[0]) * weight.view(np.int8)).sum()
    assert cycles == plan.mac_cycles
    assert set(weights.values()) == {plan.weight_reuse}
    assert max(features.values()) == plan.feature_reuse
    assert len(features) == plan.channel_tiles * plan.point_tiles * shape.kernel[1] * plan.blocks * plan.steps
    smem = layer.smem.copy()
    assert Conv(smem, SMALL).execute(layer.word)
    expected = layer.result(smem).reshape(acc.shape).view(np.uint32)
    assert ((acc & 0xFFFFFFFF) == expected).all()


def test_parts_of_a_long_kernel_row():
    """Nine steps, of which the first buffer holds seven in this fold."""
    layer, *_ = layer_of("u8s8", PLANS[3], np.uint8, np.int8)
    steps = [step for step in work_order(layer.plan) if step[:3] == (0, 0, 0)]
    assert [step.part for step in steps] == [0] * 7 + [1] * 2
    assert layer.plan.parts == 2


@pytest.mark.parametrize("pairs", [False, True])
@pytest.mark.parametrize("raster", [False, True])
def test_lanes_cycle_by_cycle(raster, pairs):
    x = RNG.integers(0, 256, (2, 5, 7, 20), np.uint8)
    k = RNG.integers(-128, 128, (20, 3, 2), np.int8)
    params = SMALL if pairs else SMALL.replace(rotation=False)
    layer = ConvLayer(x, k, "u8s8", operation="depthwise", stride=(1, 2), padding=(1, 1, 0, 1), params=params,
                      plan={"block_bytes": 8, "raster": raster})  # fmt: skip
    plan, shape = layer.plan, layer.shape
    rows = Rows(plan, x, np.moveaxis(k, 0, -1).view(np.uint8))
    acc = np.zeros((shape.points, plan.blocks * 8), np.int64)
    cycles = 0
    for step in lane_order(plan):
        cycles += 1
        for tile in step.point_tiles:
            elements = rows.features(tile, step.line, step.block, step.kernel_column)[0]
            points = rows.points(tile)[0], rows.second_points(tile)[0]
            for kernel_row, of_line in zip(step.kernel_rows, points, strict=True):
                if kernel_row is None:
                    continue
                weight = rows.weights(None, kernel_row, step.block, step.kernel_column).view(np.int8)
                for place, point in enumerate(of_line):
                    if point >= 0:
                        acc[point, 8 * step.block :][:8] += elements[place].astype(int) * weight
    # A pair of lines takes four rows of the kernel; of five lines the last one is alone.
    lines, steps = (2 * 3, 8) if pairs else (2 * 5, 6)
    assert plan.line_pairs == pairs and plan.lane_lines == lines / 2 and shape.out_height == 5
    crossing = 2 * ceil(plan.point_tiles / 4) if raster and pairs else lines * ceil(plan.point_tiles / lines / 2)
    assert cycles == plan.mac_cycles == 3 * crossing * steps
    assert plan.least_cycles == 3 * ceil(plan.point_tiles / 2) * steps
    smem = layer.smem.copy()
    assert Conv(smem, params).execute(layer.word)
    assert (acc[:, :20] == layer.result(smem).reshape(-1, 20)).all()

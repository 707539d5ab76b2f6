"""Granularity, Kmax and plans: figures of the page, of layers and of published networks."""

from dataclasses import replace
from pathlib import Path

import pytest

from tilewright.golden import (
    CONV_PRESETS,
    ConvPlan,
    ConvShape,
    convolution_plans,
    most_steps,
    plan_convolution,
    seed_granularity,
)
from tilewright.results import record
from tilewright.tools.docs.figures import stale

ROOT = Path(__file__).parents[3]
FULL, DEFAULT = CONV_PRESETS["full"], CONV_PRESETS["default"]
SEED = FULL.replace(feature_rows=8)  # the first buffer of the engine that the folding comes from
STEM_7 = ConvShape.of((1, 224, 224, 3), 64, (7, 7), (2, 2), (3, 3, 3, 3))
STEM_3 = ConvShape.of((1, 224, 224, 3), 32, (3, 3), (2, 2), (0, 1, 0, 1))


def percent(number):
    return round(100 * number, 1)


@pytest.mark.parametrize(
    ("size", "block"),
    [(48, 16), (28, 32), (49, 64), (14, 16), (47, 16), (6, 16), (3, 4), (4, 4), (5, 16), (16, 16), (17, 32), (33, 16),
     (64, 64), (65, 16), (128, 64), (300, 16)],
)  # fmt: skip
def test_the_seeds_rule(size, block):
    assert seed_granularity(size) == block


def test_the_seeds_rule_of_smaller_rows():
    assert [seed_granularity(48, row) for row in (16, 32, 64)] == [16, 16, 16]
    with pytest.raises(ValueError, match=r"^row_bytes must be a power of two, not 48$"):
        seed_granularity(3, 48)


def test_kmax():
    assert (SEED.feature_rows, SEED.units) == (8, 4)
    assert [most_steps(SEED, fold) for fold in (4, 2, 1)] == [17, 9, 5]
    assert [most_steps(SEED, 4, dilation) for dilation in (2, 3, 16, 17)] == [9, 6, 2, 1]


@pytest.mark.parametrize(
    ("shape", "merge", "block", "use"),
    [
        (STEM_7, 2, 16, 32.8),  # the seed's rule
        (STEM_7, 2, 8, 65.6),
        (STEM_7, 7, 8, 87.5),
        (STEM_3, 2, 16, 28.1),
        (STEM_3, 2, 8, 56.2),
        (STEM_3, 3, 4, 75.0),
    ],
)
def test_first_layers(shape, merge, block, use):
    """The used share of the array: 3 channels in blocks, with stride removal and with windows."""
    assert percent(ConvPlan(shape, FULL, block, merge, raster=True).array_use) == use


def test_the_planner_takes_windows_for_first_layers():
    plan = plan_convolution(STEM_7, FULL)
    assert (plan.merge, plan.block_bytes, plan.blocks, percent(plan.utilisation)) == (7, 8, 3, 87.5)
    # Of 3 × 3 pixels of 3 in blocks of 4 are as good as windows of 9, and have fewer merged columns.
    plan = plan_convolution(STEM_3, FULL)
    assert (plan.merge, plan.block_bytes, percent(plan.array_use)) == (1, 4, 75.0)
    plan = plan_convolution(STEM_3, DEFAULT)
    assert (plan.merge, plan.block_bytes, plan.blocks, percent(plan.array_use)) == (3, 2, 5, 90.0)
    seed = plan_convolution(STEM_7, FULL, "seed")
    assert (seed.merge, seed.block_bytes, seed.raster, percent(seed.array_use)) == (2, 16, False, 32.8)


def resnet_50():
    """All convolutions, with strides in the first 1 × 1 of a block, as it was published first."""
    yield STEM_7
    channels, size = 64, 56
    for blocks, inner, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            yield ConvShape.of((1, size, size, channels), inner, (1, 1), (step, step))
            if block == 0:
                yield ConvShape.of((1, size, size, channels), 4 * inner, (1, 1), (step, step))
            size //= step
            yield ConvShape.of((1, size, size, inner), inner, (3, 3), padding=(1, 1, 1, 1))
            yield ConvShape.of((1, size, size, inner), 4 * inner, (1, 1))
            channels = 4 * inner


def test_resnet_50():
    """Ceilings of 4096 MACs: the seed's rule line by line, and the planner."""
    layers = list(resnet_50())
    assert len(layers) == 53
    macs = sum(layer.macs for layer in layers)
    assert macs == 3_855_925_248

    def busy(plan_of):
        return percent(macs / (4096 * sum(plan_of(layer).mac_cycles for layer in layers)))

    shares = {
        "blocks of M bytes": busy(lambda layer: ConvPlan(layer, FULL, 64)),
        "the seed's rule": busy(lambda layer: plan_convolution(layer, FULL, "seed")),
        "raster order": busy(lambda layer: replace(plan_convolution(layer, FULL, "seed"), raster=True)),
        "any merge": busy(lambda layer: min(line_by_line(layer), key=lambda plan: plan.mac_cycles)),
        "the planner": busy(lambda layer: plan_convolution(layer, FULL)),
    }
    assert list(shares.values()) == [58.8, 80.0, 85.0, 91.9, 98.4]
    record("conv-array-use", rows={name: {"busy": share} for name, share in shares.items()})
    assert not stale("conv-array-use", ROOT)


def line_by_line(layer):
    for merge in {1, layer.stride[0], layer.kernel[0]}:
        for block in (4, 8, 16, 32, 64):
            yield ConvPlan(layer, FULL, block, merge)


def test_blocks_that_can_be_fetched_in_time():
    """In blocks of 4 bytes a first layer of 32 channels would wait for its rows on 16 slaves."""
    alone, fetched = plan_convolution(STEM_3, FULL), plan_convolution(STEM_3, FULL, "fetch")
    assert (alone.block_bytes, fetched.block_bytes) == (4, 16)
    assert alone.fetch_cycles > fetched.mac_cycles == fetched.fetch_cycles > alone.mac_cycles


def test_points_in_raster_order():
    """7 × 7 points waste 3 of 52, and line by line 7 of 56."""
    shape = ConvShape.of((1, 7, 7, 512), 512, (3, 3), padding=(1, 1, 1, 1))
    tiles = [ConvPlan(shape, FULL, 64, 1, raster).point_tiles for raster in (True, False)]
    assert [4 * count for count in tiles] == [52, 56]
    assert plan_convolution(shape, FULL).raster


def test_cycles_and_reuse_by_hand():
    """Co 64, 3 × 3, one block of 16 bytes: the seed's first example, 16 points in four units."""
    shape = ConvShape.of((1, 5, 34, 16), 64, (3, 3))
    plan = plan_convolution(shape, FULL, "seed")
    assert (plan.block_bytes, plan.fold, plan.blocks, plan.parts) == (16, 4, 1, 1)
    assert (plan.slave_channels, plan.channel_tiles, plan.feature_reuse, plan.weight_reuse) == (4, 1, 4, 16)
    assert plan.tile_cycles == plan.part_cycles == 4 * 3 * 3 * 1
    assert (plan.point_tiles, plan.mac_cycles) == (3 * 2, 3 * 2 * 36)
    # Co 32 and three blocks of 16 bytes: the second one.
    plan = plan_convolution(ConvShape.of((1, 5, 18, 48), 32, (3, 3)), FULL, "seed")
    assert (plan.block_bytes, plan.blocks, plan.feature_reuse, plan.tile_cycles) == (16, 3, 2, 2 * 3 * 3 * 3)


def test_kernels_wider_than_kmax():
    shape = ConvShape.of((1, 3, 40, 64), 16, (1, 19))
    plan = ConvPlan(shape, SEED, 64)
    assert (plan.steps, plan.parts, plan.part_steps, plan.part_cycles, plan.tile_cycles) == (19, 4, 5, 5, 19)


def test_limit_is_the_largest_of_three():
    """A 1 × 1 kernel on few channels is limited by its results."""
    plan = plan_convolution(ConvShape.of((1, 56, 56, 16), 96, (1, 1)), FULL)
    assert plan.bound == "results"
    assert plan.limit == 56 * 56 * 96 // 64 > plan.mac_cycles
    # The 4 × 4 windows of stride 4 hold every fourth byte of a line only.
    shape = ConvShape.of((1, 16, 16, 8), 1, (1, 1), (4, 4), table=True, add=True, result_bytes=4)
    assert shape.bytes_read == 4 * 4 * 8 + 8 + 8 + 4 * 16
    assert plan_convolution(shape, FULL).costs == {"macs": 1, "results": 1, "bytes": 2}
    wide = ConvShape.of((1, 64, 64, 64), 4, (1, 1))
    assert plan_convolution(wide, FULL).costs["bytes"] == -(-(64 * 64 * 64 + 4 * 64) // 128)


def test_depthwise():
    """NS rows take Kh · Kw steps; with 9 MACs a result, R results a cycle are the limit."""
    shape = ConvShape.of((1, 56, 56, 128), 128, (3, 3), padding=(1, 1, 1, 1), operation="depthwise")
    plan = plan_convolution(shape, FULL)
    # Groups of 16 rows go on across the ends of lines.
    assert (plan.merge, plan.raster, plan.mac_cycles) == (1, True, 56 * 56 * 2 // 16 * 9)
    assert (percent(plan.array_use), plan.bound, percent(plan.utilisation)) == (25.0, "results", 14.1)
    # Where rows stay in their slaves a line takes four of them; the limit counts them as if they went on.
    plan = plan_convolution(shape, FULL.replace(rotation=False))
    assert (plan.raster, plan.mac_cycles, plan.least_cycles) == (False, 56 * 4 * 2 * 9, 56 * 56 * 2 // 16 * 9)
    # In rows of 32 bytes slaves have units for two lines: a pair takes four rows of a kernel, and not twice three.
    plan = plan_convolution(shape, DEFAULT)
    assert (plan.line_pairs, plan.mac_cycles, percent(plan.utilisation)) == (True, 28 * 56 // 8 * 4 * 12, 28.1)
    # Without, the array itself takes longer: a quarter of its peak is all that it can be.
    plan = plan_convolution(shape, DEFAULT.replace(units=2))
    assert (plan.line_pairs, plan.mac_cycles) == (False, 56 * 56 // 8 * 4 * 9)


@pytest.mark.parametrize(
    ("changes", "params", "pairs"),
    [
        ({}, {}, True),
        ({"stride": (2, 1)}, {}, True),
        ({"stride": (3, 1)}, {}, False),  # no two windows have a line in common
        ({"dilation": (2, 1)}, {}, False),
        ({"dilation": (1, 2)}, {}, True),
        ({"size": (1, 3, 20, 32)}, {}, False),  # one output line
        ({"size": (1, 4, 20, 32)}, {}, True),
        ({"operation": "max_pool"}, {}, True),
        ({"operation": "convolution"}, {}, False),
        ({}, {"rotation": False}, False),
        ({}, {"units": 2}, False),
        ({}, {"row_bytes": 64}, False),
        # A line has three words: six lines.
        ({}, {"weight_bytes": 32 * 32}, True),
        ({}, {"weight_bytes": 16 * 32}, False),
    ],
)
def test_line_pairs(changes, params, pairs):
    fields = {"size": (1, 20, 20, 32), "kernel": (3, 3), "stride": (1, 1), "operation": "depthwise"} | changes
    shape = ConvShape.of(fields.pop("size"), 32, **fields)
    plan = ConvPlan(shape, DEFAULT.replace(**params), 32)
    assert plan.line_pairs == pairs
    lines = -(-shape.out_height // 2) if pairs else shape.out_height
    assert plan.lane_lines == lines
    if shape.operation.lanes:
        steps = (3 + shape.stride[1] if pairs else 3) * 3
        assert plan.mac_cycles == lines * -(-shape.out_width // plan.group_points) * steps


def test_fetching_in_lane_private_mode():
    """Lines are asked for once a pass, if those of a window and of the next one fit; the kernel if it has 64 rows."""

    alone = DEFAULT.replace(rotation=False)

    def cycles(**changes):
        fields = {"x": (1, 28, 28, 64), "kernel": (3, 3), "stride": (1, 1), "padding": (1, 1, 1, 1), "params": alone,
                 "operation": "depthwise"} | changes  # fmt: skip
        shape = ConvShape.of(fields["x"], 64, fields["kernel"], fields["stride"], fields["padding"],
                             operation=fields["operation"])  # fmt: skip
        plan = ConvPlan(shape, fields["params"], 32, raster=fields.get("raster", False))
        return plan.keeps_lines, plan.fetch_cycles

    # Three groups of 8 points, two requests each, and one of 4; at each column of the kernel; 30 lines, two blocks.
    assert cycles() == (True, 2 * (30 * 3 * 7 + 9))
    assert cycles(operation="sum_pool") == (True, 2 * 30 * 3 * 7)
    assert cycles(stride=(2, 2)) == (True, 2 * (29 * 3 * 4 + 9))
    # No line serves two windows.
    assert cycles(kernel=(2, 2), stride=(2, 2), padding=(0, 0, 0, 0), operation="max_pool") == (False, 2 * 28 * 2 * 4)
    # A line has 12 words: four of them do not fit 32.
    small = alone.replace(weight_bytes=32 * 32)
    assert cycles(params=small) == (False, 2 * (28 * 3 * 3 * 7 + 9))
    # Where rows rotate, all columns are in the words of one, or with a stride of 2 of two: 30 points, or 15.
    assert cycles(params=DEFAULT) == (True, 2 * (30 * 8 + 9))
    assert cycles(params=DEFAULT, stride=(2, 2)) == (True, 2 * (29 * 2 * 4 + 9))
    # Lines that begin with place 0 or 4 of a group of 8 have 5 words: the last one is asked for with one request,
    # whether there is a point in it or not.
    assert cycles(params=DEFAULT, raster=True) == (True, 2 * (30 * 9 + 9))
    # A line has four words, and five lines do not fit.
    assert cycles(params=DEFAULT.replace(weight_bytes=16 * 32)) == (True, 2 * (30 * 8 + 9))
    assert cycles(params=DEFAULT.replace(weight_bytes=8 * 32)) == (False, 2 * (28 * 3 * 3 * 7 + 9))
    # 9 × 9 rows of the kernel come for each group again.
    assert cycles(kernel=(9, 9), padding=(4, 4, 4, 4)) == (False, 2 * 28 * 9 * 9 * (7 + 4))


@pytest.mark.parametrize("rule", ["cost", "seed"])
def test_the_planner_makes_legal_plans(rule):
    for dilation, adjoin in ((2, True), (1, False)):
        shape = ConvShape(1, 9, 9, 3, 4, 2, 2, (3, 3), (2, 2), (dilation, 1), element_bytes=2, adjoin=adjoin)
        for params in CONV_PRESETS.values():
            plan = plan_convolution(shape, params, rule)
            assert plan.merge == 1
            assert plan.block_bytes >= 2


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: ConvPlan(STEM_7, FULL, 2), "block_bytes cannot be 2 in rows of 64 bytes"),
        (lambda: ConvPlan(ConvShape(1, 3, 3, 8, 8, 1, 1, (3, 3), operation="depthwise"), FULL, 8, 3),
         "merge must be 1 for DEPTHWISE, not 3, unless elements adjoin"),
        (lambda: plan_convolution(STEM_7, FULL, "best"), "rule must be one of cost, fetch, seed, not 'best'"),
        (lambda: ConvShape(1, 3, 3, 8, 8, 1, 1, (3, 0)), "kernel must be two numbers of 1 to 256, not (3, 0)"),
        (lambda: ConvShape.of((1, 3, 3, 1), 1, (5, 5)), "a kernel of (5, 5) does not fit 3 x 3 with its padding"),
        (lambda: ConvShape(1, 3, 3, 8, 4, 1, 1, operation="max_pool"), "out_channels must be channels (8), not 4"),
        (lambda: DEFAULT.replace(row_bytes=24), "row_bytes must be a power of two, not 24"),
        (lambda: DEFAULT.replace(row_bytes=128), "row_bytes must be 16 to 64, not 128"),
        (lambda: DEFAULT.replace(slaves=0), "slaves must be 1 to 64, not 0"),
        (lambda: DEFAULT.replace(feature_rows=3), "feature_rows must be units (4) or more, not 3"),
        (lambda: DEFAULT.replace(types=("i32",)), "types must be one or more of i8, i16, f16, bf16, not ('i32',)"),
        (lambda: DEFAULT.replace(units=2.0), "units must be an int, not 2.0"),
    ],
)  # fmt: skip
def test_refusals(call, sentence):
    with pytest.raises((TypeError, ValueError)) as caught:
        call()
    assert str(caught.value) == sentence


def test_peaks_of_the_presets():
    assert [params.peak for params in CONV_PRESETS.values()] == [64, 128, 1024, 4096]


@pytest.mark.parametrize("preset", ["unit", "default", "full"])
@pytest.mark.parametrize("operation", ["convolution", "depthwise"])
@pytest.mark.parametrize("channels", [8, 17, 48, 144])
def test_write_cycles(preset, operation, channels):
    """Counted: of each point of a pass pieces of W bytes; two of a rest where the next point is on the line."""
    params = CONV_PRESETS[preset]
    for result_bytes in (1, 4):
        shape = ConvShape.of((2, 3, 7, channels if operation == "depthwise" else 5), channels, (1, 1),
                             operation=operation, result_bytes=result_bytes)  # fmt: skip
        for plan in convolution_plans(shape, params):
            lanes, width = operation == "depthwise", params.write_bytes
            span = plan.block_bytes if lanes else 4 * params.slaves
            pairs = params.writes_pairs and (
                not lanes or (plan.block_bytes < params.row_bytes and span < params.results)
            )
            writes = 0
            for first in range(0, channels, span):
                run = min(span, channels - first) * result_bytes
                sizes = [min(width, run - at) for at in range(0, run, width)]
                short = pairs and sizes[-1] <= width // 2 and not (lanes and len(sizes) > 1)
                writes += 6 * (7 * (len(sizes) - 1) + (4 if short else 7))
            assert plan.write_cycles == writes, (plan.block_bytes, result_bytes)

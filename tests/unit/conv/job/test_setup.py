"""Kernel columns by merged ones: all of them."""

import pytest

from support.conv import conv_units
from support.streams import pulse, transact
from tilewright.golden.conv.job import barriers_of, check_job, parts_of, result_bytes
from tilewright.golden.conv.machine import job_word
from tilewright.hw.conv.job.setup import ColumnDivider, JobSetup
from tilewright.spec.conv import JOB, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.random.conv_jobs import random_jobs


def test_quotients():
    """Every divisor, with dividends around its multiples; as many cycles for each."""
    dut = ColumnDivider()

    async def bench(ctx):
        for merge in range(1, 257):
            edges = {1, 2, merge - 1, merge, merge + 1, 2 * merge, 2 * merge + 1, 255, 256}
            for columns in sorted(count for count in edges if 1 <= count <= 256):
                ctx.set(dut.columns, columns - 1)
                ctx.set(dut.merge, merge - 1)
                await pulse(ctx, dut.start)
                for _ in range(8):
                    assert ctx.get(dut.busy)
                    await ctx.tick()
                steps = -(-columns // merge)
                assert not ctx.get(dut.busy)
                assert (ctx.get(dut.last), ctx.get(dut.rest)) == (steps - 1, columns - (steps - 1) * merge - 1)

    simulate(dut, bench, deadline=25_000)


SEED = 29

PARAMS = conv_units("unit", "ecp5", "default", "full", smem=16384)
_POST = ("output", "y_zero", "minimum", "maximum", "add_minimum", "add_maximum", "ratio", "offset")


def ceil(number, by):
    return -(-number // by)


def expected(word, params):
    """The members of a plan that mean something, as numbers; members of members by their paths."""
    f, conv, size = JOB.unpack(word), params.conv, params.smem.size_bytes
    operation, kind, output = ConvOperation(f["operation"]), MmType(f["type"]), ConvOutput(f["output"])
    parts, e, g, merged = parts_of(f), kind.bytes, f["merge"], f["merge"] > 1
    maximum, weights = operation == ConvOperation.MAX_POOL, "k" in parts
    ce, pci = f["channels"] * e, 1 << f["granularity"]
    c, steps = g * ce, ceil(f["kernel"][0], g)
    blocks, unit = ceil(c, pci), ce if merged else 1
    (sw, sh), (dw, dh), (left, top) = f["stride"], f["dilation"], f["padding"]
    signed_x, signed_k = not kind & 2, weights and not kind & 1

    def number(bits, is_signed):
        return bits - (1 << 8 * e) if is_signed and bits >> 8 * e - 1 else bits

    def fill(bits):
        return bits if e == 2 else bits * 0x101

    zero = {name: 0 if kind.is_float else f[name] for name in ("x_zero", "k_zero")}
    least = signed_x << 8 * e - 1
    if kind.is_float:
        least = 0xFF80 if kind == MmType.BF16 else 0xFC00

    points, width, columns = conv.slaves * (conv.row_bytes >> f["granularity"]), f["out_width"], f["kernel"][0]
    planes, places, begins = columns, width, 0
    rotates = (conv.rotation and operation.lanes and sw <= 2 and dw == 1 and (columns - 1) // sw < points
               and conv.row_bytes >> f["granularity"] <= 2)  # fmt: skip
    crosses = rotates and f["raster"] and dh == 1 and width >= points
    if rotates:
        planes, places, begins = min(sw, columns), width + (columns - 1) // sw, crosses * (points - 1)
    groups = ceil(begins + places, points)
    between, words = (f["kernel"][1] - 1) * dh, groups * planes
    rows = (f["out_height"] - 1) * sh + between + 1
    stays = not weights or f["kernel"][0] * f["kernel"][1] <= 64
    keeps = (operation.lanes and stays and sh <= between and (between + 1 + sh) * words <= params.words
             and rows <= 1 << 24)  # fmt: skip
    # Output lines by pairs: lines that a pair needs are sh more, and so are those of the next one twice.
    pairs = (conv.rotation and 16 * conv.units >= 2 * conv.row_bytes and keeps and dh == 1 and f["out_height"] > 1
             and (f["kernel"][1] + 3 * sh) * words <= params.words)  # fmt: skip
    lines, of_window = (ceil(f["out_height"], 2), f["kernel"][1] + sh) if pairs else (f["out_height"], f["kernel"][1])
    if pairs:
        between, rows = of_window - 1, (lines - 1) * 2 * sh + of_window
    if rotates and not keeps:
        rotates, crosses, planes, places, groups = False, False, columns, width, ceil(width, points)
    plan = {
        "wide": e == 2, "x_signed": signed_x, "k_signed": signed_k, "lanes": operation.lanes, "maximum": maximum,
        "pool": not weights, "raster": crosses if operation.lanes else f["raster"], "merged": merged,
        "bias": f["bias"] and not maximum,
        "table": "table" in parts, "signal": f["signal"], "early": len(barriers_of(f)) == 2,
        "granularity": f["granularity"],
        "result_log2": result_bytes(f).bit_length() - 1,
        "x_zero": 0 if maximum else number(zero["x_zero"], signed_x),
        "k_zero": number(zero["k_zero"], signed_k) if weights else 0,
        "x_fill": fill(least if maximum else zero["x_zero"]),
        "x.start": f["x"] - top * f["x_pitch"][1] - left * f["x_pitch"][0],
        "x.point": sw * f["x_pitch"][0], "x.line": (1 if keeps else sh) * f["x_pitch"][1], "x.image": f["x_pitch"][2],
        "x_step": g * dw * f["x_pitch"][0], "x_row": dh * f["x_pitch"][1],
        "position.start": -left * unit, "position.point": sw * unit, "position.line": 0, "position.image": 0,
        "position_step": c if merged else dw, "position_end": f["width"] * unit,
        "row.start": -top, "row.point": 0, "row.line": 1 if keeps else sh, "row.image": 0,
        "row_step": dh, "row_end": f["height"],
        "pixel_bytes": c, "last_bytes": (f["kernel"][0] - (steps - 1) * g) * ce, "last_block": blocks - 1,
        "last_step": steps - 1, "last_kernel_row": f["kernel"][1] - 1,
        "last_pass": blocks - 1 if operation.lanes else ceil(f["out_channels"], 4 * conv.slaves) - 1,
        "stays": f["kernel"][1] * steps * blocks * pci <= conv.weight_bytes // 4,
        "y.start": f["y"], "out_channels": f["out_channels"], "last_column": f["out_width"] - 1,
        "last_line": lines - 1, "last_image": f["batch"] - 1, "tag": f["tag"],
        "post.add": f["add"] and output.quantised, "pairs": pairs, "alone": pairs and f["out_height"] % 2,
    }  # fmt: skip

    def steps(name):
        point, line, image = f[f"{name}_pitch"]
        follow = {"point": point, "line": 2 * line if pairs else line, "image": image}
        return {f"{name}.{what}": step for what, step in follow.items()} | {f"second.{name}": line}

    plan |= steps("y")
    plan |= {f"post.{name}": f[name] for name in _POST}
    one = {MmType.F16: 0x3C00, MmType.BF16: 0x3F80}.get(kind, 1)
    if not maximum:
        plan["k_fill"] = fill(zero["k_zero"] if weights else one)
    if params.floats:
        plan |= {
            "floats": kind.is_float and not maximum,
            "brain": kind == MmType.BF16,
            "ordered": kind.is_float and maximum,
        }
    if operation.lanes:
        plan |= {"keeps": keeps, "kernel_stays": stays, "last_group": groups - 1, "last_row_step": of_window - 1,
                 "last_plane": planes - 1, "last_place": places - 1, "line_stride": sh - 1,
                 "stride": (2 * sh if pairs else sh) - 1,
                 "last_row": (rows if keeps else f["out_height"]) - 1}  # fmt: skip
    else:
        plan["keeps"] = 0
    if keeps:
        for name, many in (("row", dh), ("line", 2 * sh if pairs else sh), ("image", between + 1)):
            plan[f"{name}_words"] = many * words % params.words
    if weights:
        plan |= {"k": f["k"], "k_pitch": f["k_pitch"], "k_step": c, "k_row": f["kernel"][0] * ce}
    if "table" in parts:
        plan["table_address"] = f["table"]
    if "addend" in parts:
        plan |= {"addend.start": f["addend"]} | steps("addend")
    if f["signal"]:
        plan["barrier"] = f["barrier"]
    modulo = {"x_step", "x_row", "k", "k_pitch", "k_step", "k_row", "table_address", "barrier"}
    return {
        path: value % size if path in modulo or path.split(".")[0] in ("x", "y", "addend", "second") else value
        for path, value in plan.items()
    }


def at(plan, path):
    for name in path.split("."):
        plan = getattr(plan, name)
    return list(plan) if path == "post.ratio" else plan


def check_plan(plan, word, params):
    wanted = expected(word, params)
    found = {path: at(plan, path) for path in wanted}
    wrong = {path: (found[path], value) for path, value in wanted.items() if found[path] != value}
    assert not wrong, f"{wrong} (found, wanted): {JOB.unpack(word)}"


def check(words, params, *, mode="none"):
    """Runs words; cycles in which plans were taken."""
    dut = elaborated(JobSetup, params)
    deadline = len(words) * 2 * dut.most_cycles
    payloads, cycles = transact(dut, {"i": words}, {"o": len(words)}, mode, deadline=deadline)
    for word, plan in zip(words, payloads["o"], strict=True):
        check_plan(plan, word, params)
    return cycles["o"]


def some_words(params, count):
    return [job.word for job in random_jobs(SEED, params.conv, count, smem_bytes=params.smem.size_bytes)]


def legal(fields, params):
    word = job_word(**fields)
    refused = check_job(word, params.conv, params.smem.size_bytes)
    assert not refused, f"{refused}: {fields}"
    return word


@pytest.mark.parametrize("name", PARAMS)
def test_random_jobs(name):
    check(some_words(PARAMS[name], 80), PARAMS[name])


TINY = {"operation": "convolution", "type": "u8s8", "output": "raw", "x": 1024, "k": 2048, "granularity": 1,
        "x_pitch": (1, 1, 1), "k_pitch": 1, "y_pitch": (4, 4, 4)}  # fmt: skip
#: Jobs with numbers as large as they can be in a memory of 16 KiB.
LARGE = {
    "columns": {"width": 65536, "x_pitch": (0, 0, 0), "stride": (256, 256), "dilation": (256, 256),
                "padding": (255, 255), "kernel": (256, 16), "height": 65536, "granularity": 5, "out_height": 256,
                "out_width": 3, "y": 8192, "y_pitch": (4, 12, 4)},
    "merged": {"channels": 8192, "out_channels": 1, "merge": 256, "stride": (256, 1), "padding": (255, 0),
               "x_pitch": (8192, 0, 0), "granularity": 1, "k": 8187, "x": 0, "y": 16380},
    "merged-wide": {"type": "s16s16", "channels": 4096, "merge": 256, "kernel": (1, 1), "x_pitch": (8192, 2, 2),
                    "padding": (255, 255), "granularity": 2, "x": 8188, "k": 0, "k_pitch": 2, "y": 16380},
    "pitches": {"x_pitch": (2**32 - 1, 2**32 - 1, 2**32 - 1), "k_pitch": 2**32 - 1, "stride": (3, 5),
                "dilation": (7, 9), "padding": (11, 13), "y_pitch": (2**32 - 4, 2**32 - 4, 2**32 - 4)},
    "windows": {"channels": 3, "kernel": (7, 7), "merge": 7, "x_pitch": (3, 48, 0), "width": 16, "stride": (2, 2),
                "padding": (3, 3), "x": 4095, "granularity": 5},
    "rest": {"channels": 3, "kernel": (256, 1), "merge": 255, "x_pitch": (3, 0, 0), "granularity": 4},
}  # fmt: skip


@pytest.mark.parametrize("name", LARGE)
def test_large(name):
    """With good jobs before and behind."""
    fields, params = TINY | LARGE[name], PARAMS["default"]
    check([job_word(**TINY), legal(fields, params), job_word(**TINY)], params)


def test_weights_that_stay():
    """Those that just fit, and one block more."""
    params = PARAMS["default"]
    room = params.conv.weight_bytes // 4
    for granularity in range(1, 6):
        fields = TINY | {"kernel": (32, 32), "granularity": granularity, "k": 0, "y": 16380, "k_pitch": 0}
        channels = room >> 10
        words = [job_word(**fields | {"channels": count}) for count in (channels, channels + 1, 2 * channels)]
        assert [expected(word, params)["stays"] for word in words] == [granularity < 4, False, False]
        check(words, params)


#: Kernel, stride, dilation, width of Y, height of Y; whether lines stay: a line has a word for each group and column.
LINES = {
    "as many words as there are": ((4, 3), (3, 1), (1, 1), 512, 4, True),
    "a group more": ((4, 3), (3, 1), (1, 1), 513, 4, False),
    "as many words as there are, all columns in them": ((4, 3), (1, 1), (1, 1), 2045, 4, True),
    "a point more": ((4, 3), (1, 1), (1, 1), 2046, 4, False),
    "no line serves two windows": ((3, 3), (1, 3), (1, 1), 8, 4, False),
    "one does": ((3, 3), (1, 2), (1, 1), 8, 4, True),
    "apart": ((3, 2), (1, 66), (1, 66), 16, 4, True),
    "too far apart": ((3, 2), (1, 256), (1, 256), 8, 4, False),
    "64 rows": ((8, 8), (1, 1), (1, 1), 8, 4, True),
    "65 rows": ((13, 5), (1, 1), (1, 1), 8, 4, False),
    "all lines": ((1, 2), (1, 255), (1, 255), 8, 65536, True),
    "more than can be counted": ((1, 2), (1, 256), (1, 256), 8, 65536, False),
}


def check_lanes(kernel, stride, dilation, width, height, *, built=(), **others):
    """Compares the plan of a job in lane-private mode, between two others, and returns it."""
    params = PARAMS["default"]
    params = params.replace(conv=params.conv.replace(**dict(built)))
    word = job_word(**TINY | {"operation": "depthwise", "granularity": 5, "kernel": kernel, "stride": stride,
                              "dilation": dilation, "out_width": width, "out_height": height,
                              "y_pitch": (0, 0, 0)} | others)  # fmt: skip
    check([job_word(**TINY), word, job_word(**TINY)], params)
    return expected(word, params)


@pytest.mark.parametrize("name", LINES)
def test_lines_that_stay(name):
    """1024 words; groups of 8 points."""
    *shape, keeps = LINES[name]
    assert bool(check_lanes(*shape)["keeps"]) == keeps


#: The same, and whether lines come by pairs, which need as many lines as six or nine kernel rows.
PAIRS = {
    "as many words as there are": ((4, 3), (1, 1), (1, 1), 1357, 4, True),
    "a point more": ((4, 3), (1, 1), (1, 1), 1358, 4, False),
    "a stride of 2": ((3, 3), (2, 2), (1, 1), 447, 5, True),
    "one line": ((3, 3), (1, 1), (1, 1), 20, 1, False),
    "two lines": ((3, 3), (1, 1), (1, 1), 20, 2, True),
    "lines apart": ((3, 3), (1, 1), (1, 2), 20, 4, False),
    "columns apart": ((3, 3), (1, 1), (2, 1), 20, 3, True),
    "lines that do not stay": ((3, 3), (1, 3), (1, 1), 20, 4, False),
}


@pytest.mark.parametrize("units", [4, 2])
@pytest.mark.parametrize("name", PAIRS)
def test_line_pairs(name, units):
    *shape, pairs = PAIRS[name]
    plan = check_lanes(*shape, built={"units": units}, y_pitch=(8, 24, 0))
    assert bool(plan["pairs"]) == (pairs and units == 4)


#: Of a depthwise job with a kernel of 3 × 3 in raster order, 20 points wide: what is different; whether columns share
#: words, and whether groups of 8 points cross the ends of lines.
ROTATION = {
    "both": ({}, True, True),
    "stride of 2": ({"stride": (2, 2)}, True, True),
    "stride of 3": ({"stride": (3, 1)}, False, False),
    "columns apart": ({"dilation": (2, 1)}, False, False),
    "rows apart": ({"dilation": (1, 2)}, True, False),
    "no raster order": ({"raster": 0}, True, False),
    "lines of a group": ({"out_width": 8}, True, True),
    "lines of less than a group": ({"out_width": 7}, True, False),
    "two points a row": ({"granularity": 4}, True, True),
    "four points a row": ({"granularity": 3}, False, False),
    "all but a group": ({"kernel": (8, 3)}, True, True),
    "a group further": ({"kernel": (9, 3)}, False, False),
    "lines do not stay": ({"stride": (1, 3)}, False, False),
    "a maximum": ({"operation": "max_pool", "output": "element"}, True, True),
}


@pytest.mark.parametrize("name", ROTATION)
@pytest.mark.parametrize("built", [True, False])
def test_rotation(name, built):
    others, rotates, crosses = ROTATION[name]
    shape = {"kernel": (3, 3), "stride": (1, 1), "dilation": (1, 1), "out_width": 20} | others
    width = shape.pop("out_width")
    plan = check_lanes(**{"width": width, "height": 4, "built": {"rotation": built}, "raster": 1} | shape)
    assert (plan["last_plane"] < plan["last_step"], bool(plan["raster"])) == (built and rotates, built and crosses)


def test_latency():
    """A tiny job, and the longest one."""
    params = PARAMS["default"]
    counts = ("channels", "width", "height", "batch", "out_channels", "out_width", "out_height")
    longest = TINY | dict.fromkeys(counts, 65536) | {"merge": 1, "kernel": (256, 256), "stride": (256, 256)}
    longest |= {"dilation": (256, 256), "padding": (255, 255), "granularity": 1}
    found = []
    lanes = {"operation": "depthwise"}
    for fields in (TINY, longest, TINY | lanes, longest | lanes):
        _, cycles = transact(elaborated(JobSetup, params), {"i": [job_word(**fields)]}, {"o": 1})
        found += cycles["o"]
    assert found == [73, 185, 84, 275] and max(found) <= JobSetup(params).most_cycles

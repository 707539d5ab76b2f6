"""Rules of jobs: each rule alone, all of them against a second reading of the page, and garbage that writes nothing."""

import re
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from tilewright.golden import CONV_PRESETS, Conv, ConvRecord, job_word
from tilewright.golden.conv.job import check_job
from tilewright.spec.conv import JOB, ConvError, ConvOutput
from tilewright.spec.pe import MmType
from tilewright.verify.random.conv_jobs import garbage_jobs

PAGE = (Path(__file__).parents[3] / "docs" / "conv.md").read_text(encoding="utf-8")

SEED = 5
SMEM_BYTES = 4096
PARAMS = CONV_PRESETS["default"]

#: 3 × 4 pixels of 8 channels, a kernel of 2 × 2, 5 output channels: 2 × 3 points.
GOOD = {
    "operation": "convolution", "type": "u8s8", "output": "u8", "bias": 1, "add": 1, "signal": 1, "granularity": 3,
    "tag": 77, "barrier": 0, "x": 8, "k": 128, "table": 512, "y": 1024, "addend": 2048, "maximum": 255,
    "add_maximum": 255, "channels": 8, "width": 4, "height": 3, "out_channels": 5, "out_width": 3, "out_height": 2,
    "kernel": (2, 2), "x_pitch": (8, 32, 96), "k_pitch": 32, "y_pitch": (5, 15, 30), "addend_pitch": (5, 15, 30),
}  # fmt: skip
WIDE = {"type": "s16s16", "output": "raw", "granularity": 4, "x_pitch": (16, 64, 192), "k_pitch": 64}
RAW = {"output": "raw", "y_pitch": (20, 60, 120)}
LANES = {"operation": "depthwise", "out_channels": 8, "k_pitch": 8, "y_pitch": (8, 24, 48), "addend_pitch": (8, 24, 48)}
MAXIMUM = {"operation": "max_pool", "output": "element", "out_channels": 8, "y_pitch": (8, 24, 48)}
FLOAT = {"type": "f16", "output": "f16", "granularity": 4, "x_pitch": (16, 64, 192), "k_pitch": 64,
         "y_pitch": (10, 30, 60)}  # fmt: skip

REFUSED = [
    ({"version": 2}, "VERSION", "version"),
    ({"version": 0}, "VERSION", "version"),
    ({"operation": 4}, "OPERATION", "operation"),
    ({"type": 10}, "TYPE", "type"),
    (FLOAT, "UNSUPPORTED", "type"),
    ({"output": 6}, "OUTPUT", "output"),
    ({"output": "element"}, "OUTPUT", "output"),
    ({"output": "f16"}, "OUTPUT", "output"),
    (MAXIMUM | {"output": "u8"}, "OUTPUT", "output"),
    (RAW | {"function": 1, "function_table": 3072}, "OUTPUT", "function"),
    (WIDE | MAXIMUM | {"function": 1, "function_table": 3072}, "OUTPUT", "function"),
    ({"x_zero": 256}, "ZERO", "x_zero"),
    ({"k_zero": 0x8000}, "ZERO", "k_zero"),
    ({"minimum": 9, "maximum": 8}, "CLAMP", "minimum"),
    ({"output": "s8", "minimum": 0x7F, "maximum": 0x80}, "CLAMP", "minimum"),
    ({"add_minimum": 1, "add_maximum": 0}, "CLAMP", "add_minimum"),
    ({"ratio": (0, 0x7F800000)}, "FACTOR", "ratio"),
    ({"offset": 0xFFC00000}, "FACTOR", "offset"),
    ({"merge": 2, "dilation": (2, 1)}, "MERGE", "merge"),
    ({"merge": 2, "x_pitch": (9, 36, 108)}, "MERGE", "merge"),
    (LANES | {"merge": 2}, "MERGE", "merge"),
    ({"granularity": 0}, "GRANULARITY", "granularity"),
    ({"granularity": 6}, "GRANULARITY", "granularity"),
    (LANES | {"out_channels": 7}, "CHANNELS", "out_channels"),
    ({"barrier": 4}, "ALIGNMENT", "barrier"),
    (WIDE | {"x": 9}, "ALIGNMENT", "x"),
    (WIDE | {"k": 129}, "ALIGNMENT", "k"),
    ({"table": 516}, "ALIGNMENT", "table"),
    (RAW | {"y": 1026}, "ALIGNMENT", "y"),
    (WIDE | {"x_pitch": (16, 65, 192)}, "ALIGNMENT", "x_pitch"),
    (WIDE | {"k_pitch": 65}, "ALIGNMENT", "k_pitch"),
    ({"function": 1, "function_table": 3080}, "ALIGNMENT", "function_table"),
    (RAW | {"y_pitch": (20, 60, 121)}, "ALIGNMENT", "y_pitch"),
    ({"y_pitch": (4, 15, 30)}, "PITCH", "y_pitch"),
    ({"y_pitch": (5, 14, 30)}, "PITCH", "y_pitch"),
    ({"batch": 2, "x_pitch": (8, 32, 0), "y_pitch": (5, 15, 29)}, "PITCH", "y_pitch"),
    ({"barrier": SMEM_BYTES}, "RANGE", "barrier"),
    ({"barrier": SMEM_BYTES - 8, "early": 1}, "RANGE", "barrier"),
    ({"x": SMEM_BYTES - 94}, "RANGE", "x"),
    ({"x_pitch": (2**32 - 1, 32, 96)}, "RANGE", "x"),
    ({"k": SMEM_BYTES - 158}, "RANGE", "k"),
    ({"table": SMEM_BYTES - 32}, "RANGE", "table"),
    ({"y": SMEM_BYTES - 28}, "RANGE", "y"),
    ({"addend": 2**32 - 1}, "RANGE", "addend"),
    ({"function": 1, "function_table": SMEM_BYTES - 240}, "RANGE", "function_table"),
    ({"function": 1, "function_table": 2**32 - 16}, "RANGE", "function_table"),
    ({"x": 1024 - 94}, "OVERLAP", "x"),
    (MAXIMUM | {"x": 1024, "out_width": 4, "out_height": 3, "y_pitch": (8, 32, 96)}, "OVERLAP", "x"),  # X is Y wholly
    ({"k": 1024 + 28}, "OVERLAP", "k"),
    ({"table": 992}, "OVERLAP", "table"),
    ({"addend": 1025}, "OVERLAP", "addend"),
    ({"addend": 1024, "addend_pitch": (5, 16, 30)}, "OVERLAP", "addend"),
    ({"function": 1, "function_table": 1024 - 240}, "OVERLAP", "function_table"),
    ({"function": 1, "function_table": 1024 + 16}, "OVERLAP", "function_table"),
]  # fmt: skip

LEGAL = [
    {},
    WIDE | {"y_pitch": (20, 60, 120)},
    LANES,
    MAXIMUM,
    RAW,
    {"addend": 1024},  # in place
    {"x": SMEM_BYTES - 96},
    {"k": 1024 + 30},
    {"x": 1024 - 96},
    {"output": "s8", "minimum": 0x80, "maximum": 0x7F, "add": 0},
    # Fields that the job does not use:
    {"add": 0, "addend": 2**32 - 1, "ratio": (0x7F800000, 0), "add_minimum": 255, "add_maximum": 0},
    {"signal": 0, "barrier": 3, "early": 1},
    LANES | {"barrier": SMEM_BYTES - 8, "early": 1},
    RAW | {"bias": 0, "table": 3, "minimum": 9, "maximum": 0, "addend": 2**32 - 1},
    MAXIMUM | {"k": 2**32 - 1, "k_pitch": 2**32 - 1, "table": 1, "x_zero": 0xFFFF, "k_zero": 0xFFFF},
    LANES | {"operation": "sum_pool", "k": 2**32 - 1, "k_zero": 0xFFFF},
    {"y_pitch": (5, 15, 0)},  # there is one image
    {"function": 1, "function_table": SMEM_BYTES - 256, "zero_first": 1},
    {"function": 1, "function_table": 1024 - 256},
    {"function": 1, "function_table": 1024 + 32, "add": 0, "output": "s8", "minimum": 0x80, "maximum": 0x7F},
    {"function_table": 2**32 - 1},
    RAW | {"zero_first": 1},
    MAXIMUM | {"function": 1, "function_table": 16, "zero_first": 1},
]


def smem():
    return np.random.default_rng(SEED).integers(0, 256, SMEM_BYTES, np.uint8)


@pytest.mark.parametrize(("changes", "code", "field"), REFUSED, ids=[f"{row[1]} {row[0]}"[:60] for row in REFUSED])
def test_a_refused_job_writes_nothing(changes, code, field):
    memory = smem()
    engine = Conv(memory, PARAMS)
    assert not engine.execute(job_word(**GOOD | changes))
    assert engine.errors == [ConvRecord(ConvError[code], JOB.index(field), 77)]
    assert (memory == smem()).all()
    assert engine.execute(job_word(**GOOD | {"signal": 0})), "the next job runs"


@pytest.mark.parametrize("changes", [{}, {"version": 3}])
def test_a_stopped_engine_refuses_every_job(changes):
    memory = smem()
    engine = Conv(memory, PARAMS)
    engine.stopped = True
    assert not engine.execute(job_word(**GOOD | changes))
    assert engine.errors == [ConvRecord(ConvError.STOPPED, 0, 77)] and (memory == smem()).all()
    engine.stopped = False
    assert engine.execute(job_word(**GOOD | {"signal": 0}))


def test_reserved_bits():
    for bit in (bit for bit in range(JOB.bits) if JOB.reserved_mask >> bit & 1):
        assert check_job(job_word(**GOOD) | 1 << bit, PARAMS, SMEM_BYTES) == (ConvError.RESERVED, "version")


@pytest.mark.parametrize("changes", LEGAL, ids=str)
def test_legal_jobs(changes):
    assert check_job(job_word(**GOOD | changes), PARAMS, SMEM_BYTES) is None


def test_the_first_rule_counts():
    """Jobs that break two rules report the first one in the table."""
    rows = [(changes, ConvError[code], field) for changes, code, field in REFUSED]
    pairs = 0
    for first, code, field in rows:
        for second, other, _ in rows:
            # What makes the job another kind of job may undo the first mistake, and not every kind has a function.
            unfit = "function" in second and first.keys() & {"type", "output"}
            if other > code and not unfit and not second.keys() & {*first, "type", "output", "operation"}:
                pairs += 1
                parts = check_job(job_word(**GOOD | first | second), PARAMS, SMEM_BYTES)
                assert parts == (code, field), (first, second)
    assert pairs > 400


def test_granularities_that_an_engine_has():
    for preset, least in (("unit", 0), ("ecp5", 0), ("default", 1), ("full", 2)):
        params = CONV_PRESETS[preset]
        legal = [
            size for size in range(16) if check_job(job_word(**GOOD | {"granularity": size}), params, 4096) is None
        ]
        assert legal == list(range(least, least + 5))
        if "i16" in params.types:
            job = GOOD | WIDE | {"y_pitch": (20, 60, 120)}
            assert check_job(job_word(**job | {"granularity": 0}), params, 4096) == (
                ConvError.GRANULARITY,
                "granularity",
            )


def test_the_page_lists_every_code_and_field():
    rows = re.findall(r"^\| ([A-Z]+) \| .*\|$", PAGE.split("### Checks")[1].split("### Queue")[0], re.MULTILINE)
    assert [*rows[1:], "BARRIER", rows[0]] == [code.name for code in ConvError if code]
    for field in JOB.fields:
        assert re.search(rf"`{field.name}[`\[]", PAGE), field.name


# --- docs/conv.md, "Checks", a second time: all rules, and then the first one that is broken --------------------------


def spans(f):
    """First byte, bytes, what addresses and pitches are multiples of, and pitches, by the names of fields."""
    kind, output = MmType(f["type"]), ConvOutput(f["output"])
    e = kind.bytes
    eo = {ConvOutput.RAW: 4, ConvOutput.F16: 2, ConvOutput.BF16: 2, ConvOutput.ELEMENT: e}.get(output, 1)
    pool, taps = f["operation"] >= 2, f["kernel"][0] * f["kernel"][1]
    quantised = output in (ConvOutput.U8, ConvOutput.S8)

    def tensor(name, width, height, channels, item):
        pixel, line, image = f[f"{name}_pitch"]
        span = (f["batch"] - 1) * image + (height - 1) * line + (width - 1) * pixel + channels * item
        return f[name], span, item, f[f"{name}_pitch"]

    parts = {"x": tensor("x", f["width"], f["height"], f["channels"], e)}
    parts["y"] = tensor("y", f["out_width"], f["out_height"], f["out_channels"], eo)
    if f["signal"]:
        parts["barrier"] = f["barrier"], 8 + 8 * (f["early"] and not f["operation"]), 8, ()
    if not pool:
        if f["operation"] == 0:
            span = (f["out_channels"] - 1) * f["k_pitch"] + taps * f["channels"] * e
        else:
            span = (taps - 1) * f["k_pitch"] + f["channels"] * e
        parts["k"] = f["k"], span, e, (f["k_pitch"],)
    if quantised or (f["bias"] and f["operation"] != 3):
        parts["table"] = f["table"], 8 * f["out_channels"], 8, ()
    if quantised and f["add"]:
        parts["addend"] = tensor("addend", f["out_width"], f["out_height"], f["out_channels"], eo)
    if f["function"]:
        parts["function_table"] = f["function_table"], 256, 16, ()
    return parts


def broken_rules(word, params, smem_bytes):
    """Yields code and field of every rule that a job breaks, in order."""
    f = JOB.unpack(word)
    rules = [
        ("VERSION", "version", lambda: f["version"] != 1),
        ("RESERVED", "version", lambda: word & JOB.reserved_mask),
        ("OPERATION", "operation", lambda: f["operation"] > 3),
        ("TYPE", "type", lambda: f["type"] > 9),
        ("UNSUPPORTED", "type", lambda: MmType(f["type"]).family not in params.types),
        ("UNSUPPORTED", "function", lambda: f["function"] and not params.function_table),
        ("UNSUPPORTED", "zero_first", lambda: f["zero_first"] and not params.zero_first),
        ("OUTPUT", "output", lambda: f["output"] > 5),
        ("OUTPUT", "output", lambda: (f["operation"] == 3) != (f["output"] == 5)),
        ("OUTPUT", "output", lambda: f["output"] in (1, 2) and f["type"] >= 8),
        ("OUTPUT", "output", lambda: f["output"] in (3, 4) and f["type"] < 8),
        ("OUTPUT", "function", lambda: f["function"] and (f["output"] in (0, 3, 4) or
                                                          (f["output"] == 5 and f["type"] > 3))),
    ]  # fmt: skip
    for code, field, is_broken in rules:
        if is_broken():
            yield ConvError[code], field
            return
    kind, output = MmType(f["type"]), f["output"]
    e, block = kind.bytes, 1 << f["granularity"]
    for name, used in (("x_zero", f["operation"] < 3), ("k_zero", f["operation"] < 2)):
        if e == 1 and used and f[name] > 255:
            yield ConvError.ZERO, name
    if output in (1, 2):
        order = (lambda value: value) if output == 1 else lambda value: (value + 128) % 256
        if order(f["minimum"]) > order(f["maximum"]):
            yield ConvError.CLAMP, "minimum"
        if f["add"]:
            if order(f["add_minimum"]) > order(f["add_maximum"]):
                yield ConvError.CLAMP, "add_minimum"
            for name, values in (("ratio", f["ratio"]), ("offset", [f["offset"]])):
                if any(value >> 23 & 255 == 255 for value in values):
                    yield ConvError.FACTOR, name
    if f["merge"] > 1 and (f["operation"] or f["dilation"][0] > 1 or f["x_pitch"][0] != e * f["channels"]):
        yield ConvError.MERGE, "merge"
    if block < e or block > params.row_bytes or 16 * block < params.row_bytes:
        yield ConvError.GRANULARITY, "granularity"
    if f["operation"] and f["channels"] != f["out_channels"]:
        yield ConvError.CHANNELS, "out_channels"
    parts = spans(f)
    order = [name for name in ("barrier", "x", "k", "table", "y", "addend", "function_table") if name in parts]
    yield from ((ConvError.ALIGNMENT, name) for name in order if parts[name][0] % parts[name][2])
    yield from (
        (ConvError.ALIGNMENT, f"{name}_pitch") for name in order if any(p % parts[name][2] for p in parts[name][3])
    )
    (pixel, line, image), row = f["y_pitch"], f["out_channels"] * parts["y"][2]
    high, wide = f["out_height"] - 1, f["out_width"] - 1
    too_small = [(wide, pixel, row), (high, line, wide * pixel + row),
                 (f["batch"] - 1, image, high * line + wide * pixel + row)]  # fmt: skip
    if any(more and pitch < least for more, pitch, least in too_small):
        yield ConvError.PITCH, "y_pitch"
    yield from ((ConvError.RANGE, name) for name in order if parts[name][0] + parts[name][1] > smem_bytes)
    y = set(range(parts["y"][0], min(parts["y"][0] + parts["y"][1], 2 * smem_bytes)))
    for name in order:
        in_place = name == "addend" and f["addend"] == f["y"] and f["addend_pitch"] == f["y_pitch"]
        if name not in ("barrier", "y") and not in_place:
            first, size = parts[name][:2]
            if not y.isdisjoint(range(first, min(first + size, 2 * smem_bytes))):
                yield ConvError.OVERLAP, name


@pytest.mark.parametrize("built", [(False, True), (True, False), (False, False)])
def test_features_that_are_not_built(built):
    params = PARAMS.replace(function_table=built[0], zero_first=built[1])
    for name, there in zip(("function", "zero_first"), built, strict=True):
        word = job_word(**GOOD | {name: 1, "function_table": 3072})
        expected = None if there else (ConvError.UNSUPPORTED, name)
        assert check_job(word, params, SMEM_BYTES) == expected == next(broken_rules(word, params, SMEM_BYTES), None)
    both = job_word(**GOOD | RAW | {"function": 1, "zero_first": 1, "function_table": 8})
    assert check_job(both, params, SMEM_BYTES) == next(broken_rules(both, params, SMEM_BYTES))


@pytest.mark.parametrize("count", [6000, pytest.param(20_000, marks=pytest.mark.long)])
def test_garbage(count):
    """Refused as the page says, with memory as it was; or legal, and then only results and barrier are written."""
    codes = Counter()
    memory = smem()
    engine = Conv(memory, PARAMS)
    for index, word in enumerate(garbage_jobs(SEED, PARAMS, count, smem_bytes=SMEM_BYTES)):
        before, count = memory.copy(), len(engine.errors)
        expected = next(broken_rules(word, PARAMS, SMEM_BYTES), None)
        done = engine.execute(word)
        codes[engine.errors[-1].code if len(engine.errors) > count else ConvError.NONE] += 1
        if expected:
            assert not done, f"seed {SEED}, job {index}: {expected}"
            assert engine.errors[-1][:2] == (expected[0], JOB.index(expected[1])), f"seed {SEED}, job {index}"
            assert (memory == before).all(), f"seed {SEED}, job {index}"
        else:
            assert done or engine.errors[-1].code == ConvError.BARRIER, f"seed {SEED}, job {index}: {engine.errors[-1]}"
            assert (memory == before)[unwritten(word)].all(), f"seed {SEED}, job {index}"
    assert codes.keys() == set(ConvError) - {ConvError.STOPPED}, codes


def unwritten(word):
    """Which bytes of shared memory a legal job must leave."""
    f = JOB.unpack(word)
    unwritten_bytes = np.ones(SMEM_BYTES, bool)
    first, _, item, (pixel, line, image) = spans(f)["y"]
    n, ho, wo = np.ogrid[: f["batch"], : f["out_height"], : f["out_width"]]
    places = first + n * image + ho * line + wo * pixel
    unwritten_bytes[places[..., None] + np.arange(f["out_channels"] * item)] = False
    if f["signal"]:
        unwritten_bytes[f["barrier"] :][: spans(f)["barrier"][1]] = False
    return unwritten_bytes

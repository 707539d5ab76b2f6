"""The plan of jobs, against what their fields say: legal jobs of all sorts, the ends of fields, stalls, resets."""

import random

import pytest
from amaranth.hdl import ResetInserter, Signal

from tilewright.golden.conv.machine import job_word
from tilewright.golden.conv.placement import parts_of, result_bytes
from tilewright.golden.conv.checks import check_job
from tilewright.golden.spec.conv.job import JOB, ConvOperation, ConvOutput
from tilewright.golden.spec.conv.params import CONV_PRESETS
from tilewright.golden.spec.pe.instruction import MmType
from tilewright.hw.conv.job.setup import JobSetup
from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.sim.pysim.simulate import elaborated, simulate
from tilewright.sim.pysim.streams import STALL_MODES, receive, send, watch_stream
from tilewright.sim.random.conv_jobs import random_jobs

SEED = 29
BYTES = 16384
PARAMS = {name: ConvUnitParams(CONV_PRESETS[name], SmemParams(BYTES)) for name in ("unit", "ecp5", "default")}
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

    plan = {
        "wide": e == 2, "x_signed": signed_x, "k_signed": signed_k, "lanes": operation.lanes, "maximum": maximum,
        "pool": not weights, "raster": f["raster"], "merged": merged, "bias": f["bias"] and not maximum,
        "table": "table" in parts, "signal": f["signal"], "granularity": f["granularity"],
        "result_log2": result_bytes(f).bit_length() - 1,
        "x_zero": 0 if maximum else number(f["x_zero"], signed_x),
        "k_zero": number(f["k_zero"], signed_k) if weights else 0,
        "x_fill": fill((signed_x << 8 * e - 1) if maximum else f["x_zero"]),
        "x.start": f["x"] - top * f["x_pitch"][1] - left * f["x_pitch"][0],
        "x.point": sw * f["x_pitch"][0], "x.line": sh * f["x_pitch"][1], "x.image": f["x_pitch"][2],
        "x_step": g * dw * f["x_pitch"][0], "x_row": dh * f["x_pitch"][1],
        "position.start": -left * unit, "position.point": sw * unit, "position.line": 0, "position.image": 0,
        "position_step": c if merged else dw, "position_end": f["width"] * unit,
        "row.start": -top, "row.point": 0, "row.line": sh, "row.image": 0, "row_step": dh, "row_end": f["height"],
        "pixel_bytes": c, "last_bytes": (f["kernel"][0] - (steps - 1) * g) * ce, "last_block": blocks - 1,
        "last_step": steps - 1, "last_kernel_row": f["kernel"][1] - 1,
        "last_pass": blocks - 1 if operation.lanes else ceil(f["out_channels"], 4 * conv.slaves) - 1,
        "stays": f["kernel"][1] * steps * blocks * pci <= conv.weight_bytes // 4,
        "y.start": f["y"], "out_channels": f["out_channels"], "last_column": f["out_width"] - 1,
        "last_line": f["out_height"] - 1, "last_image": f["batch"] - 1, "tag": f["tag"],
        "post.add": f["add"] and output.quantised,
    }  # fmt: skip
    plan |= {f"y.{what}": pitch for what, pitch in zip(("point", "line", "image"), f["y_pitch"], strict=True)}
    plan |= {f"post.{name}": f[name] for name in _POST}
    if not maximum:
        plan["k_fill"] = fill(f["k_zero"] if weights else 1)
    if weights:
        plan |= {"k": f["k"], "k_pitch": f["k_pitch"], "k_step": c, "k_row": f["kernel"][0] * ce}
    if "table" in parts:
        plan["table_address"] = f["table"]
    if "addend" in parts:
        pitches = zip(("point", "line", "image"), f["addend_pitch"], strict=True)
        plan |= {"addend.start": f["addend"]} | {f"addend.{what}": pitch for what, pitch in pitches}
    if f["signal"]:
        plan["barrier"] = f["barrier"]
    modulo = {"x_step", "x_row", "k", "k_pitch", "k_step", "k_row", "table_address", "barrier"}
    return {
        path: value % size if path in modulo or path.split(".")[0] in ("x", "y", "addend") else value
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
    """Runs words, and returns the cycles in which they were taken."""
    dut, stalls, taken = elaborated(JobSetup, params), STALL_MODES[mode], []

    async def source(ctx):
        taken.extend(await send(ctx, dut.i, words, idle=stalls["idle"]))

    async def sink(ctx):
        plans, _ = await receive(ctx, dut.o, len(words), stall=stalls["stall"])
        for word, plan in zip(words, plans, strict=True):
            check_plan(plan, word, params)

    simulate(dut, source, sink, background=[watch_stream(dut.o, "o")], deadline=len(words) * 2 * dut.most_cycles)
    return taken


def some_words(params, count):
    return [job.word for job in random_jobs(SEED, params.conv, count, smem_bytes=params.smem.size_bytes)]


@pytest.mark.parametrize("name", PARAMS)
def test_random_jobs(name):
    check(some_words(PARAMS[name], 120), PARAMS[name])

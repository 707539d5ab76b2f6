"""The check of jobs against the golden model: garbage, every rule, the ends of spans, stalls, latency, resets."""

from collections import Counter
from random import Random

import pytest

from support.conv import conv_unit, conv_units
from support.selection import cases
from support.streams import transact
from tilewright.golden.conv.job import check_job, parts_of
from tilewright.golden.conv.machine import job_word
from tilewright.hw.conv.job.check import JobChecker
from tilewright.spec.conv import JOB, ConvError
from tilewright.spec.pe import MM_FAMILIES
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES
from tilewright.verify.random.conv_jobs import garbage_jobs

SEED = 23
BYTES = 4096
PARAMS = conv_units("unit", "default", "full", smem=BYTES) | {
    "floats": conv_unit("unit", BYTES, types=MM_FAMILIES),
    "none": conv_unit("default", BYTES, function_table=False, zero_first=False),
}
DEFAULT = PARAMS["default"]

GOOD = {
    "operation": "convolution", "type": "u8s8", "output": "u8", "bias": 1, "add": 1, "signal": 1, "granularity": 3,
    "tag": 77, "barrier": 0, "x": 8, "k": 128, "table": 512, "y": 1024, "addend": 2048, "maximum": 255,
    "add_maximum": 255, "channels": 8, "width": 4, "height": 3, "out_channels": 5, "out_width": 3, "out_height": 2,
    "kernel": (2, 2), "x_pitch": (8, 32, 96), "k_pitch": 32, "y_pitch": (5, 15, 30), "addend_pitch": (5, 15, 30),
}  # fmt: skip
RAW = {"output": "raw", "y_pitch": (20, 60, 120)}
WIDE = RAW | {"type": "s16s16", "granularity": 4, "x_pitch": (16, 64, 192), "k_pitch": 64}
LANES = {"operation": "depthwise", "out_channels": 8, "k_pitch": 8, "y_pitch": (8, 24, 48), "addend_pitch": (8, 24, 48)}
MAXIMUM = {"operation": "max_pool", "output": "element", "out_channels": 8, "y_pitch": (8, 24, 48)}
FUNCTION = {"function": 1, "zero_first": 1, "function_table": 3072}
MOST = 2**32 - 1
END = BYTES

#: Jobs that break a rule, and the neighbours of some that do not.
ODD = {
    "version": [{"version": 0}, {"version": 3}],
    "operation": [{"operation": 4}, {"operation": 15}],
    "type": [{"type": 10}, {"type": 15}, {"type": "f16"}, {"type": "bf16"}, {"type": "s16s16"}],
    "output": [{"output": 6}, {"output": 15}, {"output": "element"}, {"output": "f16"}, {"output": "bf16"},
               MAXIMUM | {"output": "raw"}, MAXIMUM, FUNCTION, RAW | FUNCTION, MAXIMUM | FUNCTION,
               WIDE | MAXIMUM | FUNCTION | {"y_pitch": (16, 48, 96)}, {"output": "f16"} | FUNCTION],
    "zero": [{"x_zero": 256}, {"k_zero": 0x8000}, LANES | {"k_zero": 256}, MAXIMUM | {"x_zero": 256, "k_zero": 256},
             LANES | {"operation": "sum_pool", "k_zero": 256}, LANES | {"operation": "sum_pool", "x_zero": 256},
             WIDE | {"x_zero": 256, "k_zero": 256}],
    "clamp": [{"minimum": 9, "maximum": 8}, {"minimum": 9, "maximum": 9}, {"add_minimum": 1, "add_maximum": 0},
              {"output": "s8", "minimum": 127, "maximum": 128, "add": 0}, RAW | {"minimum": 1, "maximum": 0},
              {"output": "s8", "minimum": 128, "maximum": 127, "add_minimum": 255, "add_maximum": 0},
              {"output": "s8", "minimum": 128, "maximum": 127, "add_minimum": 0, "add_maximum": 255},
              {"add": 0, "add_minimum": 1, "add_maximum": 0}],
    "factor": [{"ratio": (0x7F800000, 0)}, {"ratio": (0, 0xFFFFFFFF)}, {"offset": 0xFFC00000}, {"offset": 0x7F7FFFFF},
               {"add": 0, "ratio": (0x7F800000, 0)}, RAW | {"offset": 0x7F800000}],
    "merge": [{"merge": 2, "dilation": (2, 1)}, {"merge": 2, "x_pitch": (9, 36, 108)}, LANES | {"merge": 2},
              {"merge": 256, "dilation": (1, 2)}, WIDE | {"merge": 2}, {"merge": 2, "x_pitch": (8 + 2**31, 32, 96)}],
    "granularity": [*({"granularity": g} for g in range(16)), WIDE | {"granularity": 0}, WIDE | {"granularity": 1}],
    "channels": [LANES | {"out_channels": 7}, MAXIMUM | {"out_channels": 9}],
    "alignment": [*(FUNCTION | {"function_table": 3072 + low} for low in (1, 8)), {"function_table": 1},
                  {"barrier": 4}, {"barrier": 3, "signal": 0}, WIDE | {"x": 9}, WIDE | {"k": 129}, {"table": 516},
                  RAW | {"table": 516, "bias": 0}, RAW | {"table": 516, "bias": 1}, RAW | {"y": 1026},
                  RAW | {"y": 1025},
                  *(WIDE | {"x_pitch": pitch} for pitch in ((17, 64, 192), (16, 65, 192), (16, 64, 193))),
                  WIDE | {"k_pitch": 65}, *(RAW | {"y_pitch": pitch} for pitch in ((21, 60, 120), (20, 62, 120),
                  (20, 60, 121))), WIDE | MAXIMUM | {"y": 1025}, WIDE | MAXIMUM | {"y_pitch": (16, 49, 98)},
                  WIDE | MAXIMUM | {"y_pitch": (16, 48, 96)}, WIDE | MAXIMUM | {"y_pitch": (16, 48, 96), "k": 1}],
    "pitch": [{"y_pitch": (4, 15, 30)}, {"y_pitch": (5, 14, 30)}, {"y_pitch": (5, 15, 29)},
              {"out_width": 1, "y_pitch": (0, 5, 0)},
              {"batch": 2, "x_pitch": (8, 32, 0), "y_pitch": (5, 15, 29)}, {"y_pitch": (2**31, MOST, 30)},
              {"y_pitch": (2**31 - 3, MOST, 30)}, {"y_pitch": (2**31 - 2, MOST, 30)},
              {"y_pitch": (2**31 - 2, 2**32 - 4, 0)},
              {"out_width": 65536, "out_height": 65536, "y_pitch": (65536, MOST, 0)}],
    "range": [{"barrier": END}, {"barrier": END - 8, "early": 1, "addend": 1024}, {"barrier": END - 16, "early": 1},
              {"barrier": END - 8, "early": 1, "signal": 0}, LANES | {"barrier": END - 8, "early": 1},
              {"barrier": END - 8, "addend": 1024}, {"barrier": 2**32 - 8}, {"x": END - 95},
              {"x": END - 96}, {"x_pitch": (MOST, 32, 96)}, {"x": MOST}, {"x_pitch": (8, MOST, 96)},
              {"x_pitch": (MOST, MOST, MOST), "width": 65536, "height": 65536, "batch": 65536, "y_pitch": (5, 15, 0),
               "addend": 1024, "addend_pitch": (5, 15, 0)}, {"width": 65536, "x_pitch": (2**16, 32, 96)},
              {"k": END - 160}, {"k": END - 159}, {"k_pitch": MOST}, {"k_pitch": 2**30}, LANES | {"k": END - 32},
              LANES | {"k": END - 31}, LANES | {"k_pitch": 2**30}, LANES | {"k_pitch": 2**31, "kernel": (1, 2)},
              LANES | {"k_pitch": MOST, "kernel": (1, 1)}, LANES | {"k_pitch": 2**31, "kernel": (2, 1)},
              {"kernel": (256, 256), "channels": 65536}, {"table": END - 40}, {"table": END - 32}, {"table": 2**32 - 8},
              {"y": END - 30}, {"y": END - 29}, {"y_pitch": (5, MOST, 0)}, {"y_pitch": (2**31 - 2, MOST, 0)},
              {"y": MOST},
              *(FUNCTION | {"function_table": at} for at in (END - 256, END - 240, END - 16, END, 2**32 - 16)),
              {"function_table": END},
              {"addend": END - 30}, {"addend": END - 29}, {"addend": MOST}, {"addend_pitch": (5, MOST, 0)}],
    "overlap": [{"x": 1024 - 95}, {"x": 1024 - 96}, {"x": 1024 + 29}, {"x": 1024 + 30}, {"k": 1024 + 29},
                {"k": 1024 + 30}, {"k": 1024 - 160, "x": 0}, {"k": 1024 - 159}, {"table": 984}, {"table": 992},
                {"table": 1048}, {"table": 1056}, {"addend": 1024}, {"addend": 1025}, {"addend": 1054},
                {"addend": 1053},
                {"addend": 1024, "addend_pitch": (5, 16, 30)}, {"addend": 1024, "addend_pitch": (5, 15, 31)},
                {"addend": 1024, "addend_pitch": (4, 15, 30)}, {"addend": 994}, {"addend": 995},
                MAXIMUM | {"x": 1024, "out_width": 4, "out_height": 3, "y_pitch": (8, 32, 96)}, {"barrier": 1024},
                *(FUNCTION | {"function_table": at} for at in (1024 - 256, 1024 - 240, 1024, 1024 + 16, 1024 + 32)),
                MAXIMUM | {"k": 1024, "table": 1024, "addend": 1024, "function_table": 1024}],
}  # fmt: skip


def words_of(changes):
    return [job_word(**GOOD | change) for change in changes]


def expected(word, params):
    refused = check_job(word, params.conv, params.smem.size_bytes)
    return (refused.code, JOB.index(refused.field)) if refused else (ConvError.NONE, 0)


def follows(word, before):
    """Which of X and K have bytes that the job before writes: in the span of Y, or the barrier."""
    if before is None:
        return set()
    parts, written = parts_of(JOB.unpack(word)), parts_of(JOB.unpack(before))
    made = [written[name] for name in ("y", "barrier") if name in written]
    read = {name: parts[name] for name in ("x", "k") if name in parts}
    return {name for name, part in read.items() if any(part.address < y.end and y.address < part.end for y in made)}


def check(words, params, *, mode="none"):
    """Runs words; cycles in which results were taken, and what of each job that is not refused follows."""
    dut, following, before = elaborated(JobChecker, params), [], None
    deadline = len(words) * 2 * dut.most_cycles
    payloads, cycles = transact(dut, {"i": words}, {"o": len(words)}, mode, deadline=deadline)
    for word, payload in zip(words, payloads["o"], strict=True):
        assert payload.word == word
        found = ConvError(payload.code), payload.field
        assert found == expected(word, params), f"{found}: {JOB.unpack(word)}"
        if not payload.code:
            following.append({name for name in ("x", "k") if payload[f"{name}_follows"]})
            assert following[-1] == follows(word, before), f"{JOB.unpack(word)} after {JOB.unpack(before or 0)}"
            before = word
    return cycles["o"], following


@cases("name", ["unit", "floats"], ["default", "full"])
def test_garbage(name):
    params = PARAMS[name]
    words = list(garbage_jobs(SEED, params.conv, 80, smem_bytes=BYTES))
    print(Counter(ConvError(expected(word, params)[0]).name for word in words))
    check(words, params)


@pytest.mark.parametrize("rule", ODD)
def test_rule(rule):
    """What breaks a rule, and what nearly does, with a good job after each."""
    words = words_of(ODD[rule])
    check([each for word in words for each in (word, job_word(**GOOD))], DEFAULT)


@pytest.mark.parametrize("preset", ["none", "floats"])
def test_functions_that_are_not_built(preset):
    """Both bits are refused, the first one first; the address alone is not."""
    cases = [FUNCTION, {"function": 1, "function_table": 5}, {"zero_first": 1}, RAW | FUNCTION, MAXIMUM | FUNCTION,
             {"function_table": 1024}, {"type": "f16"} | FUNCTION, {"output": "f16"} | FUNCTION]  # fmt: skip
    check(words_of(cases), PARAMS[preset])


def test_what_reads_results_of_the_job_before():
    """The ends of all spans. What is read for results does not count, and neither does a job that is refused."""
    away = {"y": 3072, "addend": 2048, "barrier": 4088}
    cases = [
        *((changes, {"x"}) for changes in ({"x": 1053}, {"x": 1024 - 95})),
        *((changes, {"k"}) for changes in ({"k": 1053}, {"k": 1024 - 159, "x": 400})),
        *((changes, set()) for changes in ({"x": 1054}, {"x": 1024 - 96}, {"k": 1054}, {"k": 1024 - 160, "x": 400})),
        ({"x": 7}, {"x"}), ({"k": 0}, {"k"}), ({"x": 8}, set()), ({"x": 1024, "k": 1024}, {"x", "k"}),
        ({"table": 1024}, set()), ({"addend": 1024}, set()), (FUNCTION | {"y": 2500, "function_table": 1024}, set()),
        (LANES | {"k": 1053}, {"k"}), (LANES | {"k": 1024 - 32}, set()),
        (MAXIMUM | {"k": 1024}, set()), (MAXIMUM | {"x": 1053}, {"x"}),
    ]  # fmt: skip
    words = []
    for changes, _ in cases:
        words += words_of([{}, {"version": 0, "y": 2500}, {"add": 0} | away | changes])
    _, found = check(words, DEFAULT)
    assert found[1::2] == [wanted for _, wanted in cases]
    _, found = check(words_of([{"signal": 0, "barrier": 0}, away | {"x": 0}]), DEFAULT)
    assert found == [set(), set()]


@pytest.mark.parametrize("mode", STALL_MODES)
def test_a_core_that_is_stopped(mode):
    """Refuses each job whose check ends then; others, also one that has been offered, are what they are anyway."""
    dut, rng, stopped = elaborated(JobChecker, PARAMS["unit"], 2), Random(f"{SEED} {mode}"), []
    words = list(garbage_jobs(SEED, PARAMS["unit"].conv, 12, smem_bytes=BYTES)) + words_of([{}] * 12)
    rng.shuffle(words)

    async def stop(ctx):
        while True:
            ctx.set(dut.stopped, rng.random() < 0.5)
            if ctx.get(dut.rules.advance & dut.rules.done):
                stopped.append(ctx.get(dut.stopped))
            await ctx.tick()

    deadline = len(words) * 2 * dut.most_cycles
    payloads, _ = transact(dut, {"i": words}, {"o": len(words)}, mode, background=[stop], deadline=deadline)
    found = [(payload.code, payload.field) for payload in payloads["o"]]
    wanted = [expected(word, PARAMS["unit"]) for word in words]
    assert found == [(ConvError.STOPPED, 0) if off else code for off, code in zip(stopped, wanted, strict=True)]
    assert sum(stopped) > 4 and (ConvError.NONE, 0) in found


def test_reserved_bits():
    """Each of them alone."""
    reserved = [bit for bit in range(JOB.bits) if JOB.reserved_mask >> bit & 1]
    check([job_word(**GOOD) ^ 1 << bit for bit in reserved], DEFAULT)


def test_every_code_is_reached():
    """By the jobs above, as golden sees them; of each rule every field. A second operand is nowhere misaligned."""
    words = words_of(change for changes in ODD.values() for change in changes)
    reached = {expected(word, DEFAULT) for word in words} | {expected(1 << 40 | job_word(**GOOD), DEFAULT)}
    wanted = {
        ConvError.OUTPUT: ("output", "function"),
        ConvError.ALIGNMENT: ("barrier", "x", "k", "table", "y", "function_table", "x_pitch", "k_pitch", "y_pitch"),
        ConvError.RANGE: ("barrier", "x", "k", "table", "y", "addend", "function_table"),
        ConvError.OVERLAP: ("x", "k", "table", "addend", "function_table"),
    }
    assert {code for code, _ in reached} == set(ConvError) - {ConvError.BARRIER, ConvError.STOPPED}
    assert reached >= {(code, JOB.index(name)) for code, names in wanted.items() for name in names}


def cycles(word):
    """From a job's offer to its result: steps that are taken cost their bits, all others a cycle."""
    (first,), _ = check([word], DEFAULT)
    return first


def test_latency():
    """A plain job, one with all that there is, the two with the largest counts."""
    plain = {"operation": "convolution", "type": "u8s8", "output": "raw", "granularity": 3, "y": 1024, "k": 64}
    plain |= {"x_pitch": (1, 1, 1), "k_pitch": 1, "y_pitch": (4, 4, 4)}
    counts = ("channels", "width", "height", "batch", "out_channels", "out_width", "out_height")
    longest = GOOD | dict.fromkeys(counts, 65536) | {"kernel": (256, 256)}
    lanes = longest | {"operation": "depthwise"}
    most = JobChecker(DEFAULT).most_cycles
    found = [cycles(job_word(**fields)) for fields in (plain, GOOD, longest, lanes)]
    assert found == [65, 102, 330, 322] and max(found) <= most

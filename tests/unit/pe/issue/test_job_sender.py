"""All parts of a job leave, each once, and none before the scoreboard knows of it."""

import random

import pytest

from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, Operation
from tilewright.hw.pe.issue.job_sender import JobSender
from tilewright.hw.pe.layouts import BASES_SETS, JobKind
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.simulate import simulate
from tilewright.sim.pysim.streams import STALL_MODES, watch_stream

PARAMS = PE_PRESETS["unit"]
#: What leaves for each operation, in order of names.
PARTS = {
    Operation.MM: ["job", "mm_add", "multiply"],
    Operation.LD: ["job", "load_add"],
    Operation.ST: ["job"],
}
KINDS = {Operation.MM: JobKind.MULTIPLY, Operation.LD: JobKind.LOAD, Operation.ST: JobKind.STORE}


@pytest.mark.parametrize("mode", STALL_MODES)
def test_parts(mode):
    dut = JobSender(PARAMS)
    rng = random.Random(f"job sender {mode}")
    stall, idle = STALL_MODES[mode]["stall"], STALL_MODES[mode]["idle"]
    parts = {"job": (dut.jobs.valid, dut.jobs.ready), "multiply": (dut.multiplies.valid, dut.multiplies.ready)}
    adds = {"mm_add": (dut.mm_add, dut.mm_ready), "load_add": (dut.load_add, dut.load_ready)}

    async def testbench(ctx):
        for number in range(200):
            operation = rng.choice(list(PARTS))
            names = ("ra", "rf", "imm", "guard", "predicate", "rc", "rd", "rs", "n", "type", "ka", "kb", "transpose")
            values = {name: rng.randrange(1, 5) for name in names} | {"guard": 1, "transpose": 1, "rf": number % 32}
            fmt = INSTRUCTIONS[operation]
            word = fmt.pack(opcode=operation, **{f.name: values[f.name] for f in fmt.fields if f.name in values})
            moved = {"first": rng.randrange(8), "last": 8 + rng.randrange(8)}
            ctx.set(dut.decoded, {"word": word, "number": number})
            ctx.set(dut.moved, moved)
            ctx.set(dut.segment, {"base": number})
            ctx.set(dut.bases_set, number % BASES_SETS)
            ctx.set(dut.rebuild, number & 1)
            ctx.set(dut.flush, number >> 1 & 1)
            ctx.set(dut.segment_number, number % PARAMS.segments)
            while rng.random() < idle:
                assert not any(ctx.get(valid) for valid, _ in (*parts.values(), *adds.values()))
                await ctx.tick()
            ctx.set(dut.send, 1)
            left, sent, cycles = [], False, 0
            while not sent:
                for _, ready in parts.values():
                    ctx.set(ready, rng.random() >= stall)
                for _, ready in adds.values():  # once high, high until it is used
                    ctx.set(ready, ctx.get(ready) or rng.random() >= stall)
                added = [name for name, (add, ready) in adds.items() if ctx.get(add)]
                assert all(ctx.get(adds[name][1]) for name in added)
                left += added
                for name, (valid, ready) in parts.items():
                    assert not ctx.get(valid) or operation == Operation.ST or {"mm_add", "load_add"} & set(left)
                    if ctx.get(valid) and ctx.get(ready):
                        left.append(name)
                if "job" in left[-2:]:
                    check_job(ctx, dut.jobs.payload, operation, number, values)
                for port in (dut.load, dut.mm_products):
                    assert (ctx.get(port.first), ctx.get(port.last)) == (moved["first"], moved["last"])
                if operation == Operation.MM:
                    factors = ctx.get(dut.mm_factors)
                    assert (factors.first, factors.last) == (values["ra"], values["ra"] + 1)
                    multiply = ctx.get(dut.multiplies.payload)
                    assert (multiply.ra, multiply.type) == (values["ra"], values["type"])
                    assert (multiply.ka + 1, multiply.kb + 1) == (values["ka"], values["kb"])
                sent = ctx.get(dut.sent)
                await ctx.tick()
                for name in added:
                    ctx.set(adds[name][1], 0)
                cycles += 1
            ctx.set(dut.send, 0)
            assert sorted(left) == PARTS[operation]
            assert stall or cycles == 1

    simulate(dut, testbench, background=[watch_stream(dut.jobs), watch_stream(dut.multiplies)])


def check_job(ctx, payload, operation, number, values):
    job = ctx.get(payload)
    assert job.kind == KINDS[operation]
    assert (job.number, job.segment.base, job.segment_number) == (number, number, number % PARAMS.segments)
    assert (job.bases_set, job.rebuild, job.flush) == (number % BASES_SETS, number & 1, number >> 1 & 1)
    assert (job.rf, job.imm, job.guard, job.predicate) == (values["rf"], values["imm"], 1, values["predicate"])
    if operation == Operation.MM:
        assert (job.register, job.transpose) == (values["rc"], 1)
        assert (job.ka + 1, job.kb + 1) == (values["ka"], values["kb"])
    else:
        assert (job.register, job.count) == (values["rd" if operation == Operation.LD else "rs"], values["n"])

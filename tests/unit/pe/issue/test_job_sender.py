"""All parts of a job leave, each once, and none before it is added to the scoreboard."""

import random

import pytest

from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, Operation
from tilewright.hw.pe.issue.job_sender import JobSender
from tilewright.hw.pe.layouts import BASES_SETS, JobKind
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.pysim.ports import set_together
from tilewright.sim.pysim.simulate import elaborated, simulate
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
    dut = elaborated(JobSender, PARAMS)
    rng = random.Random(f"job sender {mode}")
    stall, idle = STALL_MODES[mode]["stall"], STALL_MODES[mode]["idle"]
    parts = {"job": dut.jobs, "multiply": dut.multiplies}
    adds = {"mm_add": dut.mm_registers, "load_add": dut.load_registers}

    async def testbench(ctx):
        for number in range(200):
            operation = rng.choice(list(PARTS))
            names = ("ra", "rf", "imm", "guard", "predicate", "rc", "rd", "rs", "n", "type", "ka", "kb", "transpose")
            values = {name: rng.randrange(1, 5) for name in names} | {"guard": 1, "transpose": 1, "rf": number % 32}
            fmt = INSTRUCTIONS[operation]
            word = fmt.pack(opcode=operation, **{f.name: values[f.name] for f in fmt.fields if f.name in values})
            moved = {"first": rng.randrange(8), "last": 8 + rng.randrange(8)}
            inputs = [(dut.decoded, {"word": word, "number": number}), (dut.moved, moved)]
            inputs += [(dut.segment, {"base": number}), (dut.segment_number, number % PARAMS.segments)]
            inputs += [(dut.bases_set, number % BASES_SETS), (dut.rebuild, number & 1), (dut.flush, number >> 1 & 1)]
            inputs += [(dut.is_mm, operation == Operation.MM), (dut.is_ld, operation == Operation.LD)]
            set_together(ctx, *inputs)
            while rng.random() < idle:
                assert not any(ctx.get(port.valid) for port in (*parts.values(), *adds.values()))
                await ctx.tick()
            ctx.set(dut.send, 1)
            left, sent, cycles = [], False, 0
            while not sent:
                for port in parts.values():
                    ctx.set(port.ready, rng.random() >= stall)
                for port in adds.values():  # once high, high until it is used
                    ctx.set(port.ready, ctx.get(port.ready) or rng.random() >= stall)
                added = [name for name, port in adds.items() if ctx.get(port.valid) and ctx.get(port.ready)]
                left += added
                for name, port in parts.items():
                    assert not ctx.get(port.valid) or operation == Operation.ST or {"mm_add", "load_add"} & set(left)
                    if ctx.get(port.valid) and ctx.get(port.ready):
                        left.append(name)
                if "job" in left[-2:]:
                    check_job(ctx, dut.jobs.payload, operation, number, values)
                for port in (dut.load_registers.p, dut.mm_registers.p.accumulators):
                    assert (ctx.get(port.first), ctx.get(port.last)) == (moved["first"], moved["last"])
                if operation == Operation.MM:
                    factors = ctx.get(dut.mm_registers.p.factors)
                    assert (factors.first, factors.last) == (values["ra"], values["ra"] + 1)
                    multiply = ctx.get(dut.multiplies.payload)
                    assert (multiply.ra, multiply.type) == (values["ra"], values["type"])
                    assert (multiply.ka + 1, multiply.kb + 1) == (values["ka"], values["kb"])
                sent = ctx.get(dut.sent)
                await ctx.tick()
                for name in added:
                    ctx.set(adds[name].ready, 0)
                cycles += 1
            ctx.set(dut.send, 0)
            assert sorted(left) == PARTS[operation]
            assert stall or cycles == 1

    simulate(dut, testbench, background=[*map(watch_stream, (*parts.values(), *adds.values()))])


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

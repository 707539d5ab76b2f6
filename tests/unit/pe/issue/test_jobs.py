"""Offsets are read again only if they are in no set, or were written; and all parts of a job are sent, each once."""

import random

import pytest

from tilewright.hw.pe.issue.jobs import JobSender, OffsetReuse
from tilewright.hw.pe.layouts import BASES_SETS, JobKind
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.spec.pe import INSTRUCTIONS, Operation
from tilewright.verify.pysim.pe_accesses import OffsetSets
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, set_together, watch_stream

PARAMS = PE_PRESETS["unit"]
#: What leaves for each operation, in order of names.
PARTS = {
    Operation.MM: ["job", "mm_add", "multiply"],
    Operation.LD: ["job", "load_add"],
    Operation.ST: ["job"],
}
KINDS = {Operation.MM: JobKind.MULTIPLY, Operation.LD: JobKind.LOAD, Operation.ST: JobKind.STORE}


async def step(ctx, dut, **inputs):
    """A cycle with these inputs; strobes that are not among them are low."""
    for name, value in {"look": 0, "issued": 0, "written": 0, "forget": 0, **inputs}.items():
        ctx.set(getattr(dut, name), value)
    await ctx.tick()


def chosen_set(ctx, dut):
    return ctx.get(dut.bases_set), ctx.get(dut.rebuild)


def test_against_a_list_of_registers():
    dut = elaborated(OffsetReuse, PARAMS)
    rng = random.Random(7)
    counts = {(number, rebuild): 0 for number in range(BASES_SETS) for rebuild in (False, True)}

    async def testbench(ctx):
        sets = OffsetSets()
        for _ in range(2000):
            segment, first, by_rows = rng.randrange(2), rng.choice([4, 4, 5, 20]), rng.random() < 0.2
            last = first + segment  # the rank belongs to the segment
            job = {"segment": segment, "by_rows": by_rows, "first": first, "last": last}
            key, registers = (segment, first, by_rows), range(first, last + 1)
            wanted = sets.find(key)
            await step(ctx, dut, offsets=job, look=1)
            assert chosen_set(ctx, dut) == wanted
            while rng.random() < 0.3:  # other segments may be written before it is issued
                forget = rng.random() < 0.1
                await step(ctx, dut, forget=forget)
                assert chosen_set(ctx, dut) == wanted
                if forget:
                    sets.forget()
            written_first = rng.randrange(24)
            written = {"written_first": written_first, "written_last": written_first + rng.randrange(3)}
            strobes = {"issued": rng.random() < 0.8, "written": rng.random() < 0.5, "forget": rng.random() < 0.03}
            if strobes["forget"]:
                sets.forget()
            if strobes["issued"]:
                counts[wanted] += 1
                sets.use(wanted, key, registers)
            if strobes["written"]:
                sets.write(range(written_first, written["written_last"] + 1))
            await step(ctx, dut, **strobes, **written)

    simulate(dut, testbench)
    assert min(counts.values()) > 50


async def issue(ctx, dut, register):
    """A job with one offset register. Its set, and whether that is read."""
    await step(ctx, dut, offsets={"first": register, "last": register}, look=1)
    await step(ctx, dut, issued=1)
    return chosen_set(ctx, dut)


@pytest.mark.parametrize("blocks", range(1, BASES_SETS + 2))
def test_as_many_take_turns_as_there_are_sets(blocks):
    dut = elaborated(OffsetReuse, PARAMS)
    fits = blocks <= BASES_SETS

    async def testbench(ctx):
        for number in range(6 * blocks):
            bases_set = number % (blocks if fits else BASES_SETS)
            assert await issue(ctx, dut, number % blocks) == (bases_set, number < blocks or not fits)

    simulate(dut, testbench)


def test_a_set_that_was_overwritten_is_replaced_before_a_good_one():
    dut = elaborated(OffsetReuse, PARAMS)
    rewritten = 2

    async def testbench(ctx):
        for turn in range(5):
            for block in range(BASES_SETS):
                assert await issue(ctx, dut, block) == (block, turn == 0 or block == rewritten)
            await step(ctx, dut, written=1, written_first=rewritten, written_last=rewritten)

    simulate(dut, testbench)


def test_all_sets_that_a_range_overlaps_are_read_again():
    dut = elaborated(OffsetReuse, PARAMS)

    async def testbench(ctx):
        for block in range(BASES_SETS):
            await issue(ctx, dut, block)
        await step(ctx, dut, written=1, written_first=1, written_last=2)
        results = [await issue(ctx, dut, block) for block in range(BASES_SETS)]
        assert results == [(0, 0), (1, 1), (2, 1), (3, 0)]
        await step(ctx, dut, forget=1)
        assert [(await issue(ctx, dut, block))[1] for block in range(BASES_SETS)] == [1] * BASES_SETS

    simulate(dut, testbench)


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

"""Scoreboard: random mm and loads against lists of ranges; every answer, in every cycle."""

import random

import pytest

from tilewright.hw.pe.issue.scoreboard import LOADS, Scoreboard
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send, set_together

SEED = 7
UNIT = PE_PRESETS["unit"]


def overlap(one, other):
    return one["first"] <= other["last"] and other["first"] <= one["last"]


@pytest.mark.parametrize("mm_in_flight", [2, 8])
def test_random_traffic(mm_in_flight):
    params = UNIT.replace(mm_in_flight=mm_in_flight)
    dut = elaborated(Scoreboard, params)
    access = dut.access
    rng = random.Random(SEED)

    def registers():
        first = rng.randrange(params.regs)
        return {"first": first, "last": min(params.regs - 1, first + rng.randrange(6))}

    async def testbench(ctx):
        mms, loads = [], []  # oldest first; mm: accumulators, factors, taken
        was_ready = 0  # expected factors_ready
        counts = {"clear": 0, "clash": 0, "full": 0, "ready": 0, "waits": 0}
        for cycle in range(3000):
            # The query, which for a load must be clear.
            valid, writes, accessed = rng.random() < 0.9, rng.random() < 0.5, registers()
            set_together(ctx, (access.valid, valid), (access.writes, writes), (access.registers, accessed))
            to_write = [*loads, *(mm["accumulators"] for mm in mms)]
            to_read = [mm["factors"] for mm in mms if not mm["read"]]
            others = to_write + to_read if writes else to_write
            clear = not (valid and any(overlap(accessed, other) for other in others))
            assert ctx.get(access.clear) == clear
            assert ctx.get(dut.empty) == (not mms and not loads)
            assert ctx.get(dut.mm_registers.ready) == (len(mms) < mm_in_flight)
            assert ctx.get(dut.load_registers.ready) == (len(loads) < LOADS)
            assert ctx.get(dut.compute.factors_ready) == was_ready
            counts["clear" if clear else "clash"] += 1
            counts["full"] += len(mms) == mm_in_flight

            # Expected factors_ready of the next cycle, without the mm that was just added.
            following = next((mm for mm in mms if not mm["read"]), None)
            take = was_ready and rng.random() < 0.5
            ready = 0
            if following and not take and following["came"] < cycle - 1:
                earlier = [mm["accumulators"] for mm in mms if mm["read"]]
                ready = not any(overlap(following["factors"], other) for other in earlier + loads)
                ready &= not any(overlap(following["accumulators"], other) for other in loads)
                counts["ready" if ready else "waits"] += 1

            done_mm = bool(mms) and mms[0]["read"] and rng.random() < 0.2
            done_load = bool(loads) and rng.random() < 0.3
            add_mm = len(mms) < mm_in_flight and rng.random() < 0.5
            add_load = len(loads) < LOADS and clear and valid and writes and rng.random() < 0.8
            mm = {"accumulators": registers(), "factors": registers()}
            ends = ((dut.compute.factors_taken, take), (dut.compute.mm_done, done_mm), (dut.load_done, done_load))
            added = ((dut.mm_registers, add_mm, mm), (dut.load_registers, add_load, accessed))
            begins = [pair for port, valid, item in added for pair in ((port.valid, valid), (port.payload, item))]
            set_together(ctx, *ends, *begins)
            if take:
                following["read"] = True
            del mms[:done_mm], loads[:done_load]
            mms += [mm | {"read": False, "came": cycle}] * add_mm
            loads += [accessed] * add_load
            was_ready = ready
            await ctx.tick()
        assert min(counts.values()) > 200, counts

    simulate(dut, testbench)


def test_a_factor_is_ready_every_other_cycle():
    """What keeps two-step mm without a bubble: ready two cycles after the one before was taken."""
    dut = elaborated(Scoreboard, UNIT.replace(mm_in_flight=8))

    async def testbench(ctx):
        await send(ctx, dut.mm_registers, [{"factors": {"first": 8, "last": 9}}] * 8)
        ready = []
        for _ in range(8):
            ready.append(ctx.get(dut.compute.factors_ready))
            ctx.set(dut.compute.factors_taken, ready[-1])
            await ctx.tick()
        assert ready == [1, 0] * 4

    simulate(dut, testbench)


def test_operations_after_a_job_that_is_issued_or_reads():
    """They wait if they use what it writes, or write what it still reads. Those of the turn before do not."""
    params = UNIT.replace(regs=16)
    dut, rng = elaborated(Scoreboard, params, 3), random.Random(SEED)

    def registers():
        first = rng.randrange(params.regs)
        return {"first": first, "last": min(params.regs - 1, first + rng.randrange(3))}

    def holds(span, register):
        return span["first"] <= register <= span["last"]

    def disturbs(job, operation, offsets=True):
        if operation["to_predicate"]:
            return job["guard"] and job["predicate"] == operation["target"] % 8
        stored = job["stores"] and holds(job["moved"], operation["target"])
        return stored or (offsets and holds(job["offsets"], operation["target"]))

    async def testbench(ctx):
        reading, offsets, last, counts = False, False, None, {True: 0, False: 0}
        for _ in range(4000):
            job = {"offsets": registers(), "moved": registers(), "stores": rng.randrange(2), "guard": rng.randrange(2),
                   "predicate": rng.randrange(8)}  # fmt: skip
            operation = {name: rng.randrange(params.regs) for name in ("a", "b", "c", "target")}
            operation |= {"reads": rng.randrange(8), "to_predicate": rng.random() < 0.3, "turn": rng.randrange(2)}
            factors, multiplies = registers(), not job["stores"] and rng.randrange(2)
            turn, issuing, issued = rng.randrange(2), rng.randrange(2), rng.random() < 0.2
            all_read, offsets_read = rng.random() < 0.2, rng.random() < 0.4
            set_together(
                ctx, (dut.job_reads, job), (dut.arithmetic.operation, operation), (dut.turn, turn),
                (dut.issuing, issuing), (dut.multiplies, multiplies), (dut.job_issued, issued),
                (dut.mm_registers.payload, {"factors": factors}), (dut.jobs_read, all_read and not issued),
                (dut.offsets_read, offsets_read),
            )  # fmt: skip
            used = {operation[name] for n, name in enumerate("abc") if operation["reads"] >> n & 1}
            used |= set() if operation["to_predicate"] else {operation["target"]}
            waits = disturbs(job, operation) or (not job["stores"] and any(holds(job["moved"], each) for each in used))
            waits |= multiplies and not operation["to_predicate"] and holds(factors, operation["target"])
            waits = issuing and operation["turn"] == turn and waits
            waits |= reading and disturbs(last, operation, offsets)
            assert ctx.get(dut.arithmetic.clear) == (not waits)
            counts[bool(waits)] += 1
            await ctx.tick()
            offsets = issued or (offsets and not offsets_read)
            reading, last = (True, job) if issued else (reading and not all_read, last)
        assert min(counts.values()) > 300, counts

    simulate(dut, testbench)

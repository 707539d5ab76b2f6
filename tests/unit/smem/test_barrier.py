"""Barriers: arithmetic against golden, at the edges of every count, and the latencies of the unit.

That memory and the unit's register together are the barrier, and how long requests and bytes wait, is proved in
tests/formal/smem/test_barrier.py.
"""

import random

from amaranth.hdl import Elaboratable, Module, Signal

from support.streams import recording, transact
from tilewright.golden.smem import Barrier
from tilewright.hw.lib.layouts import packed_layout
from tilewright.hw.smem.barrier import BarrierUnit, Outcome, add, decode, update
from tilewright.hw.smem.layouts import BarrierRequestLayout
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BARRIER, BarrierOp
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import set_together

SEED = 6
OPS = [*BarrierOp, 5, 6, 7]
ARRIVALS = [0, 1, 2, 3, (1 << 20) - 2, (1 << 20) - 1]
TRANSACTIONS = [-(1 << 20), 1 - (1 << 20), -128, -1, 0, 1, 128, (1 << 20) - 2, (1 << 20) - 1]
VALUES = [0, 1, 2, 3, 127, 128, 129, (1 << 20) - 2, (1 << 20) - 1, 1 << 20, (1 << 20) + 1, (1 << 21) - 2, (1 << 21) - 1]


def edge_cases(count):
    rng = random.Random(SEED)
    for _ in range(count):
        expected, transactions = rng.choice(ARRIVALS), rng.choice(TRANSACTIONS)
        pending = rng.choice([expected, *ARRIVALS])
        # Every third value ends a count exactly.
        value = rng.choice([rng.choice(VALUES), pending, abs(transactions)])
        yield Barrier(pending, expected, transactions, rng.getrandbits(1)), rng.choice(OPS), value, rng.random() < 0.05


class Arithmetic(Elaboratable):
    """The arithmetic of an operation in one cycle."""

    def __init__(self):
        self.request, self.before = Signal(BarrierRequestLayout(SmemParams(4096))), Signal(packed_layout(BARRIER))
        self.outcome = Signal(Outcome)

    def elaborate(self, platform):
        m = Module()
        operation = decode(m, self.request)
        m.d.comb += self.outcome.eq(update(m, add(m, self.before, operation), operation))
        return m

    async def apply(self, ctx, word, op, value, misaligned):
        """The outcome of an operation on a barrier."""
        request = {"op": op, "address": 0x48 | misaligned << 1, "value": value}
        set_together(ctx, (self.request, request), (self.before, word))
        await ctx.tick()
        return ctx.get(self.outcome)


def test_against_golden():
    dut = Arithmetic()
    outcomes = set()

    async def check(ctx):
        for barrier, op, value, misaligned in edge_cases(10_000):
            before, phase = barrier.pack(), barrier.phase
            try:
                if misaligned:
                    raise ValueError
                done, error = barrier.apply(op, value), False
            except ValueError:
                done, error = False, True
            flip = op not in (BarrierOp.INIT, BarrierOp.TRY_WAIT) and barrier.phase != phase
            changed = not error and op != BarrierOp.TRY_WAIT
            case = f"{op!r} {value} on {before:#018x}"
            outcome = await dut.apply(ctx, before, op, value, misaligned)
            assert outcome.after.as_bits() == barrier.pack(), case
            result = outcome.result
            assert (result.done, result.error, outcome.flip, outcome.changed) == (done, error, flip, changed), case
            outcomes.add((int(op), done, error))

    simulate(dut, check, deadline=10_100)
    counts = {(int(op), True, False) for op in BarrierOp if op != BarrierOp.INIT}
    assert counts | {(int(op), False, True) for op in OPS} | {(int(op), False, False) for op in BarrierOp} <= outcomes


def test_reserved_bits():
    dut = Arithmetic()
    word = 0xC000_0000_0030_0002

    async def check(ctx):
        for value, after in ((3, word), (1, 0x0000_0000_0030_0001)):  # the first one is refused: no bit changes
            assert (await dut.apply(ctx, word, BarrierOp.ARRIVE, value, False)).after.as_bits() == after

    simulate(dut, check)


A, B = 0x40, 0x88  # two barriers, in different chunks and different halves


def operation(op, value=1, address=A):
    return {"op": op, "address": address, "value": value}


def test_rate_and_latency_of_requests():
    """On two barriers alternately: each operation evicts the other one."""
    operations = [operation(BarrierOp.INIT, 1 + n, (A, B)[n % 2]) for n in range(20)]
    unit = elaborated(BarrierUnit, SmemParams(1024))
    _, cycles = transact(unit, {"requests": operations}, {"results": 20}, inputs={"write_back.accepted": 1})
    assert cycles == {"requests": list(range(0, 40, 2)), "results": list(range(2, 42, 2))}


def test_landed_bytes_follow_a_request_at_once():
    """The barrier stays in the unit."""
    unit, flips = elaborated(BarrierUnit, SmemParams(1024)), []
    setup = [operation(BarrierOp.INIT), operation(BarrierOp.EXPECT_TX, 128), operation(BarrierOp.ARRIVE)]
    payloads, cycles = transact(
        unit, {"requests": [*setup, *[operation(BarrierOp.TRY_WAIT, 0)] * 6], "landed": [{"barrier": A, "bytes": 128}]},
        {"results": 9}, starts={"landed": 9}, background=[recording(flips, unit.flip.valid, unit.flip.address)],
    )  # fmt: skip
    assert cycles["requests"] == [0, 2, 4, 6, 8, 11, 13, 15, 17]  # in 10 the landed bytes are added
    assert (cycles["landed"], flips) == ([9], [(11, A)])
    assert [answer.done for answer in payloads["results"]] == [0, 0, 0, 0, 0, 1, 1, 1, 1]

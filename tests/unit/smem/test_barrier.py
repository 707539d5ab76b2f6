"""Barriers: arithmetic against golden, at the edges of every count, and the latencies of the unit."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from support.streams import recording, transact
from tilewright.golden.smem import Barrier
from tilewright.hw.lib.layouts import packed_layout
from tilewright.hw.smem.barrier import BarrierUnit, Outcome, add, decode, update
from tilewright.hw.smem.layouts import BarrierRequestLayout
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BARRIER, BarrierOp
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, set_together

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


class BarrierOnMemory(Elaboratable):
    """A barrier unit on one memory of chunks, which is written when it must be, or while ``space`` is high."""

    def __init__(self):
        self.space = Signal(init=1)
        self.unit = BarrierUnit(SmemParams(1024))
        self.memory = Memory(shape=128, depth=64, init=[])

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = self.unit
        m.submodules.memory = self.memory
        write_port = self.memory.write_port(granularity=8)
        read_port = self.memory.read_port()  # a read in the cycle of a write returns the old data
        back = unit.write_back
        m.d.comb += [
            read_port.addr.eq(unit.fetches.payload),
            read_port.en.eq(unit.fetches.valid),
            unit.fetched.eq(read_port.data),
            back.accepted.eq(back.valid & (back.urgent | self.space)),
            write_port.addr.eq(back.payload.chunk),
            write_port.data.eq(back.payload.data),
        ]
        with m.If(back.accepted):
            m.d.comb += write_port.en.eq(back.payload.strobe)
        return m

    def stored(self, ctx, address):
        return Barrier.unpack(ctx.get(self.memory.data[address >> 4]) >> 8 * (address & 8) & (1 << 64) - 1)


def request(op, value=1, address=A):
    return {"op": op, "address": address, "value": value}


def run(requests, landed=(), *, mode="none", space=1, start=0):
    """Offers the requests from cycle 0 and the landed bytes, (barrier, bytes), from cycle ``start`` on.

    Returns a dictionary: the cycles in which ``requests``, ``results`` and ``landed`` bytes were transferred,
    ``answers`` as (done, error), ``flips`` and ``errors`` as (cycle, address), the barriers as ``stored``.
    """
    dut = elaborated(BarrierOnMemory)
    unit = dut.unit
    log = {"flips": [], "errors": []}
    landed = [{"barrier": address, "bytes": count} for address, count in landed]

    async def read_back(ctx):
        log["stored"] = {address: dut.stored(ctx, address) for address in (A, B)}

    payloads, cycles = transact(
        dut, {"unit.requests": requests, "unit.landed": landed}, {"unit.results": len(requests)}, mode, seed=SEED,
        inputs={"space": space}, starts={"unit.landed": start}, pauses={"unit.landed": 0.0}, settle=4, then=read_back,
        background=[
            recording(log["flips"], unit.flip.valid, unit.flip.address),
            recording(log["errors"], unit.refused.valid, unit.refused.address),
        ],
    )  # fmt: skip
    log["answers"] = [(answer.done, answer.error) for answer in payloads["unit.results"]]
    return log | {name.removeprefix("unit."): cycles[name] for name in cycles}


SETUP = [request(BarrierOp.INIT, 1), request(BarrierOp.EXPECT_TX, 128), request(BarrierOp.ARRIVE, 1)]


@pytest.mark.parametrize("space", [0, 1])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_one_phase(mode, space):
    polls = [request(BarrierOp.TRY_WAIT, parity) for parity in (0, 1)]
    expect_early = [*SETUP[:1], request(BarrierOp.COMPLETE_TX, 128), *SETUP[1:], *polls]
    log = run(expect_early, mode=mode, space=space)
    assert log["answers"] == [(0, 0), (0, 0), (0, 0), (1, 0), (1, 0), (0, 0)]
    assert [address for _, address in log["flips"]] == [A]
    if space:
        assert log["stored"][A] == Barrier(1, 1, 0, 1)


@pytest.mark.parametrize("space", [0, 1])
def test_rate_and_latency_of_requests(space):
    # On two barriers alternately: without space, each operation evicts the previous barrier.
    operations = [request(BarrierOp.INIT, 1 + n, (A, B)[n % 2]) for n in range(20)]
    log = run(operations, space=space)
    assert log["requests"] == list(range(0, 40, 2))
    assert log["results"] == list(range(2, 42, 2))
    assert log["stored"][A] == Barrier(19, 19)
    assert log["stored"][B] == (Barrier(20, 20) if space else Barrier(18, 18))  # the last is still in the register


def test_landed_bytes_follow_a_request_at_once():
    log = run([*SETUP, *[request(BarrierOp.TRY_WAIT, 0)] * 6], [(A, 128)], start=9)
    assert log["requests"] == [0, 2, 4, 6, 8, 11, 13, 15, 17]  # in 10 the landed bytes are added
    assert log["landed"] == [9]
    assert log["flips"] == [(11, A)]
    assert [done for done, _ in log["answers"]] == [0, 0, 0, 0, 0, 1, 1, 1, 1]


def test_none_starves():
    polls = [request(BarrierOp.TRY_WAIT, 0, A)] * 20
    log = run(polls, [(B, 1)] * 20)
    # While both wait: landed, request, landed, in five cycles.
    assert log["landed"][:6] == [0, 3, 5, 8, 10, 13]
    assert log["requests"][:3] == [2, 7, 12]


def test_a_waiting_answer_stalls_requests_only():
    dut = elaborated(BarrierOnMemory)
    unit = dut.unit

    async def check(ctx):
        ctx.set(unit.requests.valid, 1)
        ctx.set(unit.requests.payload, request(BarrierOp.TRY_WAIT))
        await ctx.tick().repeat(2)
        assert ctx.get(unit.results.valid)
        for _ in range(10):
            assert not ctx.get(unit.requests.ready)
            ctx.set(unit.landed.valid, 1)
            ctx.set(unit.landed.payload, {"barrier": B, "bytes": 1})
            assert ctx.get(unit.landed.ready)
            await ctx.tick()
            ctx.set(unit.landed.valid, 0)
            await ctx.tick()

    simulate(dut, check)


@pytest.mark.parametrize("address", [A | 1, A | 2, A | 4])
def test_misaligned_operations_are_refused_and_reported(address):
    log = run([*SETUP[:1], request(BarrierOp.ARRIVE, 1, address)], [(address, 16)], start=8)
    assert log["answers"][1] == (0, 1)
    assert log["errors"] == [(4, address), (10, address)]
    assert log["stored"][A] == Barrier(1, 1)


def test_refused_landed_bytes_are_reported():
    operations = [request(BarrierOp.INIT, 1), request(BarrierOp.COMPLETE_TX, 1 << 20)]
    log = run(operations, [(A, 1)], start=8)
    assert log["answers"] == [(0, 0), (0, 0)]
    assert log["errors"] == [(10, A)]
    assert log["stored"][A] == Barrier(1, 1, -(1 << 20))


@pytest.mark.parametrize("op", [BarrierOp.TRY_WAIT, BarrierOp.ARRIVE], ids=["question", "refused"])
def test_no_write_without_a_change(op):
    dut = elaborated(BarrierOnMemory)
    unit = dut.unit

    async def check(ctx):
        ctx.set(unit.results.ready, 1)
        ctx.set(unit.requests.payload, request(op, 1))
        ctx.set(unit.requests.valid, 1)
        for _ in range(8):
            assert not (ctx.get(unit.write_back.valid) and ctx.get(unit.write_back.payload.strobe))
            await ctx.tick()

    simulate(dut, check)

"""Windows on the register bus. A proof shows operations on barriers (tests/formal/smem/test_host.py)."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from tilewright.hw.smem.host import BarrierWindow, HostPort
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BarrierOp
from tilewright.spec.tmau_registers import BARRIER_WINDOW_REGISTERS
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import STALL_MODES, receive, send, watch_stream

SEED = 5
PARAMS = SmemParams(1024)


class HostOnMemory(Elaboratable):
    """A host port before one memory of chunks, which it may use while ``grant`` is high."""

    def __init__(self):
        self.grant = Signal(init=1)
        self.host = HostPort(PARAMS)

    def elaborate(self, platform):
        m = Module()
        m.submodules.host = host = self.host
        m.submodules.memory = memory = Memory(shape=128, depth=64, init=[])
        write_port, read_port = memory.write_port(granularity=8), memory.read_port()
        m.d.comb += [
            host.fetches.ready.eq(self.grant),
            read_port.addr.eq(host.fetches.payload),
            read_port.en.eq(host.fetches.valid & self.grant),
            host.fetched.eq(read_port.data),
            host.writes.ready.eq(self.grant),
            write_port.addr.eq(host.writes.payload.chunk),
            write_port.data.eq(host.writes.payload.data),
        ]
        with m.If(host.writes.valid & self.grant):
            m.d.comb += write_port.en.eq(host.writes.payload.strobe)
        return m


def run(requests, *, mode="none", grant=1.0):
    dut = elaborated(HostOnMemory)
    cycles, responses = {}, []

    async def source(ctx):
        cycles["in"] = await send(ctx, dut.host.accesses.requests, requests, idle=STALL_MODES[mode]["idle"], seed=SEED)

    async def sink(ctx):
        answers, cycles["out"] = await receive(
            ctx, dut.host.accesses.answers, len(requests), stall=STALL_MODES[mode]["stall"], seed=SEED
        )
        responses.extend(answers)

    async def arbiter(ctx):
        rng = random.Random(SEED)
        async for _ in ctx.tick():
            ctx.set(dut.grant, rng.random() < grant)

    streams = (dut.host.accesses.answers, dut.host.fetches, dut.host.writes)
    simulate(dut, source, sink, background=[arbiter, *map(watch_stream, streams)], deadline=20_000)
    return responses, cycles["in"], cycles["out"]


@pytest.mark.parametrize("grant", [1.0, 0.4])
@pytest.mark.parametrize("mode", STALL_MODES)
def test_random(mode, grant):
    rng = random.Random(SEED)
    requests = [
        {
            "address": rng.choice([rng.randrange(128), rng.randrange(1024), 1024, 1 << 31, 0xFFFF_FFFF]),
            "write": rng.getrandbits(1),
            "data": rng.getrandbits(32),
            "strobe": rng.getrandbits(4),
        }
        for _ in range(400)
    ]
    responses, _, _ = run(requests, mode=mode, grant=grant)
    image = bytearray(1024)
    for request, response in zip(requests, responses, strict=True):
        address = request["address"] & ~3
        assert response.error == (address >= 1024)
        if address >= 1024:
            continue
        if request["write"]:
            for byte in range(4):
                if request["strobe"] >> byte & 1:
                    image[address + byte] = request["data"] >> 8 * byte & 0xFF
        else:
            assert response.data == int.from_bytes(image[address : address + 4], "little")


@pytest.mark.parametrize(("address", "write"), [(0x40, 0), (0x40, 1), (1024, 0)], ids=["read", "write", "outside"])
def test_latency(address, write):
    request = {"address": address, "write": write, "data": 0, "strobe": 0xF}
    _, cycles_in, cycles_out = run([request] * 10)
    assert cycles_in == list(range(1, 31, 3))
    assert cycles_out == [cycle + 1 for cycle in cycles_in]


ADDRESS, OPERATION, RESULT = (register.offset for register in BARRIER_WINDOW_REGISTERS)
OPERATION_FORMAT = BARRIER_WINDOW_REGISTERS[1].format


def write(offset, data=0):
    return {"address": offset, "write": 1, "data": data}


def read(offset):
    return {"address": offset, "write": 0}


def operation(op, value):
    return write(OPERATION, OPERATION_FORMAT.pack(op=op, value=value))


def operate(accesses, results, mode="none"):
    """Answers, operations that went out, and all their cycles; ``results`` as (done, error)."""
    dut, outcome = BarrierWindow(PARAMS), {"operations": []}
    stalls = STALL_MODES[mode]

    async def source(ctx):
        outcome["in"] = await send(ctx, dut.accesses.requests, accesses, idle=stalls["idle"], seed=SEED)

    async def answers(ctx):
        answers, outcome["out"] = await receive(
            ctx, dut.accesses.answers, len(accesses), stall=stalls["stall"], seed=SEED
        )
        outcome["answers"] = [(answer.data, answer.error) for answer in answers]

    async def memory(ctx):
        """Answers two cycles after an operation, as the barrier unit does."""
        rng = random.Random(SEED)
        for done, error in results:
            (request,), _ = await receive(ctx, dut.barriers, 1, stall=stalls["stall"], seed=rng.randrange(1 << 16))
            outcome["operations"].append((request.op, request.address, request.value))
            await ctx.tick()
            await send(ctx, dut.barrier_results, [{"done": done, "error": error}])

    simulate(dut, source, answers, memory, background=[watch_stream(dut.barriers), watch_stream(dut.accesses.answers)])
    return outcome


def test_refused_accesses():
    refused = [read(ADDRESS), read(OPERATION), write(RESULT, 3), write(12), read(12)]
    outcome = operate([*refused, read(RESULT)], [])
    assert [error for _, error in outcome["answers"]] == [1] * 5 + [0]
    assert outcome["answers"][-1] == (0, 0) and not outcome["operations"]


def test_barrier_window_latency():
    """An access is answered after one cycle, an operation one cycle after its answer arrives."""
    outcome = operate([write(ADDRESS, 8), operation(BarrierOp.ARRIVE, 1), read(RESULT)], [(1, 0)])
    assert outcome["in"] == [0, 2, 7]
    assert outcome["out"] == [1, 6, 8]

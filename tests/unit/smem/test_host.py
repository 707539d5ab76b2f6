"""Windows on the register bus. A proof shows operations on barriers (tests/formal/smem/test_host.py)."""

import random

import pytest
from amaranth.hdl import Elaboratable, Module, Signal
from amaranth.lib.memory import Memory

from support.streams import transact
from tilewright.hw.smem.host import BarrierWindow, HostPort
from tilewright.hw.smem.params import SmemParams
from tilewright.spec import BarrierOp
from tilewright.spec.tmau_registers import BARRIER_WINDOW_REGISTERS
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES, receive, send

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

    async def arbiter(ctx):
        rng = random.Random(SEED)
        async for _ in ctx.tick():
            ctx.set(dut.grant, rng.random() < grant)

    ports = "host.accesses.requests", "host.accesses.answers"
    payloads, cycles = transact(
        dut, {ports[0]: requests}, {ports[1]: len(requests)}, mode, seed=SEED, watch=["host.fetches", "host.writes"],
        background=[arbiter], deadline=20_000,
    )  # fmt: skip
    return payloads[ports[1]], *(cycles[port] for port in ports)


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


def operate(accesses, results):
    """Answers, operations that went out, and the cycles of accesses and answers; ``results`` as (done, error)."""
    dut, operations = BarrierWindow(PARAMS), []

    async def memory(ctx):
        """Answers two cycles after an operation, as the barrier unit does."""
        for done, error in results:
            (request,), _ = await receive(ctx, dut.barriers, 1)
            operations.append((request.op, request.address, request.value))
            await ctx.tick()
            await send(ctx, dut.barrier_results, [{"done": done, "error": error}])

    ports = "accesses.requests", "accesses.answers"
    payloads, cycles = transact(
        dut, {ports[0]: accesses}, {ports[1]: len(accesses)}, watch=["barriers"], testbenches=[memory]
    )
    return [(answer.data, answer.error) for answer in payloads[ports[1]]], operations, *(cycles[port] for port in ports)


def test_refused_accesses():
    refused = [read(ADDRESS), read(OPERATION), write(RESULT, 3), write(12), read(12)]
    answers, operations, *_ = operate([*refused, read(RESULT)], [])
    assert [error for _, error in answers] == [1] * 5 + [0]
    assert answers[-1] == (0, 0) and not operations


def test_barrier_window_latency():
    """An access is answered after one cycle, an operation one cycle after its answer arrives."""
    *_, requested, answered = operate([write(ADDRESS, 8), operation(BarrierOp.ARRIVE, 1), read(RESULT)], [(1, 0)])
    assert (requested, answered) == ([0, 2, 7], [1, 6, 8])

"""Rules that several commands share, and random commands on tensors against golden.

Each rule has its cases in tests/integration/tmau/test_errors.py, and each window in test_windows.py.
"""

import random

from amaranth.hdl import Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from support.tmau_neighbours import checked_payload, listed_payload, show_dimensions
from tilewright.golden.tmau.checks import Windows, check_command
from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.tmau.layouts import WindowsLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.rules import (
    lands_apart,
    named_owner,
    named_receivers,
    no_reduction,
    unnameable,
    unreadable,
)
from tilewright.hw.tmau.setup.tensor import Setup
from tilewright.spec import COMMAND, TENSOR_OPCODES, Element, Error, Reduction
from tilewright.spec.cluster import DELIVERY
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import send
from tilewright.verify.random.maps import random_start

SEED = 20261121
PARAMS = TMAU_PRESETS["unit"]
# docs/tmau.md, "Stores and reductions", line by line.
TABLE = {
    "ADD": "U32 S32 U64 F16 BF16 F32",
    "MIN": "U32 S32 U64 S64 F16 BF16",
    "MAX": "U32 S32 U64 S64 F16 BF16",
    "INC": "U32",
    "DEC": "U32",
    "AND": "U32 S32 U64 S64",
    "OR": "U32 S32 U64 S64",
    "XOR": "U32 S32 U64 S64",
}


def test_reductions():
    m, reduction, element, missing = Module(), Signal(4), Signal(4), Signal()
    m.d.comb += missing.eq(no_reduction(reduction, element))

    async def run(ctx):
        for number in range(16):
            name = Reduction(number).name if number <= max(Reduction) else None
            elements = {Element[member] for member in TABLE.get(name, "").split()}
            ctx.set(reduction, number)
            for member in range(16):
                ctx.set(element, member)
                assert ctx.get(missing) == (member not in elements)

    simulate(m, run)


DELIVERY_SEED = 20261124
CORES, OWN = 3, 1
DELIVERY_PARAMS = TMAU_PRESETS["unit"].replace(cores=CORES)


class Delivery(wiring.Component):
    """All questions side by side."""

    command: In(command_layout())
    windows: In(WindowsLayout(DELIVERY_PARAMS))
    receivers: Out(CORES)
    unnameable: Out(1)
    unreadable: Out(1)
    lands_apart: Out(1)
    owner: Out(CORES)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.receivers.eq(named_receivers(DELIVERY_PARAMS, self.command)),
            self.unnameable.eq(unnameable(DELIVERY_PARAMS, self.windows, self.command)),
            self.unreadable.eq(unreadable(DELIVERY_PARAMS, self.windows, self.command)),
            self.lands_apart.eq(lands_apart(DELIVERY_PARAMS, self.windows, self.command)),
            self.owner.eq(named_owner(DELIVERY_PARAMS, self.windows, self.command)),
        ]
        return m


def answers(multicast, cores, allowed, remote_source, source_core):
    """By the words of docs/cluster.md."""
    named = {core for core in range(16) if cores >> core & 1}
    reachable = {core for core in range(CORES) if allowed >> core & 1}
    source = source_core if remote_source else OWN
    return (
        cores % (1 << CORES) if multicast else 0,
        bool(multicast) and not (named and named <= reachable),
        source not in reachable,
        source not in (named if multicast else {OWN}),
        1 << source if source != OWN and source < CORES else 0,
    )


def test_every_question():
    dut, rng = Delivery(), random.Random(DELIVERY_SEED)
    print(f"seed {DELIVERY_SEED}")
    seen = set()

    async def run(ctx):
        for _ in range(600):
            allowed = rng.getrandbits(CORES) | 1 << OWN
            cores = rng.choice([rng.randrange(1 << CORES), rng.getrandbits(16), 0])
            delivery = {"multicast": rng.getrandbits(1), "cores": cores, "remote_source": rng.getrandbits(1),
                        "source_core": rng.choice([OWN, rng.randrange(16)])}  # fmt: skip
            ctx.set(dut.windows.own, 1 << OWN)
            ctx.set(dut.windows.allowed, allowed)
            ctx.set(dut.command.as_value(), DELIVERY.pack(**delivery))
            wanted = answers(delivery["multicast"], cores, allowed, delivery["remote_source"], delivery["source_core"])
            ports = (dut.receivers, dut.unnameable, dut.unreadable, dut.lands_apart, dut.owner)
            assert tuple(ctx.get(port) for port in ports) == wanted, delivery
            seen.add(wanted[1:4])

    simulate(dut, run)
    assert len(seen) == 7  # whoever may not be named is no receiver of a mask that may be


SMEM_BYTES = PARAMS.smem.size_bytes


def simulated(cases):
    """The faults of ``cases``, command, map and Windows each, as Setup reports them."""
    dut = elaborated(Setup, PARAMS)
    faults = []

    async def source(ctx):
        for command, tmap, windows in cases:
            ctx.set(dut.windows, window_registers(windows))
            await send(ctx, dut.i, [{"command": command, "checked": checked_payload(tmap, PARAMS), "fault": {}}])
            ends, job, fault = dut.finished.valid, dut.jobs.valid, dut.finished.payload
            ctx.set(dut.finished.ready, 1)
            ctx.set(dut.jobs.ready, 1)
            *_, refused, moves, record = await ctx.tick().sample(ends, job, fault).until(ends | job)
            assert refused != moves
            faults.append((Error(record.code), record.field) if refused else (Error.NONE, 0))

    async def lists(ctx):
        await show_dimensions(ctx, dut, [listed_payload(tmap, PARAMS) for _, tmap, _ in cases])

    simulate(dut, source, background=[lists], deadline=100_000)
    return faults


def window_registers(windows):
    registers = {"confine_global": windows.global_ is not None, "confine_shared": windows.shared is not None}
    for name, window, bits in (("global", windows.global_, 12), ("shared", windows.shared, 7)):
        if window:
            registers |= {f"{name}_first": window[0] >> bits, f"{name}_last": window[1] >> bits}
    return registers


def golden(command, tmap, windows):
    fields = COMMAND.unpack(COMMAND.pack(**command))
    return check_command(fields, tmap, SMEM_BYTES, windows, PARAMS.addr_width) or (Error.NONE, 0, 0)


def random_case(rng):
    stores = rng.random() < 0.5
    start = random_start(rng, first=0, end=1 << 20, most_bytes=SMEM_BYTES, stores=stores)
    command = {
        "opcode": rng.choice(TENSOR_OPCODES),
        "signal": rng.getrandbits(1),
        "fill": rng.random() < 0.1,
        "reduction": rng.choice([1, 1, rng.randrange(16)]),
        "smem": rng.choice([0, 128 * rng.randrange(32), 64]) if rng.random() < 0.5 else 0,
        "barrier": rng.choice([8 * rng.randrange(512), rng.randrange(1 << 13)]),
        "coords": [*start.coords, *[0] * (5 - len(start.coords))],
        "offsets": [*start.offsets, *[0] * (3 - len(start.offsets))],
    }
    if rng.random() < 0.3:
        command["coords"][rng.randrange(5)] = rng.choice([-1, rng.randint(-40, 40), -(1 << 31), (1 << 31) - 1])
    if rng.random() < 0.3:
        command["offsets"][rng.randrange(3)] = rng.choice([rng.getrandbits(6), rng.getrandbits(16), 32, 256])
    shared = sorted(rng.randrange(SMEM_BYTES) for _ in range(2)) if rng.random() < 0.2 else None
    global_ = sorted(rng.randrange(1 << 20) for _ in range(2)) if rng.random() < 0.2 else None
    return command, start.tmap, Windows(global_ and tuple(global_), shared and tuple(shared))


def test_random_commands_equal_golden():
    rng = random.Random(SEED)
    cases = [random_case(rng) for _ in range(500)]
    print(f"seed {SEED}")
    found = simulated(cases)
    for case, fault in zip(cases, found, strict=True):
        assert fault == golden(*case)[:2], case
    assert len({fault[0] for fault in found}) >= 9, "all kinds of refusals"

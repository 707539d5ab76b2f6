"""Masks of receivers: who may be named, and what a mask means for the issuer."""

import random

from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.cluster.delivery import DELIVERY
from tilewright.hw.bus.commands import command_layout
from tilewright.hw.tmau.layouts import WindowsLayout
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.hw.tmau.setup.delivery import lands_apart, named_owner, named_receivers, unnameable, unreadable
from tilewright.sim.pysim.simulate import simulate

SEED = 20261124
CORES, OWN = 3, 1
PARAMS = TMAU_PRESETS["unit"].replace(cores=CORES)


class Delivery(wiring.Component):
    """All questions side by side."""

    command: In(command_layout())
    windows: In(WindowsLayout(PARAMS))
    receivers: Out(CORES)
    unnameable: Out(1)
    unreadable: Out(1)
    lands_apart: Out(1)
    owner: Out(CORES)

    def elaborate(self, platform):
        m = Module()
        m.d.comb += [
            self.receivers.eq(named_receivers(PARAMS, self.command)),
            self.unnameable.eq(unnameable(PARAMS, self.windows, self.command)),
            self.unreadable.eq(unreadable(PARAMS, self.windows, self.command)),
            self.lands_apart.eq(lands_apart(PARAMS, self.windows, self.command)),
            self.owner.eq(named_owner(PARAMS, self.windows, self.command)),
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
    dut, rng = Delivery(), random.Random(SEED)
    print(f"seed {SEED}")
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

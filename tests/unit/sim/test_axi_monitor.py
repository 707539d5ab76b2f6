"""The protocol monitor: legal traffic raises nothing, and breaking one rule once raises exactly its bit."""

import re

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module

from tilewright.sim.axi_monitor import Axi4ReadMonitor
from tilewright.sim.axi_rules import Rule, Wait
from tilewright.sim.pysim import simulate

SIZES = {"addr_width": 32, "data_width": 128, "id_width": 1, "max_burst": 4, "max_outstanding": 2}


def request(beats=1, **changes):
    """A request that is accepted in the cycle in which it is shown."""
    ar = {"arvalid": 1, "arready": 1, "arlen": beats - 1, "arsize": 4, "arburst": 1, "arcache": 0b0011}
    return ar | changes


def beat(last=1, **changes):
    """A beat that is accepted in the cycle in which it is shown."""
    return {"rvalid": 1, "rready": 1, "rlast": last} | changes


IDLE = {}
RESET = {"reset": 1}
WAITING = request(arready=0)
HELD = beat(rready=0, rdata=5)

LEGAL = {
    "one burst": [IDLE, request(2), beat(0), beat(1)],
    "a request waits": [IDLE, WAITING, WAITING, request(), beat()],
    "a beat waits": [IDLE, request(), HELD, HELD, beat(rdata=5)],
    "two IDs interleaved": [IDLE, request(2), request(2, arid=1), *(beat(n > 1, rid=n & 1) for n in range(4))],
    "as many in flight as allowed": [IDLE, request(), request(), request() | beat(), beat(), beat()],
    "the end of a page": [IDLE, request(4, araddr=0x1FC0), beat(0), beat(0), beat(0), beat(1)],
    "error responses": [IDLE, request(2), beat(0, rresp=2), beat(1, rresp=3)],
    "device memory": [IDLE, request(arcache=0), beat()],
    "a reset while waiting": [IDLE, WAITING, RESET, IDLE, request(), HELD, RESET, IDLE, request(), beat()],
    "many bursts": [IDLE] + 5 * [request(3), request(2), beat(0), beat(0), beat(1), beat(0), beat(1)],
}

BROKEN = {
    Rule.AR_RESET: [WAITING, request(), beat()],
    Rule.AR_DROPPED: [IDLE, WAITING, IDLE],
    Rule.AR_CHANGED: [IDLE, WAITING, request(araddr=16), beat()],
    Rule.AR_BURST: [IDLE, request(arburst=0), beat()],
    Rule.AR_SIZE: [IDLE, request(arsize=3), beat()],
    Rule.AR_ALIGNED: [IDLE, request(araddr=8), beat()],
    Rule.AR_PAGE: [IDLE, request(2, araddr=0xFF0), beat(0), beat(1)],
    Rule.AR_LENGTH: [IDLE, request(5), *4 * [beat(0)], beat(1)],
    Rule.AR_CACHE: [IDLE, request(arcache=0b0100), beat()],
    Rule.AR_OUTSTANDING: [IDLE, request(), request(), request(), beat(), beat()],
    Rule.R_RESET: [beat(), IDLE],
    Rule.R_DROPPED: [IDLE, request(), HELD, IDLE],
    Rule.R_CHANGED: [IDLE, request(), HELD, beat(rdata=4)],
    Rule.R_UNREQUESTED: [IDLE, request(), beat(rid=1), beat()],
    Rule.R_LAST: [IDLE, request(2), beat(1), beat(1)],
    Rule.R_EXCLUSIVE: [IDLE, request(), beat(rresp=1)],
}

# Further ways to break a rule.
ALSO_BROKEN = [
    (Rule.R_UNREQUESTED, "in the cycle of the request", [IDLE, request() | beat(), beat()]),
    (Rule.R_UNREQUESTED, "after the burst", [IDLE, request(), beat(), beat()]),
    (Rule.R_LAST, "missing", [IDLE, request(2), beat(0), beat(0)]),
    (Rule.R_LAST, "of the second burst", [IDLE, request(1), request(2), beat(1), beat(1), beat(1)]),
    (Rule.AR_PAGE, "by its last beat alone", [IDLE, request(4, araddr=0xFD0), beat(0), beat(0), beat(0), beat(1)]),
    (Rule.AR_RESET, "later", [IDLE, request(), beat(), RESET, request(), beat()]),
    (Rule.R_UNREQUESTED, "for what was in flight before a reset", [IDLE, request(), RESET, IDLE, beat()]),
    (Rule.AR_SIZE, "before a reset", [IDLE, request(arsize=3), beat(), RESET, IDLE]),
    (Rule.AR_CHANGED, "in its length", [IDLE, WAITING, request(2), beat(0), beat(1)]),
]


def watch(cycles, **changes):
    """Shows ``cycles`` to a monitor; returns the rules found in each, the rules and waits kept, and in_flight."""
    dut = Axi4ReadMonitor(**(SIZES | changes))
    found, kept = [], []
    # A domain with a reset that the testbench drives.
    top = Module()
    top.domains.bus = bus = ClockDomain("bus")
    top.d.comb += bus.clk.eq(ClockSignal("sync"))
    top.submodules.dut = DomainRenamer("bus")(dut)

    async def testbench(ctx):
        names = {name for cycle in cycles for name in cycle}
        for cycle in cycles:
            for name in names:
                ctx.set(bus.rst if name == "reset" else getattr(dut, name), cycle.get(name, 0))
            found.append(Rule.decode(ctx.get(dut.found)))
            await ctx.tick()
        kept.extend([Rule.decode(ctx.get(dut.violations)), Wait.decode(ctx.get(dut.late)), ctx.get(dut.in_flight)])

    simulate(top, testbench)
    return found, *kept


@pytest.mark.parametrize("name", LEGAL)
def test_legal(name):
    """Nothing is reported, and in the end nothing is in flight."""
    found, violations, late, in_flight = watch(LEGAL[name])
    assert not any(found)
    assert (violations, late, in_flight) == ([], [], 0)


@pytest.mark.parametrize("rule", Rule, ids=lambda rule: rule.name)
def test_broken(rule):
    """The rule is found in one cycle and then remembered; no other is."""
    found, violations, *_ = watch(BROKEN[rule])
    assert violations == [rule]
    assert [rule] in found


@pytest.mark.parametrize(
    ("rule", "name", "cycles"), ALSO_BROKEN, ids=lambda part: str(getattr(part, "name", part))[:40]
)
def test_also_broken(rule, name, cycles):
    """The same for rules that can be broken in several ways."""
    assert watch(cycles)[1] == [rule]


@pytest.mark.parametrize(
    ("wait", "before", "waiting"),
    [(Wait.ARREADY, [], WAITING), (Wait.RVALID, [request()], IDLE), (Wait.RREADY, [request()], HELD)],
    ids=lambda part: getattr(part, "name", ""),
)
def test_waits(wait, before, waiting):
    """A wait is late when it has lasted one cycle more than the monitor's patience."""
    over = request() | beat()
    assert watch([IDLE, *before, *8 * [waiting], over], patience=8)[2] == []
    assert watch([IDLE, *before, *9 * [waiting], over], patience=8)[2] == [wait]


@pytest.mark.parametrize(
    ("name", "value", "sentence"),
    [
        ("max_burst", 0, "max_burst must be 1 to 256, not 0"),
        ("max_outstanding", 0, "max_outstanding must be at least 1, not 0"),
        ("patience", 0, "patience must be at least 1, not 0"),
    ],
)
def test_wrong_sizes(name, value, sentence):
    """A size out of range is a ValueError that shows it."""
    with pytest.raises(ValueError, match=f"^{re.escape(sentence)}$"):
        Axi4ReadMonitor(**(SIZES | {name: value}))

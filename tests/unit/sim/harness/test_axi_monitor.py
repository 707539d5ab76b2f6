"""The protocol monitors report each rule that is broken, and no other."""

import re

import pytest
from amaranth.hdl import ClockDomain, ClockSignal, DomainRenamer, Module

from tilewright.hw.bus.axi4 import Axi4Signature
from tilewright.sim.harness.axi_channels import READ, WRITE, Party, Rule, Wait
from tilewright.sim.harness.axi_monitor import Axi4Monitor, Axi4ReadMonitor, Axi4WriteMonitor
from tilewright.verify.pysim.simulate import simulate


def test_parties():
    """Each rule has one side; requests and written data are the manager's."""
    assert Rule.mask(Party.MANAGER) ^ Rule.mask(Party.SUBORDINATE) == (1 << len(Rule)) - 1
    assert {rule.channel for rule in Rule.select(Party.MANAGER)} == {"AR", "AW", "W"}
    assert {rule.channel for rule in Rule.select(Party.SUBORDINATE)} == {"R", "B"}
    assert Wait.select(Party.MANAGER) == [Wait.RREADY, Wait.AWVALID, Wait.WVALID, Wait.BREADY]


def test_directions():
    """Members that say the same of different channels are different members."""
    assert Rule.AR_CHANGED is not Rule.AW_CHANGED
    assert Rule.mask(Party.MANAGER, READ) ^ Rule.mask(Party.MANAGER, WRITE) == Rule.mask(Party.MANAGER)
    assert Rule.decode(Rule.mask(Party.SUBORDINATE, WRITE)) == Rule.select(Party.SUBORDINATE, ("B",))
    assert Wait.ARREADY.channel == "AR"
    assert Wait.BREADY.channel == "B"


SIZES = {"addr_width": 32, "data_width": 128, "id_width": 2, "max_burst": 4, "max_outstanding": 2}


def request(beats=1, **changes):
    """A request that is accepted in the cycle in which it is shown."""
    ar = {"arvalid": 1, "arready": 1, "arlen": beats - 1, "arsize": 4, "arburst": 1, "arcache": 0b0011}
    return ar | changes


def beat(last=1, **changes):
    """A beat that is accepted in the cycle in which it is shown."""
    return {"rvalid": 1, "rready": 1, "rlast": last} | changes


def ask(beats=1, **changes):
    """A write request that is accepted in the cycle in which it is shown."""
    aw = {"awvalid": 1, "awready": 1, "awlen": beats - 1, "awsize": 4, "awburst": 1, "awcache": 0b0011}
    return aw | changes


def give(last=1, **changes):
    """A beat of data, accepted in the cycle in which it is shown."""
    return {"wvalid": 1, "wready": 1, "wlast": last} | changes


def answer(**changes):
    """A response, accepted in the cycle in which it is shown."""
    return {"bvalid": 1, "bready": 1} | changes


IDLE = {}
RESET = {"reset": 1}
ASKING = ask(awready=0)
GIVING = give(wready=0, wdata=5)
ANSWERING = answer(bready=0)
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
    "three IDs": [IDLE, *(line for n in (2, 0, 1) for line in (request(2, arid=n), beat(0, rid=n), beat(1, rid=n)))],
}

LEGAL_WRITES = {
    "one burst": [IDLE, ask(2), give(0), give(1), answer()],
    "all at once": [IDLE, ask() | give(), ask() | give() | answer(), answer()],
    "everything waits": [IDLE, ASKING, ASKING | GIVING, ask() | GIVING, give(wdata=5), ANSWERING, answer()],
    "data before their request": [IDLE, give(0), give(0), ask(3), give(1), answer()],
    "two bursts before their requests": [IDLE, give(), give(0), give(1), ask(1), ask(2) | answer(), answer()],
    "data and requests take turns": [
        *(IDLE, give(0), give(1), give(0) | ask(2), ask(3), give(0) | answer(), give(1) | ask(), GIVING),
        *(give(wdata=5) | answer(), answer()),
    ],
    "bursts ahead while requests come": [
        IDLE,
        give(),
        ask() | give(),
        ask() | give() | answer(),
        ask(),
        answer(),
        answer(),
    ],
    "IDs answered in another order": [*(IDLE, ask(awid=1), ask(awid=2), give(), give(), answer(bid=2), answer(bid=1))],
    "as many as allowed": [IDLE, ask(), ask(), give(), ask() | answer(), give(), give() | answer(), answer()],
    "the end of a page": [IDLE, ask(4, awaddr=0x1FC0), give(0), give(0), give(0), give(1), answer()],
    "error responses": [IDLE, ask(), give(), answer(bresp=2), ask(), give(), answer(bresp=3)],
    "a reset while waiting": [IDLE, ASKING | GIVING, RESET, IDLE, ask(), give(), ANSWERING, RESET, IDLE],
    "many bursts": [IDLE] + 5 * [ask(3), ask(1), give(0), give(0), give(1), give() | answer(), answer()],
}

BROKEN = {
    Rule.AW_RESET: [ASKING, ask(), give(), answer()],
    Rule.AW_DROPPED: [IDLE, ASKING, IDLE],
    Rule.AW_CHANGED: [IDLE, ASKING, ask(awaddr=16), give(), answer()],
    Rule.AW_BURST: [IDLE, ask(awburst=2), give(), answer()],
    Rule.AW_SIZE: [IDLE, ask(awsize=3), give(), answer()],
    Rule.AW_ALIGNED: [IDLE, ask(awaddr=8), give(), answer()],
    Rule.AW_PAGE: [IDLE, ask(2, awaddr=0xFF0), give(0), give(1), answer()],
    Rule.AW_LENGTH: [IDLE, ask(5), *4 * [give(0)], give(1), answer()],
    Rule.AW_CACHE: [IDLE, ask(awcache=0b1001), give(), answer()],
    Rule.AW_OUTSTANDING: [IDLE, ask(), ask(), give(), ask(), give(), answer()],
    Rule.W_RESET: [GIVING, ask() | give(wdata=5), answer()],
    Rule.W_DROPPED: [IDLE, GIVING, ask()],
    Rule.W_CHANGED: [IDLE, GIVING, ask() | GIVING, give(wdata=4), answer()],
    Rule.W_LAST: [IDLE, ask(2), give(1), answer()],
    Rule.W_LEAD: [IDLE, give(), give(), give()],
    Rule.B_RESET: [answer(), IDLE],
    Rule.B_DROPPED: [IDLE, ask() | give(), ANSWERING, IDLE],
    Rule.B_CHANGED: [IDLE, ask() | give(), ANSWERING, answer(bresp=2)],
    Rule.B_UNREQUESTED: [IDLE, ask(), answer(), give(), answer()],
    Rule.B_EXCLUSIVE: [IDLE, ask() | give(), answer(bresp=1)],
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
    (Rule.W_CHANGED, "in its strobes", [IDLE, GIVING, ask() | give(wdata=5, wstrb=1), answer()]),
    (Rule.W_LAST, "missing", [IDLE, ask(2), give(0), give(0)]),
    (Rule.W_LAST, "of the second burst", [IDLE, ask(1), ask(2), give(1), give(1)]),
    (Rule.W_LAST, "early, before the request", [IDLE, give(1), ask(2)]),
    (Rule.W_LAST, "missing, before the request", [IDLE, give(0), give(0), ask(2)]),
    (Rule.W_LAST, "missing, with the request", [IDLE, give(0), give(0) | ask(2)]),
    (Rule.W_LAST, "early, with the request", [IDLE, give(1) | ask(2)]),
    (Rule.W_LAST, "late, two bursts ahead", [IDLE, give(1), give(0), give(0), ask(1), ask(2)]),
    (Rule.W_LAST, "missing in 256 beats", [IDLE, *256 * [give(0)]]),
    (Rule.B_UNREQUESTED, "a second time", [IDLE, ask() | give(), answer(), answer()]),
    (Rule.B_UNREQUESTED, "for another ID", [IDLE, ask(awid=1) | give(), answer(bid=2)]),
    (Rule.B_UNREQUESTED, "in the cycle of the last beat", [IDLE, ask(), give() | answer()]),
    (Rule.B_UNREQUESTED, "before the request", [IDLE, give(), answer(), ask()]),
    (Rule.AW_OUTSTANDING, "before the first response", [IDLE, ask(), ask(), ask()]),
    (Rule.B_UNREQUESTED, "for a burst before a reset", [IDLE, ask() | give(), RESET, IDLE, answer()]),
]


def watch(cycles, **changes):
    """Shows ``cycles`` to a monitor; returns the rules found in each, the rules and waits kept, and in_flight.

    It is the monitor of the direction that ``cycles`` are about.
    """
    writes = any(name.startswith(("aw", "w", "b")) for cycle in cycles for name in cycle)
    dut = (Axi4WriteMonitor if writes else Axi4ReadMonitor)(**(SIZES | changes))
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


@pytest.mark.parametrize(
    "cycles", [*LEGAL.values(), *LEGAL_WRITES.values()], ids=[*LEGAL, *(f"write {name}" for name in LEGAL_WRITES)]
)
def test_legal(cycles):
    """Nothing is reported, and in the end nothing is in flight."""
    found, violations, late, in_flight = watch(cycles)
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
    ("wait", "before", "waiting", "over", "begun"),
    [
        (Wait.ARREADY, [], WAITING, request() | beat(), 0),
        (Wait.RVALID, [request()], IDLE, beat(), 0),
        (Wait.RREADY, [request()], HELD, beat(), 0),
        (Wait.AWREADY, [give()], ASKING, ask(), 0),
        (Wait.AWVALID, [give(0)], IDLE, ask(2), 1),
        (Wait.AWVALID, [give()], IDLE, ask(), 1),
        (Wait.WREADY, [ask()], GIVING, give(wdata=5), 0),
        (Wait.WVALID, [ask()], IDLE, give(), 1),
        (Wait.WVALID, [ask(2), give(0)], IDLE, give(), 0),
        (Wait.BVALID, [ask() | give()], IDLE, answer(), 0),
        (Wait.BREADY, [ask() | give()], ANSWERING, answer(), 0),
    ],
    ids=lambda part: getattr(part, "name", ""),
)
def test_waits(wait, before, waiting, over, begun):
    """A wait is late when it has lasted one cycle more than the monitor's patience; ``begun`` of it are before."""
    assert watch([IDLE, *before, *(8 - begun) * [waiting], over], patience=8)[2] == []
    assert watch([IDLE, *before, *(9 - begun) * [waiting], over], patience=8)[2] == [wait]


def test_neither_channel_of_a_write_waits_for_the_other():
    """A request that hides its data until it is accepted is late, and so is the reverse."""
    assert watch([IDLE, *9 * [ASKING], ask() | give()], patience=8)[2] == [Wait.AWREADY, Wait.WVALID]
    assert watch([IDLE, *9 * [GIVING], ask() | give(wdata=5)], patience=8)[2] == [Wait.AWVALID, Wait.WREADY]


def test_both_directions_at_one_port():
    """What either monitor finds is in one vector."""
    port = Axi4Signature(32, 128, 2).create()
    dut = Axi4Monitor(port, reads=2, writes=2, max_burst=4)
    wanted = {Rule.AR_PAGE, Rule.AW_PAGE}

    async def testbench(ctx):
        await ctx.tick()
        for name, value in (request(4, araddr=0xFF0, arready=0) | ask(4, awaddr=0xFF0, awready=0)).items():
            ctx.set(getattr(port, name), value)
        await ctx.tick()
        assert set(Rule.decode(ctx.get(dut.violations))) == wanted
        assert Wait.decode(ctx.get(dut.late)) == []

    simulate(dut, testbench)
    assert {rule.channel for rule in wanted} == {READ[0], WRITE[0]}


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

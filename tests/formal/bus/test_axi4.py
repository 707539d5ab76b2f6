"""F3 of the read multiplexer: requests hold and take turns, none is passed twice, and beats are routed by their ID.

F3, F4, F5 of splitter and read port: all rules of AXI4 for managers, by the monitor of simulations.
"""

import pytest
from amaranth.hdl import Assert, Assume, Cover, Mux, Signal

from support.formal import Spec, channel_rules, proved_and_covered
from tilewright.hw.bus.axi4 import Axi4ReadMux
from tilewright.hw.bus.bursts import BurstSplitter
from tilewright.hw.bus.read_port import ReadPort
from tilewright.sim.harness.axi_channels import READ, Party, Rule
from tilewright.sim.harness.axi_monitor import Axi4ReadMonitor
from tilewright.tools.docs.stages import record_rules
from tilewright.verify.formal import StreamRules, prove, queue_invariants

REQUEST = ("arid", "araddr", "arlen", "arsize", "arburst", "arprot", "arcache")
BEAT = ("rdata", "rresp", "rlast")


class MuxSpec(Spec):
    def specify(self, m, dut):
        axi, managers = dut.axi, (dut.movers, dut.reducer)
        m.d.comb += Assume(dut.reducer.arid == 2)
        m.submodules += [channel_rules(port, "ar", assume=port is not axi) for port in (*managers, axi)]

        wins = [port.arvalid & port.arready for port in managers]
        m.d.comb += [
            Assert(axi.arvalid == (dut.movers.arvalid | dut.reducer.arvalid)),
            Assert((axi.arvalid & axi.arready) == (wins[0] ^ wins[1])),
            Assert(~(wins[0] & wins[1])),
        ]
        for port, win in zip(managers, wins, strict=True):
            with m.If(win):
                m.d.comb += [Assert(getattr(axi, name) == getattr(port, name)) for name in REQUEST]
        m.d.comb += Assert(~axi.arvalid | (axi.arid != 3))
        self._fairness(m, wins)
        self._beats(m)

    def _fairness(self, m, wins):
        """While a request waits, at most one of the other manager is accepted."""
        dut = self.dut
        for port, other in ((dut.movers, wins[1]), (dut.reducer, wins[0])):
            passed = Signal(2)
            waits = port.arvalid & ~port.arready
            m.d.sync += passed.eq(Mux(waits, passed + other, 0))
            m.d.comb += [Assert(passed <= 1), Cover(passed == 1)]
            # The manager that has been passed comes first.
            m.d.comb += Assert((passed == 0) | ((dut.arbiter.mask == 0b10) == (port is dut.reducer)))

    def _beats(self, m):
        dut, axi = self.dut, self.dut.axi
        for port, mine in ((dut.movers, ~axi.rid[1]), (dut.reducer, axi.rid[1])):
            m.d.comb += Assert(port.rvalid == (axi.rvalid & mine))
            with m.If(port.rvalid):
                m.d.comb += [Assert(getattr(port, name) == getattr(axi, name)) for name in BEAT]
                m.d.comb += Assert(port.rready == axi.rready)
                m.d.comb += Assert(port.rid == (axi.rid[0] if port is dut.movers else axi.rid))


@proved_and_covered(2, 6)
def test_rules(mode, depth):
    prove(MuxSpec(Axi4ReadMux(12, 32)), name=f"bus-read-mux-{mode}", mode=mode, depth=depth, proves="F3")


ADDR_WIDTH = 13  # two pages
BUS_BYTES = 64
WORD_WIDTH = ADDR_WIDTH - 6
PAGE_WORDS = 4096 // BUS_BYTES
MAX_BURST = 4
MAX_OUTSTANDING = 2
DESCRIPTOR_WORDS = 2


class ManagerSpec(Spec):
    """Splitter and port with the monitor at the bus; ranges, descriptors, both consumers and the bus are free.

    Invariants relate the counts of the port to those of the monitor. With an ``allowed_burst`` shorter than the bursts
    of the splitter, the specification is wrong.
    """

    given = "i"
    constant = "port.axi.rdata"  # the rules do not depend on data

    def __init__(self, allowed_burst=MAX_BURST):
        self.dut = BurstSplitter(word_width=WORD_WIDTH, count_width=4, bus_bytes=BUS_BYTES, max_burst=MAX_BURST)
        self.port = ReadPort(
            addr_width=ADDR_WIDTH, bus_bytes=BUS_BYTES, max_outstanding=MAX_OUTSTANDING, max_burst=MAX_BURST
        )
        self.monitor = Axi4ReadMonitor(
            addr_width=ADDR_WIDTH,
            data_width=8 * BUS_BYTES,
            id_width=1,
            max_burst=allowed_burst,
            max_outstanding=MAX_OUTSTANDING + DESCRIPTOR_WORDS,
        )

    def specify(self, m, splitter):
        m.submodules.port = port = self.port
        m.submodules.monitor = monitor = self.monitor
        m.submodules.descriptors = StreamRules(port.descriptors, assume=True)
        m.d.comb += [
            port.bursts.payload.eq(splitter.o.payload),
            port.bursts.valid.eq(splitter.o.valid),
            splitter.o.ready.eq(port.bursts.ready),
            *monitor.observe(port.axi),
            Assume(port.descriptors.payload[:6] == 0),
            Assume(monitor.found & Rule.mask(Party.SUBORDINATE, READ) == 0),
        ]
        for rule in Rule.select(Party.MANAGER, READ):
            m.d.comb += Assert(~monitor.found[rule.bit], rule.name)
        self._invariants(m)
        self._covers(m)

    def _invariants(self, m):
        port, monitor = self.port, self.monitor
        waiting = port.requests
        m.d.comb += Assert(waiting.o.valid | ~waiting.skidded)
        buffered = [(waiting.o.valid, waiting.o.payload), (waiting.skidded, waiting.skid)]
        for valid, request in buffered:
            word, more = request.burst.word, request.burst.beats_minus_one
            m.d.comb += Assert(
                ~valid | ((more < MAX_BURST) & (word[: PAGE_WORDS.bit_length() - 1] + more < PAGE_WORDS))
            )

        # Credits: every data burst in the port or in flight holds one.
        data_table, descriptor_table = monitor.tables
        data_buffered = sum(valid & (request.id == 0) for valid, request in buffered)
        m.d.comb += [
            *queue_invariants(port.in_flight),
            Assert(port.in_flight.level == data_buffered + data_table.level),
        ]

        # Words received, in flight, buffered and not yet requested make one descriptor.
        in_flight = _beats_in_flight(m, descriptor_table)
        requested = sum(
            Mux(valid & (request.id == 1), request.burst.beats_minus_one + 1, 0) for valid, request in buffered
        )
        sent = port.sent * (DESCRIPTOR_WORDS >> len(port.sent))
        m.d.comb += [
            Assert(port.received + in_flight + requested == Mux(port.fetching, DESCRIPTOR_WORDS, sent)),
            Assert(~(port.offered | (port.sent != 0)) | (port.descriptors.valid & ~port.fetching)),
        ]

    def _covers(self, m):
        """The rules are not vacuous."""
        monitor, axi = self.monitor, self.port.axi
        full = monitor.in_flight == MAX_OUTSTANDING + 1
        was_ready = Signal()
        with m.If(axi.arready):
            m.d.sync += was_ready.eq(1)
        port = self.port
        split = port.offered & (port.sent != 0) & port.descriptors.payload[6:12].all()
        m.d.comb += [
            Cover(full, "bursts and a descriptor in flight"),
            Cover(split & port.requests.i.ready, "a descriptor across a page"),
            Cover(axi.arvalid & ~axi.arready & ~was_ready, "a request that does not wait for ready"),
            Cover(axi.rvalid & axi.rready & axi.rlast & (axi.rid == 0), "a burst ends"),
        ]


def _beats_in_flight(m, table):
    """Beats that ``table`` still expects; also asserts that its position is in the oldest burst."""
    beats = []
    for number in range(table.lengths.depth):
        read = table.lengths.read_port(domain="comb")
        m.d.comb += read.addr.eq(table.head + number)
        beats.append(Mux(table.level > number, read.data + 1, 0))
    m.d.comb += Assert(Mux(table.level == 0, table.position == 0, table.position < beats[0]))
    return sum(beats) - table.position


def test_read_port_keeps_the_rules():
    """All rules of the manager, without a bound."""
    prove(ManagerSpec(), name="axi-rules", depth=3, proves="F3 F4 F5")
    record_rules("proved", "read-port", Rule.select(Party.MANAGER, READ))


def test_situations_occur():
    """The situations of the rules occur within a few cycles."""
    prove(ManagerSpec(), name="axi-rules-cover", mode="cover", depth=16)


def test_a_broken_rule_is_found():
    """Bursts longer than the monitor allows are a counterexample."""
    with pytest.raises(AssertionError, match=r"Assert failed in top: .*test_axi4\.py"):
        prove(ManagerSpec(allowed_burst=MAX_BURST // 2), name="axi-rules-broken", mode="bmc", depth=6)

"""Protocol monitor of an AXI4 read port: the same component watches proofs and simulations."""

from amaranth import Cat, Const, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .axi_rules import Rule, Wait

__all__ = ["Axi4ReadMonitor", "BurstLedger"]

_PAGE_LOG2 = 12
_INCR = 0b01
_EXOKAY = 0b01
_MODIFIABLE = 1  # bit of ARCACHE


class BurstLedger(wiring.Component):
    """Lengths of the bursts of one ID that are in flight, oldest first, and the position in the oldest.

    The outputs are about the cycles before: a burst pushed now counts from the next cycle on. A push to a full ledger
    is ignored, and so is a beat for an empty one.

    Parameters
    ----------
    depth : int
        Bursts it has room for.

    Members
    -------
    push : In(1)
        A burst of ``length`` beats minus one is accepted in this cycle.
    length : In(8)
    beat : In(1)
        A beat is accepted in this cycle.
    level : Out
        Bursts in flight.
    last : Out(1)
        The next beat is the last one of its burst; low while nothing is in flight.

    Attributes
    ----------
    lengths, head, position
        The memory, the place in it of the oldest burst, and the beats of that which have come: for proofs.
    """

    def __init__(self, depth):
        index_width = ceil_log2(depth)
        self.lengths = Memory(shape=8, depth=1 << index_width, init=[])
        self.head = Signal(index_width)
        self.position = Signal(8)
        super().__init__({"push": In(1), "length": In(8), "beat": In(1), "level": Out(index_width + 1), "last": Out(1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.lengths = self.lengths
        write = self.lengths.write_port()
        read = self.lengths.read_port(domain="comb")

        beat = self.beat & (self.level != 0)
        ended = beat & self.last
        m.d.comb += [
            read.addr.eq(self.head),
            self.last.eq((self.level != 0) & (self.position == read.data)),
            write.addr.eq(self.head + self.level),
            write.data.eq(self.length),
            write.en.eq(self.push & ((self.level != self.lengths.depth) | ended)),
        ]
        m.d.sync += self.level.eq(self.level + write.en - ended)
        with m.If(beat):
            m.d.sync += self.position.eq(Mux(ended, 0, self.position + 1))
            m.d.sync += self.head.eq(self.head + ended)
        return m


class Axi4ReadMonitor(wiring.Component):
    """Watches the read channels of an AXI4 port; drives none of its signals.

    Connect it with :meth:`observe`. Rules and their owners are in :mod:`~tilewright.sim.axi_rules`. While reset is
    asserted only the two rules on reset are checked. After a violation, what the monitor knows of bursts in flight may
    be wrong, so only the first report counts.

    Parameters
    ----------
    addr_width, data_width, id_width : int
        Bits of ARADDR, RDATA and ARID.
    max_burst : int
        Beats of a burst at most, 1 to 256.
    max_outstanding : int
        Bursts in flight at most, over all IDs.
    patience : int
        Cycles for which each condition of :class:`~tilewright.sim.axi_rules.Wait` may last.

    Attributes
    ----------
    arid, araddr, …, rready : Signal, in
        The port, by the names of the specification.
    found : Signal, out
        Rules violated in this cycle, one bit for each :class:`~tilewright.sim.axi_rules.Rule`. Combinational: proofs
        assume or assert this one.
    violations : Signal, out
        Rules violated so far, from the next cycle on. Survives a reset.
    late : Signal, out
        Waits that have lasted too long, one bit for each :class:`~tilewright.sim.axi_rules.Wait`. Survives a reset.
    in_flight : Signal, out
        Bursts accepted and not yet answered in full.
    ledgers : list of BurstLedger
        One for each ID: for proofs.
    """

    def __init__(self, *, addr_width, data_width, id_width, max_burst, max_outstanding, patience=10_000):
        if not 1 <= max_burst <= 256:
            raise ValueError(f"max_burst must be 1 to 256, not {max_burst!r}")
        if max_outstanding < 1:
            raise ValueError(f"max_outstanding must be at least 1, not {max_outstanding!r}")
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience!r}")
        self.max_burst = max_burst
        self.max_outstanding = max_outstanding
        self.patience = patience
        self.ledgers = [BurstLedger(max_outstanding) for _ in range(1 << id_width)]
        self._size = ceil_log2(data_width // 8)
        request = {"id": id_width, "addr": addr_width, "len": 8, "size": 3, "burst": 2, "prot": 3, "cache": 4}
        beat = {"id": id_width, "data": data_width, "resp": 2, "last": 1}
        self._request = [f"ar{name}" for name in request]
        self._beat = [f"r{name}" for name in beat]
        super().__init__(
            {f"ar{name}": In(width) for name, width in request.items()}
            | {f"r{name}": In(width) for name, width in beat.items()}
            | {name: In(1) for name in ("arvalid", "arready", "rvalid", "rready")}
            | {
                "found": Out(len(Rule)),
                "violations": Out(len(Rule)),
                "late": Out(len(Wait)),
                "in_flight": Out(range(2 * max_outstanding << id_width)),
            }
        )

    def observe(self, port):
        """Statements for the ``comb`` domain that show the monitor the signals of ``port``."""
        names = [*self._request, "arvalid", "arready", *self._beat, "rvalid", "rready"]
        return [getattr(self, name).eq(getattr(port, name)) for name in names]

    def elaborate(self, platform):
        m = Module()
        sticky = Signal.like(self.violations, reset_less=True)
        m.d.sync += sticky.eq(sticky | self.found)
        m.d.comb += self.violations.eq(sticky)

        self._check_request(m)
        after_reset = Signal(init=1)
        m.d.sync += after_reset.eq(0)
        m.d.comb += [
            self.found[Rule.AR_RESET.bit].eq(after_reset & self.arvalid),
            self.found[Rule.R_RESET.bit].eq(after_reset & self.rvalid),
        ]
        self._check_channel(m, "AR", self.arvalid, self.arready, self._request)
        self._check_channel(m, "R", self.rvalid, self.rready, self._beat)
        # What shows up right after reset is reported once, as that.
        self._check_order(m, rvalid=self.rvalid & ~after_reset)
        self._check_waits(m)
        return m

    def _flag(self, m, rule, condition):
        m.d.comb += self.found[rule.bit].eq(condition & ~ResetSignal())

    def _check_request(self, m):
        """Rules on one request by itself."""
        first = Cat(Const(0, self._size), self.araddr[self._size : _PAGE_LOG2])
        after = first + ((self.arlen + 1) << self._size)
        for rule, broken in {
            Rule.AR_BURST: self.arburst != _INCR,
            Rule.AR_SIZE: self.arsize != self._size,
            Rule.AR_ALIGNED: self.araddr[: self._size] != 0,
            Rule.AR_PAGE: after > 1 << _PAGE_LOG2,
            Rule.AR_LENGTH: self.arlen >= self.max_burst,
            Rule.AR_CACHE: ~self.arcache[_MODIFIABLE] & (self.arcache[2:] != 0),
        }.items():
            self._flag(m, rule, self.arvalid & broken)

    def _check_channel(self, m, channel, valid, ready, names):
        """Rules on the handshake of one channel."""
        payload = Cat(getattr(self, name) for name in names)
        waiting = Signal(name=f"{channel.lower()}_waiting")
        shown = Signal.like(payload, name=f"{channel.lower()}_shown")
        m.d.sync += [waiting.eq(valid & ~ready), shown.eq(payload)]
        self._flag(m, Rule[f"{channel}_DROPPED"], waiting & ~valid)
        self._flag(m, Rule[f"{channel}_CHANGED"], waiting & valid & (payload != shown))

    def _check_order(self, m, *, rvalid):
        """Rules that relate beats to requests: one ledger for each ID."""
        accepted = self.arvalid & self.arready
        pending = Signal(len(self.ledgers))
        last = Signal.like(pending)
        for number, ledger in enumerate(self.ledgers):
            m.submodules[f"ledger_{number}"] = ledger
            m.d.comb += [
                ledger.push.eq(accepted & (self.arid == number)),
                ledger.length.eq(self.arlen),
                ledger.beat.eq(rvalid & self.rready & (self.rid == number)),
                pending[number].eq(ledger.level != 0),
                last[number].eq(ledger.last),
            ]
        expected = pending.bit_select(self.rid, 1)
        expect_last = last.bit_select(self.rid, 1)
        ended = rvalid & self.rready & expect_last
        m.d.comb += self.in_flight.eq(sum(ledger.level for ledger in self.ledgers))
        self._flag(m, Rule.AR_OUTSTANDING, accepted & (self.in_flight >= self.max_outstanding) & ~ended)
        self._flag(m, Rule.R_UNREQUESTED, rvalid & ~expected)
        self._flag(m, Rule.R_LAST, rvalid & expected & (self.rlast != expect_last))
        self._flag(m, Rule.R_EXCLUSIVE, rvalid & (self.rresp == _EXOKAY))

    def _check_waits(self, m):
        """Counters of the cycles that each wait has lasted."""
        late = Signal.like(self.late, reset_less=True)
        m.d.comb += self.late.eq(late)
        for wait, waiting in {
            Wait.ARREADY: self.arvalid & ~self.arready,
            Wait.RVALID: (self.in_flight != 0) & ~self.rvalid,
            Wait.RREADY: self.rvalid & ~self.rready,
        }.items():
            cycles = Signal(range(self.patience + 1), name=f"{wait.name.lower()}_cycles")
            with m.If(~waiting):
                m.d.sync += cycles.eq(0)
            with m.Elif(cycles == self.patience):
                m.d.sync += late[wait.bit].eq(1)
            with m.Else():
                m.d.sync += cycles.eq(cycles + 1)

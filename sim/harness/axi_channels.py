"""The rules of an AXI4 port that the protocol monitors check, each with the party that has to keep it.

The wording is ours; what the rules demand follows the AXI4 specification, narrowed to what this project's managers
promise (INCR bursts of whole bus words). A rule's ``bit`` is its place in the monitors' vectors.
"""

from enum import Enum, auto

from amaranth.hdl import Cat, Const, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["EXOKAY", "READ", "WRITE", "ChannelMonitor", "Party", "Rule", "Wait"]

#: Channels of either direction.
READ, WRITE = ("AR", "R"), ("AW", "W", "B")


class Party(Enum):
    """The side that drives the signals of a rule, and so has to keep it."""

    MANAGER = auto()
    SUBORDINATE = auto()


class _Numbered(Enum):
    """Members ``NAME = (party, doc)``, numbered from zero in the order of their definition.

    The name begins with the channel.
    """

    def __new__(cls, party, doc):
        """Numbers are the values: members that say the same of different channels must not become one."""
        member = object.__new__(cls)
        member._value_ = member.bit = len(cls.__members__)
        member.party = party
        member.doc = doc
        return member

    @property
    def channel(self):
        """Name of the channel that this is about."""
        return next(channel for channel in ("AR", "AW", "R", "W", "B") if self.name.startswith(channel))

    @classmethod
    def select(cls, party, channels=READ + WRITE):
        """Members that ``party`` is responsible for, on some channels."""
        return [member for member in cls if member.party is party and member.channel in channels]

    @classmethod
    def mask(cls, party, channels=READ + WRITE):
        """Ones at the bits of those."""
        return sum(1 << member.bit for member in cls.select(party, channels))

    @classmethod
    def decode(cls, bits):
        """Members whose bit is set in ``bits``, in order."""
        return [member for member in cls if bits >> member.bit & 1]


class Rule(_Numbered):
    """What must hold in every cycle."""

    AR_RESET = (Party.MANAGER, "ARVALID is low in the first cycle after reset.")
    AR_DROPPED = (Party.MANAGER, "Once high, ARVALID stays high until the request is accepted.")
    AR_CHANGED = (Party.MANAGER, "The request does not change while it waits to be accepted.")
    AR_BURST = (Party.MANAGER, "Bursts are INCR.")
    AR_SIZE = (Party.MANAGER, "Beats are as wide as the bus.")
    AR_ALIGNED = (Party.MANAGER, "A burst starts on a bus word.")
    AR_PAGE = (Party.MANAGER, "A burst stays in one 4 KiB page.")
    AR_LENGTH = (Party.MANAGER, "A burst has at most max_burst beats.")
    AR_CACHE = (Party.MANAGER, "ARCACHE requests no allocation where it forbids modification.")
    AR_OUTSTANDING = (Party.MANAGER, "At most max_outstanding bursts are in flight.")
    R_RESET = (Party.SUBORDINATE, "RVALID is low in the first cycle after reset.")
    R_DROPPED = (Party.SUBORDINATE, "Once high, RVALID stays high until the beat is accepted.")
    R_CHANGED = (Party.SUBORDINATE, "The beat does not change while it waits to be accepted.")
    R_UNREQUESTED = (
        Party.SUBORDINATE,
        "A beat comes only for an ID that has a burst in flight, accepted in an earlier cycle.",
    )
    R_LAST = (
        Party.SUBORDINATE,
        "RLAST is high on the last beat of each burst and on no other, in request order for each ID.",
    )
    R_EXCLUSIVE = (Party.SUBORDINATE, "RRESP is never EXOKAY: no exclusive access was asked for.")
    AW_RESET = (Party.MANAGER, "AWVALID is low in the first cycle after reset.")
    AW_DROPPED = (Party.MANAGER, "Once high, AWVALID stays high until the request is accepted.")
    AW_CHANGED = (Party.MANAGER, "The request does not change while it waits to be accepted.")
    AW_BURST = (Party.MANAGER, "Bursts are INCR.")
    AW_SIZE = (Party.MANAGER, "Beats are as wide as the bus.")
    AW_ALIGNED = (Party.MANAGER, "A burst starts on a bus word.")
    AW_PAGE = (Party.MANAGER, "A burst stays in one 4 KiB page.")
    AW_LENGTH = (Party.MANAGER, "A burst has at most max_burst beats.")
    AW_CACHE = (Party.MANAGER, "AWCACHE requests no allocation where it forbids modification.")
    AW_OUTSTANDING = (Party.MANAGER, "At most max_outstanding bursts are asked for and not answered.")
    W_RESET = (Party.MANAGER, "WVALID is low in the first cycle after reset.")
    W_DROPPED = (Party.MANAGER, "Once high, WVALID stays high until the beat is accepted.")
    W_CHANGED = (Party.MANAGER, "The beat does not change while it waits to be accepted.")
    W_LAST = (Party.MANAGER, "WLAST is high on the last beat of each burst and on no other, in request order.")
    W_LEAD = (Party.MANAGER, "At most max_outstanding bursts of data are accepted before their requests.")
    B_RESET = (Party.SUBORDINATE, "BVALID is low in the first cycle after reset.")
    B_DROPPED = (Party.SUBORDINATE, "Once high, BVALID stays high until the response is accepted.")
    B_CHANGED = (Party.SUBORDINATE, "The response does not change while it waits to be accepted.")
    B_UNREQUESTED = (
        Party.SUBORDINATE,
        "One response comes for each burst, after its request and last beat were accepted in earlier cycles.",
    )
    B_EXCLUSIVE = (Party.SUBORDINATE, "BRESP is never EXOKAY: no exclusive access was asked for.")


class Wait(_Numbered):
    """What must not last longer than the monitors' ``patience`` in cycles; AXI4 itself sets no such bound."""

    ARREADY = (Party.SUBORDINATE, "A request waits to be accepted.")
    RVALID = (Party.SUBORDINATE, "Bursts are in flight and no beat is shown.")
    RREADY = (Party.MANAGER, "A beat waits to be accepted.")
    AWREADY = (Party.SUBORDINATE, "A request waits to be accepted.")
    AWVALID = (Party.MANAGER, "Data are shown or have come, and their request is not shown.")
    WREADY = (Party.SUBORDINATE, "A beat waits to be accepted.")
    WVALID = (Party.MANAGER, "A request is shown or has come, and its next beat is not shown.")
    BVALID = (Party.SUBORDINATE, "A burst is complete and no response is shown.")
    BREADY = (Party.MANAGER, "A response waits to be accepted.")


#: RRESP or BRESP that answers an exclusive access.
EXOKAY = 0b01

_PAGE_LOG2 = 12
_INCR = 0b01
_MODIFIABLE = 1  # bit of ARCACHE or AWCACHE


class ChannelMonitor(wiring.Component):
    """Watches some channels of an AXI4 port; drives none of its signals.

    Connect it with :meth:`observe`. Rules and their owners are in ``axi_rules``. While reset is
    asserted only the rules on reset are checked. After a violation, what the monitor holds of bursts under way may be
    wrong, so only the first report counts.

    Parameters
    ----------
    channels : dict of str to dict of str to int
        Widths of the signals of each channel, without its handshake; the first one carries requests.
    data_width : int
        Bits of a beat.
    max_burst : int
        Beats of a burst at most, 1 to 256.
    max_outstanding : int
        Bursts under way at most, over all IDs.
    patience : int
        Cycles for which each condition of ``Wait`` may last.
    outputs : dict of str to wiring.Member
        Further members.
    """

    def __init__(self, channels, *, data_width, max_burst, max_outstanding, outputs, patience=10_000):
        if not 1 <= max_burst <= 256:
            raise ValueError(f"max_burst must be 1 to 256, not {max_burst!r}")
        if max_outstanding < 1:
            raise ValueError(f"max_outstanding must be at least 1, not {max_outstanding!r}")
        if patience < 1:
            raise ValueError(f"patience must be at least 1, not {patience!r}")
        self.max_burst = max_burst
        self.max_outstanding = max_outstanding
        self.patience = patience
        self._size = ceil_log2(data_width // 8)
        self._channels = {
            name: {f"{name}{field}": width for field, width in fields.items()} for name, fields in channels.items()
        }
        members = {}
        for name, fields in self._channels.items():
            members |= {field: In(width) for field, width in fields.items()}
            members |= {f"{name}valid": In(1), f"{name}ready": In(1)}
        # Waits that have lasted too long, one bit for each ``Wait``. Survives a reset.
        # Rules violated so far, from the next cycle on. Survives a reset.
        # Rules violated in this cycle, one bit for each ``Rule``. Combinational: proofs assume or assert this one.
        watched = {"found": Out(len(Rule)), "violations": Out(len(Rule)), "late": Out(len(Wait))}
        self._observed = list(members)
        super().__init__(members | watched | outputs)

    def observe(self, port):
        """Statements for the ``comb`` domain that show the monitor the signals of ``port``."""
        return [getattr(self, name).eq(getattr(port, name)) for name in self._observed]

    def elaborate(self, platform):
        m = Module()
        sticky = Signal.like(self.violations, reset_less=True)
        m.d.sync += sticky.eq(sticky | self.found)
        m.d.comb += self.violations.eq(sticky)

        after_reset = Signal(init=1)
        m.d.sync += after_reset.eq(0)
        self._check_request(m, *self._channels)
        for name in self._channels:
            self._check_channel(m, name, after_reset)
        # What shows up right after reset is reported once, as that.
        self.check_order(m, after_reset)
        self._check_waits(m)
        return m

    def check_order(self, m, after_reset):
        """Checks the rules that relate channels; a subclass says which."""
        raise NotImplementedError

    def waits(self):
        """The condition of each wait; a subclass says which."""
        raise NotImplementedError

    def flag(self, m, rule, condition):
        """Reports ``rule`` in cycles in which ``condition`` holds."""
        m.d.comb += self.found[rule.bit].eq(condition & ~ResetSignal())

    def _check_request(self, m, channel, *_):
        """Rules on one request by itself."""
        valid, addr, length, size, burst, cache = (
            getattr(self, f"{channel}{field}") for field in ("valid", "addr", "len", "size", "burst", "cache")
        )
        first = Cat(Const(0, self._size), addr[self._size : _PAGE_LOG2])
        after = first + ((length + 1) << self._size)
        for rule, broken in {
            "BURST": burst != _INCR,
            "SIZE": size != self._size,
            "ALIGNED": addr[: self._size] != 0,
            "PAGE": after > 1 << _PAGE_LOG2,
            "LENGTH": length >= self.max_burst,
            "CACHE": ~cache[_MODIFIABLE] & (cache[2:] != 0),
        }.items():
            self.flag(m, Rule[f"{channel.upper()}_{rule}"], valid & broken)

    def _check_channel(self, m, channel, after_reset):
        """Rules on the handshake of one channel."""
        valid, ready = getattr(self, f"{channel}valid"), getattr(self, f"{channel}ready")
        payload = Cat(getattr(self, field) for field in self._channels[channel])
        waiting = Signal(name=f"{channel}_waiting")
        shown = Signal.like(payload, name=f"{channel}_shown")
        m.d.sync += [waiting.eq(valid & ~ready), shown.eq(payload)]
        m.d.comb += self.found[Rule[f"{channel.upper()}_RESET"].bit].eq(after_reset & valid)
        self.flag(m, Rule[f"{channel.upper()}_DROPPED"], waiting & ~valid)
        self.flag(m, Rule[f"{channel.upper()}_CHANGED"], waiting & valid & (payload != shown))

    def _check_waits(self, m):
        """Counters of the cycles that each wait has lasted."""
        late = Signal.like(self.late, reset_less=True)
        m.d.comb += self.late.eq(late)
        for wait, waiting in self.waits().items():
            cycles = Signal(range(self.patience + 1), name=f"{wait.name.lower()}_cycles")
            with m.If(~waiting):
                m.d.sync += cycles.eq(0)
            with m.Elif(cycles == self.patience):
                m.d.sync += late[wait.bit].eq(1)
            with m.Else():
                m.d.sync += cycles.eq(cycles + 1)

"""The rules of an AXI4 port that the protocol monitors check, each with the party that has to keep it.

The wording is ours; what the rules demand follows the AXI4 specification, narrowed to what this project's managers
promise (INCR bursts of whole bus words). A rule's ``bit`` is its place in the monitors' vectors.
"""

from enum import Enum, auto

__all__ = ["READ", "WRITE", "Party", "Rule", "Wait"]

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

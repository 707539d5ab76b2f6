"""Payloads and sizes of the memory side."""

from amaranth.hdl import Cat, Value, unsigned
from amaranth.lib import data

from ...bus.axi4 import Burst, Response

__all__ = [
    "CORE_ID_WIDTH",
    "PAGE_LOG2",
    "REDUCTION_ID",
    "AnswerLayout",
    "ReadBeatLayout",
    "RequestLayout",
    "WriteBeatLayout",
    "give",
    "merged",
    "taken",
]

#: Bits of the IDs of a core.
CORE_ID_WIDTH = 2
#: ARID with which a core reads what a reduction is about to change.
REDUCTION_ID = 2
#: Bits of a byte's place in the page that bursts stay in, and that one core at a time reduces into.
PAGE_LOG2 = 12


class RequestLayout(data.StructLayout):
    """What AR and AW say."""

    def __init__(self, addr_width, id_width=CORE_ID_WIDTH):
        super().__init__(
            {
                "id": unsigned(id_width),
                "addr": unsigned(addr_width),
                "len": unsigned(8),
                "size": unsigned(3),
                "burst": Burst,
                "prot": unsigned(3),
                "cache": unsigned(4),
            }
        )


class ReadBeatLayout(data.StructLayout):
    """What R says."""

    def __init__(self, data_width, id_width=CORE_ID_WIDTH):
        super().__init__({"id": unsigned(id_width), "data": data_width, "resp": Response, "last": unsigned(1)})


class WriteBeatLayout(data.StructLayout):
    """What W says."""

    def __init__(self, data_width):
        super().__init__({"data": data_width, "strb": data_width // 8, "last": unsigned(1)})


class AnswerLayout(data.StructLayout):
    """What B says."""

    def __init__(self, id_width=CORE_ID_WIDTH):
        super().__init__({"id": unsigned(id_width), "resp": Response})


def taken(m, axi, channel, stream):
    """Connects a channel of a port, from which it comes, to a stream.

    Parameters
    ----------
    m : Module
    axi : interface
        With the channel as its source sees it, or the other way round.
    channel : str
        ``"ar"``, ``"r"``, ``"aw"``, ``"w"`` or ``"b"``.
    stream : stream interface
        Its payload has the members of the channel.
    """
    for name, _ in stream.payload.shape():
        m.d.comb += Value.cast(getattr(stream.payload, name)).eq(Value.cast(getattr(axi, channel + name)))
    m.d.comb += [stream.valid.eq(getattr(axi, channel + "valid")), getattr(axi, channel + "ready").eq(stream.ready)]


def give(m, stream, axi, channel):
    """Connects a stream to a channel of a port; the opposite of :func:`taken`."""
    for name, _ in stream.payload.shape():
        m.d.comb += Value.cast(getattr(axi, channel + name)).eq(Value.cast(getattr(stream.payload, name)))
    m.d.comb += [getattr(axi, channel + "valid").eq(stream.valid), stream.ready.eq(getattr(axi, channel + "ready"))]


def merged(request, arbiter):
    """The statements that make of what an arbiter gives a request with the number of the core above its ID.

    Parameters
    ----------
    request : data.View of RequestLayout
        To be driven.
    arbiter : FairArbiter
        Of one stream a core.
    """
    core = [
        Cat(winner for number, winner in enumerate(arbiter.winner) if number >> bit & 1).any()
        for bit in range(len(request.id) - CORE_ID_WIDTH)
    ]
    given = arbiter.o.payload
    return [
        request.id.eq(Cat(given.id, core)),
        *(getattr(request, name).eq(getattr(given, name)) for name, _ in given.shape() if name != "id"),
    ]

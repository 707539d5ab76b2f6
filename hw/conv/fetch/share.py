"""Several users of one gatherer."""

from amaranth.hdl import Module, Shape, Value
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.arbiter import StreamArbiter
from ...lib.stream import ShallowQueue
from ..layouts import GatheredLayout, GatherLayout

__all__ = ["GatherShare", "gather_ports", "shared_tag"]


def shared_tag(tags):
    """The layout of a tag that says whose it is, a number, and holds any one of ``tags``."""
    return data.StructLayout({"user": range(len(tags)), "tag": max(Shape.cast(tag).width for tag in tags)})


def gather_ports(params, tags):
    """Ports of users with such tags: a request ``i0``, ``i1`` …, and answers ``o0``, ``o1`` …, for each."""
    ports = {}
    for n, tag in enumerate(tags):
        ports[f"i{n}"] = In(stream.Signature(GatherLayout(params, tag)))
        ports[f"o{n}"] = Out(stream.Signature(GatheredLayout(params, tag), always_ready=True))
    return ports


class GatherShare(wiring.Component):
    """Merges requests of several users of one gatherer, round-robin, and says whose an answer is.

    Latency: 1 cycle for a request, none for an answer. Throughput: one request a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    tags : sequence of shape-like
        Of each user, at least 2 of them.

    Members
    -------
    **gather_ports(params, tags)
        Of each user. An answer's data goes to all, and ``valid`` is high for its user only.
    merged : Out(stream of GatherLayout(params, shared_tag(tags)))
        To the gatherer, out of a small memory: valid depends on registers only.
    gathered : In(stream of GatheredLayout(params, shared_tag(tags)), always ready)
        From it.
    """

    def __init__(self, params, tags):
        tags = tuple(tags)
        if len(tags) < 2:
            raise ValueError(f"tags must be of at least 2 users, not {len(tags)}")
        shape = GatherLayout(params, shared_tag(tags))
        self.arbiter = StreamArbiter(shape, len(tags))
        self.buffer = ShallowQueue(shape, 2)
        super().__init__(
            {
                "merged": Out(stream.Signature(shape)),
                "gathered": In(stream.Signature(GatheredLayout(params, shared_tag(tags)), always_ready=True)),
                **gather_ports(params, tags),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter, m.submodules.buffer = self.arbiter, self.buffer
        connect(m, arbiter=self.arbiter.o, buffer=self.buffer.i)
        connect(m, buffer=self.buffer.o, merged=flipped(self.merged))
        answer = self.gathered.payload
        for n, port in enumerate(self.arbiter.i):
            i, o = getattr(self, f"i{n}"), getattr(self, f"o{n}")
            m.d.comb += [port.valid.eq(i.valid), i.ready.eq(port.ready)]
            m.d.comb += [port.payload[name].eq(value) for name, value in _untagged(i.payload).items()]
            tag = Value.cast(o.payload.tag)
            m.d.comb += [
                port.payload.tag.user.eq(n),
                port.payload.tag.tag.eq(Value.cast(i.payload.tag)),
                o.valid.eq(self.gathered.valid & (answer.tag.user == n)),
                o.payload.data.eq(answer.data),
                tag.eq(answer.tag.tag[: len(tag)]),
            ]
        return m


def _untagged(request):
    return {name: request[name] for name, _ in request.shape() if name != "tag"}

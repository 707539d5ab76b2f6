"""Several users of one consumer port."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.arbiter import StreamArbiter
from ..lib.stream import Queue, SkidBuffer
from .layouts import ReadLayout, read_data_layout

__all__ = ["ReadShare"]

#: Reads whose answers are under way: the consumer port and the buffer before it hold four.
_IN_FLIGHT = 8


class ReadShare(wiring.Component):
    """Merges reads of ``n`` users, round-robin, and gives each its own answers in order.

    An answer that its user does not take holds up those behind it. Latency: 1 cycle from ``i`` to ``reads``, none from
    ``read_data`` to ``o``. Throughput: one read a cycle. No ``ready`` passes but that of an answer.

    Parameters
    ----------
    params : SmemParams
    n : int
        Users, at least 2.

    Members
    -------
    i : In(array of n stream of ReadLayout(params))
    o : Out(array of n stream of read_data_layout())
        One answer for each read, in order. Combinational from ``read_data``.
    reads : Out(stream of ReadLayout(params))
        Registered. To the consumer port of shared memory.
    read_data : In(stream of read_data_layout())
        Its answers, one for each, in order.
    """

    def __init__(self, params, n):
        if not isinstance(n, int) or n < 2:
            raise ValueError(f"n must be an int of at least 2, not {n!r}")
        self.arbiter = StreamArbiter(ReadLayout(params), n)
        self.merged = SkidBuffer(ReadLayout(params))
        self.owners = Queue(n, _IN_FLIGHT)  # one bit for each user
        super().__init__(
            {
                "i": In(stream.Signature(ReadLayout(params))).array(n),
                "o": Out(stream.Signature(read_data_layout())).array(n),
                "reads": Out(stream.Signature(ReadLayout(params))),
                "read_data": In(stream.Signature(read_data_layout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.arbiter, m.submodules.merged, m.submodules.owners = self.arbiter, self.merged, self.owners
        arbiter, merged, owners = self.arbiter.o, self.merged.i, self.owners
        connect(m, merged=self.merged.o, reads=flipped(self.reads))
        takes = 0
        for n, (port, answers) in enumerate(zip(self.i, self.o, strict=True)):
            connect(m, i=flipped(port), arbiter=self.arbiter.i[n])
            ours = owners.o.valid & owners.o.payload[n]
            m.d.comb += [answers.payload.eq(self.read_data.payload), answers.valid.eq(self.read_data.valid & ours)]
            takes |= ours & answers.ready

        # Both have room before either is given something.
        m.d.comb += [
            merged.payload.eq(arbiter.payload),
            merged.valid.eq(arbiter.valid & owners.i.ready),
            arbiter.ready.eq(merged.ready & owners.i.ready),
            owners.i.payload.eq(self.arbiter.winner),
            owners.i.valid.eq(arbiter.valid & merged.ready),
            self.read_data.ready.eq(takes),
            owners.o.ready.eq(self.read_data.valid & takes),
        ]
        return m

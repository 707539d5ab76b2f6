"""Gathers pieces of shared memory."""

from amaranth.hdl import Module, Mux, Value
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.stream import Queue
from ...smem.layouts import ReadLayout, read_data_layout
from ..layouts import GatheredLayout, GatherLayout
from .layouts import GatherReadLayout
from .pieces import PiecePacker
from .reads import GatherPlanner

__all__ = ["Gatherer"]

#: Reads under way: what the skid buffer, the consumer port and the way to it hold, and some to spare.
_IN_FLIGHT = 8


class Gatherer(wiring.Component):
    """Brings pieces of shared memory, of up to 16 bytes each, from wherever they lie, packed.

    Byte i of a piece is that at its address + i, modulo the size of the memory, if ``low`` <= i < ``high``, else of the
    fill: its low byte for even i. Answers come in the order of requests. ``high`` is at most 16.

    A request takes one read, or two if its bytes are too scattered (:class:`GatherPlanner`); none, if all pieces are
    empty, or if what was read for one with ``kept.keep`` has all bytes of a later one of the same ``kept.part`` with
    ``kept.again``. Up to 8 reads are under way at once.

    Latency from a request to its answer: 7 cycles without a read, 9 with one, from a memory that answers 2 cycles after
    it was asked; with eight lanes 2 more. Throughput: one request a cycle, if one read is enough for each.

    Parameters
    ----------
    params : ConvUnitParams
    tag : shape-like
        Of what comes back with the answer.

    Members
    -------
    i : In(stream of GatherLayout(params, tag))
        ``ready`` depends on registers only.
    o : Out(stream of GatheredLayout(params, tag), always ready)
        Registered. Who asks has the room.
    reads : Out(stream of ReadLayout(params.smem))
        Registered. To the consumer port of shared memory.
    read_data : In(stream of read_data_layout())
        Its answers, one for each, in order, whenever they come. ``ready`` is from registers.
    """

    def __init__(self, params, tag):
        self._params = params
        self.planner = GatherPlanner(params, tag)
        self.steps = Queue(GatherReadLayout(params, tag), _IN_FLIGHT)
        self.packer = PiecePacker(params, tag)
        super().__init__(
            {
                "i": In(stream.Signature(GatherLayout(params, tag))),
                "o": Out(stream.Signature(GatheredLayout(params, tag), always_ready=True)),
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                "read_data": In(stream.Signature(read_data_layout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.planner, m.submodules.steps, m.submodules.packer = self.planner, self.steps, self.packer
        connect(m, i=flipped(self.i), planner=self.planner.i)
        connect(m, reads=flipped(self.reads), planner=self.planner.reads)
        connect(m, planner=self.planner.steps, steps=self.steps.i)
        connect(m, packer=self.packer.o, o=flipped(self.o))

        step, answers = self.steps.o, self.packer.i
        chunks = self.read_data.payload
        if self._params.keeps_reads:
            m.submodules.kept = kept = Memory(shape=read_data_layout(), depth=self._params.parts, init=[])
            write, read = kept.write_port(), kept.read_port(domain="comb")
            m.d.comb += [
                write.addr.eq(step.payload.part),
                write.data.eq(chunks),
                write.en.eq(self.read_data.valid & self.read_data.ready & step.payload.keeps),
                read.addr.eq(step.payload.part),
            ]
            chunks = Mux(step.payload.repeats, Value.cast(read.data), Value.cast(chunks))
        m.d.comb += [
            Value.cast(answers.payload.chunks).eq(chunks),
            answers.payload.read.eq(step.payload),
            answers.valid.eq(step.valid & (self.read_data.valid | ~step.payload.reads)),
            self.read_data.ready.eq(step.valid & step.payload.reads),
            step.ready.eq(self.read_data.valid | ~step.payload.reads),
        ]
        return m

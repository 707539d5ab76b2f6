"""Several blocks that ask one gatherer."""

from amaranth.hdl import Module, Shape, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from ...lib.arbiter import StreamArbiter
from ...lib.stream import SkidBuffer
from ..layouts import GatheredLayout, GatherLayout

__all__ = ["GatherShare"]


class GatherShare(wiring.Component):
    """Merges the requests of several blocks, round-robin, and gives each its own answers.

    Latency: 1 cycle for requests, none for answers. Throughput: a request a cycle.

    Parameters
    ----------
    params : ConvUnitParams
    tags : dict of str to shape-like
        What comes back with the answers of each block, by its name.

    Members
    -------
    *name of a block* : In(stream of GatherLayout(params, its tag))
    *name of a block*_answer : Out(stream of GatheredLayout(params, its tag), always ready)
    requests : Out(stream of GatherLayout(params, tag))
        Registered.
    answers : In(stream of GatheredLayout(params, tag), always ready)

    Attributes
    ----------
    tag : Layout
        Of all blocks together.
    """

    def __init__(self, params, tags):
        self._params, self._tags = params, dict(tags)
        width = max(Shape.cast(tag).width for tag in self._tags.values())
        self.tag = data.StructLayout({"block": unsigned(len(self._tags)), "own": unsigned(width)})
        members = {
            "requests": Out(stream.Signature(GatherLayout(params, self.tag))),
            "answers": In(stream.Signature(GatheredLayout(params, self.tag), always_ready=True)),
        }
        for name, tag in self._tags.items():
            members[name] = In(stream.Signature(GatherLayout(params, tag)))
            members[f"{name}_answer"] = Out(stream.Signature(GatheredLayout(params, tag), always_ready=True))
        super().__init__(members)

    def elaborate(self, platform):
        m = Module()
        layout = GatherLayout(self._params, self.tag)
        m.submodules.arbiter = arbiter = StreamArbiter(layout, len(self._tags))
        m.submodules.buffer = buffer = SkidBuffer(layout)
        wiring.connect(m, arbiter.o, buffer.i)
        wiring.connect(m, buffer.o, wiring.flipped(self.requests))
        answers = self.answers
        for number, name in enumerate(self._tags):
            asked, answer, merged = getattr(self, name), getattr(self, f"{name}_answer"), arbiter.i[number]
            m.d.comb += [
                merged.valid.eq(asked.valid),
                asked.ready.eq(merged.ready),
                *(merged.p[field].eq(asked.p[field]) for field in ("pieces", "size", "fill")),
                merged.p.tag.block.eq(1 << number),
                merged.p.tag.own.eq(asked.p.tag),
                answer.valid.eq(answers.valid & answers.p.tag.block[number]),
                answer.p.data.eq(answers.p.data),
                answer.p.tag.eq(answers.p.tag.own),
            ]
        return m

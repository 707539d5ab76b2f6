"""The sequencer: memory instructions become accesses of eight lanes (docs/pe.md, from "Logical addresses" on)."""

from amaranth.hdl import Const, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.stream import SkidBuffer, Slot
from ..layouts import GuardReadSignature, JobLayout, LaneReadSignature
from .bases import Bases
from .blocks import BlockParts, LineDirectory
from .columns import Columns, ColumnsOfItemLayout
from .items import Items, StoreWords
from .lanes import AddressLanes, LinearLayout

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Makes the accesses of jobs, in order.

    Throughput: one access a cycle, or every other cycle with ``params.paced``. There is no gap between jobs unless
    offset registers must be read, which takes a cycle for each dimension of each group and a few more. In transposed
    mm, each 16 bytes of a row that are not in the line cache take one access for eight rows, and columns in several
    blocks take one access for each block. ``linear`` is registered.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))),
                "linear": Out(stream.Signature(LinearLayout(params))),
                "lane_reads": Out(LaneReadSignature(params)),
                "predicates": Out(GuardReadSignature(params)),
                "idle": Out(1),  # no job's registers and predicates are still to be read
                "offsets_read": Out(1),  # of the jobs that have been accepted, no offset is still to be read
            }
        )

    def elaborate(self, platform):
        m = Module()
        params = self._params
        m.submodules.items = items = Items(params)
        m.submodules.bases = bases = Bases(params)
        m.submodules.store_words = words = StoreWords(params)
        m.submodules.columns = columns = Columns(params)
        m.submodules.parts = parts = BlockParts(params)
        m.submodules.directory = directory = LineDirectory(params)
        m.submodules.lanes = lanes = AddressLanes(params)
        jobs, of_items, waiting = flipped(self.jobs), columns.o, Const(0)
        if params.paced:
            # Issue does not wait for the last item of the previous job.
            m.submodules.job = slot = Slot(JobLayout(params))
            connect(m, jobs=jobs, slot=slot.i)
            jobs, waiting = slot.o, slot.o.valid
        else:
            # Whether a part is the last of its item is late in the cycle; the earlier blocks do not wait for it.
            m.submodules.skid = skid = SkidBuffer(ColumnsOfItemLayout(params))
            connect(m, columns=columns.o, skid=skid.i)
            of_items = skid.o
        connect(m, jobs=jobs, items=items.jobs)
        connect(m, items=items.o, words=words.i)
        connect(m, words=words.o, columns=columns.i)
        connect(m, columns=of_items, parts=parts.i)
        connect(m, parts=parts.o, directory=directory.i)
        connect(m, directory=directory.o, lanes=lanes.i)
        connect(m, words=words.words, lanes=lanes.words)
        connect(m, lanes=lanes.o, linear=flipped(self.linear))
        connect(m, columns=columns.bases, bases=bases.reads)
        connect(m, columns=columns.predicates, predicates=flipped(self.predicates))

        job = items.o.payload.job
        m.d.comb += [
            # Of the item that leaves, or of a build: all items of its job are still in ``items``.
            bases.set.eq(job.bases_set),
            bases.start.eq(items.build),
            bases.segment.eq(job.segment),
            bases.first.eq(job.rf),
            bases.by_rows.eq(job.transpose),
            items.building.eq(bases.busy),
            self.idle.eq(~self.jobs.valid & ~waiting & ~items.active & ~words.reading),
            self.offsets_read.eq(~waiting & ~items.build & ~bases.busy),
        ]
        # Items wait while offsets are read, so a request of words belongs to an earlier item.
        requests, from_words = self.lane_reads.requests, words.lane_reads.requests.valid
        for port, selected in ((words.lane_reads, from_words), (bases.lane_reads, ~from_words)):
            m.d.comb += port.data.eq(self.lane_reads.data)
            with m.If(selected):
                m.d.comb += [
                    requests.valid.eq(port.requests.valid),
                    requests.payload.eq(port.requests.payload),
                    port.requests.ready.eq(requests.ready),
                ]
        return m

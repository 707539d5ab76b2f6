"""The sequencer: from memory instructions to accesses of eight lanes (docs/pe.md, from "Logical addresses" on)."""

from amaranth.hdl import Const, Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ...lib.component import join
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

    One access a cycle, every other cycle if ``params.paced``, and no gap between jobs unless offset registers are read
    again, which takes a cycle for each dimension of each group and a few more. Transposed mm: each 16 bytes of a row
    that are not in the line cache cost one access for eight rows; columns in several blocks, one access for each block.

    Members
    -------
    jobs : In(stream of JobLayout)
    linear : Out(stream of LinearLayout)
        Registered.
    lane_reads : Out(LaneReadSignature)
    predicates : Out(GuardReadSignature(params))
    idle : Out(1)
        There is no job whose registers and predicates are still to be read.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))),
                "linear": Out(stream.Signature(LinearLayout(params))),
                "lane_reads": Out(LaneReadSignature(params)),
                "predicates": Out(GuardReadSignature(params)),
                "idle": Out(1),
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
        waiting = Const(0)  # a job in front of the items
        if params.paced:
            # Who issues does not wait for the last item of the job before.
            m.submodules.job = job = Slot(JobLayout(params))
            connect(m, jobs=flipped(self.jobs), job=job.i)
            connect(m, job=job.o, items=items.jobs)
            waiting = job.o.valid
        else:
            connect(m, flipped(self.jobs), items.jobs)
        join(m, items=items.o, words=words.i)
        join(m, words=words.o, columns=columns.i)
        if params.paced:
            join(m, columns=columns.o, parts=parts.i)
        else:
            # Whether a part is the last of its item is found late in the cycle; the blocks before do not wait for it.
            m.submodules.skid = skid = SkidBuffer(ColumnsOfItemLayout(params))
            join(m, columns=columns.o, skid=skid.i)
            join(m, skid=skid.o, parts=parts.i)
        join(m, parts=parts.o, directory=directory.i)
        join(m, directory=directory.o, lanes=lanes.i)
        join(m, words=words.words, lanes=lanes.words)
        connect(m, lanes.o, flipped(self.linear))
        join(m, columns=columns.bases, bases=bases.reads)
        join(m, columns=columns.predicates, predicates=flipped(self.predicates))

        m.d.comb += [
            # That of an item that reads, as it does when it leaves, or of a build: its job's items are all still here.
            bases.set.eq(items.o.p.job.bases_set),
            bases.start.eq(items.build),
            bases.segment.eq(items.o.p.job.segment),
            bases.first.eq(items.o.p.job.rf),
            bases.by_rows.eq(items.o.p.job.transpose),
            items.building.eq(bases.busy),
            self.idle.eq(~self.jobs.valid & ~waiting & ~items.active & ~words.reading),
        ]
        self._merge_reads(m, bases.lane_reads, words.lane_reads)
        return m

    def _merge_reads(self, m, bases, words):
        """One of the two reads: items wait while offsets are read, so that words which are asked for came before."""
        requests = self.lane_reads.requests
        for port, chosen in ((words, words.requests.valid), (bases, ~words.requests.valid)):
            m.d.comb += port.data.eq(self.lane_reads.data)
            with m.If(chosen):
                m.d.comb += [
                    requests.valid.eq(port.requests.valid),
                    requests.p.eq(port.requests.p),
                    port.requests.ready.eq(requests.ready),
                ]

"""The sequencer: from memory instructions to accesses of eight lanes (docs/pe.md, from "Logical addresses" on)."""

from amaranth import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect

from ...lib.join import join
from ...lib.stream import SkidBuffer
from ..layouts import JobLayout, LaneReadLayout, LinearLayout
from ..params import LANES
from ..state.predicates import PREDICATES
from .bases import Bases
from .block_parts import BlockParts
from .columns import Columns, ColumnsOfItemLayout
from .items import Items
from .lane_addresses import AddressLanes
from .line_directory import LineDirectory
from .store_words import StoreWords

__all__ = ["Sequencer"]


class Sequencer(wiring.Component):
    """Makes the accesses of jobs, in order.

    One access a cycle, and no gap between jobs unless offset registers are read again, which takes a cycle for each
    dimension of each group and a few more. Transposed mm: each 16 bytes of a row that are not in the line cache cost
    one access for eight rows; columns in several blocks, one access for each block.

    Members
    -------
    jobs : In(stream of JobLayout)
    linear : Out(stream of LinearLayout)
        Registered.
    lane_reads : Out(stream of LaneReadLayout)
    lane_data : In(32), one a lane
        Answers, ``LANE_READ_LATENCY`` cycles after each handshake.
    predicate_groups : Out(unsigned(params.group_width)), one a lane
    predicate_enable : Out(1)
    predicates : In(8), one a lane
        The read port of ``PredicateFile``.
    idle : Out(1)
        There is no job whose registers and predicates are still to be read.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "jobs": In(stream.Signature(JobLayout(params))),
                "linear": Out(stream.Signature(LinearLayout(params))),
                "lane_reads": Out(stream.Signature(LaneReadLayout(params))),
                "lane_data": In(32).array(LANES),
                "predicate_groups": Out(params.group_width).array(LANES),
                "predicate_enable": Out(1),
                "predicates": In(PREDICATES).array(LANES),
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
        # Whether a part is the last of its item is found late in the cycle; the rooms before do not wait for it.
        m.submodules.skid = skid = SkidBuffer(ColumnsOfItemLayout(params))
        m.submodules.parts = parts = BlockParts(params)
        m.submodules.directory = directory = LineDirectory(params)
        m.submodules.lanes = lanes = AddressLanes(params)
        connect(m, wiring.flipped(self.jobs), items.jobs)
        join(m, items=items.o, words=words.i)
        join(m, words=words.o, columns=columns.i)
        join(m, columns=columns.o, skid=skid.i)
        join(m, skid=skid.o, parts=parts.i)
        join(m, parts=parts.o, directory=directory.i)
        join(m, directory=directory.o, lanes=lanes.i)
        join(m, words=words.words, lanes=lanes.words)
        connect(m, lanes.o, wiring.flipped(self.linear))

        m.d.comb += [
            # That of an item that asks, as it does when it leaves, or of a build: its job's items are all still here.
            bases.set.eq(items.o.p.job.bases_set),
            bases.start.eq(items.build),
            bases.segment.eq(items.o.p.job.segment),
            bases.first.eq(items.o.p.job.rf),
            bases.by_rows.eq(items.o.p.job.transpose),
            items.building.eq(bases.busy),
            bases.enable.eq(columns.enable),
            self.predicate_enable.eq(columns.enable),
            self.idle.eq(~self.jobs.valid & ~items.active & ~words.reading),
        ]
        for lane in range(LANES):
            m.d.comb += [
                bases.lane_data[lane].eq(self.lane_data[lane]),
                words.lane_data[lane].eq(self.lane_data[lane]),
                bases.groups[lane].eq(columns.groups[lane]),
                self.predicate_groups[lane].eq(columns.groups[lane]),
                columns.bases[lane].eq(bases.rows[lane]),
                columns.predicates[lane].eq(self.predicates[lane]),
            ]
        # One of the two at most: items wait while offsets are read.
        with m.If(bases.lane_reads.valid):
            m.d.comb += [
                self.lane_reads.valid.eq(1),
                self.lane_reads.p.eq(bases.lane_reads.p),
                bases.lane_reads.ready.eq(self.lane_reads.ready),
            ]
        with m.Else():
            m.d.comb += [
                self.lane_reads.valid.eq(words.lane_reads.valid),
                self.lane_reads.p.eq(words.lane_reads.p),
                words.lane_reads.ready.eq(self.lane_reads.ready),
            ]
        return m

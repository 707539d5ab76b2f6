"""Memory path: accesses to shared memory, from translated addresses to columns, registers and stored bytes."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..lib.component import join
from ..smem.layouts import ReadLayout, ScatterWriteLayout, read_data_layout
from .layouts import AccessLayout, ColumnsLayout, LaneWriteLayout
from .line_cache import LineCache
from .params import LANES
from .reads import Reader, ReadReturn
from .stores import StoreMerger

__all__ = ["MemoryPath"]


class MemoryPath(wiring.Component):
    """Reader, read return, line cache and store merger, connected. Accesses have their effects in order.

    Latency: from access to column 4 cycles, from PICK 2. Throughput: one access a cycle without bank conflicts; a
    FILL behind another waits until the line cache has written that. With ``params.smem.chunks_a_cycle`` of 4 reads
    take a cycle more, picks three, and both come every second cycle.

    Members
    -------
    accesses : In(stream of AccessLayout)
        ``last`` of a STORE has kind STORE: until then a chunk may wait for more words, and reads wait for it.
    columns : Out(stream of ColumnsLayout)
        One item for each COLUMNS and PICK.
    loads : Out(stream of LaneWriteLayout)
    load_done : Out(1)
        High for one cycle when the last word of a LOAD has been taken, once for each ``last`` of LOAD and NOTHING.
    reads : Out(stream of ReadLayout)
    read_data : In(stream of read_data_layout(params.smem.chunks_a_cycle))
    scatter : Out(stream of ScatterWriteLayout)
    scatter_idle : In(1)
        Of the shared memory: what it has accepted can be read.
    stores_idle : Out(1)
        All stored words are in shared memory.
    idle : Out(1)
        No access is under way, stores aside.
    line_fill : Out(range(LANES + 1))
        Rows read into the line cache in this cycle.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout(params))),
                "columns": Out(stream.Signature(ColumnsLayout(params))),
                "loads": Out(stream.Signature(LaneWriteLayout(params))),
                "load_done": Out(1),
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                "read_data": In(stream.Signature(read_data_layout(params.smem.chunks_a_cycle))),
                "scatter": Out(stream.Signature(ScatterWriteLayout(params.smem))),
                "scatter_idle": In(1),
                "stores_idle": Out(1),
                "idle": Out(1),
                "line_fill": Out(range(LANES + 1)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reader = reader = Reader(self._params)
        m.submodules.read_return = read_return = ReadReturn(self._params)
        m.submodules.line_cache = line_cache = LineCache(self._params)
        m.submodules.stores = stores = StoreMerger(self._params)

        connect(m, accesses=flipped(self.accesses), reader=reader.accesses)
        connect(m, reader=reader.reads, reads=flipped(self.reads))
        connect(m, read_data=flipped(self.read_data), read_return=read_return.read_data)
        connect(m, read_return=read_return.columns, columns=flipped(self.columns))
        connect(m, read_return=read_return.loads, loads=flipped(self.loads))
        connect(m, stores=stores.o, scatter=flipped(self.scatter))
        join(m, reader=reader.tags, read_return=read_return.tags)
        join(m, reader=reader.stores, stores=stores.i)
        join(m, read_return=read_return.fill, line_cache=line_cache.fill)
        m.d.comb += [
            line_cache.pick.eq(read_return.pick),
            read_return.pickable.eq(line_cache.pickable),
            read_return.units.eq(line_cache.units),
            read_return.inside.eq(line_cache.inside),
            self.load_done.eq(read_return.load_done),
            self.stores_idle.eq(stores.idle & self.scatter_idle),
            reader.stores_idle.eq(self.stores_idle),
            self.idle.eq(reader.idle & read_return.idle),
            self.line_fill.eq(reader.line_fill),
        ]
        return m

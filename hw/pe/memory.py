"""Memory path: translated accesses to shared memory become columns, loaded registers and stored bytes."""

from amaranth.hdl import Module
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out, connect, flipped

from ..smem.layouts import ReadLayout, ScatterWriteLayout, read_data_layout
from .layouts import AccessLayout, ColumnsLayout, LaneWriteLayout
from .line_cache import LineCache
from .params import LANES
from .reads import Reader, ReadReturn
from .stores import StoreMerger

__all__ = ["MemoryPath"]


class MemoryPath(wiring.Component):
    """Reader, read return, line cache and store merger, connected. Accesses take effect in order.

    Latency: from access to column 4 cycles, from PICK 2. Throughput: one access a cycle without bank conflicts; a
    FILL waits until the line cache has written the previous one. With ``params.smem.chunks_a_cycle`` of 4, reads
    take a cycle more, picks three, and both come every second cycle.
    """

    def __init__(self, params):
        self._params = params
        super().__init__(
            {
                # Until the ``last`` access of a STORE, a chunk may wait for more words, and reads wait for it.
                "accesses": In(stream.Signature(AccessLayout(params))),
                "columns": Out(stream.Signature(ColumnsLayout(params))),  # one item for each COLUMNS and PICK
                "loads": Out(stream.Signature(LaneWriteLayout(params))),
                # Strobe, once for each ``last`` of LOAD and NOTHING: all words of the LOAD have been accepted.
                "load_done": Out(1),
                "reads": Out(stream.Signature(ReadLayout(params.smem))),
                "read_data": In(stream.Signature(read_data_layout(params.smem.chunks_a_cycle))),
                "scatter": Out(stream.Signature(ScatterWriteLayout(params.smem))),
                "scatter_idle": In(1),  # everything that shared memory has accepted can be read
                "stores_idle": Out(1),  # all stored words are in shared memory
                "idle": Out(1),  # no access is in flight, other than stores
                "line_fill": Out(range(LANES + 1)),  # rows read into the line cache in this cycle
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
        connect(m, reader=reader.tags, read_return=read_return.tags)
        connect(m, reader=reader.stores, stores=stores.i)
        connect(m, read_data=flipped(self.read_data), read_return=read_return.read_data)
        connect(m, read_return=read_return.columns, columns=flipped(self.columns))
        connect(m, read_return=read_return.loads, loads=flipped(self.loads))
        connect(m, read_return=read_return.fill, line_cache=line_cache.fill)
        connect(m, stores=stores.o, scatter=flipped(self.scatter))
        m.d.comb += [
            line_cache.pick.eq(read_return.pick),
            *(getattr(read_return, name).eq(getattr(line_cache, name)) for name in ("pickable", "units", "inside")),
            self.load_done.eq(read_return.load_done),
            self.stores_idle.eq(stores.idle & self.scatter_idle),
            reader.stores_idle.eq(self.stores_idle),
            self.idle.eq(reader.idle & read_return.idle),
            self.line_fill.eq(reader.line_fill),
        ]
        return m

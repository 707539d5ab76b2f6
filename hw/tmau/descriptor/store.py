"""Where checked descriptors are kept: memories that are written piece by piece and read at once."""

from amaranth import Module, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .layouts import CheckedLayout

__all__ = ["DescriptorStore"]

#: Members of a checked descriptor that list dimensions.
_BOUNDS, _ROWS = ("lows", "highs"), ("counts", "run_bytes")
_LISTED = ("sizes", "strides", "traversals", *_BOUNDS)
#: The wide lists, in block memories: of each an element is chosen behind the memory.
_BLOCKS = ("sizes", "strides", "run_bytes", "highs")
#: Numbers in a block memory. What remains says how a command is set up, or is added up and compared where it is read,
#: and comes from registers, but with ``params.spares_tables``.
_NUMBERS = ("address", "last", "fill", "gap")


class DescriptorStore(wiring.Component):
    """As many descriptors as the cache has entries.

    Members
    -------
    place : In(range(params.cache_entries))
        Where is written.
    i : In(CheckedLayout)
        To be written: only what a strobe names.
    dimension_stb : In(5)
        Bit p: element p of ``sizes``, ``strides`` and ``traversals``; of 1 to 3 also ``lows`` and ``highs`` p - 1.
    row_stb : In(5)
        Bit d: element d of ``counts`` and ``run_bytes``.
    rest_stb : In(1)
        All other members.
    read : In(1)
        Strobe: read what was written before this cycle at ``read_place``.
    read_place : In(range(params.cache_entries))
    o : Out(CheckedLayout)
        From the cycle after ``read`` until the next one. What is written in the cycle of the read may be anything.
    """

    def __init__(self, params):
        self._checked = layout = CheckedLayout(params)
        self._depth, self._all = params.cache_entries, params.spares_tables
        super().__init__(
            {
                "place": In(ceil_log2(params.cache_entries)),
                "i": In(layout),
                "dimension_stb": In(5),
                "row_stb": In(5),
                "rest_stb": In(1),
                "read": In(1),
                "read_place": In(ceil_log2(params.cache_entries)),
                "o": Out(layout),
            }
        )

    def elaborate(self, platform):
        m = Module()
        single = {name: shape for name, shape in self._checked.members.items() if name not in (*_LISTED, *_ROWS)}
        rest = {name: shape for name, shape in single.items() if name not in _NUMBERS}
        for group, members in (("rest", rest), ("numbers", {name: single[name] for name in _NUMBERS})):
            written, kept = (Signal(data.StructLayout(members)) for _ in range(2))
            self._keep(m, group, written, self.rest_stb, kept)
            for name in members:
                m.d.comb += [written[name].eq(self.i[name]), self.o[name].eq(kept[name])]
        for name in (*_LISTED, *_ROWS):
            strobes = self.row_stb if name in _ROWS else self.dimension_stb
            self._keep(m, name, self.i[name], strobes[1:4] if name in _BOUNDS else strobes, self.o[name])
        return m

    def _keep(self, m, name, written, strobes, kept):
        """A memory for one member, with a strobe for each of its elements, or for several without one."""
        shape = written.shape()
        # Yosys makes no logic for a read of what is being written.
        attributes = {"ram_style": "block", "no_rw_check": 1} if self._all or name in (*_BLOCKS, "numbers") else {}
        m.submodules[name] = memory = Memory(shape=shape, depth=self._depth, init=[], attrs=attributes)
        write = memory.write_port(granularity=1 if len(strobes) > 1 else None)
        # The register of the read port stands here: so tools see that no answer is defined.
        read = memory.read_port(domain="comb")
        register = Signal(shape, name=name, reset_less=True)
        with m.If(self.read):
            m.d.sync += register.eq(read.data)
        m.d.comb += [
            write.addr.eq(self.place),
            write.data.eq(written),
            write.en.eq(strobes),
            read.addr.eq(self.read_place),
            kept.eq(register),
        ]

"""Where checked descriptors are kept: memories that are written piece by piece."""

from amaranth import Cat, Module, Mux, Signal
from amaranth.lib import data, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

from .layouts import CheckedLayout, DerivedLayout, ListedLayout
from .signatures import ListSignature

__all__ = ["DescriptorStore"]

#: Numbers in a block memory. What remains says how a command is set up, or is added up and compared where it is read,
#: and comes from registers, but with ``params.spares_tables``.
_NUMBERS = ("address", "last", "fill", "gap")
#: Dimensions of which a descriptor's place has space.
_DIMENSIONS = 8


class DescriptorStore(wiring.Component):
    """As many descriptors as the cache has entries.

    Members
    -------
    place : In(range(params.cache_entries))
        Where is written. Not where is read from, as long as that is looked at.
    lists : In(DerivedLayout)
        Dimensions to be written, of which strobes tell which.
    i : In(CheckedLayout)
        To be written with ``write``.
    write : In(1)
        Strobe.
    read : In(1)
        Strobe: read what was written before this cycle at ``read_place``, and of its dimensions the first.
    read_place : In(range(params.cache_entries))
    shown : Out(range(params.cache_entries))
        The place that was read last. Registered.
    o : Out(CheckedLayout)
        From the cycle after ``read`` until the next one. What is written in the cycle of the read may be anything.
    dimensions : In(ListSignature)
        Of the place that was read last; ``look`` means nothing together with ``read``.
    """

    def __init__(self, params):
        self._params, self._depth, self._all = params, params.cache_entries, params.spares_tables
        super().__init__(
            {
                "place": In(ceil_log2(params.cache_entries)),
                "lists": In(DerivedLayout(params)),
                "i": In(CheckedLayout(params)),
                "write": In(1),
                "read": In(1),
                "read_place": In(ceil_log2(params.cache_entries)),
                "shown": Out(ceil_log2(params.cache_entries)),
                "o": Out(CheckedLayout(params)),
                "dimensions": In(ListSignature(params)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        members = self.i.shape().members
        numbers = {name: members[name] for name in _NUMBERS}
        rest = {name: shape for name, shape in members.items() if name not in numbers}
        with m.If(self.read):
            m.d.sync += self.shown.eq(self.read_place)
        for name, part in (("rest", rest), ("numbers", numbers)):
            self._keep(
                m, name, part, self.i, self.o, block=self._all or part is numbers,
                place=self.place, write=self.write, read_place=self.read_place, read=self.read,
            )  # fmt: skip

        # A number of a dimension is the lower half of an address: what is looked at is chosen by the memory.
        lists, dimensions, shapes = self.lists, self.dimensions, ListedLayout(self._params).members
        look = Cat(Mux(self.read, 0, dimensions.number), Mux(self.read, self.read_place, self.shown))
        for name, number, write in (("AXIS", lists.axis, lists.axis_stb), ("ROW", lists.row, lists.row_stb)):
            part = {member: shapes[member] for member in getattr(ListedLayout, name)}
            self._keep(
                m, name.lower(), part, lists.listed, dimensions.listed, block=True, depth=_DIMENSIONS * self._depth,
                place=Cat(number, self.place), write=write, read_place=look, read=self.read | dimensions.look,
            )  # fmt: skip
        return m

    def _keep(self, m, name, part, given, kept, *, block, place, write, read_place, read, depth=None):
        """A memory for some members of ``given``, which ``kept`` shows."""
        shape = data.StructLayout(part)
        # Yosys makes no logic for a read of what is being written.
        attributes = {"ram_style": "block", "no_rw_check": 1} if block else {}
        m.submodules[name] = memory = Memory(shape=shape, depth=depth or self._depth, init=[], attrs=attributes)
        written, found = memory.write_port(), memory.read_port(domain="comb")
        # The register of the read port stands here: so tools see that no answer is defined.
        register = Signal(shape, name=name, reset_less=True)
        with m.If(read):
            m.d.sync += register.eq(found.data)
        m.d.comb += [
            written.addr.eq(place),
            written.en.eq(write),
            found.addr.eq(read_place),
            *(written.data[member].eq(given[member]) for member in part),
            *(kept[member].eq(register[member]) for member in part),
        ]

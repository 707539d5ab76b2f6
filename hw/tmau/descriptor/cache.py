"""The descriptor cache: each command gets its checked descriptor, from the cache or from memory."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect, flipped
from amaranth.utils import ceil_log2

from tilewright.spec import COMMAND, COMMAND_FIELD, REPLACE, TENSOR_OPCODES, Error, Opcode
from tilewright.spec.cluster import ClusterError

from ...bus.bursts import DescriptorWordLayout
from ...lib.layouts import command_layout
from ...lib.tag_array import TagArray
from ..layouts import WindowsLayout
from .check import DescriptorCheck
from .layouts import CheckedLayout, DerivedLayout, FaultLayout, ListedLayout, ListSignature, LookupLayout

__all__ = ["DescriptorCache", "DescriptorStore"]

#: Members in block RAM. The other members are used in the cycle of the read and come from LUT RAM, unless
#: ``params.prefer_bram``.
_NUMBERS = ("address", "last", "fill", "gap")
#: Entries of a descriptor in the memories of dimensions.
_DIMENSIONS = 8


class DescriptorStore(wiring.Component):
    """Memories for ``params.cache_entries`` descriptors, written piece by piece."""

    def __init__(self, params):
        self._params, self._depth, self._all = params, params.cache_entries, params.prefer_bram
        super().__init__(
            {
                # Entry to write. It must not be the one that is being read.
                "place": In(ceil_log2(params.cache_entries)),
                "lists": In(DerivedLayout(params)),  # Dimensions to write, with strobes.
                "i": In(CheckedLayout(params)),  # To write with ``write``.
                "write": In(1),  # Strobe.
                # Strobe: read ``read_place`` and its first dimension; undefined if they are written in this cycle.
                "read": In(1),
                "read_place": In(ceil_log2(params.cache_entries)),
                "shown": Out(ceil_log2(params.cache_entries)),  # The entry that was read last. Registered.
                "o": Out(CheckedLayout(params)),  # Valid from the cycle after ``read`` until the next one.
                # Of the entry that was read last; ``look`` has no effect together with ``read``.
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
            self._memory(
                m, name, part, self.i, self.o, block=self._all or part is numbers,
                place=self.place, write=self.write, read_place=self.read_place, read=self.read,
            )  # fmt: skip

        # The number of a dimension is the lower part of the address.
        lists, dimensions, shapes = self.lists, self.dimensions, ListedLayout(self._params).members
        look = Cat(Mux(self.read, 0, dimensions.number), Mux(self.read, self.read_place, self.shown))
        for name, number, write in (("AXIS", lists.axis, lists.axis_stb), ("ROW", lists.row, lists.row_stb)):
            part = {member: shapes[member] for member in getattr(ListedLayout, name)}
            self._memory(
                m, name.lower(), part, lists.listed, dimensions.listed, block=True, depth=_DIMENSIONS * self._depth,
                place=Cat(number, self.place), write=write, read_place=look, read=self.read | dimensions.look,
            )  # fmt: skip
        return m

    def _memory(self, m, name, part, source, target, *, block, place, write, read_place, read, depth=None):
        """A memory for the members ``part`` of ``source``, which drives ``target``."""
        shape = data.StructLayout(part)
        # Prevents Yosys from adding logic for simultaneous reads and writes of an entry.
        attributes = {"ram_style": "block", "no_rw_check": 1} if block else {}
        m.submodules[name] = memory = Memory(shape=shape, depth=depth or self._depth, init=[], attrs=attributes)
        write_port, read_port = memory.write_port(), memory.read_port(domain="comb")
        # The register of the read port is explicit, so that tools may leave such reads undefined.
        register = Signal(shape, name=name, reset_less=True)
        with m.If(read):
            m.d.sync += register.eq(read_port.data)
        m.d.comb += [
            write_port.addr.eq(place),
            write_port.en.eq(write),
            read_port.addr.eq(read_place),
            *(write_port.data[member].eq(source[member]) for member in part),
            *(target[member].eq(register[member]) for member in part),
        ]


_LINE_LOG2 = 6  # descriptors are 64-byte aligned

#: Operations that need a feature (docs/tmau.md, "Features").
_FEATURES = {
    Opcode.STORE: "stores",
    Opcode.REDUCE: "reductions_global",
    Opcode.REPLACE: "reductions_global",
    Opcode.LANES: "lanes",
}


class DescriptorCache(wiring.Component):
    """Fully associative cache of checked descriptors between the command queue and setup.

    Commands leave in order. Hits take two cycles each, with a latency of 1: a command is at the output before it is
    accepted. A miss requests the descriptor in the cycle after the command arrives, and the command leaves 21 cycles
    after the last word of the descriptor. The new descriptor replaces the oldest one; if that is in use at the output,
    the request waits until the output is free. While a command waits for setup, the descriptor of the next command is
    already looked up and fetched. Descriptors with a fault or a bus error are not stored.

    A REPLACE drops the descriptor that it changes. Later commands are not looked up until the change is in memory.
    """

    def __init__(self, params):
        self._params = params
        self.check = DescriptorCheck(params)
        self.tags = TagArray(params.cache_entries, params.addr_width - _LINE_LOG2)
        self.store = DescriptorStore(params)
        self.place = Signal(self.store.place.shape())  # of the descriptor of the command at the input
        self.fault = Signal(FaultLayout())  # fault of that command
        self.current_fault = Signal(FaultLayout())  # the same, from the cycle of the lookup
        self.resolved = Signal()  # in the previous cycle the descriptor was found, or none was needed
        self.leave = Signal()  # the command moves to the output
        super().__init__(
            {
                # A command is accepted when its descriptor is known. ``ready`` depends on registers only.
                "i": In(stream.Signature(command_layout())),
                "moves": In(1),  # ``i`` shows another command in the next cycle, or its first one.
                "ahead": In(64),  # The member ``descriptor`` of that command.
                # Registered. ``fault`` is OPCODE, DESCRIPTOR_ALIGNMENT, UNSUPPORTED, WINDOW, or the descriptor's.
                "o": Out(stream.Signature(LookupLayout(params))),
                "dimensions": In(ListSignature(params)),  # Of the descriptor at ``o``.
                "fetch": Out(stream.Signature(params.addr_width)),  # Global byte address of a descriptor to read.
                # Bus words of the descriptor. Always ready.
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                # All commands are refused.
                **({"stopped": In(1)} if params.cores > 1 else {}),
                # Descriptors outside the global window are neither fetched nor used.
                "windows": In(WindowsLayout(params)),
                "quiescent": In(1),  # No command is at ``o`` or in a later block.
                # Strobe: drop all descriptors. One that is being fetched is still used for its command.
                "invalidate_all": In(1),
                # Strobes: a command found its descriptor; it requested its descriptor. One of them for each command
                # on a tensor that has no fault of its own.
                "hit_stb": Out(1),
                "miss_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.check = check = self.check
        m.submodules.tags = tags = self.tags
        m.submodules.store = store = self.store
        connect(m, flipped(self.words), check.words)
        connect(m, flipped(self.dimensions), store.dimensions)
        m.d.comb += [
            self.fetch.payload.eq(self.i.payload.descriptor),
            tags.tag.eq(self.i.payload.descriptor[_LINE_LOG2 : self._params.addr_width]),
            tags.look.eq(self.moves),
            tags.ahead.eq(self.ahead[_LINE_LOG2 : self._params.addr_width]),
            tags.invalidate_all.eq(self.invalidate_all),
            store.lists.eq(check.lists),
            store.write.eq(check.done),
            store.i.eq(check.checked),
            store.place.eq(self.place),
            store.read_place.eq(self.place),
            self.current_fault.eq(self.fault),
        ]
        # The address of the read is registered, because of its high fan-out.
        with m.If(self.moves):
            m.d.sync += self.place.eq(tags.place)
        holding, sound = self._hold(m), self.fault.code == Error.NONE
        # Counted and dropped one cycle after the lookup, when faults of the command are known.
        m.d.sync += self.resolved.eq(0)
        m.d.comb += [
            self.hit_stb.eq(self.resolved & self._is(self.i.payload, *TENSOR_OPCODES) & sound),
            tags.invalidate.eq(self.resolved & self._is(self.i.payload, Opcode.INVALIDATE, Opcode.REPLACE) & sound),
        ]
        with m.FSM():
            with m.State("Look up"):
                self._look_up(m, holding)
            with m.State("Take"):
                m.d.comb += self.i.ready.eq(1)
                m.next = "Look up"
            with m.State("Ask"):
                # Dimensions of the command at the output are still read.
                free = Signal()
                m.d.comb += [
                    free.eq(~self.o.valid | (store.shown != self.place)),
                    self.fetch.valid.eq(sound & free),
                    self.miss_stb.eq(self.fetch.valid & self.fetch.ready),
                ]
                with m.If(~sound):
                    m.next = "Answer"
                with m.Elif(self.miss_stb):
                    m.next = "Fetch"
            with m.State("Fetch"):
                self._fetch(m)
            with m.State("Answer"):
                # Not in the cycle in which the output leaves, because ``o.ready`` is late.
                m.d.comb += [self.leave.eq(~self.o.valid), self.i.ready.eq(~self.o.valid)]
                with m.If(self.leave):
                    m.next = "Look up"
        self._drive_output(m)
        return m

    def _look_up(self, m, holding):
        """Looks up the descriptor of the command at the input, which takes one cycle."""
        tags, command = self.tags, self.i.payload
        fault = self._command_fault(m, command)
        m.d.comb += self.current_fault.eq(fault)
        m.d.sync += self.fault.eq(fault)
        with m.If(self.i.valid & ~tags.hit):
            m.d.sync += self.place.eq(tags.victim)
        with m.If(self.i.valid & ~holding):
            with m.If(self._is(command, *TENSOR_OPCODES) & ~tags.hit):
                m.next = "Ask"
            with m.Else():
                m.d.sync += self.resolved.eq(1)
                with m.If(command.opcode == Opcode.INVALIDATE_ALL):
                    m.d.comb += tags.invalidate_all.eq(1)
                m.d.comb += self.leave.eq(~self.o.valid)
                m.next = "Answer"
                with m.If(~self.o.valid):
                    m.next = "Take"

    def _fetch(self, m):
        """Waits until a descriptor is in the store, in the entry of the victim."""
        tags, check = self.tags, self.check
        discard = Signal()  # it was invalidated meanwhile
        m.d.sync += discard.eq((discard | self.invalidate_all) & ~check.done)
        with m.If(check.done):
            keep = (check.fault.code == Error.NONE) & ~discard
            m.d.comb += [tags.insert.eq(keep), tags.evict.eq(~keep)]
            m.d.sync += self.fault.eq(check.fault)
            m.next = "Answer"

    def _hold(self, m):
        """Whether a REPLACE is in progress in later blocks."""
        holding = Signal()
        taken = self.i.valid & self.i.ready
        with m.If(taken & self._is(self.i.payload, Opcode.REPLACE) & (self.fault.code == Error.NONE)):
            m.d.sync += holding.eq(1)
        with m.Elif(self.quiescent):
            m.d.sync += holding.eq(0)
        return holding

    def _drive_output(self, m):
        """The output: the command in registers, its descriptor in registers of the store."""
        free = ~self.o.valid
        m.d.comb += [self.store.read.eq(free), self.o.payload.checked.eq(self.store.o)]
        # Enabled by ``free`` alone, because the result of the lookup is late.
        with m.If(free):
            m.d.sync += [self.o.payload.command.eq(self.i.payload), self.o.payload.fault.eq(self.current_fault)]
        with m.If(self.leave):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

    @staticmethod
    def _is(command, *opcodes):
        """Whether the command has one of the opcodes."""
        return Cat(command.opcode == opcode for opcode in opcodes).any()

    def _command_fault(self, m, command):
        """The fault of the command before its descriptor is known."""
        fault = Signal(FaultLayout())
        known, missing = Signal(), Signal()
        named, read = Signal(), Signal()  # the command names a descriptor; the descriptor is read here
        with m.Switch(command.opcode):
            with m.Case(*TENSOR_OPCODES):
                m.d.comb += [known.eq(1), named.eq(1), read.eq(1)]
            with m.Case(Opcode.INVALIDATE, Opcode.REPLACE):
                m.d.comb += [known.eq(1), named.eq(1)]
            with m.Case(*Opcode):
                m.d.comb += known.eq(1)
        missing_opcodes = [opcode for opcode, feature in _FEATURES.items() if not self._params.has(feature)]
        m.d.comb += missing.eq(self._is(command, *missing_opcodes))
        misaligned = named & command.descriptor[:_LINE_LOG2].any()
        # The field has the same bits in both formats, but another number.
        number = Mux(command.opcode == Opcode.REPLACE, REPLACE.index("descriptor"), COMMAND.index("descriptor"))
        with m.If(~known):
            m.d.comb += [fault.code.eq(Error.OPCODE), fault.field.eq(COMMAND_FIELD + COMMAND.index("opcode"))]
        with m.Elif(missing & ~misaligned):
            m.d.comb += [fault.code.eq(Error.UNSUPPORTED), fault.field.eq(COMMAND_FIELD + COMMAND.index("opcode"))]
        with m.Elif(misaligned | (read & self._outside(command.descriptor))):
            m.d.comb += [
                fault.code.eq(Mux(misaligned, Error.DESCRIPTOR_ALIGNMENT, Error.WINDOW)),
                fault.field.eq(COMMAND_FIELD + number),
            ]
        if self._params.cores > 1:
            with m.If(self.stopped):
                m.d.comb += [fault.code.eq(ClusterError.STOPPED), fault.field.eq(0)]
        return fault

    def _outside(self, address):
        """Whether the 128 bytes from ``address`` on, a multiple of 64, leave the global window."""
        windows, width = self.windows, self._params.addr_width
        page = address[12:width]
        # Only a descriptor in the last 64 bytes of a page extends into the next page.
        reaches = address[_LINE_LOG2:12].all()
        return windows.confine_global & (
            address[width:].any()
            | (page < windows.global_first)
            | (page > windows.global_last)
            | (reaches & (page == windows.global_last))
        )

"""Where checked descriptors are kept: memories that are written piece by piece."""

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

#: Numbers in a block memory. What remains says how a command is set up, or is added up and compared where it is read,
#: and comes from registers, but with ``params.spares_tables``.
_NUMBERS = ("address", "last", "fill", "gap")
#: Dimensions of which a descriptor's place has space.
_DIMENSIONS = 8


class DescriptorStore(wiring.Component):
    """As many descriptors as the cache has entries."""

    def __init__(self, params):
        self._params, self._depth, self._all = params, params.cache_entries, params.spares_tables
        super().__init__(
            {
                # Where is written. Not where is read from, as long as that is looked at.
                "place": In(ceil_log2(params.cache_entries)),
                # Dimensions to be written, of which strobes tell which.
                "lists": In(DerivedLayout(params)),
                # To be written with ``write``.
                "i": In(CheckedLayout(params)),
                # Strobe.
                "write": In(1),
                # Strobe: read what was written before this cycle at ``read_place``, and of its dimensions the first.
                "read": In(1),
                "read_place": In(ceil_log2(params.cache_entries)),
                # The place that was read last. Registered.
                "shown": Out(ceil_log2(params.cache_entries)),
                # From the cycle after ``read`` until the next one. What is written in the cycle of the read may be
                # anything.
                "o": Out(CheckedLayout(params)),
                # Of the place that was read last; ``look`` means nothing together with ``read``.
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


_LINE_LOG2 = 6  # descriptors are 64-byte aligned

#: Operations that exist with a feature only (docs/tmau.md, "Features").
_FEATURES = {
    Opcode.STORE: "stores",
    Opcode.REDUCE: "reductions_global",
    Opcode.REPLACE: "reductions_global",
    Opcode.LANES: "lanes",
}


class DescriptorCache(wiring.Component):
    """Fully associative cache of checked descriptors, in front of setup.

    Commands leave in order, one every two cycles on hits, with a latency of 1: a command is at the output before it is
    taken. A miss requests the descriptor in the cycle after the command is offered, and hands the command on 21 cycles
    after the last word has come. It takes the place of the descriptor that came longest ago; if that is the output's,
    the request waits until the output is taken. While a command waits for setup behind this block, the next one looks
    its descriptor up here already, and fetches it if need be: that is the prefetch. Descriptors that break a rule, or
    came with a bus error, are not kept.

    A REPLACE drops the descriptor that it changes. No command behind it leaves, or is looked up, until the change is in
    memory.
    """

    def __init__(self, params):
        self.params = params
        self.check = DescriptorCheck(params)
        self.tags = TagArray(params.cache_entries, params.addr_width - _LINE_LOG2)
        self.store = DescriptorStore(params)
        self.place = Signal(self.store.place.shape())  # of the descriptor of the command at the input
        self.fault = Signal(FaultLayout())  # what is wrong with that command
        self.found = Signal(FaultLayout())  # the same, from the cycle on in which it is looked up
        self.looked = Signal()  # it was found, or needs none, in the cycle before
        self.leave = Signal()  # it goes to the output
        super().__init__(
            {
                # A command is taken when its descriptor is known. ``ready`` depends on registers only.
                "i": In(stream.Signature(command_layout())),
                # ``i`` shows another command in the next cycle, or the first one.
                "moves": In(1),
                # The member ``descriptor`` of that one.
                "ahead": In(64),
                # Registered. ``fault`` holds OPCODE, DESCRIPTOR_ALIGNMENT, UNSUPPORTED, WINDOW, or what the descriptor
                # check found.
                "o": Out(stream.Signature(LookupLayout(params))),
                # Of the descriptor at ``o``.
                "dimensions": In(ListSignature(params)),
                # Global byte address of a descriptor to be read.
                "fetch": Out(stream.Signature(params.addr_width)),
                # Its bus words. Always ready.
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                # Commands that are looked up are refused.
                **({"stopped": In(1)} if params.cores > 1 else {}),
                # Descriptors outside the global window are neither fetched nor used.
                "windows": In(WindowsLayout(params)),
                # No command is in a block behind this one, and none at ``o``.
                "quiescent": In(1),
                # Strobe: drop every descriptor. One that is being fetched serves its command and is then dropped.
                "invalidate_all": In(1),
                # A command found its descriptor, or requested it: one of them, once for each command on a tensor that
                # is not refused for itself.
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
            tags.tag.eq(self.i.payload.descriptor[_LINE_LOG2 : self.params.addr_width]),
            tags.look.eq(self.moves),
            tags.ahead.eq(self.ahead[_LINE_LOG2 : self.params.addr_width]),
            tags.invalidate_all.eq(self.invalidate_all),
            store.lists.eq(check.lists),
            store.write.eq(check.done),
            store.i.eq(check.checked),
            store.place.eq(self.place),
            store.read_place.eq(self.place),
            self.found.eq(self.fault),
        ]
        # Where its descriptor is read, if it is there, is a register: many memories have this address.
        with m.If(self.moves):
            m.d.sync += self.place.eq(tags.place)
        holding, sound = self._hold(m), self.fault.code == Error.NONE
        # What counts, and what is dropped, a cycle after the command was looked up: its faults are known then.
        m.d.sync += self.looked.eq(0)
        m.d.comb += [
            self.hit_stb.eq(self.looked & self._is(self.i.payload, *TENSOR_OPCODES) & sound),
            tags.invalidate.eq(self.looked & self._is(self.i.payload, Opcode.INVALIDATE, Opcode.REPLACE) & sound),
        ]
        with m.FSM():
            with m.State("Look up"):
                self._look_up(m, holding)
            with m.State("Take"):
                m.d.comb += self.i.ready.eq(1)
                m.next = "Look up"
            with m.State("Ask"):
                # Dimensions of the command at the output are read as they are wanted.
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
                # Not yet when the output is being taken: no ready from behind gets to the enables of so many registers.
                m.d.comb += [self.leave.eq(~self.o.valid), self.i.ready.eq(~self.o.valid)]
                with m.If(self.leave):
                    m.next = "Look up"
        self._hand_on(m)
        return m

    def _look_up(self, m, holding):
        """What the command at the input needs; each passes here for one cycle."""
        tags, command = self.tags, self.i.payload
        fault = self._command_fault(m, command)
        m.d.comb += self.found.eq(fault)
        m.d.sync += self.fault.eq(fault)
        with m.If(self.i.valid & ~tags.hit):
            m.d.sync += self.place.eq(tags.victim)
        with m.If(self.i.valid & ~holding):
            with m.If(self._is(command, *TENSOR_OPCODES) & ~tags.hit):
                m.next = "Ask"
            with m.Else():
                m.d.sync += self.looked.eq(1)
                with m.If(command.opcode == Opcode.INVALIDATE_ALL):
                    m.d.comb += tags.invalidate_all.eq(1)
                m.d.comb += self.leave.eq(~self.o.valid)
                m.next = "Answer"
                with m.If(~self.o.valid):
                    m.next = "Take"

    def _fetch(self, m):
        """A descriptor is on its way into the store, in the place of the victim."""
        tags, check = self.tags, self.check
        discard = Signal()  # an invalidation came meanwhile
        m.d.sync += discard.eq((discard | self.invalidate_all) & ~check.done)
        with m.If(check.done):
            keep = (check.fault.code == Error.NONE) & ~discard
            m.d.comb += [tags.insert.eq(keep), tags.evict.eq(~keep)]
            m.d.sync += self.fault.eq(check.fault)
            m.next = "Answer"

    def _hold(self, m):
        """Whether a REPLACE is behind this block."""
        holding = Signal()
        taken = self.i.valid & self.i.ready
        with m.If(taken & self._is(self.i.payload, Opcode.REPLACE) & (self.fault.code == Error.NONE)):
            m.d.sync += holding.eq(1)
        with m.Elif(self.quiescent):
            m.d.sync += holding.eq(0)
        return holding

    def _hand_on(self, m):
        """The output: the command in registers, its descriptor in the store's."""
        free = ~self.o.valid
        m.d.comb += [self.store.read.eq(free), self.o.payload.checked.eq(self.store.o)]
        # What has been looked up is not known in time for the enables of so many registers.
        with m.If(free):
            m.d.sync += [self.o.payload.command.eq(self.i.payload), self.o.payload.fault.eq(self.found)]
        with m.If(self.leave):
            m.d.sync += self.o.valid.eq(1)
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)

    @staticmethod
    def _is(command, *opcodes):
        """Whether the command has one of the opcodes."""
        return Cat(command.opcode == opcode for opcode in opcodes).any()

    def _command_fault(self, m, command):
        """What is wrong with the command before its descriptor is known."""
        fault = Signal(FaultLayout())
        known, missing = Signal(), Signal()
        named, read = Signal(), Signal()  # the command names a descriptor; and it is read here
        with m.Switch(command.opcode):
            with m.Case(*TENSOR_OPCODES):
                m.d.comb += [known.eq(1), named.eq(1), read.eq(1)]
            with m.Case(Opcode.INVALIDATE, Opcode.REPLACE):
                m.d.comb += [known.eq(1), named.eq(1)]
            with m.Case(*Opcode):
                m.d.comb += known.eq(1)
        missing_opcodes = [opcode for opcode, feature in _FEATURES.items() if not self.params.has(feature)]
        m.d.comb += missing.eq(self._is(command, *missing_opcodes))
        misaligned = named & command.descriptor[:_LINE_LOG2].any()
        # The same bits in both formats, but not the same number.
        number = Mux(command.opcode == Opcode.REPLACE, REPLACE.index("descriptor"), COMMAND.index("descriptor"))
        with m.If(~known):
            m.d.comb += [
                fault.code.eq(Error.OPCODE),
                fault.field.eq(COMMAND_FIELD + COMMAND.index("opcode")),
            ]
        with m.Elif(missing & ~misaligned):
            m.d.comb += [
                fault.code.eq(Error.UNSUPPORTED),
                fault.field.eq(COMMAND_FIELD + COMMAND.index("opcode")),
            ]
        with m.Elif(misaligned | (read & self._outside(command.descriptor))):
            m.d.comb += [
                fault.code.eq(Mux(misaligned, Error.DESCRIPTOR_ALIGNMENT, Error.WINDOW)),
                fault.field.eq(COMMAND_FIELD + number),
            ]
        if self.params.cores > 1:
            with m.If(self.stopped):
                m.d.comb += [fault.code.eq(ClusterError.STOPPED), fault.field.eq(0)]
        return fault

    def _outside(self, address):
        """Whether the 128 bytes from ``address`` on, a multiple of 64, leave the global window."""
        windows, width = self.windows, self.params.addr_width
        page = address[12:width]
        # Only a descriptor in the last 64 bytes of a page reaches into the next page.
        reaches = address[_LINE_LOG2:12].all()
        return windows.confine_global & (
            address[width:].any()
            | (page < windows.global_first)
            | (page > windows.global_last)
            | (reaches & (page == windows.global_last))
        )

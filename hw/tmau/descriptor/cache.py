"""The descriptor cache: each command meets its checked descriptor, from the cache or from memory."""

from amaranth import Module, Mux, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import COMMAND, COMMAND_FIELD, REPLACE, TENSOR_OPCODES, Error, Opcode

from ...bus.commands import command_layout
from ...bus.reads import DescriptorWordLayout
from ...lib.cam import TagArray
from ..layouts import WindowsLayout
from .check import DescriptorCheck
from .layouts import CheckedLayout, FaultLayout, LookupLayout

__all__ = ["DescriptorCache"]

_LINE_LOG2 = 6  # descriptors are 64-byte aligned


class DescriptorCache(wiring.Component):
    """Fully associative cache of checked descriptors, in front of setup.

    Commands leave in order, one a cycle on hits, with a latency of 1. A miss requests the descriptor in the cycle in
    which the command is offered and hands the command on four cycles after the last word has come. While a command
    waits for setup behind this block, the next one looks its descriptor up here already, and fetches it if need be:
    that is the prefetch. Descriptors that break a rule, or came with a bus error, are not kept.

    A REPLACE drops the descriptor that it changes. No command behind it leaves, or is looked up, until the change is in
    memory.

    Members
    -------
    i : In(stream of command_layout())
        A command is taken when its descriptor is known.
    o : Out(stream of LookupLayout)
        ``fault`` holds OPCODE, DESCRIPTOR_ALIGNMENT, WINDOW, or what the descriptor check found.
    windows : In(WindowsLayout)
        Descriptors outside the global window are neither fetched nor used.
    quiescent : In(1)
        No command is in a block behind this one, and none at ``o``.
    fetch : Out(stream of params.addr_width)
        Global byte address of a descriptor to be read.
    words : In(stream of DescriptorWordLayout)
        Its bus words. Always ready.
    invalidate_all : In(1)
        Strobe: drop every descriptor. One that is being fetched serves its command and is then dropped.
    hit_stb, miss_stb : Out(1)
        A command found its descriptor, or requested it.
    """

    def __init__(self, params):
        self.params = params
        self.check = DescriptorCheck(params)
        self.tags = TagArray(params.cache_entries, params.addr_width - _LINE_LOG2)
        self.memory = Memory(shape=CheckedLayout(params), depth=params.cache_entries, init=[])
        self.write = self.memory.write_port()
        # Transparent, so that a descriptor is handed on in the cycle in which it is written.
        self.read = self.memory.read_port(transparent_for=(self.write,))
        self.looking = Signal()  # the command at the input looks its descriptor up
        self.leave = Signal()  # it moves to the output
        self.refusing = Signal()  # and is refused for what is wrong with its descriptor
        super().__init__(
            {
                "i": In(stream.Signature(command_layout())),
                "o": Out(stream.Signature(LookupLayout(params))),
                "fetch": Out(stream.Signature(params.addr_width)),
                "words": In(stream.Signature(DescriptorWordLayout(params.bus_bytes))),
                "windows": In(WindowsLayout(params)),
                "quiescent": In(1),
                "invalidate_all": In(1),
                "hit_stb": Out(1),
                "miss_stb": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.check = check = self.check
        m.submodules.tags = tags = self.tags
        m.submodules.memory = self.memory
        wiring.connect(m, words=wiring.flipped(self.words), check=check.words)

        address = Signal(self.params.addr_width)
        m.d.comb += [
            address.eq(self.i.p.descriptor),
            self.fetch.p.eq(address),
            tags.tag.eq(address >> _LINE_LOG2),
            tags.update_tag.eq(tags.tag),
            self.write.addr.eq(tags.insert_index),
            self.write.data.eq(check.checked),
        ]
        fault, refused = self._command_fault(m, self.i.p), Signal(FaultLayout())
        sound = fault.code == Error.NONE
        holding = self._hold(m, sound)
        free = self._hand_on(m, fault, refused, holding)
        wanted, discard = self._look_up(m, sound, holding)
        self._sequence(m, wanted, free, discard)
        with m.If(check.done):
            m.d.sync += refused.eq(check.fault)
        return m

    def _hold(self, m, sound):
        """Whether a REPLACE is behind this block."""
        holding = Signal()
        with m.If(self.leave & (self.i.p.opcode == Opcode.REPLACE) & sound):
            m.d.sync += holding.eq(1)
        with m.Elif(self.quiescent):
            m.d.sync += holding.eq(0)
        return holding

    def _hand_on(self, m, fault, refused, holding):
        """The output: the command in registers, its descriptor in the read port's; whether they are free."""
        command, out_fault, valid = Signal(command_layout()), Signal(FaultLayout()), Signal()
        with m.If(~valid | self.o.ready):
            m.d.sync += valid.eq(self.leave)
        with m.If(self.leave):
            m.d.sync += [command.eq(self.i.p), out_fault.eq(Mux(self.refusing, refused, fault))]
        m.d.comb += [
            self.i.ready.eq(self.leave),
            self.read.en.eq(self.leave),
            self.o.valid.eq(valid),
            self.o.p.command.eq(command),
            self.o.p.checked.eq(self.read.data),
            self.o.p.fault.eq(out_fault),
        ]
        return ~holding & (~valid | self.o.ready)

    def _look_up(self, m, sound, holding):
        """Whether the command needs a descriptor, and whether that is dropped as it comes."""
        tags, leave = self.tags, self.leave
        wanted, drops, drops_all = Signal(), Signal(), Signal()
        missed = Signal()  # the command at the input has been counted as a miss
        discard = Signal()  # an invalidation came while the descriptor was on its way
        with m.Switch(self.i.p.opcode):
            with m.Case(*TENSOR_OPCODES):
                m.d.comb += wanted.eq(sound)
            with m.Case(Opcode.INVALIDATE, Opcode.REPLACE):
                m.d.comb += drops.eq(sound)
            with m.Case(Opcode.INVALIDATE_ALL):
                m.d.comb += drops_all.eq(1)
        m.d.comb += [
            self.fetch.valid.eq(self.looking & self.i.valid & wanted & ~tags.hit & ~holding),
            self.miss_stb.eq(self.fetch.valid & self.fetch.ready),
            self.hit_stb.eq(self.looking & leave & wanted & ~missed),
            tags.invalidate.eq(self.looking & leave & drops),
            tags.invalidate_all.eq(self.invalidate_all | (self.looking & leave & drops_all)),
        ]
        with m.If(self.miss_stb):
            m.d.sync += [missed.eq(1), discard.eq(self.invalidate_all)]
        with m.Elif(leave):
            m.d.sync += missed.eq(0)
        with m.Elif(self.invalidate_all):
            m.d.sync += discard.eq(1)
        return wanted, discard

    def _sequence(self, m, wanted, free, discard):
        """Look up, fetch, refuse."""
        tags, check, leave = self.tags, self.check, self.leave
        with m.FSM():
            with m.State("Look up"):
                m.d.comb += [self.looking.eq(1), self.read.addr.eq(tags.index)]
                m.d.comb += leave.eq(self.i.valid & (tags.hit | ~wanted) & free)
                with m.If(self.miss_stb):
                    m.next = "Fetch"
            with m.State("Fetch"):
                m.d.comb += self.read.addr.eq(tags.insert_index)
                with m.If(check.done & (check.fault.code != Error.NONE)):
                    m.next = "Refuse"
                with m.Elif(check.done):
                    # Written even if it is to be dropped: then no entry holds a tag, and none is harmed.
                    m.d.comb += [
                        self.write.en.eq(1),
                        tags.insert.eq(~discard & ~self.invalidate_all),
                        leave.eq(free),  # otherwise the command looks up again, and hits
                    ]
                    m.next = "Look up"
            with m.State("Refuse"):
                m.d.comb += [self.refusing.eq(1), leave.eq(free)]
                with m.If(free):
                    m.next = "Look up"

    def _command_fault(self, m, command):
        """What is wrong with the command before its descriptor is known."""
        fault = Signal(FaultLayout())
        known = Signal()
        named, read = Signal(), Signal()  # the command names a descriptor; and it is read here
        with m.Switch(command.opcode):
            with m.Case(*TENSOR_OPCODES):
                m.d.comb += [known.eq(1), named.eq(1), read.eq(1)]
            with m.Case(Opcode.INVALIDATE, Opcode.REPLACE):
                m.d.comb += [known.eq(1), named.eq(1)]
            with m.Case(*Opcode):
                m.d.comb += known.eq(1)
        misaligned = command.descriptor[:_LINE_LOG2].any()
        # The same bits in both formats, but not the same number.
        number = Mux(command.opcode == Opcode.REPLACE, REPLACE.index("descriptor"), COMMAND.index("descriptor"))
        with m.If(~known):
            m.d.comb += [
                fault.code.eq(Error.OPCODE),
                fault.field.eq(COMMAND_FIELD + COMMAND.index("opcode")),
            ]
        with m.Elif((named & misaligned) | (read & self._outside(command.descriptor))):
            m.d.comb += [
                fault.code.eq(Mux(misaligned, Error.DESCRIPTOR_ALIGNMENT, Error.WINDOW)),
                fault.field.eq(COMMAND_FIELD + number),
            ]
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

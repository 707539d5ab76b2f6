"""Checks of a word of a program: its bits, and the ranges of memory that it names."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec import PAGE_BYTES, BarrierOp
from tilewright.spec.core import (
    ARGUMENTS,
    BARRIER_VALUES,
    JOB_WORDS,
    PAGER_TAG_BIT,
    PROGRAM_WORDS,
    WRITABLE,
    Engine,
    Kind,
    ProgramError,
)

from ...lib.layouts import packed_layout
from .layouts import LINE_LOG2, DecodedLayout, FetchedLayout

__all__ = ["RangeCheck", "WindowLayout", "WordDecoder", "word_view"]


#: Numbers of uniform registers that a word can name.
_UNIFORM_REGISTERS = 256


def word_view(kind, word):
    """The bits of ``word`` as the format of ``kind``."""
    return data.View(packed_layout(PROGRAM_WORDS[kind]), word)


class WordDecoder(wiring.Component):
    """Checks that need a word alone (docs/core.md, "Errors"). The halves of a job are not looked at.

    Latency 1; a word every second cycle.

    Parameters
    ----------
    params : CoreParams

    Attributes
    ----------
    operands : Signal
        Words that come next and belong to a job.
    """

    def __init__(self, params):
        self._params = params
        self.operands = Signal(range(JOB_WORDS + 1))
        super().__init__(
            {
                # ``ready`` is a register.
                "i": In(stream.Signature(FetchedLayout())),
                # The word at the output is dropped and none is accepted; after it, no job is expected.
                "drop": In(1),
                # Registered; withdrawn by ``drop``.
                "o": Out(stream.Signature(DecodedLayout())),
            }
        )

    def elaborate(self, platform):
        m = Module()
        word, fetched = self.i.payload.word, self.i.payload.code
        checked = Signal(DecodedLayout())
        came, is_half = fetched == ProgramError.NONE, self.operands != 0
        code = Signal(8)
        for error, wrong in reversed(self._refusals(m, word)):
            with m.If(wrong):
                m.d.comb += code.eq(error)
        kind = word_view(Kind.END, word).kind
        m.d.comb += [
            checked.word.eq(word),
            checked.kind.eq(kind),
            checked.code.eq(Mux(came & ~is_half, code, fetched)),
            checked.tag.eq(Mux(came & ~is_half, word_view(Kind.END, word).tag, 0)),
            self.i.ready.eq(~self.o.valid),
        ]
        with m.If(self.drop):
            m.d.sync += [self.o.valid.eq(0), self.operands.eq(0)]
        with m.Elif(~self.o.valid):
            m.d.sync += [self.o.valid.eq(self.i.valid), self.o.payload.eq(checked)]
            with m.If(self.i.valid):
                m.d.sync += self.operands.eq(Mux(is_half, self.operands - 1, Mux(kind == Kind.CONV, JOB_WORDS, 0)))
        with m.Elif(self.o.ready):
            m.d.sync += self.o.valid.eq(0)
        return m

    def _refusals(self, m, word):
        """Pairs of an error and whether it is there, the lowest code first."""
        run, loop, kernel = (word_view(kind, word) for kind in (Kind.PE, Kind.LOOP, Kind.KERNEL))
        kind = run.kind
        return (
            (ProgramError.KIND, (kind == 0) | (kind > max(Kind))),
            (ProgramError.RESERVED, self._reserved(m, word, kind) | ((kind == Kind.KERNEL) & self._left_over(kernel))),
            (ProgramError.MISSING, self._missing(kind, word)),
            (ProgramError.COUNT, ((kind == Kind.PE) | (kind == Kind.LOOP)) & (run.count == 0)),
            (
                ProgramError.COUNT,
                (kind == Kind.KERNEL)
                & ((kernel.count > ARGUMENTS) | (kernel.first + kernel.count > _UNIFORM_REGISTERS)),
            ),
            (ProgramError.ADDRESS, (kind == Kind.PE) & run.address[:LINE_LOG2].any()),
            (ProgramError.LOOP, (kind == Kind.LOOP) & (loop.back == 0)),
            (ProgramError.REGISTER, (kind == Kind.REGISTER) & self._no_register(m, word)),
            (ProgramError.BARRIER, (kind == Kind.BARRIER) & self._no_barrier(word)),
        )

    def _reserved(self, m, word, kind):
        """A bit of no field; most bits are so in all kinds, and are looked at once."""
        masks = {kind: fmt.reserved_mask for kind, fmt in PROGRAM_WORDS.items() if kind != Kind.TMAU}
        common = -1
        for mask in masks.values():
            common &= mask
        wrong = Signal()
        with m.Switch(kind):
            with m.Case(Kind.TMAU):
                m.d.comb += wrong.eq(word[PAGER_TAG_BIT])
            for other, mask in masks.items():
                with m.Case(other):
                    m.d.comb += wrong.eq((word & mask & ~common).any() | (word & common).any())
        return wrong

    @staticmethod
    def _left_over(kernel):
        """An argument beyond their number is not 0."""
        return Cat((kernel.count <= n) & kernel[f"argument{n}"].any() for n in range(ARGUMENTS)).any()

    def _missing(self, kind, word):
        """MISSING: the word needs the convolution engine."""
        if self._params.conv:
            return 0
        register = word_view(Kind.REGISTER, word)
        return (kind == Kind.CONV) | ((kind == Kind.REGISTER) & (register.engine == Engine.CONV))

    def _no_register(self, m, word):
        """REGISTER: no register of that engine that programs write."""
        write = word_view(Kind.REGISTER, word)
        wrong = Signal(init=1)
        for engine, registers in WRITABLE.items():
            with m.If(write.engine == engine), m.Switch(write.offset):
                with m.Case(*registers):
                    m.d.comb += wrong.eq(0)
        return wrong

    def _no_barrier(self, word):
        """BARRIER: no operation, no place of a barrier in shared memory, or a value that no barrier has."""
        call, width = word_view(Kind.BARRIER, word), (BARRIER_VALUES - 1).bit_length()
        return (
            (call.operation > max(BarrierOp))
            | call.barrier[:3].any()
            | call.barrier[self._params.smem.addr_width :].any()
            | call.value[width:].any()
            | ((call.operation == BarrierOp.TRY_WAIT) & call.value[1:].any())
        )


_PAGE_LINES = PAGE_BYTES >> LINE_LOG2


class WindowLayout(data.StructLayout):
    """What a window confines to, in pages that exist."""

    def __init__(self, addr_width):
        page = unsigned(addr_width - (PAGE_BYTES - 1).bit_length())
        super().__init__({"confine": 1, "first": page, "last": page})


class RangeCheck(wiring.Component):
    """Compares the first and the last line of a range with the address space and the window, in four cycles.

    Parameters
    ----------
    addr_width : int
        Bits of a byte address that exist.
    """

    def __init__(self, addr_width):
        self._addr_width = addr_width
        super().__init__(
            {
                # The first one: byte address >> 6. All inputs hold from ``go`` to ``done``.
                "line": In(64 - LINE_LOG2),
                # How many; a range of none leaves no window.
                "lines": In(32),
                "window": In(WindowLayout(addr_width)),
                # Strobe: check.
                "go": In(1),
                # Strobe, four cycles later.
                "done": Out(1),
                # ADDRESS, WINDOW or NONE; with ``done``.
                "code": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        there = self._addr_width - LINE_LOG2
        steps = Signal(3)
        end, last = Signal(len(self.line) + 1), Signal(there)
        outside, below, above = Signal(), Signal(), Signal()
        leaves = self.window.confine & (below | above)
        m.d.sync += [
            Cat(steps, self.done).eq(Cat(self.go, steps)),
            end.eq(self.line + self.lines),
            last.eq(end - 1),
            outside.eq((end[there:] > 1) | (end[there] & end[:there].any())),
            below.eq((self.lines != 0) & (self.line[:there] // _PAGE_LINES < self.window.first)),
            above.eq((self.lines != 0) & (last // _PAGE_LINES > self.window.last)),
            self.code.eq(Mux(outside, ProgramError.ADDRESS, Mux(leaves, ProgramError.WINDOW, ProgramError.NONE))),
        ]
        return m

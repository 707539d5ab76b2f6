"""Whether lines lie in the address space, and in the window."""

from amaranth.hdl import Cat, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec import PAGE_BYTES
from tilewright.golden.spec.core.errors import ProgramError

from .layouts import LINE_LOG2

__all__ = ["RangeCheck", "WindowLayout"]

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

    Members
    -------
    line : In(58)
        The first one: byte address >> 6. All inputs hold from ``go`` to ``done``.
    lines : In(32)
        How many; a range of none leaves no window.
    window : In(WindowLayout(addr_width))
    go : In(1)
        Strobe: check.
    done : Out(1)
        Strobe, four cycles later.
    code : Out(8)
        ADDRESS, WINDOW or NONE; with ``done``.
    """

    def __init__(self, addr_width):
        self._addr_width = addr_width
        super().__init__(
            {
                "line": In(64 - LINE_LOG2),
                "lines": In(32),
                "window": In(WindowLayout(addr_width)),
                "go": In(1),
                "done": Out(1),
                "code": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        there = self._addr_width - LINE_LOG2
        steps = Signal(3)
        end, last = Signal(len(self.line) + 1), Signal(there)
        outside, before, behind = Signal(), Signal(), Signal()
        leaves = self.window.confine & (before | behind)
        m.d.sync += [
            Cat(steps, self.done).eq(Cat(self.go, steps)),
            end.eq(self.line + self.lines),
            last.eq(end - 1),
            outside.eq((end[there:] > 1) | (end[there] & end[:there].any())),
            before.eq((self.lines != 0) & (self.line[:there] // _PAGE_LINES < self.window.first)),
            behind.eq((self.lines != 0) & (last // _PAGE_LINES > self.window.last)),
            self.code.eq(Mux(outside, ProgramError.ADDRESS, Mux(leaves, ProgramError.WINDOW, ProgramError.NONE))),
        ]
        return m

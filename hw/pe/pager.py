"""The pager: moves pages by TMAU commands, whose completions update the page entries (docs/pe.md, "Pages")."""

from enum import IntEnum

from amaranth.hdl import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import PAGE_ENTRY

from ..lib.layouts import command_layout, packed_layout
from .layouts import PageWriteLayout

__all__ = ["PAGER_TAG", "MoveDoneLayout", "Pager", "PagerOp", "PagerRequestLayout"]

#: The pager's commands have this tag plus the number of the page entry. All other commands have lower tags.
PAGER_TAG = 0x8000


class PagerOp(IntEnum):
    """What is done with a page."""

    IN = 0  #: the command loads the page; then its entry is valid, loaded and on chip, at ``address``
    OUT = 1  #: the command stores the page; then its entry is deleted
    DROP = 2  #: the entry is deleted, without a command


class PagerRequestLayout(data.StructLayout):
    """A page to be moved or dropped."""

    def __init__(self, params):
        super().__init__(
            {
                "op": unsigned(2),  # PagerOp
                "entry": unsigned(params.page_width),
                "address": unsigned(32),  # IN: byte address for the entry
                "command": unsigned(512),  # IN, OUT: TMAU command; its tag is replaced
            }
        )


class MoveDoneLayout(data.StructLayout):
    """Completion of a TMAU command."""

    def __init__(self):
        super().__init__(
            {
                "valid": 1,  # strobe
                "tag": unsigned(16),  # of the command
                "error": 1,  # it ended with an error
            }
        )


class Pager(wiring.Component):
    """Moves pages, one at a time.

    ``commands`` and ``writes`` are combinational from ``requests``. A request is accepted in the cycle after its entry
    is written, or after an error. DROP takes three cycles. IN and OUT issue their command without latency, and are
    accepted two cycles after its completion.
    """

    def __init__(self, params):
        super().__init__(
            {
                "requests": In(stream.Signature(PagerRequestLayout(params))),
                "commands": Out(stream.Signature(command_layout())),
                "done": In(MoveDoneLayout()),  # completions of all TMAU commands; other tags are ignored
                "writes": Out(stream.Signature(PageWriteLayout(params))),
                "moved": Out(1),  # strobe: a request is done
                "failed": Out(1),  # strobe: a request ended without effect, by a failed command or an unknown op
            }
        )

    def elaborate(self, platform):
        m = Module()
        request = self.requests.payload
        tag = Signal(16)
        word = data.View(packed_layout(PAGE_ENTRY), self.writes.payload.word)
        m.d.comb += [
            tag.eq(PAGER_TAG | request.entry),
            self.commands.payload.eq(request.command),
            self.commands.payload.tag.eq(tag),
            self.writes.payload.index.eq(request.entry),
            self.requests.ready.eq(self.moved | self.failed),
        ]
        with m.If(request.op == PagerOp.IN):
            m.d.comb += word.address.eq(request.address)
            m.d.comb += Cat(word.valid, word.loaded, word.on_chip).eq(-1)

        with m.FSM():
            with m.State("Begin"), m.If(self.requests.valid):
                with m.Switch(request.op):
                    with m.Case(PagerOp.IN, PagerOp.OUT):
                        m.d.comb += self.commands.valid.eq(1)
                        with m.If(self.commands.ready):
                            m.next = "Move"
                    with m.Case(PagerOp.DROP):
                        m.next = "Write"
                    with m.Default():
                        m.next = "Failed"
            with m.State("Move"):
                with m.If(self.done.valid & (self.done.tag == tag)):
                    m.next = "Failed"
                    with m.If(~self.done.error):
                        m.next = "Write"
            with m.State("Write"):
                m.d.comb += self.writes.valid.eq(1)
                with m.If(self.writes.ready):
                    m.next = "Moved"
            # States of their own keep requests.ready independent of the other writers of the page table.
            for state, strobe in (("Moved", self.moved), ("Failed", self.failed)):
                with m.State(state):
                    m.d.comb += strobe.eq(1)
                    m.next = "Begin"
        return m

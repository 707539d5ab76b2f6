"""The pager: pages come and go by commands of the TMAU, whose completion changes their entries.

Specification: docs/pe.md, "Pages".
"""

from enum import IntEnum

from amaranth import Cat, Module, Signal, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.data import View
from amaranth.lib.wiring import In, Out

from tilewright.spec.pe import PAGE_ENTRY

from ..lib.layouts import command_layout, packed_layout
from .layouts import PageWriteLayout

__all__ = ["PAGER_TAG", "MoveDoneLayout", "Pager", "PagerOp", "PagerRequestLayout"]

#: Tags of the pager's commands: this plus the number of the page entry. No other command has a tag from here on.
PAGER_TAG = 0x8000


class PagerOp(IntEnum):
    """What is done with a page."""

    IN = 0  #: the command brings it; then its entry says valid, loaded and on chip, at ``address``
    OUT = 1  #: the command takes it away; then its entry is deleted
    DROP = 2  #: its entry is deleted; there is no command


class PagerRequestLayout(data.StructLayout):
    """A page to be moved, and how."""

    def __init__(self, params):
        super().__init__(
            {
                "op": unsigned(2),  # PagerOp
                "entry": unsigned(params.page_width),
                "address": unsigned(32),  # IN: byte address that the entry is to hold
                "command": unsigned(512),  # IN, OUT: of the TMAU; its tag does not matter
            }
        )


class MoveDoneLayout(data.StructLayout):
    """A command of the TMAU is complete."""

    def __init__(self):
        super().__init__(
            {
                "valid": 1,  # strobe
                "tag": unsigned(16),  # of the command
                "error": 1,  # it ended with one
            }
        )


class Pager(wiring.Component):
    """Moves pages, one after the other.

    A request is accepted in the cycle after its entry is written, or, after an error, is known not to be. DROP takes
    three cycles; IN and OUT take none from request to command, and two from completion to acceptance.

    Members
    -------
    requests : In(stream of PagerRequestLayout)
    commands : Out(stream of command_layout())
        With the tag ``PAGER_TAG`` + entry. Combinational from ``requests``.
    done : In(MoveDoneLayout)
        Strobe with the completions of all commands of the TMAU; other tags are ignored.
    writes : Out(stream of PageWriteLayout)
        To the page table. Combinational from ``requests``.
    moved : Out(1)
        Strobe: a request is done.
    failed : Out(1)
        Strobe: a request has ended without effect, as its command has failed, or its operation is unknown.
    """

    def __init__(self, params):
        super().__init__(
            {
                "requests": In(stream.Signature(PagerRequestLayout(params))),
                "commands": Out(stream.Signature(command_layout())),
                "done": In(MoveDoneLayout()),
                "writes": Out(stream.Signature(PageWriteLayout(params))),
                "moved": Out(1),
                "failed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        request = self.requests.p
        tag = Signal(16)
        word = View(packed_layout(PAGE_ENTRY), self.writes.p.word)
        m.d.comb += [
            tag.eq(PAGER_TAG | request.entry),
            self.commands.p.eq(request.command),
            self.commands.p.tag.eq(tag),
            self.writes.p.index.eq(request.entry),
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
            # The request is accepted from a register: who else writes pages is not waited for.
            for state, strobe in (("Moved", self.moved), ("Failed", self.failed)):
                with m.State(state):
                    m.d.comb += strobe.eq(1)
                    m.next = "Begin"
        return m

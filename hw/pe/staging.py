"""Staging: words that a processor has written one by one become one item of a stream."""

from amaranth import Cat, Module, Signal
from amaranth.lib import stream, wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.pe.registers import DATA_WORDS, PE_REGISTERS, Put

from ..bus.axi4_lite import AccessLayout
from ..lib.formats import packed_layout
from .layouts import INSTRUCTION_BITS, PageWriteLayout, SegmentWriteLayout
from .pager import PagerRequestLayout

__all__ = ["Staging"]

_REGISTERS = {register.name: register for register in PE_REGISTERS}
_PUT = _REGISTERS["put"]
#: No register is here: an access is refused.
_NOWHERE = 0xFFFF_FFFC


class Staging(wiring.Component):
    """Sends what is put, and guards the registers that it lies in until it is taken.

    Members
    -------
    accesses : In(stream of AccessLayout)
    checked : Out(stream of AccessLayout)
        The same on the way to the registers, combinational. If, in the cycle in which it is accepted, a write is one of
        ``data0`` or a later register and ``busy``, or one of an unknown kind or index to ``put``, its offset is that of
        no register: so it is refused.
    put : In(packed_layout(_PUT.format))
        Ones that were written, for one cycle.
    words : In(array of DATA_WORDS 32)
        Registers.
    page_address : In(32)
        Register.
    busy : Out(1)
        Something was put and has not been taken.
    instructions : Out(stream of INSTRUCTION_BITS)
        Valid from the cycle after ``put``, as the others.
    segments : Out(stream of SegmentWriteLayout)
    pages : Out(stream of PageWriteLayout)
    pager_requests : Out(stream of PagerRequestLayout)
    """

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout())),
                "checked": Out(stream.Signature(AccessLayout())),
                "put": In(packed_layout(_PUT.format)),
                "words": In(32).array(DATA_WORDS),
                "page_address": In(32),
                "busy": Out(1),
                "instructions": Out(stream.Signature(INSTRUCTION_BITS)),
                "segments": Out(stream.Signature(SegmentWriteLayout(params))),
                "pages": Out(stream.Signature(PageWriteLayout(params))),
                "pager_requests": Out(stream.Signature(PagerRequestLayout(params))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        self._guard(m)
        words = Cat(*self.words)
        kind, index = Signal(3), Signal(16)  # of what has not been taken; 0: there is nothing
        page_command = (Put.PAGE_IN, Put.PAGE_OUT, Put.PAGE_DROP)
        ports = (
            (self.instructions, (Put.INSTRUCTION,)),
            (self.segments, (Put.SEGMENT,)),
            (self.pages, (Put.PAGE,)),
            (self.pager_requests, page_command),
        )
        taken = Signal()
        with m.Switch(kind):
            for port, kinds in ports:
                with m.Case(*kinds):
                    m.d.comb += [port.valid.eq(1), taken.eq(port.ready)]
        with m.If(taken):
            m.d.sync += kind.eq(0)
        with m.Elif(self.put.kind.any()):
            m.d.sync += [kind.eq(self.put.kind), index.eq(self.put.index)]

        request = self.pager_requests.payload
        m.d.comb += [
            self.busy.eq(self.put.kind.any() | kind.any()),
            self.instructions.payload.eq(words),
            self.segments.payload.index.eq(index),
            self.segments.payload.word.eq(words),
            self.pages.payload.index.eq(index),
            self.pages.payload.word.eq(words),
            request.op.eq(kind - Put.PAGE_IN),
            request.entry.eq(index),
            request.address.eq(self.page_address),
            request.command.eq(words),
        ]
        return m

    def _guard(self, m):
        """Passes accesses on. Registers from ``data0`` on have addresses with one bit that no register before has."""
        access, checked = self.accesses.payload, self.checked.payload
        limits = {
            Put.INSTRUCTION: 1,
            Put.SEGMENT: self.params.segments,
            **dict.fromkeys((Put.PAGE, Put.PAGE_IN, Put.PAGE_OUT, Put.PAGE_DROP), self.params.pages),
        }
        fields = Signal(packed_layout(_PUT.format))
        wrong, refused = Signal(init=1), Signal()
        m.d.comb += fields.eq(access.data)
        with m.Switch(fields.kind):
            for kind, limit in limits.items():
                with m.Case(kind):
                    m.d.comb += wrong.eq(fields.index[limit.bit_length() - 1 :].any())  # limits are powers of two
        is_put = access.address[2:] == _PUT.offset >> 2
        staged = access.address[_REGISTERS["data0"].offset.bit_length() - 1]
        m.d.comb += [
            refused.eq(access.write & ((staged & self.busy) | (is_put & wrong))),
            self.checked.valid.eq(self.accesses.valid),
            self.accesses.ready.eq(self.checked.ready),
            checked.eq(access),
        ]
        with m.If(refused):
            m.d.comb += checked.address.eq(_NOWHERE)
        return m

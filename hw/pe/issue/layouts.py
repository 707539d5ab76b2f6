"""Payloads and ports between the blocks that issue instructions."""

from amaranth import unsigned
from amaranth.lib import data
from amaranth.lib.wiring import In, Out

from ...lib.join import Port

__all__ = ["ClearanceSignature", "MultiplyRegistersLayout", "RangeLayout"]


class RangeLayout(data.StructLayout):
    """Consecutive registers, of all threads."""

    def __init__(self, params):
        super().__init__({"first": unsigned(params.reg_width), "last": unsigned(params.reg_width)})


class MultiplyRegistersLayout(data.StructLayout):
    """Registers of an mm."""

    def __init__(self, params):
        super().__init__({"accumulators": RangeLayout(params), "factors": RangeLayout(params)})


class ClearanceSignature(Port):
    """Whether an access to registers may go ahead, as the instruction sees it that makes it.

    Members
    -------
    valid : Out(1)
        There is an access; without one all is clear.
    writes : Out(1)
        It writes its registers; otherwise it reads them.
    registers : Out(RangeLayout)
    clear : In(1)
        Nothing that the access reads is still to be written, nothing that it writes still to be read or written.
    """

    def __init__(self, params):
        super().__init__(
            {
                "valid": Out(1),
                "writes": Out(1),
                "registers": Out(RangeLayout(params)),
                "clear": In(1),
            }
        )

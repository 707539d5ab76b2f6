"""Payloads of the network."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.spec import LINE_BYTES

from ...smem.layouts import LoanRequestLayout, reduction_members

__all__ = ["AckLayout", "ArrivalLayout", "ChangeLayout", "EndLayout", "LoanArrivalLayout", "PacketLayout", "SentLayout"]


class ChangeLayout(data.StructLayout):
    """What a line of shared memory becomes: its old bytes are replaced, or reduced."""

    def __init__(self, params):
        super().__init__(
            {
                "row": unsigned(params.row_width),  # byte address >> 7
                "data": unsigned(8 * LINE_BYTES),
                "strobe": unsigned(LINE_BYTES),  # one bit a byte; with a reduction whole chunks of 16
                **reduction_members(),
            }
        )


class EndLayout(data.StructLayout):
    """The end of a transfer; members as in LandedLayout."""

    def __init__(self, params):
        super().__init__(
            {
                "barrier": unsigned(params.addr_width),
                "bytes": unsigned(params.addr_width + 1),
                "signal": unsigned(1),
                "failed": unsigned(1),
                "block": unsigned(1),
                "tag": unsigned(16),
            }
        )


class PacketLayout(data.StructLayout):
    """A packet from a core to another: a line, or the end of a transfer, some time after its last line."""

    def __init__(self, params):
        super().__init__(
            {
                "ends": unsigned(1),
                "turn": unsigned(2),  # of its transfer, as in LandedLayout
                "change": ChangeLayout(params),
                "end": EndLayout(params),
            }
        )


class SentLayout(data.StructLayout):
    """A packet, and whom it is for."""

    def __init__(self, params, cores):
        super().__init__({"packet": PacketLayout(params), "receivers": unsigned(cores)})


class ArrivalLayout(data.StructLayout):
    """A packet that a core takes in; of an end with what became of its transfer here."""

    def __init__(self, params, cores):
        super().__init__(
            {
                "packet": PacketLayout(params),
                "sender": unsigned(cores),  # one-hot
                "dropped": unsigned(1),  # not all lines of the transfer were taken
                "astray": unsigned(1),  # its barrier lies outside the window
            }
        )


class AckLayout(data.StructLayout):
    """A receiver has dealt with the end of a transfer, and so with all of it."""

    def __init__(self):
        super().__init__({"valid": unsigned(1), "refused": unsigned(1)})  # strobe; something of it was not taken


class LoanArrivalLayout(data.StructLayout):
    """A request for lines that a core takes in."""

    def __init__(self, params, cores):
        super().__init__({"request": LoanRequestLayout(params, cores), "sender": unsigned(cores)})  # sender: one-hot

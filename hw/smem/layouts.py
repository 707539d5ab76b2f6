"""Payloads at the ports of the shared memory."""

from amaranth import unsigned
from amaranth.lib import data

from .params import BANKS, LINE_BYTES

__all__ = [
    "BarrierRequestLayout",
    "BarrierResultLayout",
    "HostRequestLayout",
    "HostResponseLayout",
    "LandedLayout",
    "LineLayout",
    "ReadLayout",
    "read_data_layout",
]


class LineLayout(data.StructLayout):
    """A write of one line: all banks at the same row."""

    def __init__(self, params):
        super().__init__(
            {
                "row": unsigned(params.row_width),  # byte address >> 7
                "data": unsigned(8 * LINE_BYTES),  # chunk b, bits 128 b …, goes to bank b
                "strobe": unsigned(LINE_BYTES),  # one bit a byte
            }
        )


class ReadLayout(data.StructLayout):
    """A read of up to eight chunks, one a lane, anywhere."""

    def __init__(self, params):
        super().__init__(
            {
                "lanes": unsigned(BANKS),  # which lanes want a chunk; a lane that does not reads as anything
                "chunks": data.ArrayLayout(params.addr_width - 4, BANKS),  # byte address >> 4 of each lane's chunk
            }
        )


def read_data_layout():
    """Answer to a read: the chunk of each lane."""
    return data.ArrayLayout(128, BANKS)


class LandedLayout(data.StructLayout):
    """Bytes of a transfer that have landed, for the transaction count of a barrier."""

    def __init__(self, params):
        super().__init__({"barrier": unsigned(params.addr_width), "bytes": unsigned(params.addr_width + 1)})


class BarrierRequestLayout(data.StructLayout):
    """An operation of a processor on a barrier (tmau.md section 6)."""

    def __init__(self, params):
        super().__init__(
            {
                "op": unsigned(3),  # golden.spec.BarrierOp
                "address": unsigned(params.addr_width),  # byte address, multiple of 8
                "value": unsigned(21),  # arrivals, bytes or parity, as the operation says
            }
        )


class BarrierResultLayout(data.StructLayout):
    """Answer to a barrier operation, one for each request, in order."""

    def __init__(self):
        super().__init__(
            {
                "done": unsigned(1),  # try_wait: the phase of that parity is complete; other operations: the phase completed now
                "error": unsigned(1),  # refused, the barrier is unchanged: a count would leave its range, or misaligned
            }
        )


class HostRequestLayout(data.StructLayout):
    """A read or write of one 32-bit word by the host."""

    def __init__(self):
        super().__init__(
            {
                "address": unsigned(32),  # byte address in shared memory; the two lowest bits are ignored
                "write": unsigned(1),
                "data": unsigned(32),  # of a write
                "strobe": unsigned(4),  # of a write, one bit a byte
            }
        )


class HostResponseLayout(data.StructLayout):
    """Answer to the host, one for each request, in order."""

    def __init__(self):
        super().__init__(
            {
                "data": unsigned(32),  # of a read; otherwise anything
                "error": unsigned(1),  # the address lies outside shared memory, nothing was read or written
            }
        )

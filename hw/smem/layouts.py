"""Payloads at the ports of the shared memory, and between its parts."""

from amaranth import unsigned
from amaranth.lib import data

from tilewright.golden.spec import BANKS, CHUNK_BYTES, LINE_BYTES

__all__ = [
    "CHUNK_BITS",
    "BanksReadLayout",
    "BanksWriteLayout",
    "BarrierRequestLayout",
    "BarrierResultLayout",
    "ChunkWriteLayout",
    "LandedLayout",
    "LineLayout",
    "ReadLayout",
    "ScatterWriteLayout",
    "read_data_layout",
]

CHUNK_BITS = 8 * CHUNK_BYTES


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
    return data.ArrayLayout(CHUNK_BITS, BANKS)


class LandedLayout(data.StructLayout):
    """Bytes of a transfer that have landed, for the transaction count of a barrier."""

    def __init__(self, params):
        super().__init__(
            {
                "barrier": unsigned(params.addr_width),  # byte address of the barrier
                "bytes": unsigned(params.addr_width + 1),  # how many have landed, fill included
            }
        )


class BarrierRequestLayout(data.StructLayout):
    """An operation of a processor on a barrier (docs/tmau.md, "Barriers")."""

    def __init__(self, params):
        super().__init__(
            {
                "op": unsigned(3),  # operation: BarrierOp
                "address": unsigned(params.addr_width),  # byte address, multiple of 8
                "value": unsigned(21),  # arrivals, bytes or parity, as the operation says
            }
        )


class BarrierResultLayout(data.StructLayout):
    """Answer to a barrier operation, one for each request, in order."""

    def __init__(self):
        super().__init__(
            {
                "done": unsigned(1),  # of TRY_WAIT: the phase of that parity is complete; of others: it completed now
                "error": unsigned(1),  # refused, the barrier is unchanged; BARRIER_OPERATION is reported
            }
        )


class BanksReadLayout(data.StructLayout):
    """What the banks read in one cycle."""

    def __init__(self, params):
        super().__init__(
            {
                "enable": unsigned(BANKS),  # banks that read; the others keep their output
                "rows": data.ArrayLayout(params.row_width, BANKS),
            }
        )


class BanksWriteLayout(data.StructLayout):
    """What the banks write in one cycle."""

    def __init__(self, params):
        super().__init__(
            {
                "rows": data.ArrayLayout(params.row_width, BANKS),
                "data": data.ArrayLayout(CHUNK_BITS, BANKS),
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),  # one bit a byte; 0: the bank does not write
            }
        )


class ChunkWriteLayout(data.StructLayout):
    """A write of bytes of one chunk."""

    def __init__(self, params):
        super().__init__(
            {
                "chunk": unsigned(params.addr_width - 4),  # byte address >> 4
                "data": unsigned(CHUNK_BITS),
                "strobe": unsigned(CHUNK_BYTES),
            }
        )


class ScatterWriteLayout(data.StructLayout):
    """A write of bytes of up to eight chunks, one a lane, anywhere."""

    def __init__(self, params):
        super().__init__(
            {
                "chunks": data.ArrayLayout(params.addr_width - 4, BANKS),  # byte address >> 4 of each lane's chunk
                "data": data.ArrayLayout(CHUNK_BITS, BANKS),  # what each lane writes
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),  # one bit a byte; 0: the lane writes nothing
            }
        )

"""Payloads and ports of the shared memory, and what passes between its parts."""

from amaranth.hdl import Cat, Mux, Value, unsigned
from amaranth.lib import data

from tilewright.spec import BANKS, CHUNK_BYTES, LINE_BYTES, Swizzle

__all__ = [
    "CHUNK_BITS",
    "AcceptanceLayout",
    "BanksReadLayout",
    "BanksWriteLayout",
    "BarrierRequestLayout",
    "BarrierResultLayout",
    "ChunkWriteLayout",
    "LandedLayout",
    "LineLayout",
    "LineWordsLayout",
    "LoanLayout",
    "LoanRequestLayout",
    "ReadLayout",
    "RefusalLayout",
    "ScatterWriteLayout",
    "ScatteredLayout",
    "chunk_flips",
    "delivery_members",
    "read_data_layout",
    "reduction_members",
    "scattered_chunk",
    "whole_line",
]

CHUNK_BITS = 8 * CHUNK_BYTES


def chunk_flips(swizzle, row):
    """Three bits with which the number of a chunk in its line is XORed (docs/tmau.md, "Swizzle").

    Parameters
    ----------
    swizzle : Value
        ``spec.Swizzle``.
    row : Value
        The line's address in shared memory: byte address >> 7.
    """
    return Cat(row[0] & (swizzle >= Swizzle.B32), row[1] & (swizzle >= Swizzle.B64), row[2] & (swizzle == Swizzle.B128))


class LineLayout(data.StructLayout):
    """A write of one line: all banks at the same row. With several cores it has not passed the network yet.

    Parameters
    ----------
    params : SmemParams
    cores : int
        Cores of the cluster.
    word_bytes : int or None
        The line comes as words of this size, of which it is made just before the banks.
    """

    def __init__(self, params, cores=1, word_bytes=None):
        super().__init__(
            {
                "row": unsigned(params.row_width),  # byte address >> 7
                "data": LineWordsLayout(word_bytes) if word_bytes else unsigned(8 * LINE_BYTES),  # chunk b to bank b
                "strobe": unsigned(LINE_BYTES),  # one bit a byte
                **(reduction_members() | delivery_members(cores) if cores > 1 else {}),
            }
        )


class LineWordsLayout(data.StructLayout):
    """What a line is made of by :func:`whole_line`. The line consists of *segments* as wide as a word."""

    def __init__(self, word_bytes):
        super().__init__(
            {
                "word": unsigned(8 * word_bytes),  # of every segment
                "first_word": unsigned(8 * word_bytes),  # except the segments in ``first``
                "first": unsigned(LINE_BYTES // word_bytes),
                "filled": unsigned(LINE_BYTES),  # bytes of the line that are fill instead
                "fills": unsigned(1),  # 0: no byte that is written is fill
                "fill": unsigned(32),  # repeated
            }
        )


def whole_line(line):
    """The 8 · LINE_BYTES bits of a line that comes as a ``LineWordsLayout``, or whole."""
    if isinstance(line, Value):
        return line
    selected, size = [], len(line.word) // 8
    for byte in range(LINE_BYTES):
        segment, offset = divmod(byte, size)
        word = Mux(line.first[segment], line.first_word.word_select(offset, 8), line.word.word_select(offset, 8))
        selected.append(Mux(line.filled[byte], line.fill.word_select(byte % 4, 8), word))
    return Cat(selected)


def reduction_members():
    """How the new bytes of a line are combined with the old ones, as members of a layout by name."""
    return {"reduction": unsigned(4), "element": unsigned(4)}  # spec.Reduction, spec.Element


def delivery_members(cores):
    """What lines and ends of transfers have before the network of a cluster, as members of a layout by name."""
    return {
        "receivers": unsigned(cores),  # mask of the cores that they are for; 0: their sender
        # Number of the transfer, modulo 4. The end of a transfer may follow lines of the next two.
        "turn": unsigned(2),
    }


class ReadLayout(data.StructLayout):
    """A read of up to eight chunks, one a lane, anywhere."""

    def __init__(self, params):
        super().__init__(
            {
                "lanes": unsigned(BANKS),  # lanes that want a chunk; the result of the others is undefined
                "chunks": data.ArrayLayout(params.addr_width - 4, BANKS),  # byte address >> 4 of each lane's chunk
            }
        )


def read_data_layout(lanes=BANKS):
    """Answer to a read, or to a part of it: the chunk of each lane."""
    return data.ArrayLayout(CHUNK_BITS, lanes)


class LandedLayout(data.StructLayout):
    """Bytes of a transfer that have landed, for the transaction count of a barrier.

    In a cluster, before the network, it ends every transfer that writes shared memory.
    """

    def __init__(self, params, cores=1):
        cluster = {
            **delivery_members(cores),
            "signal": unsigned(1),  # there is a barrier
            "failed": unsigned(1),  # the bus answered with an error: nothing is counted or reported
            "block": unsigned(1),  # the command is a COPY_BLOCK
            "tag": unsigned(16),  # of the command
        }
        super().__init__(
            {
                "barrier": unsigned(params.addr_width),  # byte address of the barrier
                "bytes": unsigned(params.addr_width + 1),  # number of bytes, fill included
                **(cluster if cores > 1 else {}),
            }
        )


class RefusalLayout(data.StructLayout):
    """A core of a cluster has refused what another one sent."""

    def __init__(self):
        super().__init__(
            {
                "valid": unsigned(1),  # strobe
                "tag": unsigned(16),  # of the other core's command
                "field": unsigned(8),  # number of its field, with COMMAND_FIELD
            }
        )


class LoanRequestLayout(data.StructLayout):
    """A core of a cluster wants lines of another one's shared memory."""

    def __init__(self, params, cores):
        super().__init__(
            {
                "owner": unsigned(cores),  # one-hot: the core that has the lines
                # 1: asks for permission to read ``row`` to ``last``; 0: reads ``row``, which equals ``last``.
                "asks": unsigned(1),
                "row": unsigned(params.row_width),
                "last": unsigned(params.row_width),
                "tag": unsigned(16),  # of the command that asks
            }
        )


class LoanLayout(data.StructLayout):
    """Answers to requests for lines, each kind in the order of its requests."""

    def __init__(self):
        super().__init__(
            {
                "answers": unsigned(1),  # strobe: answers a request for permission
                "granted": unsigned(1),  # it is granted
                "lends": unsigned(1),  # strobe: answers a read of a line
                "line": unsigned(8 * LINE_BYTES),  # the line; 0 without permission
            }
        )


class AcceptanceLayout(data.StructLayout):
    """What may be written in the shared memory of a core, and by which cores."""

    def __init__(self, params, cores):
        super().__init__(
            {
                "cores": unsigned(cores),  # mask of the cores whose lines are accepted
                "confine": unsigned(1),  # the next two apply
                "first": unsigned(params.row_width),  # first and last line of 128 bytes that may be written
                "last": unsigned(params.row_width),
            }
        )


class BarrierRequestLayout(data.StructLayout):
    """An operation of a processor on a barrier (docs/tmau.md, "Barriers")."""

    def __init__(self, params, cores=1):
        own = {
            "op": unsigned(3),  # operation: BarrierOp
            "address": unsigned(params.addr_width),  # byte address, multiple of 8
            "value": unsigned(21),  # arrivals, bytes or parity, depending on the operation
        }
        owner = {
            "remote": unsigned(1),  # 1: the barrier is in core ``core``; 0: in the processor's own
            "core": unsigned(4),  # number of a core, ignored without ``remote``
        }
        super().__init__(own | owner if cores > 1 else own)


class BarrierResultLayout(data.StructLayout):
    """Answer to a barrier operation."""

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
                "data": data.ArrayLayout(CHUNK_BITS, BANKS),  # bytes of each chunk
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),  # one bit a byte; 0: the bank does not write
            }
        )


class ScatteredLayout(data.StructLayout):
    """Scattered chunks that wait before the banks, at most one for each; see :func:`scattered_chunk`."""

    def __init__(self, params):
        two = params.writes_a_cycle == 2
        super().__init__(
            {
                "banks": unsigned(BANKS),  # banks with a chunk that waits
                "rows": data.ArrayLayout(params.row_width, BANKS),
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),
                # By bank; if there are two chunks at most, these two, and which banks write the second one.
                "data": data.ArrayLayout(CHUNK_BITS, 2 if two else BANKS),
                **({"second": unsigned(BANKS)} if two else {}),
            }
        )


def scattered_chunk(write, bank):
    """The chunk that a ``ScatteredLayout`` has for a bank."""
    if len(write.data) == BANKS:
        return write.data[bank]
    return Mux(write.second.bit_select(bank, 1), write.data[1], write.data[0])


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
                "data": data.ArrayLayout(CHUNK_BITS, BANKS),  # bytes of each chunk
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),  # one bit a byte; 0: the lane writes nothing
            }
        )

"""Payloads at the ports of the shared memory, and between its parts."""

from amaranth import Cat, Mux, Value, unsigned
from amaranth.hdl import Cat as SwizzleCat
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import BANKS, CHUNK_BYTES, LINE_BYTES, Swizzle

from ..lib.component import Port, join

__all__ = [
    "CHUNK_BITS",
    "AcceptanceLayout",
    "BanksReadLayout",
    "BanksWriteLayout",
    "BarrierEventSignature",
    "BarrierRequestLayout",
    "BarrierResultLayout",
    "ChunkWriteLayout",
    "LandedLayout",
    "LineLayout",
    "LineReadSignature",
    "LineWordsLayout",
    "LoanLayout",
    "LoanRequestLayout",
    "LoanSignature",
    "MoverSignature",
    "ReadLayout",
    "RefusalLayout",
    "ScatterWriteLayout",
    "ScatteredLayout",
    "SharedMemorySignature",
    "WriteBackSignature",
    "chunk_flips",
    "connect_mover",
    "connect_whole_lines",
    "delivery_members",
    "network_members",
    "read_data_layout",
    "reduction_members",
    "scattered_chunk",
    "whole_line",
]  # fmt: skip

CHUNK_BITS = 8 * CHUNK_BYTES


class LineLayout(data.StructLayout):
    """A write of one line: all banks at the same row. Of a core in a cluster, before the network.

    Parameters
    ----------
    params : SmemParams
    cores : int
    word_bytes : int or None
        The line is handed on as words of so many bytes, out of which it is made in front of the banks.
    """

    def __init__(self, params, cores=1, word_bytes=None):
        super().__init__(
            {
                "row": unsigned(params.row_width),  # byte address >> 7
                "data": _line_data(word_bytes),  # chunk b, bits 128 b … of the whole line, goes to bank b
                "strobe": unsigned(LINE_BYTES),  # one bit a byte
                **(reduction_members() | delivery_members(cores) if cores > 1 else {}),
            }
        )


class LineWordsLayout(data.StructLayout):
    """What a line is made of: :func:`whole_line`. The line consists of *segments* as wide as a word."""

    def __init__(self, word_bytes):
        super().__init__(
            {
                "word": unsigned(8 * word_bytes),  # of every segment
                "first_word": unsigned(8 * word_bytes),  # but of those in
                "first": unsigned(LINE_BYTES // word_bytes),
                "filled": unsigned(LINE_BYTES),  # one bit a byte of the line: it is of the fill, and not of a word
                "fills": unsigned(1),  # 0: no byte that is written is of the fill
                "fill": unsigned(32),  # repeated
            }
        )


def _line_data(word_bytes):
    return LineWordsLayout(word_bytes) if word_bytes else unsigned(8 * LINE_BYTES)


def whole_line(words):
    """The line that is made of a ``LineWordsLayout``, 8 · LINE_BYTES bits; or one that is whole, as it is."""
    if isinstance(words, Value):
        return words
    made, size = [], len(words.word) // 8
    for byte in range(LINE_BYTES):
        segment, place = divmod(byte, size)
        word = Mux(words.first[segment], words.first_word.word_select(place, 8), words.word.word_select(place, 8))
        made.append(Mux(words.filled[byte], words.fill.word_select(byte % 4, 8), word))
    return Cat(made)


def reduction_members():
    """What becomes of the old bytes of a line, as members of a layout by name."""
    return {"reduction": unsigned(4), "element": unsigned(4)}  # spec.Reduction, spec.Element


def delivery_members(cores):
    """What lines and ends of transfers have before the network of a cluster, as members of a layout by name."""
    return {
        "receivers": unsigned(cores),  # mask of the cores that they are for; 0: their sender
        # Of the transfer: one more than of the one before. The end of a transfer may come behind lines of the next two.
        "turn": unsigned(2),
    }


class ReadLayout(data.StructLayout):
    """A read of up to eight chunks, one a lane, anywhere."""

    def __init__(self, params):
        super().__init__(
            {
                "lanes": unsigned(BANKS),  # which lanes want a chunk; a lane that does not reads as anything
                "chunks": data.ArrayLayout(params.addr_width - 4, BANKS),  # byte address >> 4 of each lane's chunk
            }
        )


def read_data_layout(lanes=BANKS):
    """Answer to a read, or a part of it: the chunk of each lane."""
    return data.ArrayLayout(CHUNK_BITS, lanes)


class LandedLayout(data.StructLayout):
    """Bytes of a transfer that have landed, for the transaction count of a barrier.

    Of a core in a cluster, before the network, the end of every transfer that writes shared memory.
    """

    def __init__(self, params, cores=1):
        cluster = {
            **delivery_members(cores),
            "signal": unsigned(1),  # there is a barrier
            "failed": unsigned(1),  # the bus answered with an error: nothing is counted or reported
            "block": unsigned(1),  # of a COPY_BLOCK
            "tag": unsigned(16),  # of the command
        }
        super().__init__(
            {
                "barrier": unsigned(params.addr_width),  # byte address of the barrier
                "bytes": unsigned(params.addr_width + 1),  # how many have landed, fill included
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
                "owner": unsigned(cores),  # one-hot: whose they are
                # 1: it asks whether it may have the lines from ``row`` to ``last``; 0: it wants ``row``, which
                # is ``last`` as well.
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
                "answers": unsigned(1),  # strobe: to one that asks
                "granted": unsigned(1),  # it may
                "lends": unsigned(1),  # strobe: to one that wants a line
                "line": unsigned(8 * LINE_BYTES),  # which this is; 0 if it may not have it
            }
        )


class AcceptanceLayout(data.StructLayout):
    """What a core of a cluster lets others write, and itself."""

    def __init__(self, params, cores):
        super().__init__(
            {
                "cores": unsigned(cores),  # mask: whose lines it takes
                "confine": unsigned(1),  # the next two count
                "first": unsigned(params.row_width),  # first and last line of 128 bytes that may be written
                "last": unsigned(params.row_width),
            }
        )


class BarrierRequestLayout(data.StructLayout):
    """An operation of a processor on a barrier (docs/tmau.md, "Barriers"). Of a core in a cluster, at its port."""

    def __init__(self, params, cores=1):
        own = {
            "op": unsigned(3),  # operation: BarrierOp
            "address": unsigned(params.addr_width),  # byte address, multiple of 8
            "value": unsigned(21),  # arrivals, bytes or parity, as the operation says
        }
        owner = {
            "remote": unsigned(1),  # 1: the barrier lies in core ``core``; 0: in the processor's own
            "core": unsigned(4),  # number of a core, ignored without ``remote``
        }
        super().__init__(own | owner if cores > 1 else own)


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


class ScatteredLayout(data.StructLayout):
    """Scattered writes in front of the banks, each with one that waits or none: :func:`scattered_chunk`."""

    def __init__(self, params):
        two = params.writes_a_cycle == 2
        super().__init__(
            {
                "banks": unsigned(BANKS),  # those with one that waits
                "rows": data.ArrayLayout(params.row_width, BANKS),
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),
                # By bank. Where there are two at most, these two, and which banks write the second one.
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
                "data": data.ArrayLayout(CHUNK_BITS, BANKS),  # what each lane writes
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),  # one bit a byte; 0: the lane writes nothing
            }
        )


def chunk_flips(swizzle, row):
    """What a chunk's place in its line is exclusive-ored with (docs/tmau.md, "Swizzle"): three bits.

    Parameters
    ----------
    swizzle : Value
        ``spec.Swizzle``.
    row : Value
        The line's address in shared memory: byte address >> 7.
    """
    return SwizzleCat(
        row[0] & (swizzle >= Swizzle.B32), row[1] & (swizzle >= Swizzle.B64), row[2] & (swizzle == Swizzle.B128)
    )


class LineReadSignature(Port):
    """Reads of lines, as the reader sees them.

    Members
    -------
    rows : Out(stream of unsigned(params.row_width))
        Byte address >> 7 of a line to read.
    line : In(8 * LINE_BYTES)
        The line, in the cycle after the handshake.
    """

    def __init__(self, params):
        super().__init__({"rows": Out(stream.Signature(unsigned(params.row_width))), "line": In(8 * LINE_BYTES)})


class LoanSignature(Port):
    """Reads of lines that lie in the shared memories of other cores, as the reader sees them.

    Members
    -------
    requests : Out(stream of LoanRequestLayout(params, cores))
        Requests for lines go to one core until all of them are answered, and one at a time asks.
    answer : In(LoanLayout)
        Never waits.
    """

    def __init__(self, params, cores):
        super().__init__(
            {"requests": Out(stream.Signature(LoanRequestLayout(params, cores))), "answer": In(LoanLayout())}
        )


class BarrierEventSignature(Port):
    """Something has happened to a barrier.

    Members
    -------
    valid : Out(1)
        Strobe.
    address : Out(params.addr_width)
        Byte address of the barrier.
    """

    def __init__(self, params):
        super().__init__({"valid": Out(1), "address": Out(params.addr_width)})


class MoverSignature(Port):
    """What a unit that moves lines has of shared memory, as the unit sees it.

    With several ``cores``, in a cluster, their shared memories lie behind a network. Then ``landed`` ends every
    transfer, and is accepted when all receivers have acknowledged it.

    Parameters
    ----------
    params : SmemParams
    cores : int
    word_bytes : int or None
        Lines are handed on as words: :class:`LineLayout`.

    Members
    -------
    writes : Out(stream of LineLayout(params, cores, word_bytes))
        Lines to be written, readable from the next cycle on.
    fetch : Out(LineReadSignature)
        Lines to be read.
    landed : Out(stream of LandedLayout)
        Bytes for a barrier, in the cycle of a transfer's last write or later.
    refused : In(BarrierEventSignature)
        A barrier operation was refused; the address is the one that it named.
    bank_conflict : In(1)
        Strobe: a read of the consumer takes one more cycle.

    number : In(4) if cores > 1
        Of this core.
    refusing : In(cores) if cores > 1
        As ``landed`` is accepted: mask of the receivers that refused something of the transfer.
    acceptance : Out(AcceptanceLayout(params, cores)) if cores > 1
        What may be written and read here, by whom.
    reach : Out(cores) if cores > 1
        Mask of the cores that this one may name.
    refusal : In(RefusalLayout) if cores > 1
        Strobe: something of another core was refused here.
    received : In(params.addr_width + 1) if cores > 1
        Bytes of a transfer that has landed here, whoever sent it; 0 in other cycles.
    loans : Out(LoanSignature(params, cores)) if cores > 1
        Lines of other cores.
    """

    def __init__(self, params, cores=1, word_bytes=None):
        network = {
            "number": In(4),
            "refusing": In(cores),
            "acceptance": Out(AcceptanceLayout(params, cores)),
            "reach": Out(cores),
            "refusal": In(RefusalLayout()),
            "received": In(params.addr_width + 1),
            "loans": Out(LoanSignature(params, cores)),
        }
        super().__init__(
            {
                "writes": Out(stream.Signature(LineLayout(params, cores, word_bytes))),
                "fetch": Out(LineReadSignature(params)),
                "landed": Out(stream.Signature(LandedLayout(params, cores))),
                "refused": In(BarrierEventSignature(params)),
                "bank_conflict": In(1),
                **(network if cores > 1 else {}),
            }
        )


def network_members(params, cores):
    """What the network of a cluster sees of a core, as members of the core; none without one.

    Members
    -------
    lines : Out(MoverSignature(params, cores))
        What the access unit writes, to the shared memories that it names, and reads of its own.
    memory : In(MoverSignature(params))
        Shared memory.
    """
    if cores == 1:
        return {}
    return {"lines": Out(MoverSignature(params, cores)), "memory": In(MoverSignature(params))}


def connect_mover(m, top, unit, memory):
    """Connects an access unit to shared memory, or both to the members of :func:`network_members` of ``top``."""
    if "lines" not in top.signature.members:
        join(m, unit=unit, memory=memory)
        return
    join(m, unit=unit, lines=flipped(top.lines))
    join(m, memory=memory, top=flipped(top.memory))


def connect_whole_lines(m, unit, outside):
    """Connects the mover of an access unit to a port of its top, a MoverSignature of whole lines."""
    ours, theirs = unit.writes, outside.writes
    m.d.comb += [theirs.valid.eq(ours.valid), ours.ready.eq(theirs.ready)]
    for name, _ in theirs.payload.shape():
        value = ours.payload[name]
        m.d.comb += theirs.payload[name].eq(whole_line(value) if name == "data" else value)
    for name, member in unit.signature.members.items():
        if name == "writes":
            continue
        if member.is_signature:
            connect(m, unit=getattr(unit, name), outside=flipped(getattr(outside, name)))
        elif member.flow == Out:
            m.d.comb += getattr(outside, name).eq(getattr(unit, name))
        else:
            m.d.comb += getattr(unit, name).eq(getattr(outside, name))


class SharedMemorySignature(Port):
    """What an engine that computes needs of shared memory, as the engine sees it.

    Members
    -------
    reads : Out(stream of ReadLayout)
        Reads of up to eight chunks.
    read_data : In(stream of read_data_layout(params.chunks_a_cycle))
        The chunks, one answer for each read, in order; with four a cycle two, of lanes 0 to 3 and of lanes 4 to 7.
    scatter : Out(stream of ScatterWriteLayout)
        Writes of up to eight chunks.
    scatter_idle : In(1)
        All writes that were accepted can be read.
    barriers : Out(stream of BarrierRequestLayout)
        Barrier operations of the engine.
    barrier_results : In(stream of BarrierResultLayout)
        What became of them, one answer for each, in order.
    bank_conflict : In(1)
        Strobe: a read takes one more cycle. Counted.
    """

    def __init__(self, params):
        super().__init__(
            {
                "reads": Out(stream.Signature(ReadLayout(params))),
                "read_data": In(stream.Signature(read_data_layout(params.chunks_a_cycle))),
                "scatter": Out(stream.Signature(ScatterWriteLayout(params))),
                "scatter_idle": In(1),
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),
                "barrier_results": In(stream.Signature(BarrierResultLayout())),
                "bank_conflict": In(1),
            }
        )


class WriteBackSignature(Port):
    """A register to be written to memory. Not a stream: while it waits, its contents may be brought up to date.

    Members
    -------
    payload : Out(ChunkWriteLayout)
    valid : Out(1)
        The register is ahead of the memory, or ``strobe`` of the payload, which comes later in the cycle, is 0.
    urgent : Out(1)
        It gets other contents at the end of this cycle, so ``taken`` must be high if ``valid`` is.
    taken : In(1)
        The write happens in this cycle; low if ``valid`` is.
    """

    def __init__(self, params):
        super().__init__({"payload": Out(ChunkWriteLayout(params)), "valid": Out(1), "urgent": Out(1), "taken": In(1)})

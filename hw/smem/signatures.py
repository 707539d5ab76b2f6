"""Ports of the shared memory that are more than one stream, and those between its parts."""

from amaranth import unsigned
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.golden.spec import LINE_BYTES

from ..lib.join import Port, join
from .layouts import (
    AcceptanceLayout,
    BarrierRequestLayout,
    BarrierResultLayout,
    ChunkWriteLayout,
    LandedLayout,
    LineLayout,
    LoanLayout,
    LoanRequestLayout,
    ReadLayout,
    RefusalLayout,
    ScatterWriteLayout,
    read_data_layout,
    whole_line,
)

__all__ = [
    "BarrierEventSignature",
    "LineReadSignature",
    "LoanSignature",
    "MoverSignature",
    "SharedMemorySignature",
    "WriteBackSignature",
    "connect_mover",
    "connect_whole_lines",
    "network_members",
]


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

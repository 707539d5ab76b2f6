"""Ports of shared memory as the units that use it see them, and how such ports are connected."""

from amaranth.hdl import unsigned
from amaranth.lib import stream
from amaranth.lib.wiring import In, Out, connect, flipped

from tilewright.spec import LINE_BYTES

from ..lib.component import Port
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
    """Reads of lines, as the reader sees them."""

    def __init__(self, params):
        super().__init__(
            {
                "rows": Out(stream.Signature(unsigned(params.row_width))),  # byte address >> 7 of a line
                "line": In(8 * LINE_BYTES),  # the line, in the cycle after the handshake
            }
        )


class LoanSignature(Port):
    """Reads of lines in the shared memories of other cores, as the reader sees them. ``answer`` never waits."""

    def __init__(self, params, cores):
        super().__init__(
            {
                # Reads go to one core until all of them are answered; one request for permission at a time.
                "requests": Out(stream.Signature(LoanRequestLayout(params, cores))),
                "answer": In(LoanLayout()),
            }
        )


class BarrierEventSignature(Port):
    """Reports an event of a barrier."""

    def __init__(self, params):
        super().__init__(
            {
                "valid": Out(1),  # strobe
                "address": Out(params.addr_width),  # byte address of the barrier
            }
        )


class MoverSignature(Port):
    """Shared memory for a unit that moves lines, as the unit sees it.

    With several ``cores``, in a cluster, their shared memories are reached over a network. Then ``landed`` ends every
    transfer, and is accepted when all receivers have acknowledged it.

    Parameters
    ----------
    params : SmemParams
    cores : int
    word_bytes : int or None
        See :class:`LineLayout`.
    """

    def __init__(self, params, cores=1, word_bytes=None):
        network = {
            "number": In(4),  # of this core
            "refusing": In(cores),  # as ``landed`` is accepted: receivers that refused a part of the transfer
            "acceptance": Out(AcceptanceLayout(params, cores)),
            "reach": Out(cores),  # mask of the cores that this one may name
            "refusal": In(RefusalLayout()),  # strobe: data of another core were refused here
            "received": In(params.addr_width + 1),  # bytes of a transfer of any core that has landed here; else 0
            "loans": Out(LoanSignature(params, cores)),
        }
        super().__init__(
            {
                # Lines to be written, readable from the next cycle on.
                "writes": Out(stream.Signature(LineLayout(params, cores, word_bytes))),
                "fetch": Out(LineReadSignature(params)),
                # Bytes for a barrier, in the cycle of a transfer's last write or later.
                "landed": Out(stream.Signature(LandedLayout(params, cores))),
                "refused": In(BarrierEventSignature(params)),  # a barrier operation that names this address
                "bank_conflict": In(1),  # strobe: a read of the consumer takes one more cycle
                **(network if cores > 1 else {}),
            }
        )


def network_members(params, cores):
    """Members of a core in a cluster that its network connects; none without one."""
    if cores == 1:
        return {}
    return {
        "lines": Out(MoverSignature(params, cores)),  # of the access unit: writes to any core, reads of its own
        "memory": In(MoverSignature(params)),  # of shared memory
    }


def connect_mover(m, top, unit, memory):
    """Connects an access unit to shared memory, or both to the members of :func:`network_members` of ``top``."""
    if "lines" not in top.signature.members:
        connect(m, unit=unit, memory=memory)
        return
    connect(m, unit=unit, lines=flipped(top.lines))
    connect(m, memory=memory, top=flipped(top.memory))


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
    """Shared memory for an engine that computes, as the engine sees it. Answers come in the order of their requests."""

    def __init__(self, params):
        super().__init__(
            {
                "reads": Out(stream.Signature(ReadLayout(params))),  # up to eight chunks, from anywhere
                # One answer a read; with four chunks a cycle two, for lanes 0 to 3 and for lanes 4 to 7.
                "read_data": In(stream.Signature(read_data_layout(params.chunks_a_cycle))),
                "scatter": Out(stream.Signature(ScatterWriteLayout(params))),  # writes of chunks, anywhere
                "scatter_idle": In(1),  # all accepted writes can be read
                "barriers": Out(stream.Signature(BarrierRequestLayout(params))),  # operations on barriers
                "barrier_results": In(stream.Signature(BarrierResultLayout())),  # one for each operation, in order
                "bank_conflict": In(1),  # strobe, counted: a read takes one more cycle
            }
        )


class WriteBackSignature(Port):
    """A register to be written to memory. Not a stream, because its contents may be updated while it waits."""

    def __init__(self, params):
        super().__init__(
            {
                "payload": Out(ChunkWriteLayout(params)),
                # The register is newer than the memory, or its strobe, which arrives late in the cycle, is 0.
                "valid": Out(1),
                "urgent": Out(1),  # it is overwritten at the end of this cycle: if valid, it must be written now
                "accepted": In(1),  # the write happens in this cycle; low unless valid
            }
        )

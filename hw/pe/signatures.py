"""Ports between the blocks of the processing engine, each as its user sees it."""

from amaranth import unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.join import Port
from .layouts import (
    INSTRUCTION_BITS,
    PREDICATES,
    FaultLayout,
    LaneReadLayout,
    PageWriteLayout,
    SegmentEntryLayout,
    SegmentWriteLayout,
)
from .params import LANES

__all__ = [
    "ComputeRegistersSignature",
    "GuardReadSignature",
    "LaneReadSignature",
    "MultiplyOrderSignature",
    "PredicateReadSignature",
    "ProcessorSignature",
    "SegmentReadSignature",
    "ThreadReadSignature",
]


class ProcessorSignature(Port):
    """What a processor sees of a processing engine besides registers. As the engine sees it.

    Members
    -------
    instructions : In(stream of INSTRUCTION_BITS)
        Instructions as words of 128 bits, in program order; the opcode says which format one has.
    segments : In(stream of SegmentWriteLayout)
        Entries of the segment table, not while an instruction uses them.
    pages : In(stream of PageWriteLayout)
        Entries of the page table, not while an instruction uses them.
    fault_valid : Out(1)
        Strobe: an instruction has reported. That is known long before the instruction has been performed.
    fault : Out(FaultLayout)
        What it has reported.
    halted : Out(1)
        Strobe: a halt is performed, and so is all before it.
    """

    def __init__(self, params):
        super().__init__(
            {
                "instructions": In(stream.Signature(INSTRUCTION_BITS)),
                "segments": In(stream.Signature(SegmentWriteLayout(params))),
                "pages": In(stream.Signature(PageWriteLayout(params))),
                "fault_valid": Out(1),
                "fault": Out(FaultLayout(params)),
                "halted": Out(1),
            }
        )


class LaneReadSignature(Port):
    """Reads registers of a group of threads.

    Members
    -------
    requests : Out(stream of LaneReadLayout)
    data : In(array of LANES 32)
        Exactly ``LANE_READ_LATENCY`` cycles after each handshake. Lanes of threads that do not exist are 0.
    """

    def __init__(self, params):
        super().__init__(
            {
                "requests": Out(stream.Signature(LaneReadLayout(params))),
                "data": In(data.ArrayLayout(32, LANES)),
            }
        )


class ThreadReadSignature(Port):
    """Reads what is held of eight threads, each in a group of its own.

    Parameters
    ----------
    params : PeParams
    shape : shape-like
        Of what is held of a thread.

    Members
    -------
    groups : Out(array of LANES params.group_width)
        Lane l reads thread l of group ``groups[l]``.
    enable : Out(1)
        Otherwise ``rows`` stays.
    rows : In(array of LANES shape)
        In the cycle after.
    """

    def __init__(self, params, shape):
        super().__init__(
            {
                "groups": Out(params.group_width).array(LANES),
                "enable": Out(1),
                "rows": In(shape).array(LANES),
            }
        )


class GuardReadSignature(Port):
    """Reads one predicate of eight threads, each in a group of its own.

    Members
    -------
    predicate : Out(3)
    groups : Out(array of LANES params.group_width)
        Lane l reads thread l of group ``groups[l]``.
    enable : Out(1)
        Otherwise ``values`` stay.
    values : In(LANES)
        In the cycle after.
    """

    def __init__(self, params):
        super().__init__(
            {
                "predicate": Out(range(PREDICATES)),
                "groups": Out(params.group_width).array(LANES),
                "enable": Out(1),
                "values": In(LANES),
            }
        )


class PredicateReadSignature(Port):
    """Reads one predicate of a group of threads, in every cycle.

    Members
    -------
    predicate : Out(3)
    group : Out(params.group_width)
    values : In(LANES)
        In the cycle after.
    """

    def __init__(self, params):
        super().__init__({"predicate": Out(range(PREDICATES)), "group": Out(params.group_width), "values": In(LANES)})


class SegmentReadSignature(Port):
    """Reads an entry of the segment table, in every cycle.

    Members
    -------
    number : Out(params.segment_width)
    entry : In(SegmentEntryLayout)
        One cycle later.
    """

    def __init__(self, params):
        super().__init__({"number": Out(params.segment_width), "entry": In(SegmentEntryLayout(params))})


class ComputeRegistersSignature(Port):
    """What the computing side reads and writes of the registers of all threads; nothing of it waits.

    Members
    -------
    accumulator_register : Out(params.reg_width)
    accumulator_enable : Out(1)
    accumulator_rows : In(data.ArrayLayout(data.ArrayLayout(32, params.threads), 2))
        One cycle after ``accumulator_enable``: the first one, if the register is even, else the second one.
    factor_reads : Out(stream of unsigned(params.reg_width), always ready)
    factor_row : In(array of params.threads 32)
        One cycle after ``factor_reads``.
    results_valid : Out(1)
    results_register : Out(params.reg_width)
    results_threads : Out(params.threads)
        Threads whose register is written.
    results_data : Out(array of params.threads 32)
    starved : In(1)
        Strobe: another write waits; it goes when for one cycle there is no result.
    """

    def __init__(self, params):
        row = data.ArrayLayout(32, params.threads)
        super().__init__(
            {
                "accumulator_register": Out(params.reg_width),
                "accumulator_enable": Out(1),
                "accumulator_rows": In(data.ArrayLayout(row, 2)),
                "factor_reads": Out(stream.Signature(unsigned(params.reg_width), always_ready=True)),
                "factor_row": In(row),
                "results_valid": Out(1),
                "results_register": Out(params.reg_width),
                "results_threads": Out(params.threads),
                "results_data": Out(row),
                "starved": In(1),
            }
        )


class MultiplyOrderSignature(Port):
    """Keeps mm on the computing side in order with loads and with one another.

    Members
    -------
    factors_ready : In(1)
        The oldest mm whose factors are not taken may read them, and then its accumulators. Registered: two cycles after
        ``factors_taken``, or after what it waited for, it is that of the next mm.
    factors_taken : Out(1)
        Strobe, only while ``factors_ready``: they are read from this cycle on, one register a cycle.
    mm_done : Out(1)
        Strobe: the last result of the oldest mm is written in this cycle.
    """

    def __init__(self):
        super().__init__({"factors_ready": In(1), "factors_taken": Out(1), "mm_done": Out(1)})

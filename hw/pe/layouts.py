"""Bits that depend on ka and kb alone: threads that share a row of C, or an accumulator (docs/pe.md, "mm")."""

from enum import IntEnum
from itertools import product

from amaranth import Cat, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from ..lib.component import Port
from ..lib.logic import is_one_of
from .params import LANES

__all__ = [
    "BASES_SETS",
    "INSTRUCTION_BITS",
    "LANE_READ_LATENCY",
    "NUMBER_BITS",
    "PREDICATES",
    "SHARINGS",
    "SPLIT_COLUMNS",
    "AccessKind",
    "AccessLayout",
    "ColumnsLayout",
    "ComputeRegistersSignature",
    "FaultLayout",
    "GuardReadSignature",
    "JobKind",
    "JobLayout",
    "LaneReadLayout",
    "LaneReadSignature",
    "LaneWriteLayout",
    "MultiplyLayout",
    "MultiplyOrderSignature",
    "PageWriteLayout",
    "PredicateReadSignature",
    "PredicateWriteLayout",
    "ProcessorSignature",
    "SegmentEntryLayout",
    "SegmentReadSignature",
    "SegmentWriteLayout",
    "ThreadReadSignature",
    "access_fields",
    "columns_per_item",
    "is_split",
    "of_sharing",
    "sharing_code",
]  # fmt: skip

#: Every (ka, kb).
SHARINGS = tuple(product(range(1, 5), repeat=2))
#: Columns in the first of the two items of a step that is split.
SPLIT_COLUMNS = 2


def is_split(ka, kb):
    """Whether a step of mm does not fit eight lanes: it has two items, and each of them a part of it."""
    return ka * kb > LANES


def columns_per_item(ka, kb):
    """Columns of an item of mm: whole steps of ka columns if they fit eight lanes, or else a part of one."""
    return SPLIT_COLUMNS if is_split(ka, kb) else LANES // kb // ka * ka


def sharing_code(ka, kb):
    """Four bits that tell ``ka`` and ``kb``, as they are stored, as :func:`of_sharing` takes them."""
    return Cat(kb, ka)


def of_sharing(code, predicate):
    """Whether ``predicate(ka, kb)`` is true of the sharing with this code: a table of four inputs."""
    return is_one_of(code, (4 * (ka - 1) + kb - 1 for ka, kb in SHARINGS if predicate(ka, kb)))


INSTRUCTION_BITS = 128
#: Bits of an instruction's number: they are counted from 0 on after reset.
NUMBER_BITS = 32
#: Cycles from the handshake of a lane read to the one in which its answer is there.
LANE_READ_LATENCY = 2
#: Sets of offsets of all threads that the loading side holds: jobs that take turns need not read theirs again.
BASES_SETS = 4
#: Predicates of a thread.
PREDICATES = 8


class JobKind(IntEnum):
    """What the loading side does for an instruction."""

    MULTIPLY = 0  #: fetch columns of B
    LOAD = 1
    STORE = 2


class SegmentEntryLayout(data.StructLayout):
    """A segment with what is derived from it once, when it is written."""

    def __init__(self, params):
        super().__init__(
            {
                "good": 1,  # written, and no rule broken
                "element_log2": 2,  # log2 of the bytes of an element
                "rank": 2,  # as stored: 0 to 3
                "swizzle": 2,  # spec.Swizzle
                "paged": 1,
                "first_entry": unsigned(params.page_width),
                "base": unsigned(28),  # chunk address: byte address >> 4
                "size": data.ArrayLayout(16, 4),
                "page_log2": data.ArrayLayout(4, 4),
                # Derived, for dimensions 1 to 3:
                "pages_below": data.ArrayLayout(params.page_width + 1, 3),  # pages from one page coordinate to the next
                "shift": data.ArrayLayout(5, 3),  # log2 of bytes from one place to the next
            }
        )


class JobLayout(data.StructLayout):
    """A memory instruction without an error that concerns all of it, issued to the loading side in program order."""

    def __init__(self, params):
        super().__init__(
            {
                "kind": unsigned(2),  # JobKind
                "number": unsigned(NUMBER_BITS),
                "segment": SegmentEntryLayout(params),
                "segment_number": unsigned(params.segment_width),
                "rf": unsigned(params.reg_width),
                "imm": unsigned(32),
                "guard": 1,
                "predicate": unsigned(3),
                "register": unsigned(16),  # rc, rd or rs; of mm it may be past the end of the file
                "count": unsigned(params.reg_width + 1),  # registers that LOAD and STORE move
                "ka": 2,  # as stored: 0 to 3
                "kb": 2,  # as stored
                "transpose": 1,
                "bases_set": unsigned((BASES_SETS - 1).bit_length()),  # in which its offsets are held
                "rebuild": 1,  # they are not there, or may have changed: read the registers
                "flush": 1,  # memory or pages may have changed since the job before: forget lines and translations
            }
        )


class LaneReadLayout(data.StructLayout):
    """Reads one register of a group of eight threads; the answer is ArrayLayout(32, LANES)."""

    def __init__(self, params):
        super().__init__({"register": unsigned(params.reg_width), "group": unsigned(params.group_width)})


class LaneWriteLayout(data.StructLayout):
    """Writes one register of threads of a group of eight."""

    def __init__(self, params):
        super().__init__(
            {
                "register": unsigned(params.reg_width),
                "group": unsigned(params.group_width),
                "lanes": unsigned(LANES),  # threads that are written; never one that does not exist
                "data": data.ArrayLayout(32, LANES),
            }
        )


class PredicateWriteLayout(data.StructLayout):
    """Sets one predicate of threads of a group."""

    def __init__(self, params):
        super().__init__(
            {
                "predicate": unsigned(3),
                "group": unsigned(params.group_width),
                "lanes": unsigned(LANES),  # threads whose predicate is written
                "values": unsigned(LANES),
            }
        )


class AccessKind(IntEnum):
    """What is done with the chunks of shared memory that an access reads or writes."""

    COLUMNS = 0  #: they hold columns of B: one item of columns, t0
    FILL = 1  #: rows of B go to the line cache: lane l is row 8·octet + l of a block, 16 bytes wide, t1
    PICK = 2  #: nothing is read: columns come out of a block of the line cache, t1
    LOAD = 3  #: a word of each lane goes to a register of its thread
    STORE = 4  #: a word of each lane is written
    NOTHING = 5  #: a LOAD ends without an access; a STORE ends with STORE, maybe without a lane


def access_fields(params):
    """Fields that accesses have besides their lanes, before and after their pages are looked up."""
    return {
        "kind": unsigned(3),  # AccessKind
        "last": 1,  # the instruction's last
        "on": unsigned(LANES),  # COLUMNS, PICK: columns of the item that are on. LOAD: lanes to be written
        "register": unsigned(params.reg_width),  # COLUMNS, PICK: accumulator of the first step. LOAD: target
        "first_member": 2,  # COLUMNS, PICK: column 0 of the item is computed by member qa = first_member
        "group": unsigned(params.group_width),  # LOAD
        "slot": 1,  # FILL, PICK: block of the line cache
        "octet": 2,  # FILL: which eight of its up to 32 rows
        "place": 4,  # PICK: byte of column 0 in the rows, modulo 16; column c is c elements further on
        "wide": 1,  # elements have 16 bits
        "ka": 2,  # as stored
        "kb": 2,  # as stored
        "data": data.ArrayLayout(32, LANES),  # STORE
    }


class AccessLayout(data.StructLayout):
    """Eight lanes of addresses in shared memory, translated, without errors, in program order.

    COLUMNS and PICK are one item of ``ColumnsLayout`` each: lane l holds unit l mod kb of column l div kb of the item,
    for all whole columns that fit eight lanes. Of COLUMNS ``lanes[l].enable`` says that the unit has an element inside;
    of PICK, which reads nothing, it means nothing.
    """

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "enable": 1,  # this lane reads or writes its chunk
                "chunk": unsigned(params.chunk_width),
                "byte": unsigned(4),  # of the unit, or the word, in its chunk
                "keep": unsigned(8),  # bytes of the unit, or the word, that are inside; FILL: unused
            }
        )
        super().__init__({"lanes": data.ArrayLayout(lane, LANES), **access_fields(params)})


class ColumnsLayout(data.StructLayout):
    """Up to eight units of B, as whole columns: lane l holds unit l mod kb of column l div kb.

    The columns belong to consecutive loading threads j0, j0 + 1, …; column c is for member qa = (first_member + c) mod
    ka, and for the accumulator ``register`` + (first_member + c) div ka. If ka columns or more fit, first_member
    is 0 and their number a multiple of ka. Otherwise (ka ≥ 3 with kb ≥ 3) a step has two items: one of its first two
    columns, and one of the others, of first_member 2.
    """

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, LANES),
                "on": unsigned(LANES),  # by column
                "register": unsigned(params.reg_width),
                "first_member": 2,  # 0 or SPLIT_COLUMNS
                "last": 1,  # the instruction's last item; it may have no column that is on
            }
        )


class MultiplyLayout(data.StructLayout):
    """An mm, for the computing side. One for each job of kind MULTIPLY, in the same order."""

    def __init__(self, params):
        super().__init__(
            {
                "type": unsigned(4),  # spec.pe.MmType
                "ka": 2,  # as stored
                "kb": 2,  # as stored
                "ra": unsigned(params.reg_width),
            }
        )


class FaultLayout(data.StructLayout):
    """An error record, or with code 0 the absence of one: one for each instruction that ends in a block."""

    def __init__(self, params):
        super().__init__(
            {
                "code": unsigned(4),  # PeError; 0 if there was none
                "number": unsigned(NUMBER_BITS),  # of the instruction, counted from 0 on after reset
                "first": unsigned(params.thread_width),  # lowest thread that met the error
                "last": unsigned(params.thread_width),  # highest of them
                "register": unsigned(16),  # the one that the code tells of, or 0
            }
        )


class SegmentWriteLayout(data.StructLayout):
    """A segment as a processor writes it."""

    def __init__(self, params):
        super().__init__(
            {
                "index": unsigned(params.segment_width),  # of the segment
                "word": unsigned(256),  # the entry: SEGMENT
            }
        )


class PageWriteLayout(data.StructLayout):
    """A page entry as a processor, or the pager, writes it."""

    def __init__(self, params):
        super().__init__(
            {
                "index": unsigned(params.page_width),  # of the page entry
                "word": unsigned(64),  # the entry: PAGE_ENTRY
            }
        )


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

"""Payloads and ports between the blocks of the processing engine, and the lane geometry of ka and kb."""

from enum import IntEnum
from itertools import product

from amaranth.hdl import Cat, unsigned
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
]

INSTRUCTION_BITS = 128
#: Width of an instruction number. Instructions are numbered from 0 after reset.
NUMBER_BITS = 32
#: Cycles from the handshake of a lane read to its answer.
LANE_READ_LATENCY = 2
#: Sets of offsets of all threads that the loading side holds, so that alternating jobs do not read theirs again.
BASES_SETS = 4
#: Predicates of a thread.
PREDICATES = 8
#: Every (ka, kb): ka·kb neighboring threads share a row of C, kb of them an accumulator (docs/pe.md, "mm").
SHARINGS = tuple(product(range(1, 5), repeat=2))
#: Columns in the first of the two items of a split step.
SPLIT_COLUMNS = 2


def is_split(ka, kb):
    """Whether a step of mm does not fit in eight lanes and is split into two items."""
    return ka * kb > LANES


def columns_per_item(ka, kb):
    """Columns of an item of mm: whole steps of ka columns, or the first part of a split step."""
    return SPLIT_COLUMNS if is_split(ka, kb) else LANES // kb // ka * ka


def sharing_code(ka, kb):
    """The 4-bit code of ``ka`` and ``kb``, as stored, that :func:`of_sharing` takes."""
    return Cat(kb, ka)


def of_sharing(code, predicate):
    """Whether ``predicate(ka, kb)`` is true for a sharing code: one LUT4."""
    return is_one_of(code, (4 * (ka - 1) + kb - 1 for ka, kb in SHARINGS if predicate(ka, kb)))


class JobKind(IntEnum):
    """What the loading side does for an instruction."""

    MULTIPLY = 0  #: fetch columns of B
    LOAD = 1
    STORE = 2


class SegmentEntryLayout(data.StructLayout):
    """A segment, with values derived from it when it is written."""

    def __init__(self, params):
        super().__init__(
            {
                "good": 1,  # written, and no rule broken
                "element_log2": 2,  # log2 of the bytes of an element
                **({"signed": 1} if params.units else {}),  # elements are signed integers
                "rank": 2,  # as stored: 0 to 3
                "swizzle": 2,  # spec.Swizzle
                "paged": 1,
                "first_entry": unsigned(params.page_width),
                "base": unsigned(28),  # chunk address: byte address >> 4
                "size": data.ArrayLayout(16, 4),
                "page_log2": data.ArrayLayout(4, 4),
                # Derived, for dimensions 1 to 3:
                "pages_below": data.ArrayLayout(params.page_width + 1, 3),  # pages from one page coordinate to the next
                "shift": data.ArrayLayout(5, 3),  # log2 of the bytes from one coordinate in the page to the next
            }
        )


class JobLayout(data.StructLayout):
    """A memory instruction for the loading side, issued in program order. No error concerns the whole instruction."""

    def __init__(self, params):
        super().__init__(
            {
                "kind": unsigned(2),  # JobKind
                "number": unsigned(NUMBER_BITS),
                "inside": 1,  # it is an instruction of a kernel
                "segment": SegmentEntryLayout(params),
                "segment_number": unsigned(params.segment_width),
                "rf": unsigned(params.reg_width),
                "imm": unsigned(32),
                "guard": 1,
                "predicate": unsigned(3),
                "register": unsigned(16),  # rc, rd or rs; rc may be past the end of the file
                "count": unsigned(params.reg_width + 1),  # registers that LOAD and STORE move
                "ka": 2,  # as stored: 0 to 3
                "kb": 2,  # as stored
                "transpose": 1,
                **({"element": 1} if params.units else {}),  # LOAD and STORE move an element a register
                "bases_set": unsigned((BASES_SETS - 1).bit_length()),  # the set that holds its offsets
                "rebuild": 1,  # the set does not hold current offsets: read the registers
                "flush": 1,  # memory or pages may have changed since the previous job: forget lines and translations
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
                "lanes": unsigned(LANES),  # threads to be written; all of them exist
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
    NOTHING = 5  #: ends a LOAD without an access; a STORE always ends with a STORE, which may have no lane


def access_fields(params):
    """Fields of accesses, other than their lanes, before and after translation."""
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
        # LOAD, STORE: bytes of the one element that a register is; 0: a register is a word. LOAD: it is signed.
        **({"element": 2, "signed": 1} if params.units else {}),
    }


class AccessLayout(data.StructLayout):
    """Eight lanes of addresses in shared memory, translated, without errors, in program order.

    COLUMNS and PICK are one item of ``ColumnsLayout`` each: lane l holds unit l mod kb of column l div kb of the item,
    for as many whole columns as fit in eight lanes. In COLUMNS, ``lanes[l].enable`` says that the unit has an element
    inside. In PICK, which does not read, it has no meaning.
    """

    def __init__(self, params):
        lane = data.StructLayout(
            {
                "enable": 1,  # this lane reads or writes its chunk
                "chunk": unsigned(params.chunk_width),
                "byte": unsigned(4),  # position of the unit, or the word, in its chunk
                "keep": unsigned(8),  # bytes of the unit, or the word, that are inside; unused in FILL
            }
        )
        super().__init__({"lanes": data.ArrayLayout(lane, LANES), **access_fields(params)})


class ColumnsLayout(data.StructLayout):
    """Up to eight units of B, as whole columns: lane l holds unit l mod kb of column l div kb.

    The columns belong to consecutive loading threads j0, j0 + 1, …; column c is for member qa = (first_member + c) mod
    ka, and for the accumulator ``register`` + (first_member + c) div ka. If ka columns or more fit, first_member
    is 0 and the number of columns is a multiple of ka. Otherwise (ka ≥ 3 with kb ≥ 3) a step has two items: one of its
    first two columns, and one of the others, with a first_member of 2.
    """

    def __init__(self, params):
        super().__init__(
            {
                "units": data.ArrayLayout(params.unit_bits, LANES),
                "on": unsigned(LANES),  # by column
                "register": unsigned(params.reg_width),
                "first_member": 2,  # 0 or SPLIT_COLUMNS
                "last": 1,  # the instruction's last item; all of its columns may be off
            }
        )


class MultiplyLayout(data.StructLayout):
    """An mm for the computing side: one for each job of kind MULTIPLY, in the same order."""

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
    """The report of an instruction: an error record, or code 0 if there was no error."""

    def __init__(self, params):
        super().__init__(
            {
                "code": unsigned(4),  # PeError; 0 if there was none
                "number": unsigned(NUMBER_BITS),  # of the instruction, counted from 0 after reset
                "first": unsigned(params.thread_width),  # lowest thread that met the error
                "last": unsigned(params.thread_width),  # highest thread that met it
                "register": unsigned(16),  # the register that the code refers to, or 0
                "inside": 1,  # it is an instruction of a kernel, or begins one
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
    """What a processor sees of a processing engine besides its registers, from the engine's side."""

    def __init__(self, params):
        super().__init__(
            {
                # Words of 128 bits in program order; the opcode selects the format.
                "instructions": In(stream.Signature(INSTRUCTION_BITS)),
                # Entries of the segment table, not while an instruction uses them.
                "segments": In(stream.Signature(SegmentWriteLayout(params))),
                # Entries of the page table, not while an instruction uses them.
                "pages": In(stream.Signature(PageWriteLayout(params))),
                # Strobe: a report, long before the effects of the instruction are complete. Each word of the stream has
                # one; an instruction of a kernel only if it has an error. That of a CALL follows those of its kernel.
                "fault_valid": Out(1),
                "fault": Out(FaultLayout(params)),  # The report of the instruction.
                "halted": Out(1),  # Strobe: a halt and everything before it have been performed.
            }
        )


class LaneReadSignature(Port):
    """Reads registers of a group of threads.

    ``data`` is valid exactly ``LANE_READ_LATENCY`` cycles after each handshake. Lanes without a thread read 0.
    """

    def __init__(self, params):
        super().__init__(
            {"requests": Out(stream.Signature(LaneReadLayout(params))), "data": In(data.ArrayLayout(32, LANES))}
        )


class ThreadReadSignature(Port):
    """Reads a value of ``shape`` of eight threads: lane l reads thread l of group ``groups[l]``.

    ``rows`` follows one cycle after ``enable``, and keeps its value without it.
    """

    def __init__(self, params, shape):
        super().__init__(
            {"groups": Out(params.group_width).array(LANES), "enable": Out(1), "rows": In(shape).array(LANES)}
        )


class GuardReadSignature(Port):
    """Reads one predicate of eight threads: lane l reads thread l of group ``groups[l]``.

    ``values`` follow one cycle after ``enable``, and keep their value without it.
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
    """Reads one predicate of a group of threads in every cycle; ``values`` follow one cycle later."""

    def __init__(self, params):
        super().__init__({"predicate": Out(range(PREDICATES)), "group": Out(params.group_width), "values": In(LANES)})


class SegmentReadSignature(Port):
    """Reads an entry of the segment table in every cycle; ``entry`` follows one cycle later."""

    def __init__(self, params):
        super().__init__({"number": Out(params.segment_width), "entry": In(SegmentEntryLayout(params))})


class ComputeRegistersSignature(Port):
    """Reads and writes of the registers of all threads by the computing side. None of them waits."""

    def __init__(self, params):
        row = data.ArrayLayout(32, params.threads)
        super().__init__(
            {
                "accumulator_register": Out(params.reg_width),
                "accumulator_enable": Out(1),
                # One cycle after accumulator_enable: row 0 if the register is even, else row 1.
                "accumulator_rows": In(data.ArrayLayout(row, 2)),
                "factor_reads": Out(stream.Signature(unsigned(params.reg_width), always_ready=True)),
                "factor_row": In(row),  # one cycle after factor_reads
                "results_valid": Out(1),
                "results_register": Out(params.reg_width),
                "results_threads": Out(params.threads),  # threads whose register is written
                "results_data": Out(row),
                "starved": In(1),  # strobe: another write waits for one cycle without a result
            }
        )


class MultiplyOrderSignature(Port):
    """Keeps mm on the computing side in order with loads and with one another."""

    def __init__(self):
        super().__init__(
            {
                # The oldest mm whose factors have not been read may read them, and then its accumulators. Registered:
                # it applies to the next mm two cycles after factors_taken, or after the event that this mm waits for.
                "factors_ready": In(1),
                # Strobe, only while factors_ready: factors are read from this cycle on, one register a cycle.
                "factors_taken": Out(1),
                "mm_done": Out(1),  # strobe: the last result of the oldest mm is written in this cycle
            }
        )

"""A plan as the words of a program, and as global memory (docs/network.md, "The program"). Nothing is decided here."""

import numpy as np

from tilewright.golden import (
    TensorMap,
    command_word,
    conv_words,
    delivery_bits,
    job_word,
    page_words,
    program_bytes,
    program_word,
    segment_words,
    tmau_word,
)
from tilewright.golden.pe.segment import Segment
from tilewright.spec import Opcode, Space, Swizzle
from tilewright.spec.core import ARGUMENTS, WORD_BYTES, Engine
from tilewright.spec.pe import PAGE_ENTRY, SegmentElement

from .lower.places import BLOCK, LINE, LONG, padded
from .plan.entries import Entry
from .plan.instructions import Barrier, Command, Commit, Hold, Instructions, KernelCall, Signal, WaitKernels

__all__ = ["memory_image", "starts_of", "tag_layer", "words_of"]

#: Bit of the tags of stores: commands of one tag end in their order.
_STORE = 1 << 14
_SEGMENT_ELEMENTS = {"int8": SegmentElement.S8, "uint8": SegmentElement.U8, "int32": SegmentElement.S32,
                     "uint32": SegmentElement.U32}  # fmt: skip


def words_of(plan, schedule):
    """The words of the program of a core with this schedule, a list."""
    words = []
    for instruction in schedule.instructions:
        if isinstance(instruction, Barrier):
            operation, barrier, value, _ = instruction
            words.append(program_word("barrier", operation=operation, barrier=barrier, value=value))
        elif isinstance(instruction, Hold):
            words.append(tmau_word(command_word(Opcode.WAIT, count=instruction.count, read=instruction.read)))
        elif isinstance(instruction, Commit):
            words.append(tmau_word(command_word(Opcode.COMMIT)))
        elif isinstance(instruction, Command):
            words.append(tmau_word(_command(instruction, plan.maps)))
        elif isinstance(instruction, Signal):
            words.append(tmau_word(_signal(instruction)))
        elif isinstance(instruction, Entry):
            words += _entry(instruction)
        elif isinstance(instruction, Instructions):
            words.append(program_word("pe", address=instruction.address, count=instruction.count))
        elif isinstance(instruction, KernelCall):
            words.append(_kernel_call(instruction))
        elif isinstance(instruction, WaitKernels):
            words.append(program_word("wait_all", engines=1 << Engine.PE - 1))
        else:
            words += conv_words(_job(instruction))
    return [*words, program_word("end", interrupt=1)]


def _command(command, maps):
    """The command of a transfer in one of both directions."""
    transfer, load = command.transfer, command.barrier is not None
    fields = {"tag": command.layer + 1 & _STORE - 1 | (0 if load else _STORE)}
    if load:
        fields |= {"signal": 1, "barrier": command.barrier}
    delivery = delivery_bits(command.cores) if command.cores else 0
    if transfer.map:
        opcode = Opcode.LOAD if load else Opcode.STORE
        coords = transfer.coords + (0,) * (5 - len(transfer.coords))
        return delivery | command_word(opcode, descriptor=maps[transfer.map.shared], smem=transfer.near, coords=coords,
                                       **fields)  # fmt: skip
    ends = [(Space.GLOBAL, transfer.far), (Space.SHARED, transfer.near)]
    (source_space, source), (destination_space, destination) = ends if load else ends[::-1]
    return delivery | command_word(
        Opcode.COPY_BLOCK, source_space=source_space, source=source, size=transfer.size,
        destination_space=destination_space, destination=destination, **fields)  # fmt: skip


def _signal(signal):
    """The command of a copy that only signals."""
    return delivery_bits(signal.cores) | command_word(
        Opcode.COPY_BLOCK, source_space=Space.SHARED, source=signal.source, size=BLOCK,
        destination_space=Space.SHARED, destination=signal.target, signal=1, barrier=signal.barrier)  # fmt: skip


def _entry(entry):
    """The words that write a segment or a page entry of the processing engine."""
    if isinstance(entry.value, int):
        return page_words(entry.number, PAGE_ENTRY.pack(address=entry.value, valid=1, loaded=1, on_chip=1))
    value = entry.value
    place = {"base": value.pages[0]} if len(value.pages) == 1 else {"paged": True, "first_entry": entry.first_page}
    swizzle = Swizzle.B128 if value.swizzled else Swizzle.NONE
    segment = Segment(_SEGMENT_ELEMENTS[value.element], value.size, value.page_log2, swizzle, **place)
    return segment_words(entry.number, segment.pack())


def _kernel_call(call):
    """The word of a call, with its arguments in uniform registers from 0 on."""
    arguments = [argument & 0xFFFFFFFF for argument in call.arguments]
    padded_arguments = (*arguments, *(0,) * (ARGUMENTS - len(arguments)))
    return program_word(
        "kernel", entry=call.entry, count=len(arguments), argument=padded_arguments, tag=call.layer + 1 & _STORE - 1
    )


def _job(job):
    """The packed job of the convolution engine."""
    signal = {} if job.barrier is None else {"signal": 1, "barrier": job.barrier, "early": job.early}
    return job_word(**job.fields, tag=job.layer + 1 & _STORE - 1, **signal)


def tag_layer(tag):
    """The layer that a tag, which is not 0, is for: commits and waits have 0."""
    return (tag & _STORE - 1) - 1


def starts_of(plan, programs):
    """The address and the number of words of the program of each core, which lie one after the other."""
    starts, address = [], plan.start
    for words in programs:
        starts.append((address, len(words)))
        address += padded(WORD_BYTES * len(words), LINE)
    return starts


def memory_image(plan, programs):
    """Global memory from address 0 on with weights, descriptors and programs, a uint8 array."""
    starts = starts_of(plan, programs)
    memory = np.zeros(starts[-1][0] + padded(WORD_BYTES * starts[-1][1], LINE), np.uint8)
    for (start, _), words in zip(starts, programs, strict=True):
        memory[start : start + WORD_BYTES * len(words)] = program_bytes(words)
    for address, image in plan.images.items():
        memory[address : address + image.size] = image.data()
    for box, address in plan.maps.items():
        packed = np.frombuffer(_descriptor(box).pack(), np.uint8)
        memory[address : address + len(packed)] = packed
    return memory


def _descriptor(box):
    """The tensor map of a box."""
    cut, base = box.place, box.place.base
    unit, (rows, columns) = cut.unit, cut.step
    # Gaps are outside of the tensor: nothing is fetched for them, and nothing is written.
    end = cut.first_channel + cut.channels if cut.gap else base.channels
    size, stride, extent = end // unit, (), (cut.pixel_pitch // unit,)
    if cut.long:
        size, stride, extent = size * unit // LONG, (LONG,), (LONG // unit, cut.pixel_pitch // LONG)
    return TensorMap(
        element=f"u{8 * unit}", address=box.address,
        size=(*extent[:-1], size, base.width, base.height, base.batch),
        stride=(*stride, base.channels, base.row_pitch, base.image_pitch),
        traversal=(*(1 for _ in extent), columns, rows, 1),
        box=(*extent, cut.columns, (box.rows - 1) * rows + 1, 1),
        swizzle=Swizzle.B128 if cut.swizzled else Swizzle.NONE,
        unaligned=base.channels % 16 != 0 or cut.channels % 16 != 0,
    )  # fmt: skip

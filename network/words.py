"""A plan as the words of a program, and as global memory (docs/network.md, "The program"). Nothing is decided here."""

import numpy as np

from tilewright.golden import TensorMap, command_word, conv_words, job_word, program_bytes, program_word, tmau_word
from tilewright.spec import Opcode, Space

from .lower.places import LINE, LONG, padded
from .plan.schedule import Barrier, Command, Commit, Hold

__all__ = ["memory_image", "tag_layer", "words_of"]

#: Bit of the tags of stores: commands of one tag end in their order.
_STORE = 1 << 14


def words_of(plan):
    """The words of a program, a list."""
    words = []
    for instruction in plan.schedule.instructions:
        if isinstance(instruction, Barrier):
            operation, barrier, value, _ = instruction
            words.append(program_word("barrier", operation=operation, barrier=barrier, value=value))
        elif isinstance(instruction, Hold):
            words.append(tmau_word(command_word(Opcode.WAIT, count=instruction.count, read=instruction.read)))
        elif isinstance(instruction, Commit):
            words.append(tmau_word(command_word(Opcode.COMMIT)))
        elif isinstance(instruction, Command):
            words.append(tmau_word(_command(instruction, plan.maps)))
        else:
            words += conv_words(_job(instruction))
    return [*words, program_word("end", interrupt=1)]


def _command(command, maps):
    """The command of a transfer in one of both directions."""
    transfer, load = command.transfer, command.barrier is not None
    fields = {"tag": command.layer + 1 & _STORE - 1 | (0 if load else _STORE)}
    if load:
        fields |= {"signal": 1, "barrier": command.barrier}
    if transfer.map:
        opcode = Opcode.LOAD if load else Opcode.STORE
        coords = transfer.coords + (0,) * (5 - len(transfer.coords))
        return command_word(opcode, descriptor=maps[transfer.map], smem=transfer.near, coords=coords, **fields)
    ends = [(Space.GLOBAL, transfer.far), (Space.SHARED, transfer.near)]
    (source_space, source), (destination_space, destination) = ends if load else ends[::-1]
    return command_word(Opcode.COPY_BLOCK, source_space=source_space, source=source, size=transfer.size,
                        destination_space=destination_space, destination=destination, **fields)  # fmt: skip


def _job(job):
    """The packed job of the convolution engine."""
    signal = {} if job.barrier is None else {"signal": 1, "barrier": job.barrier, "early": job.early}
    return job_word(**job.fields, tag=job.layer + 1 & _STORE - 1, **signal)


def tag_layer(tag):
    """The layer that a tag, which is not 0, is for: commits and waits have 0."""
    return (tag & _STORE - 1) - 1


def memory_image(plan, words):
    """Global memory from address 0 on with weights, descriptors and program, a uint8 array."""
    program = program_bytes(words)
    memory = np.zeros(plan.start + padded(len(program), LINE), np.uint8)
    memory[plan.start : plan.start + len(program)] = program
    for address, image in plan.images.items():
        memory[address : address + image.size] = image.data()
    for box, address in plan.maps.items():
        packed = np.frombuffer(_descriptor(box, plan.tensors).pack(), np.uint8)
        memory[address : address + len(packed)] = packed
    return memory


def _descriptor(box, tensors):
    """The tensor map of a box."""
    cut, base = box.place, box.place.base
    unit, (rows, columns) = cut.unit, cut.step
    # Gaps are outside of the tensor: nothing is fetched for them, and nothing is written.
    size, stride, extent = (cut.first_channel + cut.channels) // unit, (), (cut.pixel_pitch // unit,)
    if cut.long:
        size, stride, extent = size * unit // LONG, (LONG,), (LONG // unit, cut.pixel_pitch // LONG)
    return TensorMap(
        element=f"u{8 * unit}", address=tensors[base.name],
        size=(*extent[:-1], size, base.width, base.height, base.batch),
        stride=(*stride, base.channels, base.row_pitch, base.image_pitch),
        traversal=(*(1 for _ in extent), columns, rows, 1),
        box=(*extent, cut.columns, (box.rows - 1) * rows + 1, 1),
        unaligned=base.channels % 16 != 0 or cut.channels % 16 != 0,
    )  # fmt: skip

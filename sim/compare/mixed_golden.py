"""What golden makes of a mixed batch: the memories before and after, the windows, and how every command ends."""

from dataclasses import dataclass

import numpy as np

from tilewright.golden import Machine, Memory, Windows
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import BARRIER, COMMAND, DESCRIPTOR, FORMATS, LINE_BYTES, Error

from ..golden_options import machine_options
from ..random.mixed import BARRIERS, DESCRIPTOR_SLOTS, GLOBAL_BYTES, PAGE, MixedBatch

__all__ = [
    "BATCH_BYTES",
    "GMEM_SEED",
    "SMEM_SEED",
    "MixedGolden",
    "batch_commands",
    "batch_windows",
    "processor_windows",
    "run_golden",
    "spread_tag",
]

#: Seeds of the contents of both memories.
GMEM_SEED, SMEM_SEED = 3, 4
#: Bytes of global memory that a batch uses: tensors and blocks, then descriptors.
BATCH_BYTES = GLOBAL_BYTES + DESCRIPTOR_SLOTS * DESCRIPTOR.bytes


@dataclass(frozen=True)
class MixedGolden:
    """A batch that golden has executed.

    Attributes
    ----------
    batch : MixedBatch
    commands : list of dict
        Fields of each order's format, with addresses as they are.
    contents, shared : uint8 array
        Global memory from the batch's base on, and shared memory, before.
    windows : Windows
    machine : Machine
        After it.
    endings : list of Error
        Of each command; NONE if it was not refused.
    """

    batch: MixedBatch
    commands: list
    contents: np.ndarray
    shared: np.ndarray
    windows: Windows
    machine: Machine
    endings: list


def run_golden(batch, params):
    """Executes a batch on golden, as a :class:`MixedGolden`; ``params`` are those of the TMAU."""
    contents = mix_pattern(BATCH_BYTES, GMEM_SEED)
    commands = batch_commands(batch, contents)
    shared = _shared_memory(params.smem.size_bytes)
    windows = batch_windows(batch, params.smem.size_bytes, batch.base)
    machine = Machine(
        Memory(contents.copy(), base=batch.base),
        shared.copy(),
        windows=windows,
        **machine_options(params),
        processors=processor_windows(params, batch.base),
    )
    endings = []
    for command in commands:
        before = len(machine.errors)
        done = machine.execute(FORMATS.get(command["opcode"], COMMAND).pack(**command))
        endings.append(machine.errors[before].code if done is None else Error.NONE)
    return MixedGolden(batch, commands, contents, shared, windows, machine, endings)


def batch_windows(batch, smem_bytes, base):
    """All that a batch at ``base`` uses but the first page, and the first line; each if the batch asks for it."""
    in_global, in_shared = batch.windows
    return Windows(
        global_=(base + PAGE, base + BATCH_BYTES // PAGE * PAGE - 1) if in_global else None,
        shared=(LINE_BYTES, smem_bytes - 1) if in_shared else None,
    )


def processor_windows(params, base):
    """Of each processor of an access unit: none, or in one memory or both less than a batch's windows, or more."""
    last = base + BATCH_BYTES // PAGE * PAGE - 1
    return tuple(
        Windows(
            global_=(base + PAGE * (number + 3), last) if number & 1 else None,
            shared=(0 if number & 1 else 4 * LINE_BYTES, params.smem.size_bytes - 1) if number & 2 else None,
        )
        for number in range(params.window_owners if params.confines_apart else 0)
    )


def spread_tag(number):
    """Tag of a command of that number: they differ, and all of their bits are used."""
    return 40503 * number % (1 << 16)


def batch_commands(batch, contents):
    """Fields of the commands; their descriptors are placed behind the tensors in ``contents``."""
    slots, commands = {}, []
    for number, order in enumerate(batch.orders):
        fields = order.fields | {"tag": spread_tag(number + batch.seed)}
        fields |= {name: fields[name] + batch.base for name in order.based}
        raw = order.descriptor(batch.base)
        if raw is not None:
            place = GLOBAL_BYTES + DESCRIPTOR.bytes * slots.setdefault(raw, len(slots))
            contents[place : place + len(raw)] = np.frombuffer(raw, np.uint8)
            fields["descriptor"] = batch.base + place + order.skew
        known = {field.name for field in FORMATS.get(fields["opcode"], COMMAND).fields}
        commands.append({name: value for name, value in fields.items() if name in known})
    return commands


def _shared_memory(size):
    """Contents before a batch: a pattern, and barriers that wait for one arrival, half of them in phase 1."""
    contents = mix_pattern(size, SMEM_SEED)
    for number in range(BARRIERS):
        place = len(contents) - BARRIER.bytes * (BARRIERS - number)
        Barrier(pending=1, expected=number + 1, phase=number & 1).write(contents, place)
    return contents

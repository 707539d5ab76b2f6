"""Mixed batches on hardware and golden: both memories, error records, barriers, and the rules of the bus."""

import numpy as np

from tilewright.golden import Machine, Memory, Windows
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec import BARRIER, COMMAND, DESCRIPTOR, FORMATS
from tilewright.hw.smem.params import LINE_BYTES

from .mixed import BARRIERS, DESCRIPTOR_SLOTS, GLOBAL_BYTES
from .random_run import bus_differences, ending_differences, memory_differences

__all__ = ["MixedRun"]

_PAGE = 4096
_GMEM_SEED, _SMEM_SEED = 3, 4
_BYTES = GLOBAL_BYTES + DESCRIPTOR_SLOTS * DESCRIPTOR.bytes
#: Cycles after which the barrier unit has written back what it holds.
_DRAIN = 32


class MixedRun:
    """Plays mixed batches on a session, whose memories it fills anew for each.

    Parameters
    ----------
    session : Session

    Attributes
    ----------
    commands : int
        Compared so far.
    endings : dict of Error to int
        How the commands ended.
    """

    def __init__(self, session):
        self._session = session
        self._params = session.params
        self.commands = 0
        self.endings = {}

    def play(self, batch):
        """Runs a batch from a reset on; returns one sentence for each difference from golden."""
        session, params = self._session, self._params
        session.clear(batch.base)
        session.configure(
            latency=batch.latency,
            stall=batch.stall,
            issue_stall=batch.issue_stall,
            answer_stall=batch.answer_stall,
            seed=batch.seed,
        )
        contents = mix_pattern(_BYTES, _GMEM_SEED)
        commands = self._commands(batch, contents)
        shared = self._shared_memory()
        session.global_memory.write(batch.base, contents)
        session.shared_memory.write(0, shared)

        windows = self._windows(batch)
        machine = Machine(
            Memory(contents.copy(), base=batch.base),
            shared.copy(),
            params.bus_bytes,
            params.addr_width,
            windows=windows,
        )
        for command in commands:
            machine.execute(FORMATS.get(command["opcode"], COMMAND).pack(**command))
        run = session.run(
            [command | {"wait": batch.wait} for command in commands],
            registers=_register_writes(windows),
            after={"commands": ["registers"]},
            shared=True,
            memory=(batch.base, _BYTES),
            drain=_DRAIN,
        )
        self.commands += len(commands)
        for record in machine.errors:
            self.endings[record.code] = self.endings.get(record.code, 0) + 1
        return [
            *bus_differences(run),
            *ending_differences(run, machine),
            *memory_differences("shared memory", run.shared, machine.smem, shared),
            *memory_differences("global memory", run.memory, machine.gmem.data, contents),
        ]

    @staticmethod
    def _commands(batch, contents):
        """Fields of the commands; their descriptors are placed behind the tensors in ``contents``."""
        slots, commands = {}, []
        for number, order in enumerate(batch.orders):
            # Tags differ, and all of their bits are used.
            fields = order.fields | {"tag": (40503 * number + batch.seed) % (1 << 16)}
            fields |= {name: fields[name] + batch.base for name in order.based}
            raw = order.descriptor(batch.base)
            if raw is not None:
                place = GLOBAL_BYTES + DESCRIPTOR.bytes * slots.setdefault(raw, len(slots))
                contents[place : place + len(raw)] = np.frombuffer(raw, np.uint8)
                fields["descriptor"] = batch.base + place + order.skew
            known = {field.name for field in FORMATS.get(fields["opcode"], COMMAND).fields}
            commands.append({name: value for name, value in fields.items() if name in known})
        return commands

    def _shared_memory(self):
        """Contents before a batch: a pattern, and barriers that wait for one arrival, half of them in phase 1."""
        contents = mix_pattern(self._params.smem.size_bytes, _SMEM_SEED)
        for number in range(BARRIERS):
            state = Barrier(pending=1, expected=number + 1, phase=number & 1).pack()
            place = len(contents) - BARRIER.bytes * (BARRIERS - number)
            contents[place : place + BARRIER.bytes] = np.frombuffer(state.to_bytes(BARRIER.bytes, "little"), np.uint8)
        return contents

    def _windows(self, batch):
        """All that the batch uses but the first page and the first line; or none."""
        if not batch.windows:
            return Windows()
        return Windows(
            global_=(batch.base + _PAGE, batch.base + _BYTES // _PAGE * _PAGE - 1),
            shared=(LINE_BYTES, self._params.smem.size_bytes - 1),
        )


def _register_writes(windows):
    """Accesses that set the windows."""
    base, limit = windows.global_ or (0, 0)
    first, last = windows.shared or (0, 0)
    values = {
        "global_base_lo": base & 0xFFFF_FFFF,
        "global_base_hi": base >> 32,
        "global_limit_lo": limit & 0xFFFF_FFFF,
        "global_limit_hi": limit >> 32,
        "shared_base": first,
        "shared_limit": last,
        "windows": (windows.global_ is not None) | (windows.shared is not None) << 1,
    }
    return list(values.items())

"""Random commands on a cluster of hardware and on golden: all memories, endings, errors and bytes."""

from collections import Counter
from dataclasses import replace

import numpy as np

from tilewright.golden import Cluster, Memory, Windows, command_word, delivery_bits
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.sim.session.golden_options import machine_options
from tilewright.spec import BARRIER, DESCRIPTOR, LINE_BYTES, Error

from ..random.cluster import BARRIERS, GLOBAL_BYTES
from .differences import bus_differences, memory_differences, unequal
from .mixed_run import BATCH_BYTES, batch_commands, batch_windows, processor_windows, spread_tag

__all__ = ["ClusterComparison"]

#: Cycles after which the barrier unit has written back what it holds.
_DRAIN = 64
_GMEM_SEED, _SMEM_SEED = 5, 6
_EVERYONE = (1 << 16) - 1


class ClusterComparison:
    """Runs batches on a session, whose memories it fills for each batch.

    Parameters
    ----------
    session : ClusterSession

    Attributes
    ----------
    commands : int
        Compared so far.
    endings : Counter
        How they ended.
    """

    def __init__(self, session):
        self._session = session
        self.commands = 0
        self.endings = Counter()

    def run(self, batch):
        """Runs a :class:`ClusterBatch` from a reset on; returns one sentence for each difference from golden."""
        commands, contents = _placed(batch)
        windows = [Windows(shared=window) for window in batch.windows]
        commands = [[fields | {"tag": spread_tag(number)} for number, fields in enumerate(one)] for one in commands]
        return self._compare(commands, contents, batch.isolation, windows)

    def run_garbage(self, batch, issuer, delivery):
        """Runs a ``MixedBatch`` on core ``issuer``; ``delivery`` has each command's arguments of ``delivery_bits``."""
        cores, contents = self._session.params.cores, mix_pattern(BATCH_BYTES, _GMEM_SEED)
        commands = batch_commands(batch, contents)
        given = [fields | named | {"wait": True} for fields, named in zip(commands, delivery, strict=True)]
        windows = batch_windows(batch, self._session.params.smem.size_bytes, 0)
        script = [given if core == issuer else [] for core in range(cores)]
        return self._compare(script, contents, [(_EVERYONE, _EVERYONE)] * cores, [windows] * cores)

    def _compare(self, commands, contents, isolation, windows):
        session, cores = self._session, len(commands)
        shared = _shared_memory(session.params.smem.size_bytes, cores)
        session.clear()
        session.global_memory.write(0, contents)
        for memory in session.shared_memories:
            memory.write(0, shared)
        apart = processor_windows(session.params.tmau, 0)
        own = [item for number, each in enumerate(apart) for item in each.registers(number).items()]
        registers = zip(isolation, windows, strict=True)
        isolated = cores > 1  # one core has no such register
        session.run(registers=[
            [*([("isolation", reach | accepts << 16)] if isolated else []), *window.registers().items(), *own]
            for (reach, accepts), window in registers
        ])  # fmt: skip
        run = session.run(commands, shared=True, memory=(0, len(contents)), drain=_DRAIN)
        if session.params.l2:
            session.flush()
            run = replace(run, memory=session.run(memory=(0, len(contents))).memory)
        cluster, endings = self._golden(commands, contents.copy(), shared, isolation, windows)
        counted = session.run(registers=[[("error_count",)]] * cores)
        wrong = [*bus_differences(run)]
        for core, (here, model) in enumerate(zip(run.cores, cluster.cores, strict=True)):
            ends = [stamp.error for stamp in here.commands]
            wrong += unequal(
                {
                    f"the end of command {number} of core {core}": pair
                    for number, pair in enumerate(zip(ends, endings[core], strict=True))
                }
            )
            wrong += memory_differences(f"shared memory of core {core}", here.shared, model.smem, shared)
            count = counted.cores[core].registers[0].data
            wrong += unequal({f"the number of errors of core {core}": (count, len(model.errors))})
        wrong += memory_differences("global memory", run.memory, cluster.cores[0].gmem.data, contents)
        self.commands += sum(map(len, commands))
        self.endings.update(ending for listed in endings for ending in listed)
        return wrong

    def _golden(self, commands, contents, shared, isolation, windows):
        """The cluster after the commands, and how each ended."""
        tmau = self._session.params.tmau
        cluster = Cluster(Memory(contents), [shared.copy() for _ in commands], **machine_options(tmau),
                          processors=processor_windows(tmau, 0))  # fmt: skip
        for machine, masks, window in zip(cluster.cores, isolation, windows, strict=True):
            machine.reach, machine.accepts = masks
            machine.windows = window
        return cluster, [
            [_ending(cluster, core, dict(fields)) for fields in listed] for core, listed in enumerate(commands)
        ]


def _ending(cluster, core, fields):
    """How a command ends on golden."""
    errors = cluster.cores[core].errors
    before = len(errors)
    fields.pop("wait")
    delivery = delivery_bits(fields.pop("cores", None), fields.pop("source_core", None))
    done = cluster.execute(core, command_word(**fields) | delivery)
    return errors[before].code if done is None else Error.NONE


def _placed(batch):
    """Commands of each core with the addresses of their descriptors, and global memory, which ends with these."""
    listed = [descriptor for commands in batch.commands for _, descriptor in commands if descriptor is not None]
    places = {raw: GLOBAL_BYTES + DESCRIPTOR.bytes * number for number, raw in enumerate(dict.fromkeys(listed))}
    tables = [np.frombuffer(raw.to_bytes(DESCRIPTOR.bytes, "little"), np.uint8) for raw in places]
    commands = [
        [fields if raw is None else fields | {"descriptor": places[raw]} for fields, raw in one]
        for one in batch.commands
    ]
    return commands, np.concatenate([mix_pattern(GLOBAL_BYTES, _GMEM_SEED), *tables])


def _shared_memory(size, cores):
    """A pattern, and barriers that wait for one arrival."""
    contents = mix_pattern(size, _SMEM_SEED)
    for number in range(BARRIERS * cores):
        Barrier(pending=1, expected=1).write(contents, size - LINE_BYTES + BARRIER.bytes * number)
    return contents

"""One core of a cluster is stopped in the middle of things: the others do not notice, and it can be started again.

Specification: docs/cluster.md, "Stopping one core".
"""

import random

import numpy as np

from support.selection import cases
from tilewright.golden import Cluster, Memory, command_word, delivery_bits
from tilewright.golden.smem import Barrier
from tilewright.spec import Element, Error, Opcode, Reduction, Space
from tilewright.spec.cluster import ClusterError

SEED = 7
BARRIER = 0xF80  # of each core; counts all bytes, and waits for one arrival
COMMANDS = 24
IDLE = 1500  # accesses, which take longer than all commands


def blocks(core, rng):
    """Copies of a core: into both shared memories, from the other one, sums in both and in global memory.

    Each core writes places of its own, but for the sums, whose order does not matter.
    """
    own, other, adds = 0x400 * core, 1 - core, {"reduction": Reduction.ADD, "element": Element.U32}
    for number in range(COMMANDS):
        size, place = 16 * rng.randint(1, 24), 0x1000 * core + 16 * rng.randrange(64)
        brings = {"opcode": Opcode.COPY_BLOCK, "destination_space": Space.SHARED, "source": place, "size": size,
                  "destination": own + 16 * rng.randrange(8), "signal": 1, "barrier": BARRIER}  # fmt: skip
        yield rng.choice([
            brings | {"cores": [0, 1]},
            brings | {"cores": [other]},
            brings | {"cores": [0, 1], "destination": 0x800} | adds,
            brings | {"source_space": Space.SHARED, "source_core": other, "source": 0xC00, "cores": [0, 1]},
            brings | {"source_space": Space.SHARED, "source": 0xC00, "destination_space": Space.GLOBAL,
                      "destination": 0x3000, "signal": 0} | adds,
        ]) | {"tag": number}  # fmt: skip


def golden(contents, shared, done):
    """Both shared memories and global memory after the commands of each core."""
    cluster = Cluster(Memory(contents.copy()), [shared.copy() for _ in range(2)])
    for core, commands in enumerate(done):
        for fields in map(dict, commands):
            delivery = delivery_bits(fields.pop("cores", None), fields.pop("source_core", None))
            assert cluster.execute(core, command_word(**fields) | delivery) is not None
    return [machine.smem for machine in cluster.cores], cluster.cores[0].gmem.data


@cases("accesses", [1, 9, 21, 33], range(2, 120, 4))
def test_others_do_not_notice(pair, accesses):
    """Core 0 is stopped behind so many accesses to its registers, and started again when all others have ended.

    What it had begun is done, what waited in its queue is refused, and what comes later waits until it is started.
    Until then core 1 does in each cycle what it does when core 0 has nothing to do but what it had begun.
    """
    rng = random.Random(f"{SEED} {accesses}")
    commands = [list(blocks(core, rng)) for core in range(2)]
    contents = np.random.default_rng(SEED).integers(0, 256, 0x4000, np.uint8)
    shared = np.zeros(pair.params.smem.size_bytes, np.uint8)
    shared[0xC00:0xF00] = contents[:0x300]
    Barrier(pending=1, expected=1).write(shared, BARRIER)
    again = [("control", 7), ("irq_status", 3), ("stop", 0)]
    registers = [[("status",)] * accesses + [("stop", 1)] + [("status",)] * IDLE + again + [("error_count",)]]

    def run(listed):
        pair.clear()
        pair.configure(latency=30, stall=0.2, issue_stall=0.0, seed=accesses)
        pair.global_memory.write(0, contents)
        for memory in pair.shared_memories:
            memory.write(0, shared)
        return pair.run(listed, registers=registers, drain=64, shared=True, memory=(0, len(contents)))

    stopped = run(commands)
    ends = [stamp.error for stamp in stopped.cores[0].commands]
    begun, refused = ends.index(ClusterError.STOPPED), ends.count(ClusterError.STOPPED)
    print(f"seed {SEED}, {accesses} accesses: {begun} commands begun, {refused} refused")
    assert ends == [Error.NONE] * begun + [ClusterError.STOPPED] * refused + [Error.NONE] * (COMMANDS - begun - refused)
    assert [stamp.error for stamp in stopped.cores[1].commands] == [Error.NONE] * COMMANDS
    assert not stopped.violations and not stopped.late
    *_, idle, _, _, started, errors = stopped.cores[0].registers
    assert idle.data == 3 and errors.data == 0, "idle with an error, and none after the start"
    assert max(stamp.done for stamp in stopped.cores[1].commands) < started.cycle
    assert all(stamp.accepted > started.cycle - 20 for stamp in stopped.cores[0].commands[begun + refused :])

    without = run([commands[0][:begun], commands[1]])
    assert without.cores[1].commands == stopped.cores[1].commands
    assert without.cores[0].commands == stopped.cores[0].commands[:begun]
    smems, gmem = golden(contents, shared, [commands[0][:begun] + commands[0][begun + refused :], commands[1]])
    for core, smem in zip(stopped.cores, smems, strict=True):
        assert (core.shared == smem).all()
    assert (stopped.memory == gmem).all()


def test_stop_and_start_of_a_session(pair):
    """Record, counters and interrupts are as after a reset, and windows stay."""
    pair.clear()
    pair.configure(latency=10, stall=0.0, issue_stall=0.0, seed=1)
    move = {"opcode": Opcode.COPY_BLOCK, "destination_space": Space.SHARED, "source": 0, "size": 64,
            "destination": 0x400}  # fmt: skip
    window = [("shared_base", 0x400), ("shared_limit", 0x7FF), ("windows", 2), ("irq_enable", 1)]
    pair.run(registers=[window])
    assert pair.run([[move | {"destination": 0}]]).irq
    pair.stop(0)
    assert pair.registers(0)["stop"] == 1
    pair.start(0)
    run, shown = pair.run([[move, move | {"destination": 0}]]), pair.registers(0)
    assert [stamp.error for stamp in run.cores[0].commands] == [Error.NONE, Error.WINDOW] and not run.irq
    assert [shown[name] for name in ("stop", "commands", "bytes", "error_count", "windows")] == [0, 2, 64, 1, 2]

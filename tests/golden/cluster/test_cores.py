"""Programs of several cores on the golden model: they meet at barriers, and none of them ends another one."""

import numpy as np
import pytest

from tilewright.golden import (
    Cluster,
    Cores,
    DeadlockError,
    Memory,
    ProgramRecord,
    command_word,
    delivery_bits,
    program_bytes,
    program_word,
    tmau_word,
)
from tilewright.golden.patterns import mix_pattern
from tilewright.golden.smem.barrier import Barrier
from tilewright.golden.spec.core.errors import ProgramError
from tilewright.golden.spec.core.word import Engine
from tilewright.sim.asm.pe.assembler import assemble_program

SMEM, GMEM = 4096, 1 << 14
PROGRAMS, INSTRUCTIONS = 0x2000, 0x3000
BARRIER, OTHER = 0x40, 0x48
END = program_word("end")


def cores_of(*programs, **options):
    """Cores of a cluster, and what :meth:`Cores.run` takes for their programs, lists of words or None."""
    gmem, starts = Memory(mix_pattern(GMEM, 1)), []
    for number, words in enumerate(programs):
        address = PROGRAMS + 0x400 * number
        starts.append((address, len(words)) if words else None)
        gmem.write(address, program_bytes(words or []))
    smems = [np.zeros(SMEM, np.uint8) for _ in programs]
    for smem in smems:
        for address in (BARRIER, OTHER):
            Barrier(pending=1, expected=1).write(smem, address)
    return Cores(Cluster(gmem, smems), **options), starts


def bring(*cores, barrier=BARRIER, **fields):
    """A word that copies the first 64 bytes of global memory to cores, and signals their barriers."""
    moves = {"source": 0, "destination": 0x80, "destination_space": "shared", "size": 64, "signal": 1}
    command = command_word("copy_block", barrier=barrier, **moves | fields) | delivery_bits(cores)
    return tmau_word(command)


def expect(barrier=BARRIER):
    """Words that await those bytes."""
    made = [("expect_tx", 64), ("arrive", 1), ("try_wait", 0)]
    return [program_word("barrier", operation=operation, barrier=barrier, value=value) for operation, value in made]


@pytest.mark.parametrize("sender", [0, 1])
def test_a_program_waits_for_what_another_core_brings(sender):
    """Whoever comes first; and what comes back is waited for by who sent before."""
    sends = [bring(0, 1), *expect(), *expect(OTHER), END]
    answers = [*expect(), bring(sender, barrier=OTHER), END]
    cores, starts = cores_of(*((answers, sends) if sender else (sends, answers)))
    assert cores.run(starts) == [None, None]
    for core in cores.cores:
        assert (core.smem[0x80:0xC0] == core.gmem.read(0, 64)).all()


def test_an_instruction_waits_for_another_core():
    """An engine that waits keeps its program, and no other one."""
    (wait,) = assemble_program(f"bar.wait {BARRIER:#x}, 0")
    words = program_word("pe", count=1, address=INSTRUCTIONS)
    await_bytes = [program_word("barrier", operation=op, barrier=BARRIER, value=value)
                   for op, value in (("expect_tx", 64), ("arrive", 1))]  # fmt: skip
    cores, starts = cores_of([*await_bytes, words, END], [program_word("wait_all"), bring(0), END])
    cores.cores[0].gmem.write(INSTRUCTIONS, np.frombuffer(wait.to_bytes(64, "little"), np.uint8))
    assert cores.run(starts) == [None, None]


def test_each_program_has_its_own_end():
    """An error of one, a core without a program, and one that goes on."""
    cores, starts = cores_of([0, END], None, [bring(1), END])
    assert cores.run(starts) == [ProgramRecord(ProgramError.KIND, Engine.NONE, 0, 0), None, None]
    assert (cores.cores[1].smem[0x80:0xC0] == cores.cores[2].gmem.read(0, 64)).all()


def test_what_a_receiver_refuses_stops_both_programs():
    """Each core records its part."""
    cores, starts = cores_of([bring(1, tag=5), END], [END])
    cores.cores[1].tmau.accepts = 0
    record = ProgramRecord(ProgramError.ENGINE, Engine.TMAU, 5, 1)
    assert cores.run(starts) == [record, record._replace(word=0)]
    assert not cores.cores[1].smem[0x80:0xC0].any()


@pytest.mark.parametrize("watchdog", [False, True])
def test_where_all_wait_nothing_comes(watchdog):
    """Two that wait for each other, beside one that has ended before."""
    waits = [*expect(), bring(0, 1), END]
    cores, starts = cores_of(waits, waits, [END], watchdog=watchdog)
    if watchdog:
        stopped = ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 0, 2)
        assert cores.run(starts) == [stopped, stopped, None]
    else:
        with pytest.raises(DeadlockError, match="word 2 waits for ever: nothing completes the phase of parity 0"):
            cores.run(starts)


def test_programs_are_of_all_cores():
    cores, starts = cores_of([END], [END])
    with pytest.raises(ValueError, match=r"^programs must be of 2 cores, not of 1$"):
        cores.run(starts[:1])

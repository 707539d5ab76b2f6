"""A run that waits for what cannot come is given up when nothing can happen any more, and says what it waits for."""

import numpy as np
import pytest

from tilewright.golden import instruction_word, program_bytes, program_word
from tilewright.sim.hdl.simulation import SimulationError
from tilewright.sim.session import Session
from tilewright.sim.session.core import open_accelerator
from tilewright.sim.session.stillness import STILL_CYCLES, Stillness

#: Cycles that a run that is given up has taken at most.
_SOON = 2 * STILL_CYCLES
_BARRIER = 64
_LACKS = "phase 0 of the barrier at 0x40, which lacks 1 of 2 arrivals and 16 bytes"
_OPERATIONS = [("init", _BARRIER, 2), ("expect_tx", _BARRIER, 16), ("arrive", _BARRIER, 1)]


def given_up(session, call):
    """The sentence of a call, and whether it came soon; the session can be used afterwards."""
    before = session.simulation.cycles
    with pytest.raises(SimulationError) as caught:
        call()
    assert session.simulation.cycles - before < _SOON
    return str(caught.value)


def test_a_processor_at_a_barrier():
    with Session("unit", ["tmau"], latency=20, memory_bytes=1 << 16) as session:
        waits = [*_OPERATIONS, ("try_wait", _BARRIER, 0, True)]
        assert given_up(session, lambda: session.run(barriers=waits)).endswith(f": barriers[3] waits for {_LACKS}")
        sentence = given_up(session, lambda: session.run(barriers=[("try_wait", 128, 0, True)]))
        assert sentence.endswith(
            "barriers[0] waits for phase 0 of the barrier at 0x80, where none has been initialised"
        )
        assert session.run(barriers=_OPERATIONS).finished


def test_an_instruction_at_a_barrier():
    with Session("unit", ["pe"]) as session:
        words = [instruction_word("fence"), instruction_word("bar_wait", imm=_BARRIER, parity=0)]
        sentence = given_up(session, lambda: session.run(program=words, barriers=_OPERATIONS))
        assert sentence.endswith(f"instructions[1] waits for {_LACKS}")


def test_a_program_at_a_barrier():
    words = [
        program_word("barrier", operation=operation, barrier=at, value=value) for operation, at, value in _OPERATIONS
    ]
    words += [program_word("barrier", operation="try_wait", barrier=_BARRIER, value=0), program_word("end")]
    with open_accelerator("unit") as session:
        session.global_memory.write(1024, program_bytes(words))
        sentence = given_up(session, lambda: session.run_program(1024, len(words)))
        assert sentence.endswith(f"word 3 of the program waits for {_LACKS}")
        session.global_memory.write(1024, program_bytes([program_word("end")]))
        assert session.run_program(1024, 1).record is None


@pytest.mark.long
def test_an_instruction_of_a_core_at_a_barrier():
    """Without a command processor too, which is a model of its own."""
    with Session("unit") as session:
        sentence = given_up(session, lambda: session.run(barriers=[("try_wait", _BARRIER, 1, True)], program=[
            instruction_word("bar_wait", imm=_BARRIER, parity=0)]))  # fmt: skip
        assert "instructions[0] waits for phase 0 of the barrier at 0x40" in sentence


def test_a_limit_is_still_a_limit():
    """A caller that says how long may look at a run that stands still."""
    with Session("unit", ["tmau"], latency=20, memory_bytes=1 << 16) as session:
        run = session.run(barriers=[("try_wait", _BARRIER, 0, True)], limit=STILL_CYCLES + 20_000)
        assert not run.finished and run.cycles == STILL_CYCLES + 20_000


def test_a_job_may_take_long():
    """Nothing is logged while the convolution engine computes, and a job under way is not a standstill."""
    busy, idle = {"queued_count": 1, "jobs_done": 0}, {"queued_count": 1, "jobs_done": 1}
    for statuses, still in ((busy, False), (idle, True)):
        stillness = Stillness()
        seen = [stillness.lasts(statuses | {"cycles": cycles}, cycles) for cycles in range(0, 4 * STILL_CYCLES, 20_000)]
        assert any(seen) == still
    stillness = Stillness()
    counts = np.arange(0, 4 * STILL_CYCLES, 20_000)
    assert not any(stillness.lasts({"beats_count": int(count), "cycles": 1}, int(count)) for count in counts)

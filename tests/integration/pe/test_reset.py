"""Resets of the processing engine in the middle of programs, and the error record that a processor reads."""

from itertools import islice

from support.sessions import session_fixture
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.replay.pe_cases import golden_engine
from tilewright.sim.replay.rtl import run_on_session
from tilewright.tools.package.ports import reset_values
from tilewright.verify.compare.pe_program_run import ProgramRun
from tilewright.verify.random.pe_programs import random_programs

SEED = 5


session = session_fixture("unit", engines=["pe"])


def test_a_reset_in_any_cycle_leaves_nothing_behind(session):
    """Programs are cut off after more and more cycles; the next one must not notice."""
    run = ProgramRun(lambda program: run_on_session(program, session))
    programs = random_programs(SEED, PE_PRESETS["unit"], 400)
    for cycles in range(1, 400, 3):
        cut, whole = next(programs), next(programs)
        session.reset()
        session.shared_memory.write(0, cut.smem)
        session.run(program=cut.words, segments=cut.segments, pages=cut.pages, limit=cycles)
        assert run.run(whole) == [], f"after {cycles} cycles, seed {SEED}"


def test_a_store_under_way_does_not_outlast_a_reset(session):
    """A program is cut off in every cycle of its stores; data written to memory after the reset stays."""
    run = ProgramRun(lambda program: run_on_session(program, session))
    cut, whole = islice(random_programs(SEED, PE_PRESETS["unit"], 400), 234, 236)
    for cycles in range(325, 362):
        session.reset()
        session.shared_memory.write(0, cut.smem)
        session.run(program=cut.words, segments=cut.segments, pages=cut.pages, limit=cycles)
        assert run.run(whole) == [], f"after {cycles} cycles, seed {SEED}"


def test_registers_read_what_documents_say_after_a_reset(session):
    """Something is in all of them before."""
    run_on_session(next(random_programs(SEED, PE_PRESETS["unit"], 1)), session)
    before = session.registers()
    session.reset()
    after, documented = session.registers(), reset_values("pe", session.params.pe)
    assert len(after) > 8
    assert after == {name: documented[name] for name in after}
    assert before != after


def test_the_record_is_of_the_first_instruction_in_program_order(session):
    """A later instruction that is refused at once must not replace a column that fails later in time."""
    for program in random_programs(SEED, PE_PRESETS["unit"], 40):
        golden = golden_engine(program)
        golden.run(program.words)
        run_on_session(program, session)
        values = session.registers()
        first = golden.faults[0] if golden.faults else None
        assert values["error_count"] == len(golden.faults)
        if first:
            assert values["error"] == first.code | first.register << 16
            assert values["error_number"] == first.number
            assert values["error_threads"] == first.first | first.last << 16
        assert values["instructions"] == golden.number + 1

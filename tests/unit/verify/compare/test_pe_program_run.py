"""Programs compared with golden: differences are told, and the smallest body that shows them is found."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.replay.cases import read_cases
from tilewright.sim.replay.golden import run_case
from tilewright.sim.replay.pe_cases import golden_engine, run_on_golden
from tilewright.sim.replay.rtl import run_on_session
from tilewright.spec.pe import Operation, PeError
from tilewright.verify.compare.pe_program_run import ProgramRun, program_case
from tilewright.verify.random.pe_programs import random_program, random_programs

UNIT = PE_PRESETS["unit"]
SEED = 9


def test_golden_equals_golden():
    run = ProgramRun(run_on_golden)
    for program in random_programs(SEED, UNIT, 5):
        assert run.run(program) == []
    assert run.instructions > 5 * 20


def forgetful(program):
    """An engine that does not execute setp in bodies."""
    first, last = len(program.setup), len(program.setup) + len(program.body)
    words = [
        int(Operation.FENCE) if first <= number < last and word & 0xFF == Operation.SETP else word
        for number, word in enumerate(program.words)
    ]
    engine = golden_engine(program)
    engine.run(words)
    return run_on_golden(program)._replace(smem=engine.smem)


def test_the_smallest_body_is_found():
    run = ProgramRun(forgetful)
    program = next(program for program in random_programs(SEED, UNIT, 50) if run.run(program))
    differences, body, case = run.report(program).split("\n\n")
    assert differences.startswith("shared memory differs in ")
    assert any("setp" in line for line in body.splitlines())
    assert len(body.splitlines()) < len(program.body)
    assert '"kind": "program"' in case
    assert ProgramRun(run_on_golden).report(program) == "the program differs no more when it runs again"


def test_error_records_are_compared():
    def strict(program):
        result = run_on_golden(program)
        faults = [fault._replace(last=0) if fault.code == PeError.OPCODE else fault for fault in result.faults]
        return result._replace(faults=faults[:1] + faults[2:])

    sentences = [
        sentence for program in random_programs(SEED, UNIT, 20) for sentence in ProgramRun(strict).run(program)
    ]
    assert any("OPCODE of threads 0 to 0, register 0, not OPCODE of threads 0 to 3" in text for text in sentences)
    assert any(": no error, not " in text for text in sentences)


@pytest.mark.parametrize("late", [False, True])
def test_a_program_as_a_case_does_the_same(tmp_path, late):
    for program in random_programs(SEED, UNIT, 6, late=late):
        (tmp_path / "case.json").write_text(program_case("one", program))
        (case,) = read_cases(tmp_path / "case.json")
        record, memories = run_case(case)
        result = run_on_golden(program)
        assert (memories["smem"] == result.smem).all()
        assert record["error"] == case.expect["error"]
        assert (record["record"] is None) == (not result.faults)


class Memory:
    def __init__(self):
        self.bytes = np.zeros(UNIT.smem.size_bytes, np.uint8)

    def write(self, address, values):
        self.bytes[address : address + len(values)] = values

    def read(self, address, count):
        return self.bytes[address : address + count].copy()


class Session:
    """Golden with the interface of a session."""

    def __init__(self):
        self.params, self.shared_memory, self.resets = CoreParams(pe=UNIT), Memory(), 0

    def reset(self):
        self.resets += 1

    def run(self, program, segments, pages, **_):
        engine = golden_engine(SimpleNamespace(smem=self.shared_memory.bytes, params=UNIT, segments=segments,
                                               pages=pages, late=None))  # fmt: skip
        engine.run(program)
        self.shared_memory.write(0, engine.smem)
        return SimpleNamespace(faults=engine.faults)


def test_a_program_on_a_session():
    session = Session()
    run = ProgramRun(lambda program: run_on_session(program, session))
    for program in random_programs(SEED, UNIT, 5):
        assert run.run(program) == []
    assert session.resets == 5
    with pytest.raises(ValueError, match=r"^the program is for an engine of "):
        run_on_session(random_program(SEED, PE_PRESETS["ecp5"]), session)

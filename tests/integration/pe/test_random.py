"""Random programs: the processing engine in hardware against the golden model.

All of shared memory and every error record are compared; programs end with stores of registers and predicates. A
failure prints the smallest program that still fails as a replay case, which can be kept under ``tests/vectors/``.
"""

import shutil

import pytest

from support.selection import cases
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.hw.smem.params import SmemParams
from tilewright.results import record
from tilewright.sim.replay.rtl import run_on_session
from tilewright.sim.session import Session
from tilewright.verify.compare.pe_program_run import ProgramRun
from tilewright.verify.coverage.pe import pe_coverage, sample_program
from tilewright.verify.random.pe_programs import random_programs

SEED = 1

#: Parameters by name: the presets, and sizes that divide by nothing: threads left over, a last group that is not full.
SIZES = PE_PRESETS | {
    "odd": PE_PRESETS["unit"].replace(threads=11, regs=38, factor_regs=1, mm_in_flight=4),
    "integers": PE_PRESETS["unit"].replace(types=("i8", "i16")),
    "bytes": PE_PRESETS["unit"].replace(types=("i8",)),
    # Reads in two parts, scattered writes in four: as in the preset "ecp5".
    "parts": PE_PRESETS["unit"].replace(types=("i8", "i16"), smem=SmemParams(16 * 1024, 4, 2)),
}
#: Programs of each run in Icarus Verilog.
ON_ICARUS = {"unit": 6, "odd": 12, "integers": 12}


def compare(name, simulator, count, *, late=False, coverage=None, **surroundings):
    params = SIZES[name]
    print(f"{name} on {simulator}: seed {SEED}, {count} programs")
    with Session(params=CoreParams(pe=params), simulator=simulator, patience=400_000) as session:
        session.configure(**surroundings)
        run = ProgramRun(lambda program: run_on_session(program, session))
        for program in random_programs(SEED, params, count, late=late):
            if run.run(program):
                pytest.fail(run.report(program), pytrace=False)
            if coverage:
                sample_program(coverage, program)
    return run


# Of unit as many as every combination takes.
@cases("name, count", [("unit", 100)],
       [("parts", 150), ("integers", 150), ("default", 220), ("unit", 2000), ("integers", 500)])  # fmt: skip
def test_random_programs_on_verilator(name, count):
    """And they show every combination of features."""
    coverage = pe_coverage(SIZES[name])
    run = compare(name, "verilator", count, coverage=coverage)
    record(f"pe-random-{name}", cases=count, mismatches=0, seed=SEED, instructions=run.instructions)
    print(coverage.table())
    record(f"coverage-pe-{name}", bins=coverage.bins, empty=coverage.empty)
    assert not coverage.empty


@pytest.mark.skipif(not shutil.which("iverilog"), reason="Icarus Verilog is not installed")
@cases("name", ["unit"], ["integers", "odd"])
def test_random_programs_on_icarus(name):
    compare(name, "icarus", ON_ICARUS[name])


@pytest.mark.long
def test_bytes_alone():
    """Multipliers without a type of 16 bits."""
    compare("bytes", "verilator", 100)


def test_pages_that_come_while_programs_wait_for_them():
    """Their entries are written through registers, one after the other."""
    compare("unit", "verilator", 60, late=True)


@cases("stall", [0.9], [0.3])
def test_instructions_with_pauses_between_them(stall):
    compare("unit", "verilator", 60, issue_stall=stall, seed=3)

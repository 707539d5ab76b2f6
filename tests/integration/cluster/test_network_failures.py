"""What stops one of two cores of the RTL stops both, and one record says which core it was; the next run works.

On golden: tests/network/test_failures.py. The model is that of test_programs.py.
"""

import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from support.clusters import PARAMS
from support.network_damage import damages, residual, words_of_core
from support.selection import cases
from tilewright import network
from tilewright.hw.bus.axi4 import Response
from tilewright.network.compiled import shared_memory
from tilewright.network.failures import ProgramStoppedError, check_records
from tilewright.network.machine import MACHINES
from tilewright.network.plan.instructions import Command
from tilewright.network.rtl import run_cores, run_on
from tilewright.sim.session.cluster import ClusterSession
from tilewright.sim.session.run import RECORD_ACCESSES, program_record, start_accesses
from tilewright.spec.core import WORD_BYTES, Engine, ProgramError
from tilewright.verify.core_races import find_core_races
from tilewright.verify.random.damage import flip_bits

CORES, BYTES, SEED = PARAMS.cores, 1 << 20, 37
MACHINE = replace(MACHINES["unit"], cores=CORES)
#: Damaged programs of a seed.
PROGRAMS = 10


@pytest.fixture(scope="module")
def session():
    with ClusterSession(params=PARAMS, memory_bytes=BYTES, patience=300_000) as session:
        yield session


@pytest.fixture(scope="module")
def compiled():
    return network.compile(residual().graph(), MACHINE)


@pytest.fixture(scope="module")
def inputs():
    return residual().draw()


@pytest.fixture(autouse=True)
def answers_outside(session, compiled):
    """The bus answers with an error outside global memory of the network, as on golden."""
    session.reset()
    session.configure(latency=20, stall=0.0, seed=1,
                      errors=(len(compiled.image), BYTES - 1, Response.DECERR.value))  # fmt: skip


def check_next_run(session, compiled, inputs):
    """Without a reset the network is computed right."""
    data, run = run_cores(session, compiled, compiled.memory(inputs))
    assert (run.violations, run.late) == ((), ())
    np.testing.assert_array_equal(data, compiled.run_golden(inputs))


QUICK = [("word", 1)]


@cases("name, core", QUICK, [(name, core) for name in ("word", "descriptor", "address", "bytes")
                             for core in range(CORES) if (name, core) not in QUICK])  # fmt: skip
def test_one_record_names_core_word_and_layer(session, compiled, inputs, name, core):
    case = dict(damages(compiled, compiled.memory(inputs), core))[name]
    with pytest.raises(ProgramStoppedError) as error:
        run_cores(session, compiled, case.memory)
    found = error.value.records[core]
    layer = compiled.plan.layers[case.layer].name
    assert (found.code, found.engine) == (case.code, case.engine)
    assert case.word in (None, found.word)
    assert str(error.value) == f"the program of core {core} stopped with {found}, in layer {layer}"
    assert error.value.records[1 - core].code == ProgramError.WATCHDOG
    check_next_run(session, compiled, inputs)


def test_the_bus_answers_with_an_error_in_the_middle(session, compiled, inputs):
    """SLVERR to a read of weights that only core 1 loads."""
    loads = [{range(each.transfer.far, each.transfer.far + each.transfer.size)
              for _, each, _ in words_of_core(compiled, core)
              if isinstance(each, Command) and each.barrier is not None and not each.transfer.map}
             for core in range(CORES)]  # fmt: skip
    tensors = min(compiled.plan.tensors.values())
    far = max(
        own.start for own in loads[1] if own.stop <= tensors and not any(own.start in other for other in loads[0])
    )
    session.configure(errors=(far, far + 15, Response.SLVERR.value))
    sentence = r"^the program of core 1 stopped with .* in layer n2 \+ n3$"
    with pytest.raises(ProgramStoppedError, match=sentence) as error:
        run_cores(session, compiled, compiled.memory(inputs))
    found = error.value.records[1]
    assert (found.code, found.engine) == (ProgramError.ENGINE, Engine.TMAU)
    session.configure(errors=(0, 0, 0))
    check_next_run(session, compiled, inputs)


@cases("core, accesses", [(1, 3000)], [(core, accesses) for core in range(CORES) for accesses in (30, 800, 4000)])
def test_the_host_stops_a_core_in_the_middle(session, compiled, inputs, core, accesses):
    """After ``accesses`` to its registers. The other core waits for it until its watchdog stops it."""
    session.global_memory.write(0, compiled.memory(inputs))
    registers = [start_accesses(*start, None, 20_000) for start in compiled.starts]
    registers[core] = [*registers[core], *[("status",)] * accesses, ("stop", 1)]
    for shared in session.shared_memories:
        shared.write(0, shared_memory(MACHINE))
    session.run(registers=registers)
    answers = session.run(registers=[RECORD_ACCESSES] * CORES).cores
    records = [program_record(answer.registers)[0] for answer in answers]
    assert records[core].code == ProgramError.STOPPED and records[1 - core].code == ProgramError.WATCHDOG
    with pytest.raises(ProgramStoppedError, match=f"^the program of core {core} stopped with .*STOPPED.*, in layer n"):
        check_records(compiled.plan, records)
    session.stop(core)  # waits until the core is idle
    session.start(core)
    check_next_run(session, compiled, inputs)


def ended(run):
    """Global memory after a run, and None; or None, and what the record of the core that is named has: code, engine."""
    try:
        return run(), None
    except ProgramStoppedError as error:
        core = int(re.match(r"the program of core (\d+) stopped", str(error))[1])
        return None, (core, error.records[core].code, error.records[core].engine)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_flipped_bits(session, compiled, inputs, seed):
    """One to three in the program of a core: it ends as on golden, with the same memory or the same kind of record.

    Memory may differ only where the damaged programs have a race.
    """
    rng, memory, counts = np.random.default_rng([SEED, seed]), compiled.memory(inputs), Counter()
    for number in range(PROGRAMS):
        damaged = flip_bits(rng, memory, compiled.starts, int(rng.integers(CORES)))
        expected, expected_stop = ended(lambda damaged=damaged: replace(compiled, image=damaged).run_golden(inputs))
        found, stop = ended(lambda damaged=damaged: run_on(session, compiled, damaged)[0])
        assert stop == expected_stop, f"seed {seed}, program {number}"
        if not stop and (found != expected).any():
            programs = [words_in(damaged, *start) for start in compiled.starts]
            assert find_core_races(programs, damaged, MACHINE.smem_bytes), f"seed {seed}, program {number}"
        counts[stop] += 1
    print(f"seed {seed}: {dict(counts)}")
    session.reset()
    check_next_run(session, compiled, inputs)


def words_in(memory, address, words):
    raw = memory[address : address + WORD_BYTES * words].tobytes()
    return [int.from_bytes(raw[first : first + WORD_BYTES], "little") for first in range(0, len(raw), WORD_BYTES)]

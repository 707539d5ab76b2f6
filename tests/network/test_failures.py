"""What stops one core of a network stops all, and one record says which core it was; the next run works. On golden.

The RTL is in tests/integration/cluster/test_networks.py.
"""

from collections import Counter
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from support.network_damage import damages, residual, words_of_core
from support.selection import cases
from tilewright import network
from tilewright.golden import ProgramRecord, program_bytes, program_word
from tilewright.network.barriers import LOADS, MEETINGS
from tilewright.network.failures import ProgramStoppedError, check_records
from tilewright.network.machine import MACHINES
from tilewright.network.plan.instructions import Barrier, Signal
from tilewright.results import record
from tilewright.spec.core import WORD_BYTES, Engine, ProgramError
from tilewright.verify.random.damage import flip_bits

CORES, SEED = 2, 31
#: Damaged programs of a seed.
PROGRAMS = 60


@pytest.fixture(scope="module")
def compiled():
    return network.compile(residual().graph(), replace(MACHINES["unit"], cores=CORES))


@pytest.fixture(scope="module")
def inputs():
    return residual().draw()


def stopped(compiled, memory, inputs):
    """The ProgramStoppedError of a run from this memory."""
    with pytest.raises(ProgramStoppedError) as error:
        replace(compiled, image=memory).run_golden(inputs)
    return error.value


@pytest.mark.parametrize("core", range(CORES))
@pytest.mark.parametrize("name", ["word", "descriptor", "address", "bytes"])
def test_one_record_names_core_word_and_layer(compiled, inputs, name, core):
    case = dict(damages(compiled, compiled.memory(inputs), core))[name]
    error = stopped(compiled, case.memory, inputs)
    found = error.records[core]
    layer = compiled.plan.layers[case.layer].name
    assert (found.code, found.engine) == (case.code, case.engine)
    assert case.word in (None, found.word)
    assert str(error) == f"the program of core {core} stopped with {found}, in layer {layer}"
    assert [each.code for each in error.records if each is not found] == [ProgramError.WATCHDOG] * (CORES - 1)
    answer, expected = compiled.run(inputs), network.evaluate(compiled.graph, inputs)
    assert all((answer[name] == expected[name]).all() for name in answer)


def replaced(compiled, inputs, core, index, word):
    """Global memory with another word in the program of a core."""
    memory, address = compiled.memory(inputs), compiled.starts[core][0] + WORD_BYTES * index
    memory[address : address + WORD_BYTES] = program_bytes([word])
    return memory


def waits(compiled, core, barriers):
    """Indices of the words of a core that wait for one of these barriers."""
    return [index for index, each, _ in words_of_core(compiled, core)
            if isinstance(each, Barrier) and each.operation == "try_wait" and each.barrier in barriers]  # fmt: skip


def test_a_signal_that_is_lost(compiled, inputs):
    """No core has an error. All wait for the meeting, and of these the first one is named."""
    index = next(index for index, each, _ in words_of_core(compiled, 1)
                 if isinstance(each, Signal) and each.barrier in MEETINGS)  # fmt: skip
    error = stopped(compiled, replaced(compiled, inputs, 1, index, program_word("wait_all")), inputs)
    met = [waits(compiled, core, MEETINGS)[0] for core in range(CORES)]
    assert error.records == [ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 0, word) for word in met]
    assert str(error).startswith("the program of core 0 stopped with ")


def test_a_program_that_never_ends(compiled, inputs):
    """A wait that has been met is done again, 2^32 - 1 times."""
    index = waits(compiled, 1, MEETINGS)[0] + 1
    loop = program_word("loop", count=(1 << 32) - 1, back=1)
    error = stopped(compiled, replaced(compiled, inputs, 1, index, loop), inputs)
    assert error.records[1].code == ProgramError.STOPPED and error.records[1].word in (index - 1, index)
    assert str(error).startswith("the program of core 1 stopped with ")


def test_the_core_that_others_wait_for_is_named(compiled):
    """Of two records, by their codes and by what their words wait for."""
    zero, one = ([ProgramRecord(ProgramError.BUS, Engine.NONE, 0, meeting),
                  ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 0, own),
                  ProgramRecord(ProgramError.STOPPED, Engine.NONE, 0, meeting),
                  ProgramRecord(ProgramError.WATCHDOG, Engine.NONE, 0, meeting)]
                 for own, meeting in ((waits(compiled, core, range(8 * LOADS))[0], waits(compiled, core, MEETINGS)[0])
                                      for core in range(CORES)))  # fmt: skip
    for first, second in combinations(range(4), 2):
        for core, records in enumerate([(zero[first], one[second]), (zero[second], one[first])]):
            with pytest.raises(ProgramStoppedError, match=f"^the program of core {core} stopped with "):
                check_records(compiled.plan, records)
    check_records(compiled.plan, [None, None])


@cases("seed", [0], range(1, 20))
def test_flipped_bits(compiled, inputs, seed):
    """One to three in the program of a core: both programs end, nearly always right or with a record.

    A word that is legal with other bits may give another answer without a record: docs/many_cores.md, "When a core
    stops".
    """
    rng, memory, expected = np.random.default_rng([SEED, seed]), compiled.memory(inputs), compiled.run(inputs)
    counts = Counter()
    for _ in range(PROGRAMS):
        damaged = replace(compiled, image=flip_bits(rng, memory, compiled.starts, int(rng.integers(CORES))))
        try:
            answer = damaged.tensors(damaged.run_golden(inputs))
        except ProgramStoppedError as error:
            counts[next(each for each in error.records if each).code] += 1
        else:
            counts["right" if all((answer[name] == expected[name]).all() for name in answer) else "wrong"] += 1
    print(f"seed {seed}: {dict(counts)}")
    record(f"network-cores-flipped-bits-{seed}", cases=PROGRAMS, wrong=counts["wrong"], right=counts["right"])
    assert counts["wrong"] <= PROGRAMS // 6 and {"right", ProgramError.RESERVED, ProgramError.WATCHDOG} <= set(counts)

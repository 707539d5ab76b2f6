"""Random programs: the same for the same seed, every error and combination reached, no result that depends on time."""

import numpy as np
import pytest

from tilewright.golden.pe.pages import PageNotLoadedError, PageTable
from tilewright.golden.spec.pe.errors import PeError
from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, MM_FAMILIES, Operation
from tilewright.golden.spec.pe.segment import PAGE_ENTRY
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.coverage.pe import pe_coverage, sample_program
from tilewright.sim.random.pe.programs import random_program, random_programs
from tilewright.sim.replay.pe.golden import golden_engine, run_on_golden

SEED = 5
UNIT = PE_PRESETS["unit"]


def test_same_seed_same_program():
    first, second = random_program(SEED, UNIT), random_program(SEED, UNIT)
    assert (first.smem == second.smem).all()
    for name in ("setup", "body", "ending", "segments", "pages", "late"):
        assert getattr(first, name) == getattr(second, name)
    assert random_program(SEED + 1, UNIT).body != first.body


@pytest.mark.parametrize(
    "types", [MM_FAMILIES, pytest.param(("i8", "i16"), marks=pytest.mark.long)], ids=["all types", "integers"]
)
def test_every_error_and_combination_is_reached(types):
    """What is there is never refused as UNSUPPORTED."""
    params = UNIT.replace(types=types)
    coverage = pe_coverage(params)
    for program in random_programs(SEED, params, 250):
        assert 5 <= len(program.body) <= 40
        sample_program(coverage, program)
    print(coverage.table())
    assert coverage.empty == []
    never = {"STOPPED"} | ({"UNSUPPORTED"} if types == MM_FAMILIES else set())
    assert {code for (code,) in coverage.hits["error",]} == {code.name for code in PeError} - never


@pytest.mark.parametrize("preset", PE_PRESETS)
@pytest.mark.parametrize("factor_regs", [1, 2])
def test_all_presets(preset, factor_regs):
    clean = 0
    for program in random_programs(SEED, PE_PRESETS[preset].replace(factor_regs=factor_regs), 6):
        run = run_on_golden(program)
        clean += not run.faults
        assert (run.smem != program.smem).any()
    assert clean < 6


def test_smallest_and_odd_sizes():
    for changes in ({"regs": 16}, {"threads": 5, "regs": 34}, {"threads": 27}, {"segments": 2, "pages": 2}):
        for program in random_programs(SEED, UNIT.replace(**changes), 10):
            run_on_golden(program)


def test_most_programs_of_the_clean_kind_have_no_fault():
    counts = [len(run_on_golden(program).faults) for program in random_programs(SEED, PE_PRESETS["default"], 40)]
    assert sum(not count for count in counts) >= 8
    assert sum(count > 3 for count in counts) >= 8


def stored_bytes(engine, fields):
    """Addresses that each thread stores to, one list a thread."""
    if fields["ur"] >= len(engine.uniform) or engine.uniform[fields["ur"]] is None:
        return []
    number = engine.uniform[fields["ur"]]
    segment = engine.segments[number] if number < len(engine.segments) else None
    if segment is None or fields["rf"] + segment.rank > engine.sizes.regs:
        return []
    per_word = 4 // segment.element.bytes
    coordinates = engine.registers[:, fields["rf"] : fields["rf"] + segment.rank].astype(np.int64)
    elements = np.repeat(coordinates[:, np.newaxis], fields["n"] * per_word, axis=1)
    elements[..., 0] = elements[..., 0] + fields["imm"] + np.arange(fields["n"] * per_word) & 0xFFFFFFFF
    threads = engine.predicates[fields["predicate"]] if fields["guard"] else np.ones(engine.sizes.threads, bool)
    touched = segment.inside(elements) & threads[:, np.newaxis]
    addresses, codes = engine.pages.translate(segment, elements, touched, len(engine.smem))
    written = touched & (codes == 0)
    return [sorted(set(row[on].tolist())) for row, on in zip(addresses, written, strict=True)]


def test_no_two_threads_store_to_one_byte():
    """Nor does any store reach the barriers."""
    stores = several = 0
    for program in random_programs(SEED, UNIT, 120):
        engine = golden_engine(program)
        for word in program.words:
            if word & 0xFF == Operation.ST and not word & INSTRUCTIONS[Operation.ST].reserved_mask:
                addresses = stored_bytes(engine, INSTRUCTIONS[Operation.ST].unpack(word))
                everything = [address for row in addresses for address in row]
                assert len(set(everything)) == len(everything)
                assert all(address < UNIT.smem.size_bytes - 128 for address in everything)
                stores += bool(everything)
                several += sum(map(bool, addresses)) > 1
            engine.execute(word)
    assert stores > 200
    assert several > 150


def test_late_pages_are_waited_for():
    waited = 0
    for program in random_programs(SEED, UNIT, 40, late=True):
        for index, word in program.late.items():
            entry = PAGE_ENTRY.unpack(program.pages[index])
            assert entry["valid"] and not entry["loaded"]
            assert PAGE_ENTRY.unpack(word)["loaded"]
        run_on_golden(program)
        engine = golden_engine(program)
        engine.pages = PageTable(UNIT.pages)
        for index, word in program.pages.items():
            engine.write_page(index, word)
        try:
            engine.run(program.words)
        except PageNotLoadedError:
            waited += 1
    assert waited > 10


def test_another_body_between_the_same_ends():
    program = random_program(SEED, UNIT)
    shorter = program.with_body(program.body[:2])
    assert shorter.words == (*program.setup, *program.body[:2], *program.ending)
    run_on_golden(shorter)

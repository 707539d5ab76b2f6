"""Random programs: the same for the same seed, every error and combination reached, no result that depends on time."""

import random
from itertools import pairwise

import numpy as np
import pytest

from tilewright.golden.pe.checks import decode
from tilewright.golden.pe.machine import Pe
from tilewright.golden.pe.segment import PageNotLoadedError, PageTable, Segment, wrong_segment
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.replay.pe_cases import golden_engine, run_on_golden
from tilewright.spec.pe import INSTRUCTIONS, MM_FAMILIES, PAGE_ENTRY, Operation, PeError
from tilewright.verify.coverage.pe import pe_coverage, sample_program
from tilewright.verify.random.pe_programs import RandomTables, random_program, random_programs

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
        assert 5 <= len(program.body) <= 60
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
    per_word = 1 if fields["element"] else 4 // segment.element.bytes
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
    stores = []
    for program in random_programs(SEED, UNIT, 120):
        engine = golden_engine(program, Storing)
        engine.stores = stores
        engine.run(program.words)
        assert not engine.open.memory.undecided
    assert sum(map(bool, stores)) > 200
    assert sum(count > 1 for count in stores) > 150


class Storing(Pe):
    """A machine that checks every store, and notes how many threads store to memory."""

    def step(self, word):
        if word and word & 0xFF == Operation.ST and decode(word):
            addresses = stored_bytes(self, INSTRUCTIONS[Operation.ST].unpack(word))
            everything = [address for row in addresses for address in row]
            assert len(set(everything)) == len(everything)
            assert all(address < UNIT.smem.size_bytes - 128 for address in everything)
            self.stores.append(sum(map(bool, addresses)))
        return super().step(word)


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


FIRST, END = 1024, 16000


def some_tables(clean):
    for seed in range(60):
        yield RandomTables(random.Random(seed), PE_PRESETS["unit"], FIRST, END, clean)


@pytest.mark.parametrize("clean", [False, True])
def test_legal_segments(clean):
    for tables in some_tables(clean):
        for _ in range(8):
            plan = tables.legal()
            assert wrong_segment(plan.word, 32) is None
            assert Segment.unpack(plan.word).rank == plan.rank
            assert not plan.wrong


def test_wrong_segments_break_every_rule():
    sentences = set()
    for tables in some_tables(False):
        for _ in range(8):
            plan = tables.wrong()
            sentence = wrong_segment(plan.word, 32)
            assert sentence
            sentences.add(sentence.split(":")[0][:12])
    assert len(sentences) >= 9


def test_pages_of_stores_are_apart_and_inside():
    paged = 0
    for tables in some_tables(False):
        for plan in [tables.legal() for _ in range(8)]:
            segment = Segment.unpack(plan.word)
            if not plan.stores:
                continue
            if not segment.paged:
                assert FIRST <= segment.base <= END - segment.page_bytes
                continue
            total = 1
            for pages in segment.pages:
                total *= pages
            entries = range(segment.first_entry, segment.first_entry + total)
            there = [PAGE_ENTRY.unpack(tables.pages[entry]) for entry in entries if entry in tables.pages]
            places = sorted(entry["address"] for entry in there if entry["address"] < 16384)
            assert all(b - a >= segment.page_bytes for a, b in pairwise(places))
            assert all(FIRST <= place <= END - segment.page_bytes for place in places)
            paged += 1
    assert paged > 40


def test_clean_tables_have_every_page():
    for tables in some_tables(True):
        for _ in range(8):
            tables.legal()
        for word in tables.pages.values():
            entry = PAGE_ENTRY.unpack(word)
            assert entry["valid"] and entry["loaded"] and entry["on_chip"]

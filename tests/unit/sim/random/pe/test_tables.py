"""Random segments: the legal ones break no rule, the wrong ones do, and pages lie apart where stores may land."""

import random
from itertools import pairwise

import pytest

from tilewright.golden.pe.segment import Segment, wrong_segment
from tilewright.golden.spec.pe.segment import PAGE_ENTRY
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.random.pe.tables import RandomTables

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

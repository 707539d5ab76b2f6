"""Mutants: which changes a source has, and the code that has one."""

import pytest

from tilewright.tools.mutation import mutants
from tilewright.tools.mutation.mutants import changed_function, mutants_of, sample

SOURCE = '''
class Counter:
    """Counts."""

    def __init__(self, width):
        self.width = width + 1

    def check(self, width):
        if width < 1:
            raise ValueError(f"{width + 1}")

    def elaborate(self, platform):
        m = Module()
        with m.If(self.enable & ~self.stop):
            m.d.sync += [
                self.count.eq(self.count + 4),
                self.seen.eq(self.bits.any()),
            ]
        with m.FSM():
            m.next = "A"
        connect(m, self.a, self.b)
        return Mux(self.a == self.b, self.c, Signal(name="x1"))


def more(value):
    return value + 1
'''

CHANGES = [
    "13 self.enable & ~self.stop becomes self.enable | ~self.stop",
    "13 ~self.stop becomes +self.stop",
    "13 m.If(self.enable & ~self.stop) becomes m.If(self.enable & ~self.stop == 0)",
    "15 self.count + 4 becomes self.count - 4",
    "15 4 becomes 5",
    "15 without self.count.eq(self.count + 4)",
    "16 self.bits.any() becomes self.bits.all()",
    "16 without self.seen.eq(self.bits.any())",
    "19 without m.next = 'A'",
    "20 without connect(m, self.a, self.b)",
    "21 self.a == self.b becomes self.a != self.b",
    "21 Mux(self.a == self.b, self.c, Signal(name='x1')) becomes Mux(self.a == self.b, Signal(name='x1'), self.c)",
    "25 value + 1 becomes value - 1",
    "25 1 becomes 0",
]


@pytest.fixture
def counter(monkeypatch, tmp_path):
    monkeypatch.setattr(mutants, "HARDWARE", tmp_path)
    (tmp_path / "counter.py").write_text(SOURCE.removeprefix("\n"))
    return "counter.py"


def test_changes(counter):
    """What describes hardware is changed; constructors, checks and names are not."""
    found = mutants_of(counter)
    assert sorted(f"{one.line} {one.change}" for one in found) == sorted(CHANGES)
    assert [one.index for one in found] == list(range(len(CHANGES)))


def test_a_larger_sample_begins_with_the_smaller_one(counter):
    assert sample(counter, 9, seed=3)[:4] == sample(counter, 4, seed=3)
    assert sample(counter, 99, seed=3) != sample(counter, 99, seed=4)
    assert set(sample(counter, 99, seed=3)) == set(mutants_of(counter))


def test_the_code_that_is_changed(counter):
    def value(mutant):
        def more():
            pass

        ran = []
        names, more.__code__ = changed_function(mutant)
        assert names == ["more"]
        more.__globals__["tilewright_mutant_runs"] = ran.append
        return more(7), ran

    found = {one.change: one for one in mutants_of(counter)}
    assert value(found["value + 1 becomes value - 1"]) == (6, [1])
    assert value(found["1 becomes 0"]) == (7, [1])
    names, code = changed_function(found["without connect(m, self.a, self.b)"])
    assert names == ["Counter", "elaborate"]
    assert "connect" not in code.co_names

"""When engines worked, by the stamps of a program; and the chart of it."""

from types import SimpleNamespace

import numpy as np
import pytest

from tilewright.golden import command_word, program_word, tmau_word
from tilewright.sim.report.activity import activity
from tilewright.sim.report.charts import _shares
from tilewright.sim.session.events import CommandEnd, WordStamp
from tilewright.spec import Opcode, Space
from tilewright.spec.core import Kind


def copy(tag, out=False):
    spaces = {"source_space": Space.SHARED, "destination_space": Space.GLOBAL} if out else {
        "source_space": Space.GLOBAL, "destination_space": Space.SHARED}  # fmt: skip
    return tmau_word(command_word(Opcode.COPY_BLOCK, source=0, destination=0, size=16, tag=tag, **spaces))


WORDS = [
    program_word("barrier", operation="init", barrier=0, value=1),
    copy(1),
    copy(1),
    copy(2, out=True),
    tmau_word(command_word(Opcode.COMMIT)),
    tmau_word(command_word(Opcode.WAIT, count=0)),
    copy(3),
    program_word("conv"),
    0,
    0,
    program_word("pe", count=2, address=0),
    program_word("barrier", operation="try_wait", barrier=0, value=0),
    program_word("end"),
]
STAMPS = [WordStamp(cycle, kind, index) for cycle, kind, index in (
    (10, Kind.BARRIER, 0), (12, Kind.TMAU, 1), (14, Kind.TMAU, 2), (16, Kind.TMAU, 3), (18, Kind.TMAU, 4),
    (20, Kind.TMAU, 5), (22, Kind.TMAU, 6), (30, Kind.CONV, 9), (40, Kind.PE, 10), (90, Kind.BARRIER, 11),
    (100, Kind.END, 12),
)]  # fmt: skip
ENDS = [CommandEnd(cycle, tag, 0) for cycle, tag in ((19, 0), (50, 1), (60, 1), (70, 2), (72, 0), (80, 3))]


def run(**changes):
    fields = {"words": STAMPS, "ends": ENDS, "jobs": [SimpleNamespace(cycle=85)], "performed": [45, 66], "cycles": 101}
    return SimpleNamespace(**(fields | changes))


def test_each_engine_works_from_what_it_is_handed_to_its_end():
    shown = activity(run(), WORDS, marks=[(10, 60, "first"), (60, 100, "then")])
    assert (shown.first, shown.last) == (10, 101)
    assert list(shown.rows.items()) == [
        ("access unit, in", [(12, 50), (50, 60), (72, 80)]),  # the last one had to wait for the store
        ("access unit, out", [(16, 70)]),
        ("convolution engine", [(30, 85)]),
        ("processing engine", [(30, 66)]),
        ("processor issues", [(10, 12), (12, 14), (14, 16), (16, 18), (18, 20), (20, 22), (22, 30), (30, 40)]),
        ("processor waits", [(40, 90), (90, 100)]),
    ]


def test_kernels_end_with_the_next_call_or_a_wait_for_the_engine():
    words = [
        program_word("kernel", count=2),
        program_word("kernel"),
        program_word("wait_all", engines=5),
        program_word("wait_all", engines=2),
        program_word("kernel"),
        program_word("pe", count=1),
        program_word("end"),
    ]
    kinds = [Kind.KERNEL, Kind.KERNEL, Kind.WAIT_ALL, Kind.WAIT_ALL, Kind.KERNEL, Kind.PE, Kind.END]
    stamps = [WordStamp(10 * (index + 1), kind, index) for index, kind in enumerate(kinds)]
    shown = activity(run(words=stamps, ends=[], jobs=[], performed=[8] * 5 + [58]), words)
    assert shown.rows["processing engine"] == [(10, 20), (20, 40), (50, 58), (50, 70)]


def test_a_program_that_stopped():
    shown = activity(run(words=STAMPS[:9], ends=ENDS[:2], jobs=[], performed=[45]), WORDS)
    assert shown.rows["access unit, in"] == [(12, 50)]
    assert all(shown.rows[name] == [] for name in ("access unit, out", "convolution engine", "processing engine"))
    assert activity(run(words=[], ends=[]), WORDS, window=(0, 5)).svg().startswith("<svg")


def test_a_window_and_its_picture():
    shown = activity(run(), WORDS, marks=[(10, 60, "first <layer>"), (60, 100, "then")], window=(20, 80))
    picture = shown._repr_svg_()
    assert (shown.first, shown.last) == (20, 80)
    assert "<title>first &lt;layer&gt;</title>" in picture and picture.count("<polygon") == 6
    # In 20 to 80 the access unit brings something from 20 to 60 and from 72 on.
    assert "80.0%" in picture


@pytest.mark.parametrize(
    ("spans", "shares"),
    [([], [0, 0, 0]), ([(0, 30)], [1, 1, 1]), ([(5, 12), (8, 15)], [0.5, 0.5, 0]), ([(29, 40), (2, 3)], [0.1, 0, 0.1])],
)
def test_shares_of_the_time(spans, shares):
    assert _shares(spans, np.array([0, 10, 20, 30])) == pytest.approx(shares)

"""Replies that are kept: the same again, nothing asked twice, halves dropped, failures only when they come twice."""

import numpy as np
import pytest

from tilewright.silicon.capture import what_to_run
from tilewright.silicon.packing import SHARED_BYTES, Ending, Status
from tilewright.silicon.replies import Hello, Journal, Kept, Reply

HELLO = Hello(Status.OK, 9, 0, 13000, 13000, SHARED_BYTES, "Stand-in", "")


class Program:
    """Answers each case with a flipped byte, and every one of which the number is in ``failing`` not at all."""

    def __init__(self, failing=()):
        self.asked, self._failing = [], failing

    def run(self, case):
        self.asked.append(case.name)
        if len(self.asked) in self._failing:
            return Reply(Status.FAILED, f"gone {len(self.asked)}")
        gmem, smem = case.global_contents(), case.smem.contents()
        gmem[5] ^= 255
        smem[-1] ^= 1
        count = len(case.commands)
        return Reply(Status.OK, "", dict.fromkeys(case.maps, 1), (Ending.DONE,) * count, (None,) * count, gmem, [smem])


@pytest.fixture
def cases():
    return what_to_run([], 1, 4)[1]


def kept(path, program=None, sources="a"):
    return Kept(Journal(path), HELLO, sources, program)


def check_same(one, other):
    assert one._replace(gmem=None, smems=()) == other._replace(gmem=None, smems=())
    for memory in ("gmem", "smems"):
        np.testing.assert_array_equal(getattr(one, memory), getattr(other, memory))


def test_replies_come_back_as_they_were(tmp_path, cases):
    program, path = Program(), tmp_path / "replies.bin"
    assert not kept(path).knows(cases[0])
    replies = [kept(path, program).run(case) for case in cases]
    again = kept(path)
    for case, reply in zip(cases, replies, strict=True):
        check_same(reply, Program().run(case))
        assert again.knows(case)
        check_same(again.run(case), reply)
    assert program.asked == [case.name for case in cases]


def test_what_several_cores_counted_comes_back_as_it_was(tmp_path):
    (case,) = random_cluster("load_cluster_1_0")

    class Uneven(Program):
        def run(self, case):
            reply, counts = super().run(case), tuple(range(case.cores))
            return reply._replace(counted=(counts,), smems=[reply.smems[0] ^ core for core in counts])

    path = tmp_path / "replies.bin"
    reply = kept(path, Uneven()).run(case)
    assert reply.counted[0][:2] == (0, 1)
    check_same(kept(path).run(case), reply)


def random_cluster(*names):
    return [case for case in what_to_run([], 1, 10)[1] if case.name in names]


def test_another_program_is_asked_again(tmp_path, cases):
    path = tmp_path / "replies.bin"
    kept(path, Program()).run(cases[0])
    assert not kept(path, sources="b").knows(cases[0])


@pytest.mark.parametrize("cut", [1, 3, 40])
def test_what_was_written_half_is_dropped(tmp_path, cases, cut):
    path = tmp_path / "replies.bin"
    for case in cases[:2]:
        kept(path, Program()).run(case)
    path.write_bytes(path.read_bytes()[:-cut])
    assert [kept(path).knows(case) for case in cases] == [True, False, False, False]
    program = Program()
    for case in cases[:3]:
        kept(path, program).run(case)
    assert program.asked == [case.name for case in cases[1:3]]
    assert [kept(path).knows(case) for case in cases] == [True, True, True, False]


def test_less_than_a_length_at_the_end_is_dropped(tmp_path, cases):
    path = tmp_path / "replies.bin"
    kept(path, Program()).run(cases[0])
    whole = path.read_bytes()
    path.write_bytes(whole + b"\x05\0")
    assert kept(path).knows(cases[0])
    assert path.read_bytes() == whole


def test_a_failure_counts_when_it_comes_twice(tmp_path, cases):
    once, twice = Program(failing=[1]), Program(failing=[1, 2])
    assert kept(tmp_path / "once", once).run(cases[0]).status == Status.OK
    assert len(once.asked) == 2
    reply = kept(tmp_path / "twice", twice).run(cases[0])
    assert (reply.status, reply.message) == (Status.FAILED, "gone 2")
    assert kept(tmp_path / "twice").run(cases[0]) == reply


def test_the_first_failure_is_remembered(tmp_path, cases):
    """The program may not start again after it; who goes on then gets past the case."""
    path = tmp_path / "replies.bin"

    class Gone(Program):
        def run(self, case):
            if self.asked:
                raise KeyboardInterrupt
            return super().run(case)

    with pytest.raises(KeyboardInterrupt):
        kept(path, Gone(failing=[1])).run(cases[0])
    assert not kept(path).knows(cases[0])
    program = Program(failing=[1])
    assert kept(path, program).run(cases[0]).status == Status.FAILED
    assert len(program.asked) == 1

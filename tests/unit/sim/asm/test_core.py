"""The text of programs: words by hand, labels, both directions, and refusals."""

import random

import pytest

from tilewright.errors import UsageError
from tilewright.golden import (
    CONV_PRESETS,
    command_word,
    conv_words,
    job_word,
    page_words,
    program_word,
    segment_words,
    tmau_word,
)
from tilewright.sim.asm.core import BITS, assemble_core, disassemble_core
from tilewright.spec.core import Kind
from tilewright.tools.cli.main import main
from tilewright.verify.random.programs import PROGRAM_AT, garbage_programs

SEED = 6
JOB = job_word(operation="max_pool", output="element", tag=7, channels=3)

#: Text, and the words that it is.
LINES = [
    ("tmau commit tag=0x7FFF", [tmau_word(command_word("commit", tag=0x7FFF))]),
    ("tmau copy_block.shared,global 0x80 0x10 0x2000 4",
     [tmau_word(command_word("copy_block", destination=0x80, destination_space="shared", signal=1, barrier=16,
                             source=0x2000, size=64))]),
    ("conv max_pool.s8s8.element tag=7 channels=3", conv_words(JOB)),
    ("pe 0x4000 12 tag=5", [program_word("pe", address=0x4000, count=12, tag=5)]),
    ("barrier.init 0x10 1", [program_word("barrier", operation="init", barrier=16, value=1)]),
    ("barrier.arrive 0x10 2", [program_word("barrier", operation="arrive", barrier=16, value=2)]),
    ("barrier.expect_tx 0x10 64", [program_word("barrier", operation="expect_tx", barrier=16, value=64)]),
    ("barrier.complete_tx 0x10 64", [program_word("barrier", operation="complete_tx", barrier=16, value=64)]),
    ("barrier.wait 0x10 1 tag=3", [program_word("barrier", operation="try_wait", barrier=16, value=1, tag=3)]),
    ("wait_all", [program_word("wait_all")]),
    ("wait_all.conv", [program_word("wait_all", engines=4)]),
    ("wait_all.tmau,pe tag=2", [program_word("wait_all", engines=3, tag=2)]),
    ("register.tmau 0x20 0x4", [program_word("register", engine="tmau", offset=0x20, value=4)]),
    ("register.conv 0x20 0x4", [program_word("register", engine="conv", offset=0x20, value=4)]),
    ("loop 4294967295 2", [program_word("loop", count=2**32 - 1, back=2)]),
    ("kernel 0x10 ur3 5 6 7 tag=1",
     [program_word("kernel", entry=16, first=3, count=3, argument=[5, 6, 7], tag=1)]),
    ("kernel 0x3", [program_word("kernel", entry=3)]),
    ("kernel 0x3 ur2", [program_word("kernel", entry=3, first=2)]),
    ("end", [program_word("end")]),
    ("end.interrupt tag=65535", [program_word("end", interrupt=1, tag=65535)]),
    ("word 0x7", [7]),
]  # fmt: skip
#: Text that is not written so.
SHORT = [
    ("segment 3 0x16 tag=9", segment_words(3, 0x16, 9)),
    ("page 2 0x8000000000000010", page_words(2, 1 << 63 | 16)),
    ("wait_all.pe,tmau", [program_word("wait_all", engines=3)]),
]


@pytest.mark.parametrize(("text", "words"), LINES + SHORT, ids=[line for line, _ in LINES + SHORT])
def test_text_of_every_kind(text, words):
    assert assemble_core(f"// a comment\n\n  {text}  // another\n") == words
    assert assemble_core("\n".join(disassemble_core(words))) == words


def test_text_that_is_written():
    words = [word for _, words in LINES for word in words]
    assert disassemble_core(words) == [line.replace("0x7FFF", "32767") for line, _ in LINES]
    assert disassemble_core(page_words(2, 5)) == [
        "register.pe 0x100 0x5", "register.pe 0x104 0x0", "register.pe 0x140 0x20003"
    ]  # fmt: skip


def test_every_kind_has_its_text():
    assert {word >> 508 for _, words in LINES for word in words[:1]} == {0, *Kind}


def test_labels():
    words = assemble_core("first:\nconv max_pool.s8s8.element\nsecond:\nend\nloop 2 second\nloop 3 first tag=1")
    assert words[-2:] == [program_word("loop", count=2, back=1), program_word("loop", count=3, back=5, tag=1)]


def test_a_job_that_is_not_whole_or_has_another_tag():
    words = conv_words(JOB)
    assert disassemble_core(words[:2]) == ["word 0x2" + "0" * 122 + "70000", f"word {words[1]:#x}"]
    other = [program_word("conv", tag=8), *words[1:]]
    assert assemble_core("\n".join(disassemble_core(other))) == other


def test_garbage_in_both_directions():
    for program in garbage_programs(SEED, CONV_PRESETS["unit"], 4096, 100):
        raw = program.gmem[PROGRAM_AT:].tobytes()
        words = [int.from_bytes(raw[64 * place : 64 * place + 64], "little") for place in range(program.words)]
        lines = disassemble_core(words)
        assert assemble_core("\n".join(lines)) == words
    rng = random.Random(SEED)
    word = rng.getrandbits(BITS - 4)
    assert disassemble_core([word]) == [f"word {word:#x}"]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("jump 3", "line 1: 'jump' is not an operation"),
        ("\ntmau", "line 2: 'tmau' needs operands"),
        ("conv // nothing", "line 1: 'conv' needs operands"),
        ("\ntmau move 3", "line 2: 'move' is not an operation"),
        ("\n\nconv max_pool.u8u8",
         "line 3: 'max_pool.u8u8' must go on with an output: raw, u8, s8, f16, bf16, element"),
        ("tmau commit tag=0x8000",
         "line 1: the command of a program must have a tag below 0x8000 and no kind: 0x80000009"),
        ("pe 0x40", "line 1: '0x40' must be followed by their number"),
        ("pe 0x40 4294967296", "line 1: '4294967296' must be 0 to 4294967295"),
        ("barrier 0x40 1",
         "line 1: 'barrier' must go on with an operation: init, arrive, expect_tx, complete_tx, wait"),
        ("barrier.try_wait 0x40 1",
         "line 1: 'try_wait' must be an operation: init, arrive, expect_tx, complete_tx, wait; did you mean 'wait'?"),
        ("wait_all.smem", "line 1: 'smem' must be an engine: tmau, pe, conv"),
        ("register.pe 0x100", "line 1: '0x100' must be followed by a number"),
        ("register.all 0x100 1", "line 1: 'all' must be an engine: tmau, pe, conv"),
        ("loop 3", "line 1: '3' must be followed by a number of words, or a label"),
        ("loop 3 later\nlater:", "line 1: 'later' must be a number"),
        ("again:\nagain:", "line 2: label 'again' is defined twice"),
        ("kernel", "line 1: 'kernel' must be followed by the index of a kernel"),
        ("kernel 3 r2 5", "line 1: 'r2' must be a uniform register, as ur0"),
        ("kernel 3 ur256 5", "line 1: 'ur256' must be 0 to 255"),
        ("kernel 3 ur2 x", "line 1: 'x' must be a number"),
        (f"kernel 3 ur2{' 7' * 13}", "line 1: '7' is more than the command takes"),
        ("end.now", "line 1: 'now' is more than the command takes"),
        ("end 3", "line 1: '3' is more than the command takes"),
        ("end tag=65536", "line 1: 'tag=65536' must be 0 to 65535"),
        ("segment 3", "line 1: '3' must be followed by a word"),
        ("segment 3 x", "line 1: 'x' must be a number"),
        ("segment 65536 0", "line 1: '65536' must be 0 to 65535"),
        ("page 3 0x10000000000000000",
         "line 1: page entry must be an integer of 64 bits, not 18446744073709551616"),
        ("word", "line 1: 'word' must be followed by a number"),
    ],
)  # fmt: skip
def test_refusals(text, sentence):
    with pytest.raises(UsageError) as caught:
        assemble_core(text)
    assert str(caught.value) == sentence


def test_command_line_in_both_directions(tmp_path, capsys):
    (tmp_path / "program.txt").write_text("".join(f"{line}\n" for line, _ in LINES))
    assert main(["asm", str(tmp_path / "program.txt"), "--core", "--out", str(tmp_path / "words.txt")]) == 0
    words = (tmp_path / "words.txt").read_text().split()
    expected = [word for _, words in LINES for word in words]
    assert [int(word, 16) for word in words] == expected
    assert {len(word) for word in words} == {128}
    assert main(["asm", str(tmp_path / "words.txt"), "--core", "--back"]) == 0
    assert assemble_core(capsys.readouterr().out) == expected

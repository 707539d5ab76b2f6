"""The text of commands: words by hand, random commands in both directions, and refusals."""

import io
import random
import re
import sys
from pathlib import Path

import pytest

from tilewright.errors import UsageError
from tilewright.golden import TensorMap, command_word
from tilewright.sim.asm.tmau import assemble, disassemble
from tilewright.spec import COMMAND, FORMATS, Element, LaneLayout, Opcode, Reduction
from tilewright.tools.cli.main import main

SEED = 3

#: Text, and the command that it is.
COMMANDS = [
    ("copy_tensor.tiles.2d.shared,global 0x1000 (4,-1) 0x400 0x18 tag=7",
     (Opcode.LOAD, {"descriptor": 0x1000, "coords": (4, -1), "smem": 0x400, "signal": 1, "barrier": 0x18, "tag": 7})),
    ("copy_tensor.im2col.4d.shared,global 4096 (0, 1, -1, 0) 0 (1, 2)",
     (Opcode.LOAD, {"descriptor": 4096, "coords": (0, 1, -1, 0), "offsets": (1, 2)})),
    ("copy_tensor.tiles.1d.global,shared 64 (3) 128",
     (Opcode.STORE, {"descriptor": 64, "coords": (3,), "smem": 128})),
    ("copy_tensor.im2col.3d.global,shared.add 64 (0,0,0) 128",
     (Opcode.REDUCE, {"descriptor": 64, "smem": 128, "reduction": Reduction.ADD})),
    ("copy_tensor.tiles.1d.global,fill 64 (3)", (Opcode.STORE, {"descriptor": 64, "coords": (3,), "fill": 1})),
    ("prefetch_tensor.im2col.3d 64 (0,1,2) (3)",
     (Opcode.PREFETCH, {"descriptor": 64, "coords": (0, 1, 2), "offsets": (3,)})),
    ("copy_block.shared,global 0x80 0x10 0x2000 13",
     (Opcode.COPY_BLOCK, {"destination": 0x80, "destination_space": 1, "signal": 1, "barrier": 16, "source": 0x2000,
                          "size": 208})),
    ("copy_block.global,shared.xor.u32 0x80 0x20 1",
     (Opcode.COPY_BLOCK, {"destination": 0x80, "source": 0x20, "source_space": 1, "size": 16,
                          "reduction": Reduction.XOR, "element": Element.U32})),
    ("prefetch_block 0x100 2", (Opcode.PREFETCH_BLOCK, {"source": 0x100, "size": 32})),
    ("commit", (Opcode.COMMIT, {})),
    ("wait 3", (Opcode.WAIT, {"count": 3})),
    ("wait.read 0 tag=0xFFFF", (Opcode.WAIT, {"read": 1, "tag": 0xFFFF})),
    ("wait_all", (Opcode.WAIT_ALL, {})),
    ("invalidate 0x40", (Opcode.INVALIDATE, {"descriptor": 0x40})),
    ("invalidate_all", (Opcode.INVALIDATE_ALL, {})),
    ("replace 0x40 size[2] 7", (Opcode.REPLACE, {"descriptor": 0x40, "field": 12, "index": 2, "value": 7})),
    ("replace 0x40 address 0x8000", (Opcode.REPLACE, {"descriptor": 0x40, "field": 11, "value": 0x8000})),
    ("lanes.f16.aligned,global 0x40:2 0x18 0x1000 (5,4,3,2) 4 64",
     (Opcode.LANES, {"element": Element.F16, "destination": 0x40, "destination_lane": 2, "signal": 1, "barrier": 0x18,
                     "source": 0x1000, "destination_layout": LaneLayout.ALIGNED, "shape": (5, 4, 3, 2),
                     "lanes_log2": 2, "eu_log2": 6})),
]  # fmt: skip


@pytest.mark.parametrize(("text", "command"), COMMANDS)
def test_text_of_every_operation(text, command):
    opcode, fields = command
    word = command_word(opcode, **fields)
    assert assemble(f"// a comment\n\n  {text}  // another\n") == [word]
    assert assemble(disassemble(word)) == [word]


def test_text_of_a_command_on_a_known_map():
    tmap = TensorMap(element="u8", size=(16, 8), stride=(16,), box=(16, 4))
    text = "copy_tensor.tiles.2d.shared,global 0x1000 (4,-1) 0x400 0x18 tag=7"
    assert disassemble(assemble(text)[0], tmap) == text


def test_without_a_map_text_comes_back_as_it_was():
    """All lines of the page but REPLACE, whose number is written in hexadecimal; tiles have two dimensions or more."""
    page = (Path(__file__).parents[4] / "docs/commands.md").read_text(encoding="utf-8")
    listing = re.search(r"```text\n(.*?)```", page, re.DOTALL)[1]
    lines = [line.split("//")[0].strip() for line in listing.splitlines()]
    lines = [line for line in lines if not line.startswith("replace")]
    lines += [
        f"copy_tensor.tiles.{rank}d.shared,global 0x40 ({','.join('0' * (rank - 1))},7) 0x80" for rank in (2, 3, 4, 5)
    ]
    lines += [
        "copy_tensor.tiles.2d.shared,global 0x40 (0,0) 0x80",
        "copy_tensor.im2col.5d.shared,global 0x40 (0,0,0,0,0) 0x80 (1,0,2)",
    ]
    assert len(lines) > 20
    for line in lines:
        assert [disassemble(word) for word in assemble(line)] == [line]


def random_word(rng):
    """A command; half of them have no field that the operation ignores."""
    opcode = rng.choice(list(FORMATS))
    fields = {}
    for field in FORMATS[opcode].fields:
        if field.name == "opcode" or rng.random() < 0.4:
            continue
        numbers = [rng.randint(*field.range) if not field.enum else int(rng.choice(list(field.enum)))
                   for _ in range(field.count or 1)]  # fmt: skip
        fields[field.name] = numbers if field.count else numbers[0]
    if "size" in fields:
        fields["size"] -= fields["size"] % 16
    return command_word(opcode, **fields)


def test_random_commands_come_back():
    print(f"seed {SEED}")
    rng = random.Random(SEED)
    named = 0
    for _ in range(2000):
        word = random_word(rng)
        text = disassemble(word)
        assert assemble(text) == [word], text
        named += not text.startswith("word")
    assert named > 300


def test_any_word_comes_back():
    rng = random.Random(SEED)
    for _ in range(300):
        word = rng.getrandbits(COMMAND.bits)
        assert assemble(disassemble(word)) == [word]


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("copy_tensr.tiles", "'copy_tensr' is not an operation; did you mean 'copy_tensor'?"),
        ("copy_tensor", "'copy_tensor' must go on with a mode: tiles, im2col"),
        ("copy_tensor.tile.2d", "'tile' must be a mode: tiles, im2col; did you mean 'tiles'?"),
        ("copy_tensor.tiles.2d.smem,gmem 0 (0,0) 0",
         "'smem,gmem' must be dst,src with dst global, shared and src global, shared, fill; did you mean 'shared'?"),
        ("copy_block.shared,global.add.fp16 0 0 1",
         "'fp16' must be an element type: u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64, tf32, "
         "f8e4m3, f8e5m2; did you mean 'f16'?"),
        ("replace 0 globalDim[1] 1",
         "'globalDim[1]' must be a field of the descriptor, or one with an [index]; did you mean 'size'?"),
        ("commit_group", "'commit_group' is not an operation; did you mean 'commit'?"),
        ("copy_tensor.im2col.2d", "'2d' must be a number of dimensions: 3d, 4d, 5d"),
        ("copy_tensor.tiles.2d.shared 0",
         "'shared' must be dst,src with dst global, shared and src global, shared, fill"),
        ("copy_tensor.tiles.2d.shared,shared 0",
         "'copy_tensor.tiles.2d.shared,shared' must copy between shared and global memory"),
        ("copy_tensor.tiles.2d.global,shared.mul 0 (0,0) 0",
         "'mul' must be a reduction: add, min, max, inc, dec, and, or, xor"),
        ("copy_tensor.tiles.2d.shared,global.add 0 (0,0) 0", "'add' is more than the command takes"),
        ("copy_tensor.tiles.2d.shared,global",
         "'copy_tensor.tiles.2d.shared,global' must be followed by the address of a descriptor"),
        ("copy_tensor.tiles.2d.shared,global 0x4g", "'0x4g' must be a number"),
        ("copy_tensor.tiles.2d.shared,global 0 (1)", "'(1)' must be coordinates: 2 numbers in parentheses"),
        ("copy_tensor.tiles.2d.shared,global 0 (1,2147483648) 0", "'(1,2147483648)' must be -2147483648 to 2147483647"),
        ("copy_tensor.tiles.2d.shared,global 0 (1,2)", "'(1,2)' must be followed by an address in shared memory"),
        ("copy_tensor.tiles.2d.shared,global 0 (1,2) 0 8 (1)", "'(1)' is more than the command takes"),
        ("copy_block.shared,global.add.f128 0 0 1",
         "'f128' must be an element type: u8, s8, u16, s16, u32, s32, u64, s64, f16, bf16, f32, f64, tf32, "
         "f8e4m3, f8e5m2"),
        ("copy_block.shared,global 0 0", "'0' must be followed by a number of 16-byte blocks"),
        ("wait", "'wait' must be followed by a number of groups"),
        ("wait 256", "'256' must be 0 to 255"),
        ("commit tag=65536", "'tag=65536' must be 0 to 65535"),
        ("replace 0 colour 1", "'colour' must be a field of the descriptor, or one with an [index]"),
        ("lanes.f16.aligned,global 0 0 (5,4,3,2) 3 64", "'3' must be a power of two"),
    ],
)  # fmt: skip
def test_refusals(text, sentence):
    with pytest.raises(UsageError) as caught:
        assemble(f"commit\n{text}")
    assert str(caught.value) == f"line 2: {sentence}"


def test_command_line_in_both_directions(tmp_path, capsys):
    (tmp_path / "commands.txt").write_text("commit tag=5\nwait.read 2\n")
    assert main(["asm", str(tmp_path / "commands.txt"), "--out", str(tmp_path / "words.hex")]) == 0
    assert len((tmp_path / "words.hex").read_text().splitlines()[0]) == 128
    assert main(["asm", str(tmp_path / "words.hex"), "--back"]) == 0
    assert capsys.readouterr().out == "commit tag=5\nwait.read 2\n"


@pytest.mark.parametrize("back", [False, True])
def test_standard_input(monkeypatch, capsys, back):
    text, words = (
        "commit tag=5\nwait.read 2\n",
        "".join(f"{word:0128x}\n" for word in assemble("commit tag=5\nwait.read 2")),
    )
    text_in, text_out = (words, text) if back else (text, words)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text_in.encode())))
    assert main(["asm", "-", *["--back"] * back]) == 0
    assert capsys.readouterr() == (text_out, "")


@pytest.mark.parametrize(
    ("stream", "sentence"),
    [(io.TextIOWrapper(io.BytesIO(b"\xff\xfe")), "the standard input: cannot be read: it is not text"),
     (None, "the standard input is closed")],
)  # fmt: skip
def test_standard_input_that_cannot_be_read(monkeypatch, capsys, stream, sentence):
    monkeypatch.setattr(sys, "stdin", stream)
    assert main(["asm", "-"]) == 2
    assert capsys.readouterr() == ("", f"tilewright asm: {sentence}\n")


def test_command_line_refuses(tmp_path, capsys):
    (tmp_path / "words.hex").write_text("12\n\nxy\n")
    for arguments, sentence in (
        (["words.hex", "--back"], "line 3: 'xy' must be a hexadecimal number of 512 bits"),
        (["words.hex"], "line 1: '12' is not an operation"),
        (["none.txt"], f"{tmp_path}/none.txt: cannot be read: No such file or directory"),
    ):
        assert main(["asm", str(tmp_path / arguments[0]), *arguments[1:]]) == 2
        assert capsys.readouterr().err == f"tilewright asm: {sentence}\n"

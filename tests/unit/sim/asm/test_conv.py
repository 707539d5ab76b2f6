"""The text of jobs: words by hand, random jobs in both directions, and refusals."""

import random

import pytest

from tilewright.errors import UsageError
from tilewright.golden import CONV_PRESETS, job_word
from tilewright.sim.asm.conv import BITS, assemble_jobs, disassemble_job
from tilewright.spec.conv import JOB
from tilewright.spec.pe import MM_FAMILIES
from tilewright.tools.cli.main import main
from tilewright.verify.random.conv_jobs import garbage_jobs, random_jobs

SEED = 4
PARAMS = CONV_PRESETS["full"].replace(types=MM_FAMILIES)

#: Text, and the job that it is.
JOBS = [
    ("convolution.u8s8.raw", {"operation": "convolution", "type": "u8s8", "output": "raw"}),
    ("convolution.bf16.f16.bias.raster x=0x10 kernel=(3, 2) merge=3 tag=0xFFFF",
     {"operation": "convolution", "type": "bf16", "output": "f16", "bias": 1, "raster": 1, "x": 16, "kernel": (3, 2),
      "merge": 3, "tag": 0xFFFF}),
    ("depthwise.s8s8.u8.raster barrier=0 addend=0 ratio=(0x3F800000,1)",
     {"operation": "depthwise", "type": "s8s8", "output": "u8", "raster": 1, "signal": 1, "add": 1,
      "ratio": (0x3F800000, 1)}),
    ("sum_pool.u8u8.s8.bias channels=65536 y_pitch=(1,2,4294967295)",
     {"operation": "sum_pool", "type": "u8u8", "output": "s8", "bias": 1, "channels": 65536,
      "y_pitch": (1, 2, 2**32 - 1)}),
    ("convolution.u8u8.s8.zero_first function_table=0",
     {"operation": "convolution", "type": "u8u8", "output": "s8", "zero_first": 1, "function": 1}),
    ("max_pool.u16u16.element padding=(255,0)",
     {"operation": "max_pool", "type": "u16u16", "output": "element", "padding": (255, 0)}),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fields"), JOBS)
def test_text_of_every_operation(text, fields):
    word = job_word(**fields)
    assert assemble_jobs(f"// a comment\n\n  {text}  // another\n") == [word]
    assert assemble_jobs(disassemble_job(word)) == [word]


def test_text_that_is_written():
    word = job_word(operation="depthwise", type="f16", output="raw", signal=1, kernel=(3, 1), k=0x40, offset=255)
    assert disassemble_job(word) == "depthwise.f16.raw barrier=0x0 k=0x40 offset=0xff kernel=(3,1)"


def test_random_jobs_and_garbage_in_both_directions():
    lines = 0
    for job in random_jobs(SEED, PARAMS, 150):
        text = disassemble_job(job.word)
        # Unused fields have no text: a second operand without addition, a barrier without signal.
        lines += not text.startswith("word")
        assert assemble_jobs(text) == [job.word]
    assert lines > 30
    for word in garbage_jobs(SEED, PARAMS, 150):
        assert assemble_jobs(disassemble_job(word)) == [word]
    rng = random.Random(SEED)
    for word in (rng.getrandbits(BITS), 0, (1 << BITS) - 1, job_word() | JOB.reserved_mask):
        assert disassemble_job(word) == f"word {word:#x}"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("convolve.u8s8.raw", "line 1: 'convolve' is not an operation; did you mean 'convolution'?"),
        ("convolution", "line 1: 'convolution' must go on with a type: s8s8, s8u8, u8s8, u8u8, s16s16, s16u16, u16s16, "
         "u16u16, f16, bf16"),
        ("convolution.f32", "line 1: 'f32' must be a type: s8s8, s8u8, u8s8, u8u8, s16s16, s16u16, u16s16, u16u16, "
         "f16, bf16"),
        ("convolution.f16.u16", "line 1: 'u16' must be an output: raw, u8, s8, f16, bf16, element"),
        ("convolution.f16.raw.relu", "line 1: 'relu' is more than the command takes"),
        ("\nmax_pool.f16.element x", "line 2: 'x' must be name=value with one of granularity, merge, tag, barrier, "
         "x_zero, k_zero, x, k, table, y, addend, minimum, maximum, add_minimum, add_maximum, ratio, offset, y_zero, "
         "channels, width, height, batch, out_channels, out_width, out_height, kernel, stride, dilation, padding, "
         "x_pitch, k_pitch, y_pitch, addend_pitch, function_table"),
        ("max_pool.f16.element merge=0", "line 1: 'merge=0' must be 1 to 256"),
        ("max_pool.f16.element merge=", "line 1: 'merge=' must be a number"),
        ("max_pool.f16.element merge=1 merge=1", "line 1: 'merge=1' is given twice"),
        ("max_pool.f16.element kernel=(1)", "line 1: 'kernel=(1)' must be 2 numbers in parentheses"),
        ("max_pool.f16.element kernel=1,2", "line 1: 'kernel=1,2' must be 2 numbers in parentheses"),
        ("max_pool.f16.element kernel=(1,257)", "line 1: 'kernel=(1,257)' must be 1 to 256"),
        ("word", "line 1: 'word' must be followed by a number"),
    ],
)  # fmt: skip
def test_refusals(text, sentence):
    with pytest.raises(UsageError) as caught:
        assemble_jobs(text)
    assert str(caught.value) == sentence


def test_command_line_in_both_directions(tmp_path, capsys):
    text = "".join(f"{line}\n" for line, _ in JOBS)
    (tmp_path / "jobs.txt").write_text(text)
    assert main(["asm", str(tmp_path / "jobs.txt"), "--conv", "--out", str(tmp_path / "words.txt")]) == 0
    words = (tmp_path / "words.txt").read_text().split()
    assert [int(word, 16) for word in words] == [job_word(**fields) for _, fields in JOBS]
    assert {len(word) for word in words} == {256}
    assert main(["asm", str(tmp_path / "words.txt"), "--conv", "--back"]) == 0
    assert assemble_jobs(capsys.readouterr().out) == [job_word(**fields) for _, fields in JOBS]

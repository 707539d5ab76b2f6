"""The examples of docs/golden.md run, and say what happens."""

import re
from pathlib import Path

import pytest

from tilewright.golden import DescriptorError
from tilewright.sim.cli import main

PAGE = (Path(__file__).parents[2] / "docs" / "golden.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


def test_python_examples():
    names = {}
    for block in blocks("python"):
        exec(block, names)
    written = (names["smem"] != 0xCD).nonzero()[0]
    assert written.min() >= 1024
    assert written.max() < 1024 + 64 * 128
    call, answer = blocks("text")[0].splitlines()
    with pytest.raises(DescriptorError) as caught:
        eval(call.removeprefix(">>> "), names)
    assert answer == f"DescriptorError: {caught.value}"


def test_replay_example(tmp_path, capsys):
    (tmp_path / "cases.json").write_text(blocks("json")[0], encoding="utf-8")
    assert main(["replay", str(tmp_path / "cases.json"), "--on", "golden"]) == 0
    assert capsys.readouterr().out.startswith("met       one_tile\n")

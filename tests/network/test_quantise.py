"""docs/quantise.md in a shell: its model, by every command that it names, to one answer."""

import shlex
from pathlib import Path

import numpy as np

from support.fences import fences
from tilewright.tools.cli.main import main

PAGE = Path(__file__).resolve().parents[2] / "docs/quantise.md"


def test_the_commands_of_the_page(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = fences(PAGE.read_text(encoding="utf-8"))
    names = {}
    for block in blocks:
        if block.language == "python":
            exec(compile(block.text, f"{PAGE}:{block.line}", "exec"), names)
    (commands,) = (block.text for block in blocks if block.language == "sh")
    for line in commands.splitlines():
        program, *arguments = shlex.split(line)
        assert program == "tilewright"
        assert main(arguments) == 0
    evaluated, made, witness = (np.load(f"{name}.npz") for name in ("evaluated", "program", "ort"))
    assert evaluated["y"].shape == (1, 10)
    assert (evaluated["y"] == made["y"]).all()
    assert np.allclose(evaluated["y"], witness["y"], atol=0.1)

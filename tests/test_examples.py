"""The Python examples on the pages run as they stand there; those of one page share their names, as for a reader."""

import re
from pathlib import Path

import pytest

from tilewright.golden.spec import COMMAND, Opcode
from tilewright.sim.asm.tmau.assembler import assemble

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    "page", ["README.md", "docs/commands.md", "docs/golden.md", "docs/pe.md", "docs/simulation.md"]
)
def test_examples_run(page):
    examples = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert examples
    names = {}
    for example in examples:
        exec(compile(example, page, "exec"), names)


def test_every_command_has_its_text():
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    text = re.search(r"^```text\n(.*?)^```", page, re.DOTALL | re.MULTILINE).group(1)
    assert {COMMAND.unpack(word)["opcode"] for word in assemble(text)} == set(Opcode)

"""The Python examples on the pages run as they stand there; those of one page share their names, as for a reader."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize("page", ["README.md", "docs/golden.md", "docs/simulation.md"])
def test_examples_run(page):
    examples = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    assert examples
    names = {}
    for example in examples:
        exec(compile(example, page, "exec"), names)

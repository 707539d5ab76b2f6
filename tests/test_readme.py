"""The Python examples of the README run as they stand there."""

import re
from pathlib import Path

import pytest

README = Path(__file__).resolve().parent.parent / "README.md"
EXAMPLES = re.findall(r"^```python\n(.*?)^```", README.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


def test_there_is_an_example():
    assert EXAMPLES


@pytest.mark.parametrize("source", EXAMPLES, ids=range(len(EXAMPLES)))
def test_example_runs(source):
    exec(compile(source, str(README), "exec"), {})

"""What a tool that failed has printed. What is built runs in the tests of simulations."""

from subprocess import CompletedProcess

import pytest

from tilewright.sim.hdl.build import complaint


@pytest.mark.parametrize(
    ("stderr", "stdout", "line"),
    [("a\n Error: b \n", "error: c", "Error: b"), ("", "a\nb", "a"), ("", "", "no message")],
)
def test_complaint(stderr, stdout, line):
    assert complaint(CompletedProcess([], 1, stdout, stderr)) == line

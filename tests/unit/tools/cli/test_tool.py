"""``tilewright tool``: what it refuses. What it runs is in ``tests/integration/test_package.py``."""

import pytest

from tilewright.tools.cli.main import main


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ([], "takes a program and its arguments, or --path alone"),
        (["--path", "verilator"], "takes a program and its arguments, or --path alone"),
        (["no-such-tool", "-x"], "there is no program 'no-such-tool' beside Verilator, beside Python or on the PATH"),
    ],
)
def test_refusals(capsys, arguments, sentence):
    assert main(["tool", *arguments]) == 2
    assert capsys.readouterr().err == f"tilewright tool: {sentence}\n"

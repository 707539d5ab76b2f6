"""Arguments of replay on the RTL: what they may be, and that nothing else imports the hardware for them."""

import argparse
import subprocess
import sys

import pytest

from tilewright.sim.replay.rtl_options import configure_rtl, preset_name


def parse(*arguments):
    parser = argparse.ArgumentParser(prog="replay")
    parser.add_argument("--preset", type=preset_name)
    configure_rtl(parser)
    return parser.parse_args(arguments)


def test_values_and_defaults():
    assert vars(parse()) == {"preset": None, "latency": 100, "stall": 0.0, "sim": "verilator"}
    given = parse("--preset", "unit", "--latency", "30", "--stall", "0.4", "--sim", "icarus")
    assert vars(given) == {"preset": "unit", "latency": 30, "stall": 0.4, "sim": "icarus"}


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--preset", "huge"], "argument --preset: must be one of unit, ecp5, default, lean, full, not 'huge'"),
        (["--latency", "1"], "argument --latency: must be 2 to 1023, not '1'"),
        (["--latency", "long"], "argument --latency: must be 2 to 1023, not 'long'"),
        (["--stall", "1"], "argument --stall: must be 0.0 to 0.99, not '1'"),
    ],
)
def test_wrong_values_are_refused(arguments, sentence, capsys):
    with pytest.raises(SystemExit) as caught:
        parse(*arguments)
    assert caught.value.code == 2
    assert sentence in capsys.readouterr().err


def test_the_hardware_is_asked_only_when_one_is_given():
    code = "import argparse, sys; from tilewright.sim.replay.rtl_options import configure_rtl as c, preset_name"
    code += "; p = argparse.ArgumentParser()"
    code += "; c(p); p.add_argument('--preset', type=preset_name); p.parse_args([]); print('amaranth' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"

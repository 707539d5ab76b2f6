"""Arguments of ``tilewright replay`` that say what hardware it is, and how its surroundings behave.

What they may be is asked of the hardware's modules only when one is given: other backends need none of them.
"""

from argparse import ArgumentTypeError
from importlib import import_module

from tilewright.arguments import between
from tilewright.spec.names import suggestion

from ..hdl.build import SIMULATORS

__all__ = ["configure_rtl", "preset_name"]


def configure_rtl(parser):
    """Adds the arguments that only matter on the RTL."""
    parser.add_argument("--latency", type=_latency, default=100, help="cycles from a read address to its data")
    parser.add_argument("--stall", type=_stall, default=0.0, help="probability of a pause before a transfer")
    parser.add_argument("--sim", choices=SIMULATORS, default=SIMULATORS[0], help="simulator")


def preset_name(text):
    """The name of a preset of the access unit."""

    presets = import_module("tilewright.hw.tmau.params").TMAU_PRESETS
    if text not in presets:
        raise ArgumentTypeError(f"must be one of {', '.join(presets)}, not {text!r}{suggestion(text, presets)}")
    return text


def _latency(text):
    sides = import_module("tilewright.sim.harness.memory_model")
    return between(text, int, sides.MIN_LATENCY, sides.MAX_LATENCY)


def _stall(text):
    return between(text, float, 0.0, 0.99)

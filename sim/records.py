"""Rows of the scripts and logs of the harness."""

from amaranth import unsigned
from amaranth.lib import data

from tilewright.hw.bus.axi4_lite import AccessLayout
from tilewright.hw.smem.layouts import BarrierResultLayout, ReadLayout, read_data_layout
from tilewright.hw.tmau.layouts import command_layout

from .drivers import BarrierItemLayout, RegisterAnswerLayout

__all__ = ["LOG_DEPTHS", "PORTS", "SCRIPT_DEPTH", "log_entries", "script_items"]

#: Ports that have a player, in the order of the bits of ``…_after``.
PORTS = ("commands", "reads", "barriers", "registers")
#: Items of each player's script.
SCRIPT_DEPTH = 4096
#: Entries of each log. Those of the ports hold the answers, the others what else happens.
LOG_DEPTHS = dict.fromkeys((*PORTS, "accepted", "flips"), SCRIPT_DEPTH) | {"requests": 1 << 14, "beats": 1 << 16}


def script_items(params):
    """Shape of an item of each port's script."""
    return {
        "commands": command_layout(),
        "reads": ReadLayout(params.smem),
        "barriers": BarrierItemLayout(params.smem),
        "registers": AccessLayout(),
    }


def log_entries(params):
    """Shape of an entry of each log, without its cycle."""
    return {
        "commands": data.StructLayout({"tag": 16, "error": 8}),
        "reads": read_data_layout(),
        "barriers": BarrierResultLayout(),
        "registers": RegisterAnswerLayout(),
        "accepted": unsigned(16),  # tag
        "flips": unsigned(params.smem.addr_width),  # barrier
        "requests": data.StructLayout({"id": 1, "length": 8, "address": params.addr_width}),
        "beats": data.StructLayout({"id": 1, "last": 1}),
    }

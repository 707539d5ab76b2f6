"""Rows of the scripts and logs of the harness."""

from amaranth import unsigned
from amaranth.lib import data

from tilewright.hw.bus.axi4_lite import AccessLayout
from tilewright.hw.bus.commands import command_layout
from tilewright.hw.smem.layouts import BarrierResultLayout, ReadLayout, read_data_layout

from .drivers import BarrierItemLayout, RegisterAnswerLayout

__all__ = ["LOG_DEPTHS", "PORTS", "READ_IDS", "SCRIPT_DEPTH", "TRACES", "log_entries", "script_items"]

#: Ports that have a driver, in the order of the bits of ``…_after``.
PORTS = ("commands", "reads", "barriers", "registers")
#: Items of each driver's script.
SCRIPT_DEPTH = 4096
#: Entries of the logs of the bus: AR, R, AW and W.
TRACES = {"requests": 1 << 14, "beats": 1 << 16, "write_requests": 1 << 14, "write_beats": 1 << 16}
#: Entries of each log. Those of the ports hold the answers, the others what else happens.
LOG_DEPTHS = dict.fromkeys((*PORTS, "accepted", "flips"), SCRIPT_DEPTH) | TRACES
#: IDs of reads on the bus, by what asks.
READ_IDS = {"data": 0, "descriptor": 1, "reducer": 2}


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
    request = data.StructLayout({"id": 2, "length": 8, "address": params.addr_width})
    return {
        "commands": data.StructLayout({"tag": 16, "error": 8}),
        "reads": read_data_layout(),
        "barriers": BarrierResultLayout(),
        "registers": RegisterAnswerLayout(),
        "accepted": unsigned(16),  # tag
        "flips": unsigned(params.smem.addr_width),  # barrier
        "requests": request,
        "beats": data.StructLayout({"id": 2, "last": 1}),
        "write_requests": request,
        "write_beats": unsigned(1),  # last
    }

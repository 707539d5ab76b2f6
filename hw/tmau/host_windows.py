"""The windows through which a processor commands an access unit over AXI4-Lite, where they are built."""

from ..smem.barrier_window import BARRIER_WINDOW_ADDR_WIDTH
from .command_window import COMMAND_WINDOW_ADDR_WIDTH

__all__ = ["window_regions"]


def window_regions(params):
    """Bits of a byte address in each window of TmauParams, by its region: the last ones of an address map."""
    built = {
        "commands": (params.command_window, COMMAND_WINDOW_ADDR_WIDTH),
        "barriers": (params.barrier_window, BARRIER_WINDOW_ADDR_WIDTH),
    }
    return {name: width for name, (there, width) in built.items() if there}

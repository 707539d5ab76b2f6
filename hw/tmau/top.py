"""The TMAU on its own: for designs that bring their own shared memory."""

from amaranth import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from ..bus.address_map import address_map, map_addr_width
from ..bus.axi4_lite import Axi4LiteSignature, serve_registers
from ..smem.barrier_window import BARRIER_WINDOW_ADDR_WIDTH
from ..smem.signatures import MoverSignature, connect_whole_lines
from .command_window import COMMAND_WINDOW_ADDR_WIDTH
from .unit import TmauUnit, connect_processor, processor_members

__all__ = ["REGISTER_ADDR_WIDTH", "Tmau", "window_regions"]

#: Bits of a byte address in the register space: 4 KiB.
REGISTER_ADDR_WIDTH = 12


def window_regions(params):
    """Bits of a byte address in each window of TmauParams, by its region: the last ones of an address map."""
    commands = {"commands": COMMAND_WINDOW_ADDR_WIDTH} if params.command_window else {}
    barriers = {"barriers": BARRIER_WINDOW_ADDR_WIDTH} if params.barrier_window else {}
    return commands | barriers


class Tmau(wiring.Component):
    """Data path and registers behind AXI4-Lite; connections only.

    A shared memory outside takes a line a cycle from ``smem.writes`` and hands out a line a cycle on ``smem.fetch``,
    takes the bytes of each transfer that names a barrier from ``smem.landed``, and reports what its barriers refused
    and how often its banks conflicted.

    Members
    -------
    smem : Out(MoverSignature(params.smem, params.cores))
        The shared memory outside.
    s_axil : In(Axi4LiteSignature)
        Registers, at the offsets of ``golden.spec.tmau.registers``.
    **processor_members(params)

    Attributes
    ----------
    regions : dict of str to Region
        What lies where on ``s_axil``: ``tmau``, the registers, and ``commands``, the window if ``params`` names it.
    """

    def __init__(self, params):
        self.params = params
        if params.barrier_window:
            raise ValueError("barrier_window must be False: the barriers of a Tmau lie in the shared memory outside")
        self.regions = address_map(tmau=REGISTER_ADDR_WIDTH, **window_regions(params))
        super().__init__(
            processor_members(params)
            | {
                "smem": Out(MoverSignature(params.smem, params.cores)),
                "s_axil": In(Axi4LiteSignature(map_addr_width(self.regions))),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.unit = unit = TmauUnit(self.params)
        windows = connect_processor(m, self, unit)
        connect_whole_lines(m, unit.smem, self.smem)
        serve_registers(m, self.s_axil, self.regions, tmau=unit.accesses, **windows)
        return m

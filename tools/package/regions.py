"""The address map of the AXI4-Lite port of a top: regions, and registers with their values after reset."""

from dataclasses import dataclass

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.conv import control as conv_control
from tilewright.hw.core.params import CoreParams
from tilewright.hw.pe import control as pe_control
from tilewright.hw.tmau import control as tmau_control
from tilewright.spec import core as core_registers
from tilewright.spec.cluster import CLUSTER_REGISTERS, L2_REGISTERS
from tilewright.spec.conv import CONV_REGISTERS
from tilewright.spec.pe import PE_REGISTERS
from tilewright.spec.registers import Register
from tilewright.spec.tmau_registers import (
    BARRIER_WINDOW_REGISTERS,
    COMMAND_WINDOW_REGISTERS,
    TMAU_REGISTERS,
    processor_registers,
)

__all__ = ["RegionEntry", "maps_of", "regions_of", "reset_values"]

#: Registers by region, with their meaning, and the values of registers that show parameters of the hardware.
_REGISTERS = {
    "tmau": ("Registers of the TMAU.", TMAU_REGISTERS, tmau_control.built_with),
    "pe": ("Registers of the processing engine.", PE_REGISTERS, pe_control.built_with),
    "conv": ("Registers of the convolution engine.", CONV_REGISTERS, conv_control.built_with),
    "program": ("Registers of the command processor.", core_registers.PROGRAM_REGISTERS, core_registers.built_with),
    "smem": ("Shared memory, by 32-bit words.", (), lambda params: {}),
    "commands": ("Command window.", COMMAND_WINDOW_REGISTERS, lambda params: {}),
    "barriers": ("Barrier window.", BARRIER_WINDOW_REGISTERS, lambda params: {}),
}


@dataclass(frozen=True)
class RegionEntry:
    """A region of the address space.

    Attributes
    ----------
    name : str
    base, size : int
        First byte address, and bytes.
    meaning : str
    registers : tuple of (Register, int)
        With the value of each after reset; empty if the region is memory.
    """

    name: str
    base: int
    size: int
    meaning: str
    registers: tuple[tuple[Register, int], ...]


def reset_values(name, params):
    """Values of the registers of a region after reset, by name; ``params`` belong to the engine of the region.

    In a cluster the values are those of core 0.
    """
    shown = _REGISTERS[name][2](params)
    if _in_cluster(name, params):
        shown["core"] = {"cores": params.cores}
    if name == "tmau":
        shown["processors"] = {"count": params.processors}
    return {register.name: register.format.pack(**shown.get(register.name, {})) or register.reset
            for register in _registers(name, params)}  # fmt: skip


def _in_cluster(name, params):
    return name == "tmau" and params.cores > 1


def _registers(name, params):
    registers = _REGISTERS[name][1] + (CLUSTER_REGISTERS if _in_cluster(name, params) else ())
    return registers + (processor_registers(params.processors, params.has("windows")) if name == "tmau" else ())


def regions_of(component):
    """The regions of ``s_axil`` of a top, by address, as a list of RegionEntry; in a cluster each core has them."""
    regions, params = [], component.params
    params = params.core if isinstance(params, ClusterParams) else params
    for name, region in component.regions.items():
        # The command processor shows parameters of the whole core.
        of_engine = isinstance(params, CoreParams) and name != "program"
        built = getattr(params, name, params) if of_engine else params
        resets = reset_values(name, built)
        read = tuple((register, resets[register.name]) for register in _registers(name, built))
        regions.append(RegionEntry(name, region.base, region.size, _REGISTERS[name][0], read))
    return regions


def maps_of(component):
    """Regions by name of their port: ``s_axil``, and in a cluster with a cache ``l2_axil``."""
    maps = {"s_axil": regions_of(component)}
    cache = getattr(component.params, "l2", None)
    if cache:
        shown = {"params0": {"bytes": cache.bytes}, "params1": {"ways": cache.ways, "misses": cache.misses}}
        read = tuple(
            (register, register.format.pack(**shown.get(register.name, {})) or register.reset)
            for register in L2_REGISTERS
        )
        size = 1 << component.l2_axil.signature.addr_width
        maps["l2_axil"] = [RegionEntry("l2", 0, size, "Registers of the second-level cache.", read)]
    return maps

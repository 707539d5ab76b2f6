"""A core as a peripheral of a LiteX system: AXI4 for memory, AXI4-Lite for registers, an interrupt, C headers."""

from pathlib import Path

from litex.gen import LiteXModule
from litex.soc.integration.soc import SoCRegion
from litex.soc.interconnect.axi import AXIInterface, AXILiteInterface
from litex.soc.interconnect.csr_eventmanager import EventManager, EventSourceLevel
from migen import ClockSignal, Instance, ResetSignal, Signal

from tilewright.errors import UsageError
from tilewright.hw.core.params import ENGINES
from tilewright.tools.package.choice import Choice
from tilewright.tools.package.header import header_text
from tilewright.tools.package.library import library_files
from tilewright.tools.package.ports import ports_of

__all__ = ["TilewrightCore", "add_core"]

_CHANNELS = ("aw", "w", "b", "ar", "r")


class TilewrightCore(LiteXModule):
    """A core, with its bus ports as LiteX has them.

    Parameters
    ----------
    preset : str
    engines : sequence of str
    settings : sequence of Setting
        Parameters that differ from the preset.
    prefix : str
        Beginning of the module's name, and of names in its C header.

    Attributes
    ----------
    memory : AXIInterface
        The core is the manager.
    registers : AXILiteInterface
        The core is the subordinate.
    register_bytes : int
        Size of its address map.
    ev : EventManager
        The interrupt.
    """

    def __init__(self, preset="default", engines=ENGINES, settings=(), prefix="tw"):
        self.choice = Choice("core", preset, engines=tuple(engines), settings=tuple(settings), prefix=prefix)
        component = self.choice.component()
        if not component.params.tmau:
            raise UsageError("a core without an access unit has no port for memory")
        tmau, lite = component.params.tmau, component.s_axil.signature.addr_width
        self.memory = AXIInterface(data_width=tmau.bus_width, address_width=32, id_width=2)
        self.registers = AXILiteInterface(data_width=32, address_width=32)
        self.register_bytes = 1 << lite
        self.ev = EventManager()
        self.ev.core = EventSourceLevel(description="The interrupt of the core: its irq_status registers say why.")
        self.ev.finalize()
        self.specials += Instance(self.choice.name, **self._ports(component))

    def _ports(self, component):
        """The connections of an instance: buses, interrupt, clock; all other inputs are 0."""
        signals = {"clk": ClockSignal(), "rst": ResetSignal(), "irq": self.ev.core.trigger}
        for prefix, bus in (("m_axi", self.memory), ("s_axil", self.registers)):
            for channel in _CHANNELS:
                for name, signal in _signals(getattr(bus, channel)):
                    signals[f"{prefix}_{channel}{name}"] = signal
        ports = {}
        for port in ports_of(component):
            signal = signals.get(port.name)
            if port.is_input:
                driver = Signal(port.width) if signal is None else signal
                # Clock and reset have no slices.
                ports[f"i_{port.name}"] = driver if port.name in ("clk", "rst") else driver[: port.width]
            else:
                ports[f"o_{port.name}"] = output = Signal(port.width)
                if signal is not None:
                    # A bus of 32 bits drops what the core has above them.
                    self.comb += signal.eq(output)
        return ports

    def write(self, folder):
        """Writes the Verilog, the C header and the C library to ``folder``; the path of the Verilog."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.choice.name}.v"
        path.write_text(self.choice.verilog(), encoding="utf-8")
        for name, text in ({f"{self.choice.name}.h": header_text(self.choice)} | library_files()).items():
            (folder / name).write_text(text, encoding="utf-8")
        return path


def _signals(endpoint):
    """Signals of a channel by the end of their AXI names."""
    names = {"valid": endpoint.valid, "ready": endpoint.ready}
    names |= {name: getattr(endpoint, name) for name, *_ in endpoint.description.payload_layout}
    names |= {name: getattr(endpoint, name) for name, *_ in endpoint.description.param_layout}
    if hasattr(endpoint, "last"):
        names["last"] = endpoint.last
    return names.items()


def add_core(soc, folder, *, name="tilewright", origin=None, **options):
    """Adds a core to a ``SoCCore``: master and slave of its bus, interrupt, and source.

    Parameters
    ----------
    soc : SoCCore
    folder : path
        Where Verilog, header and library are written.
    name : str
        Of the peripheral, its region and its interrupt.
    origin : int or None
        Address of the registers; None: LiteX chooses it.
    **options
        Of :class:`TilewrightCore`.

    Returns
    -------
    TilewrightCore
    """
    core = TilewrightCore(**options)
    setattr(soc, name, core)
    soc.platform.add_source(str(core.write(folder)))
    soc.bus.add_master(name, master=core.memory)
    soc.bus.add_slave(
        name, slave=core.registers, region=SoCRegion(origin=origin, size=core.register_bytes, cached=False)
    )
    if soc.irq.enabled:
        soc.irq.add(name, use_loc_if_exists=True)
    return core

"""Parameters of a core and of its command processor, and the named presets."""

from dataclasses import dataclass, replace

from ..conv.params import CONV_UNIT_PRESETS, ConvUnitParams
from ..lib.parameters import check_sizes
from ..pe.params import PE_PRESETS, PeParams
from ..tmau.params import TMAU_PRESETS, TmauParams

__all__ = ["CORE_PRESETS", "ENGINES", "CoreParams", "ProgramParams", "core_params"]

#: What a core may have, in the order of its address map: three engines and the command processor.
ENGINES = ("tmau", "pe", "conv", "program")

_NAMES = ("words", "instruction_lines")


@dataclass(frozen=True)
class ProgramParams:
    """Sizes of a command processor.

    Attributes
    ----------
    words : int
        Words of the program that are fetched ahead: a power of two, 2 to 32.
    instruction_lines : int
        Lines of four instructions that are fetched ahead: a power of two, 2 to 32.
    """

    words: int = 16
    instruction_lines: int = 16

    def __post_init__(self):
        check_sizes(self, dict.fromkeys(_NAMES, (2, 32)), set(_NAMES))

    def bursts(self, bus_bytes, max_burst):
        """The most read bursts in flight, of up to ``max_burst`` bus words: lines have 64 bytes."""
        return (self.words + self.instruction_lines) * max(64 // bus_bytes // max_burst, 1)

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class CoreParams:
    """The engines of a core, at least one, all with the same shared memory, and its command processor.

    Attributes
    ----------
    tmau : TmauParams or None
        Several ``processors`` share the access unit of a core only if it has nothing else.
    pe : PeParams or None
    conv : ConvUnitParams or None
    program : ProgramParams or None
        Needs ``tmau``, through which it reads programs, and ``pe``.
    """

    tmau: TmauParams | None = None
    pe: PeParams | None = None
    conv: ConvUnitParams | None = None
    program: ProgramParams | None = None

    def __post_init__(self):
        for name, kind in zip(ENGINES, (TmauParams, PeParams, ConvUnitParams, ProgramParams), strict=True):
            if not isinstance(getattr(self, name), kind | None):
                raise TypeError(f"{name} must be {kind.__name__} or None, not {getattr(self, name)!r}")
        if not (self.tmau or self.pe or self.conv):
            raise ValueError("a core must have an engine: tmau, pe or conv")
        if self.program and not (self.tmau and self.pe):
            raise ValueError("a command processor needs both tmau and pe")
        memories = {name: getattr(self, name).smem for name in self.engines if name != "program"}
        for name, smem in memories.items():
            if smem != self.smem:
                other = next(each for each in memories if memories[each] == self.smem)
                raise ValueError(f"{name} and {other} must have one shared memory, not {smem!r} and {self.smem!r}")
        if self.tmau and self.tmau.processors != 1 and self.engines != ("tmau",):
            raise ValueError(f"processors of a core must be 1, not {self.tmau.processors}: its engines use tags too")

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    def with_conv(self, conv):
        """The same parameters with a convolution engine, ConvUnitParams, whose shared memory all engines get."""
        others = {name: getattr(self, name).replace(smem=conv.smem) for name in ("tmau", "pe") if getattr(self, name)}
        return self.replace(conv=conv, **others)

    @property
    def engines(self):
        """What the core has, of :data:`ENGINES`."""
        return tuple(name for name in ENGINES if getattr(self, name))

    @property
    def smem(self):
        """The shared memory of all engines, SmemParams."""
        return (self.conv or self.pe or self.tmau).smem

    @property
    def cores(self):
        """Cores of the cluster that it is in; 1 without one."""
        return self.tmau.cores if self.tmau else 1


def core_params(preset, engines=("tmau", "pe")):
    """The CoreParams of a preset with these ``engines`` of :data:`ENGINES`; the last one decides the shared memory.

    Parameters
    ----------
    preset : str
    engines : sequence of str
    """
    presets = {"tmau": TMAU_PRESETS, "pe": PE_PRESETS, "conv": CONV_UNIT_PRESETS}
    parts = {name: presets[name][preset] for name in presets if name in engines}
    parts = {name: part.replace(smem=list(parts.values())[-1].smem) for name, part in parts.items()}
    return CoreParams(**parts, program=ProgramParams() if "program" in engines else None)


#: An access unit and a processing engine, by the name of their presets.
CORE_PRESETS = {name: core_params(name) for name in PE_PRESETS}

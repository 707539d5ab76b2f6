"""Parameters of the command processor."""

from dataclasses import dataclass, field, replace

from ..conv.params import ConvUnitParams
from ..lib.parameters import check_sizes
from ..pe.params import PE_PRESETS, PeParams
from ..tmau.params import TMAU_PRESETS, TmauParams

__all__ = ["CORE_PRESETS", "CoreParams", "ProgramParams"]

_NAMES = ("words", "instruction_lines")


@dataclass(frozen=True)
class ProgramParams:
    """Sizes of a command processor.

    Attributes
    ----------
    words : int
        Words that are fetched ahead, 2 to 32, a power of two.
    instruction_lines : int
        Lines of four instructions that are fetched ahead, 2 to 32, a power of two.
    """

    words: int = 16
    instruction_lines: int = 4

    def __post_init__(self):
        check_sizes(self, dict.fromkeys(_NAMES, (2, 32)), set(_NAMES))

    def bursts(self, bus_bytes, max_burst):
        """Bursts of reads in flight at most, of up to ``max_burst`` bus words: lines are 64 bytes."""
        return (self.words + self.instruction_lines) * max(64 // bus_bytes // max_burst, 1)

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)


@dataclass(frozen=True)
class CoreParams:
    """Sizes of one core.

    Attributes
    ----------
    tmau : TmauParams
    pe : PeParams
        Of the same shared memory.
    conv : ConvUnitParams or None
        Of the same shared memory (:meth:`with_conv`). None: there is no convolution engine.
    program : ProgramParams or None
        None: there is no command processor.
    """

    tmau: TmauParams = field(default_factory=TmauParams)
    pe: PeParams = field(default_factory=PeParams)
    conv: ConvUnitParams | None = None
    program: ProgramParams | None = None

    def __post_init__(self):
        for name, kind in (("tmau", TmauParams), ("pe", PeParams)):
            if not isinstance(getattr(self, name), kind):
                raise TypeError(f"{name} must be {kind.__name__}, not {getattr(self, name)!r}")
        if not isinstance(self.conv, ConvUnitParams | None):
            raise TypeError(f"conv must be ConvUnitParams or None, not {self.conv!r}")
        if not isinstance(self.program, ProgramParams | None):
            raise TypeError(f"program must be ProgramParams or None, not {self.program!r}")
        if self.conv and self.conv.smem != self.pe.smem:
            raise ValueError(f"conv and pe must have one shared memory, not {self.conv.smem!r} and {self.pe.smem!r}")
        if self.tmau.processors != 1:
            raise ValueError(f"processors of a core must be 1, not {self.tmau.processors}: its engines use tags too")
        if self.tmau.smem != self.pe.smem:
            raise ValueError(f"tmau and pe must have one shared memory, not {self.tmau.smem!r} and {self.pe.smem!r}")

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    def with_conv(self, conv):
        """The same parameters with a convolution engine, a ``ConvUnitParams``, whose shared memory all engines have."""
        smem = conv.smem
        return self.replace(conv=conv, tmau=self.tmau.replace(smem=smem), pe=self.pe.replace(smem=smem))

    @property
    def smem(self):
        """The shared memory of all engines, SmemParams."""
        return self.pe.smem


#: The presets of both engines by their names, with the shared memory of the processing engine.
CORE_PRESETS = {name: CoreParams(TMAU_PRESETS[name].replace(smem=pe.smem), pe) for name, pe in PE_PRESETS.items()}

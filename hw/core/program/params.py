"""Parameters of the command processor."""

from dataclasses import dataclass, replace

from ...lib.sizes import check_sizes

__all__ = ["ProgramParams"]

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

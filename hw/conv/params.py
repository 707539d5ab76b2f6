"""Parameters of a convolution engine with its shared memory."""

from dataclasses import dataclass, field, replace

from tilewright.spec import BANKS
from tilewright.spec.conv import CHANNELS_AT_ONCE, CONV_PRESETS, FOLDS, ConvParams

from ..smem.params import SmemParams

__all__ = ["CONV_UNIT_PRESETS", "FOLDS", "ConvUnitParams"]

#: With one byte for each of their four channels, a write to any address can hold the results of all of them.
_MOST_SLAVES = 16
_FLOATS = {"f16", "bf16"}


@dataclass(frozen=True)
class ConvUnitParams:
    """Sizes of one convolution engine in hardware, and of the shared memory that it works in.

    Attributes
    ----------
    conv : ConvParams
        In lane-private mode the 16 accumulators of each unit of a slave must hold a row, so that ``row_bytes`` is at
        most 16 · ``units``; and a row gives at least one transfer of results. A quarter of a slave's memory, which
        holds one channel, must hold the bytes of one gather request.
    smem : SmemParams
        Eight chunks are read in a cycle: the engine expects the eight chunks of a read in one answer.
    """

    conv: ConvParams = field(default_factory=ConvParams)
    smem: SmemParams = field(default_factory=SmemParams)

    def __post_init__(self):
        conv = self.conv
        if conv.row_bytes > FOLDS * conv.units:
            raise ValueError(f"row_bytes must be at most 16 * units ({FOLDS * conv.units}), not {conv.row_bytes}")
        if conv.results > conv.row_bytes:
            raise ValueError(f"results must be at most row_bytes ({conv.row_bytes}), not {conv.results}")
        if conv.results > conv.slaves * CHANNELS_AT_ONCE:
            raise ValueError(
                f"results must be at most {CHANNELS_AT_ONCE} * slaves ({CHANNELS_AT_ONCE * conv.slaves}), "
                f"not {conv.results}"
            )
        if conv.feature_rows < 4 * conv.units or conv.feature_rows & conv.feature_rows - 1:
            raise ValueError(
                f"feature_rows must be a power of two from 4 * units ({4 * conv.units}) on, not {conv.feature_rows}"
            )
        if self.smem.chunks_a_cycle != BANKS:
            raise ValueError(f"smem.chunks_a_cycle must be {BANKS}, not {self.smem.chunks_a_cycle}")
        if conv.slaves > _MOST_SLAVES:
            raise ValueError(f"slaves must be at most {_MOST_SLAVES} in hardware, not {conv.slaves}")
        minimum = CHANNELS_AT_ONCE * 16 * self.lanes
        if conv.weight_bytes < minimum:
            raise ValueError(f"weight_bytes must be at least {minimum} with these rows, not {conv.weight_bytes}")

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    def without_floats(self):
        """The same without floats; itself if it has no other types."""
        integers = tuple(family for family in self.conv.types if family not in _FLOATS)
        return self.replace(conv=self.conv.replace(types=integers)) if integers else self

    @property
    def floats(self):
        """Whether floats are multiplied."""
        return not _FLOATS.isdisjoint(self.conv.types)

    @property
    def functions(self):
        """Whether results can select bytes of a LUT; those of floats cannot."""
        return self.conv.functions

    @property
    def wide(self):
        """Whether there are elements of 16 bits. The maximum of floats is computed on integers of 16 bits."""
        return self.conv.types != ("i8",)

    @property
    def lanes(self):
        """Pieces of up to 16 bytes in a gather request."""
        return self.conv.lanes

    @property
    def row_slots(self):
        """Slots of 16 bytes in a row."""
        return self.conv.row_bytes // 16

    @property
    def pairs(self):
        """Whether two blocks of a place can be gathered at once, with half of the pieces for each."""
        return self.lanes >= 2 * self.row_slots

    @property
    def reuses_reads(self):
        """Whether chunks that were read serve other blocks of the same pixels: a read brings contiguous chunks."""
        return self.lanes == BANKS

    @property
    def parts(self):
        """The most requests of a set of rows."""
        return self.places // self.lanes

    @property
    def sets(self):
        """Sets of rows, one row for each unit, in the first buffer."""
        return self.conv.feature_rows // self.conv.units

    @property
    def sums(self):
        """Accumulators of a slave for each of its channels."""
        return self.conv.units * FOLDS

    @property
    def single_reads(self):
        """Whether at most one accumulator of a slave is read in a cycle: then each has a copy in block RAM."""
        return self.conv.results <= self.conv.slaves

    @property
    def accumulator_banks(self):
        """Tiles that have accumulators: one fills while others go through the adders, or are read.

        A tile occupies a bank for some 16 cycles longer than its steps. Where results of two points are written at
        once, a tile of two channels a slave takes two cycles.
        """
        return 8 if self.conv.writes_pairs else 4

    @property
    def accumulators(self):
        """Accumulators of a slave for each point: one for each channel in each bank."""
        return CHANNELS_AT_ONCE * self.accumulator_banks

    @property
    def places(self):
        """The most points of a tile, in any mode."""
        return max(self.conv.units, self.conv.slaves) * FOLDS

    @property
    def slave_parts(self):
        """Parts of a slave's row that are read from words of their own: two halves, or one whole row."""
        return 2 if self.conv.rotation else 1

    @property
    def row_parts(self):
        """Parts of all slaves' rows that are read from words of their own; one without rotation."""
        return self.slave_parts * self.conv.slaves if self.conv.rotation else 1

    @property
    def halves(self):
        """Groups of a slave's units that compute different lines at once in lane-private mode."""
        return 2 if self.conv.line_pairs else 1

    @property
    def words(self):
        """Words, of a row each, in a slave's memory."""
        return self.conv.weight_bytes // self.conv.row_bytes

    @property
    def quarter_bytes(self):
        """Bytes of a slave's memory for each of its channels."""
        return self.conv.weight_bytes // CHANNELS_AT_ONCE

    @property
    def place_pairs(self):
        """Whether the places of fetched rows come two at once: a lane needs only the even or only the odd ones."""
        return self.conv.writes_pairs and self.lanes >= 4 * self.row_slots

    @property
    def position_width(self):
        """Bits, signed, of a position along a row of X in bytes or columns; it may lie outside the row."""
        return self.smem.addr_width + 11 + self.place_pairs

    @property
    def pixel_width(self):
        """Bits of the number of bytes of a (merged) pixel."""
        return self.smem.addr_width + 9


#: The presets of the engine by name, with the shared memory of the other engines' presets.
CONV_UNIT_PRESETS = {
    "unit": ConvUnitParams(CONV_PRESETS["unit"], SmemParams(16 * 1024)),
    "ecp5": ConvUnitParams(CONV_PRESETS["ecp5"], SmemParams(32 * 1024)),
    "default": ConvUnitParams(CONV_PRESETS["default"], SmemParams(128 * 1024)),
    "lean": ConvUnitParams(CONV_PRESETS["ecp5"], SmemParams(128 * 1024)),
    "full": ConvUnitParams(CONV_PRESETS["full"], SmemParams(256 * 1024)),
}

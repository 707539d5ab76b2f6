"""Convolution units to test: presets, and others whose shape is unlike theirs."""

from tilewright.hw.conv.params import ConvUnitParams
from tilewright.hw.smem.params import SmemParams
from tilewright.spec.conv import CONV_PRESETS, ConvParams

__all__ = ["SIZES", "conv_unit", "conv_units"]

#: By name: places that come by pairs; elements of 16 bits in long rows; sets of several requests; rows of one slave
#: that are less than a request; blocks that never come by pairs; as many results as a row has bytes.
SIZES = CONV_PRESETS | {
    "pairs": ConvParams(16, 2, 2, feature_rows=8, weight_bytes=1024, results=4),
    "wide": ConvParams(64, 2, 4, feature_rows=16, results=8, types=("i8", "i16")),
    "one-slave": ConvParams(16, 1, 8, results=4, types=("i8",)),
    "one-unit": ConvParams(16, 2, 1, feature_rows=4, results=4, types=("i8", "i16")),
    "as-many": ConvParams(64, 16, 4, weight_bytes=64 * 1024, results=64),
}


def conv_unit(name="unit", smem=4096, **changes):
    """Parameters of a unit beside a shared memory of so many bytes."""
    return ConvUnitParams(SIZES[name].replace(**changes), SmemParams(smem))


def conv_units(*names, smem=4096, **changes):
    """Such parameters by name."""
    return {name: conv_unit(name, smem, **changes) for name in names}

"""Jobs of the convolution engine: words of 1024 bits (docs/conv.md, "Jobs")."""

from enum import IntEnum

from ..fields import Field, Format
from ..pe.instruction import MmType

__all__ = ["CHANNEL_BYTES", "JOB", "JOB_VERSION", "ConvOperation", "ConvOutput"]

#: Number of this layout, in the field ``version``.
JOB_VERSION = 1
#: Bytes of a channel in the table: bias and scale.
CHANNEL_BYTES = 8


class ConvOperation(IntEnum):
    """What becomes of a window."""

    CONVOLUTION = 0  #: sums over all channels, for each output channel
    DEPTHWISE = 1  #: sums channel by channel
    SUM_POOL = 2  #: the same with weights of 1
    MAX_POOL = 3  #: the largest element, channel by channel

    @property
    def lanes(self):
        """Whether it is channel by channel: lane-private mode."""
        return self != ConvOperation.CONVOLUTION


class ConvOutput(IntEnum):
    """What a result is (docs/conv.md, "Types")."""

    RAW = 0  #: the accumulator, 32 bits
    U8 = 1  #: requantised to unsigned bytes
    S8 = 2  #: requantised to signed bytes
    F16 = 3  #: the accumulator rounded to fp16
    BF16 = 4  #: the accumulator rounded to bf16
    ELEMENT = 5  #: an element of X

    @property
    def quantised(self):
        """Whether accumulators of integers are requantised."""
        return self in (ConvOutput.U8, ConvOutput.S8)

    @property
    def half(self):
        """Whether fp32 accumulators are rounded to 16 bits."""
        return self in (ConvOutput.F16, ConvOutput.BF16)


def _pitches(name, lsb, what):
    return Field(name, lsb, 32, f"Bytes from one pixel, row, image of {what} to the next.", count=3, pitch=32)


JOB = Format("convolution", 1024, "A job of the convolution engine. Fields that a job does not use are ignored.", (
    Field("version", 0, 8, "Layout of this word: 1."),
    Field("operation", 8, 4, "What becomes of a window.", enum=ConvOperation),
    Field("type", 12, 4, "Elements of X and of K.", enum=MmType),
    Field("output", 16, 4, "What a result is.", enum=ConvOutput),
    Field("bias", 20, 1, "1: accumulators begin with the biases in the table."),
    Field("add", 21, 1, "1: the second operand is added to requantised results."),
    Field("signal", 22, 1, "1: the job arrives at ``barrier`` when its results are written."),
    Field("raster", 23, 1, "1: point tiles go on across the ends of lines and images."),
    Field("granularity", 24, 4, "Log2 of the bytes of a block of channels: M / 16 to M, and at least an element."),
    Field("merge", 32, 8, "Kernel columns that are taken as one pixel, 1 to 256.", bias=1),
    Field("tag", 48, 16, "Chosen by the issuer; returned with the completion and in error records."),
    Field("barrier", 64, 32, "Byte address of the barrier in shared memory: a multiple of 8."),
    Field("x_zero", 96, 16, "Zero point of X, as an element of it."),
    Field("k_zero", 112, 16, "Zero point of K, as an element of it."),
    Field("x", 128, 32, "Byte address of X: a multiple of the element."),
    Field("k", 160, 32, "Byte address of K: a multiple of the element."),
    Field("table", 192, 32, "Byte address of bias and scale of each channel, 8 bytes: a multiple of 8."),
    Field("y", 224, 32, "Byte address of the results: a multiple of a result."),
    Field("addend", 256, 32, "Byte address of the second operand of the addition: a multiple of a result."),
    Field("minimum", 288, 8, "Least requantised result, as it lies in memory."),
    Field("maximum", 296, 8, "Largest requantised result."),
    Field("add_minimum", 304, 8, "Least result of the addition."),
    Field("add_maximum", 312, 8, "Largest result of the addition."),
    Field("ratio", 320, 32, "binary32 factors of the requantised result and of the second operand.",
          count=2, pitch=32),
    Field("offset", 384, 32, "binary32 number that the addition begins with."),
    Field("y_zero", 416, 8, "Zero point of requantised results, as it lies in memory."),
    Field("channels", 448, 16, "C: channels of X, 1 to 65536.", bias=1),
    Field("width", 464, 16, "W: columns of X, 1 to 65536.", bias=1),
    Field("height", 480, 16, "H: rows of X, 1 to 65536.", bias=1),
    Field("batch", 496, 16, "N: images, 1 to 65536.", bias=1),
    Field("out_channels", 512, 16, "Co: channels of Y, 1 to 65536; C where channels are not summed.", bias=1),
    Field("out_width", 528, 16, "Wo: columns of Y, 1 to 65536.", bias=1),
    Field("out_height", 544, 16, "Ho: rows of Y, 1 to 65536.", bias=1),
    Field("kernel", 576, 8, "Kw, Kh: columns and rows of the kernel, 1 to 256.", count=2, pitch=8, bias=1),
    Field("stride", 592, 8, "sw, sh: columns and rows of X from one point to the next, 1 to 256.",
          count=2, pitch=8, bias=1),
    Field("dilation", 608, 8, "dw, dh: columns and rows of X from one of the kernel to the next, 1 to 256.",
          count=2, pitch=8, bias=1),
    Field("padding", 624, 8, "Columns of padding on the left, rows of it on the top.", count=2, pitch=8),
    _pitches("x_pitch", 640, "X"),
    Field("k_pitch", 736, 32, "Bytes from one output channel of K to the next; in DEPTHWISE from one position."),
    _pitches("y_pitch", 768, "Y"),
    _pitches("addend_pitch", 864, "the second operand"),
    Field("early", 960, 1, "1, with ``signal``: it arrives at the barrier behind ``barrier`` when K has been read."),
))  # fmt: skip

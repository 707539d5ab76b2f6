"""Errors, jobs, parameters and registers of the convolution engine (docs/conv.md)."""

from dataclasses import dataclass, replace
from enum import IntEnum

from .fields import Field, Format, one_line
from .pe import MM_FAMILIES, MmType, families
from .registers import CLEAR_COUNTERS, CLEAR_ERROR, Access, Register, counter, identification, interrupts, parameters

__all__ = [
    "CHANNELS_AT_ONCE", "CHANNEL_BYTES", "CONV_ID_VALUE", "CONV_PRESETS", "CONV_REGISTERS", "FOLDS",
    "FUNCTION_ALIGNMENT", "FUNCTION_BYTES", "JOB", "JOB_VERSION", "KERNEL_ROWS", "ConvError", "ConvOperation",
    "ConvOutput", "ConvParams", "built_with",
]  # fmt: skip


class ConvError(IntEnum):
    """Code of an error record (docs/conv.md, "Checks"): the lowest of all broken rules, but ``STOPPED`` before all."""

    NONE = 0
    VERSION = 1  #: the job has another version
    RESERVED = 2  #: a reserved bit is set
    OPERATION = 3  #: the operation is unknown
    TYPE = 4  #: the type is unknown
    UNSUPPORTED = 5  #: elements of a type, or a feature, that the hardware was built without
    OUTPUT = 6  #: the output is unknown, or does not fit operation, type and function
    ZERO = 7  #: a zero point is not a value of an element
    CLAMP = 8  #: a minimum is above its maximum
    FACTOR = 9  #: a factor of the residual addition is infinite or NaN
    MERGE = 10  #: merged columns are not contiguous in memory, or the operation does not sum channels
    GRANULARITY = 11  #: blocks are longer than a row, shorter than a sixteenth of one, or shorter than an element
    CHANNELS = 12  #: an operation that does not sum channels has another number of output channels
    ALIGNMENT = 13  #: an address or a pitch is not a multiple of its element
    PITCH = 14  #: results overlap
    RANGE = 15  #: a tensor or the barrier ends outside shared memory
    OVERLAP = 16  #: results overlap an operand
    BARRIER = 17  #: the barrier refused the arrival; the results are written
    STOPPED = 18  #: the core of a cluster was stopped before the job began


#: Number of this layout, in the field ``version``.
JOB_VERSION = 1
#: Bytes of a channel in the table of biases and scales.
CHANNEL_BYTES = 8
#: Bytes of the LUT of a function, and what its address is a multiple of.
FUNCTION_BYTES, FUNCTION_ALIGNMENT = 256, 16


class ConvOperation(IntEnum):
    """Operation on a window."""

    CONVOLUTION = 0  #: sums over all channels, for each output channel
    DEPTHWISE = 1  #: sums channel by channel
    SUM_POOL = 2  #: DEPTHWISE with weights of 1
    MAX_POOL = 3  #: the largest element, channel by channel

    @property
    def lanes(self):
        """Whether channels are not summed: lane-private mode."""
        return self != ConvOperation.CONVOLUTION


class ConvOutput(IntEnum):
    """Type of a result (docs/conv.md, "Types")."""

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


def _pitches(name, lsb, tensor):
    return Field(name, lsb, 32, f"Bytes from one pixel, row, image of {tensor} to the next.", count=3, pitch=32)


JOB = Format("convolution", 1024, "A job of the convolution engine. Fields that a job does not use are ignored.", (
    Field("version", 0, 8, "Layout of this word: 1."),
    Field("operation", 8, 4, "Operation on a window.", enum=ConvOperation),
    Field("type", 12, 4, "Elements of X and of K.", enum=MmType),
    Field("output", 16, 4, "Type of a result.", enum=ConvOutput),
    Field("bias", 20, 1, "1: accumulators begin with the biases in the table."),
    Field("add", 21, 1, "1: the second operand is added to requantised results."),
    Field("signal", 22, 1, "1: the job arrives at ``barrier`` when its results are written."),
    Field("raster", 23, 1, "1: point tiles continue across the ends of lines and images."),
    Field("granularity", 24, 4, "Log2 of the bytes of a block of channels: M / 16 to M, and at least an element."),
    Field("merge", 32, 8, "Kernel columns that are merged into one pixel, 1 to 256.", bias=1),
    Field("tag", 48, 16, "Chosen by the issuer; returned with the completion and in error records."),
    Field("barrier", 64, 32, "Byte address of the barrier in shared memory: a multiple of 8."),
    Field("x_zero", 96, 16, "Zero point of X, as an element of it."),
    Field("k_zero", 112, 16, "Zero point of K, as an element of it."),
    Field("x", 128, 32, "Byte address of X: a multiple of the element."),
    Field("k", 160, 32, "Byte address of K: a multiple of the element."),
    Field("table", 192, 32, "Byte address of bias and scale of each channel, 8 bytes: a multiple of 8."),
    Field("y", 224, 32, "Byte address of the results: a multiple of a result."),
    Field("addend", 256, 32, "Byte address of the second operand of the addition: a multiple of a result."),
    Field("minimum", 288, 8, "Least requantised result, as stored."),
    Field("maximum", 296, 8, "Largest requantised result."),
    Field("add_minimum", 304, 8, "Least result of the addition."),
    Field("add_maximum", 312, 8, "Largest result of the addition."),
    Field("ratio", 320, 32, "binary32 factors of the requantised result and of the second operand.",
          count=2, pitch=32),
    Field("offset", 384, 32, "binary32 number that is added too."),
    Field("y_zero", 416, 8, "Zero point of requantised results, as stored."),
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
    Field("early", 960, 1, "1, with ``signal``: it arrives at the barrier at ``barrier`` + 8 when K has been read."),
    Field("function", 961, 1, "1: each 8-bit result is replaced by the byte of the LUT that it selects."),
    Field("zero_first", 962, 1, "1: the zero point is added before a requantised result is rounded to an integer."),
    Field("function_table", 992, 32, "Byte address of the LUT, 256 bytes: a multiple of 16."),
))  # fmt: skip


#: T: channels that a slave computes at once, each with a result buffer.
CHANNELS_AT_ONCE = 4
#: Rows of the kernel that a slave keeps in lane-private mode: two kernels of 5 × 5, or one of 8 × 8.
KERNEL_ROWS = 64

#: Chunks of shared memory read in a cycle.
_CHUNKS = 8
#: Most points that share a row, and accumulators of a unit for each channel.
FOLDS = 16

_RANGES = {
    "row_bytes": (16, 64),
    "slaves": (1, 64),
    "units": (1, 8),
    "feature_rows": (2, 128),
    "weight_rows": (2, 64),
    "weight_bytes": (256, 1 << 20),
    "results": (1, 128),
    "queue_depth": (2, 64),
}
_POWERS = {"row_bytes", "slaves", "units", "weight_bytes", "results", "queue_depth"}


@dataclass(frozen=True)
class ConvParams:
    """Sizes of one convolution engine.

    Attributes
    ----------
    row_bytes : int
        M: bytes that a compute unit multiplies in a cycle, 16 to 64, a power of two.
    slaves : int
        NS: slaves, each with its own output channels, 1 to 64, a power of two.
    units : int
        NCU: compute units of a slave, with neighbouring output points, 1 to 8, a power of two.
    feature_rows : int
        L1: rows of the first buffer, whose contents are broadcast, ``units`` to 128.
    weight_rows : int
        L2: rows of the second buffer, one in each slave, 2 to 64.
    weight_bytes : int
        Bytes of a slave's weight memory, 256 to 1 MiB, a power of two.
    results : int
        R: results that post-processing finishes in a cycle, 1 to 128, a power of two.
    queue_depth : int
        Jobs in the queue, 2 to 64, a power of two.
    rotation : bool
        Whether slaves can take rows from each other's memories in lane-private mode: a fetched row then serves several
        columns of the kernel, and groups continue across the ends of lines.
    types : tuple of str
        Types of factors, one or more of ``i8``, ``i16`` (integers of 8 and of 16 bits), ``f16`` and ``bf16``.
    function_table : bool
        Whether a job can replace its results by bytes of a LUT.
    zero_first : bool
        Whether a job can add the zero point before results are rounded to integers.
    """

    row_bytes: int = 32
    slaves: int = 8
    units: int = 4
    feature_rows: int = 128
    weight_rows: int = 9
    weight_bytes: int = 32 * 1024
    results: int = 32
    queue_depth: int = 4
    rotation: bool = True
    types: tuple[str, ...] = ("i8", "i16")
    function_table: bool = True
    zero_first: bool = True

    def __post_init__(self):
        for name, (low, high) in _RANGES.items():
            value = getattr(self, name)
            if not isinstance(value, int) or isinstance(value, bool):
                raise TypeError(f"{name} must be an int, not {one_line(value)}")
            if not low <= value <= high:
                raise ValueError(f"{name} must be {low} to {high}, not {value!r}")
            if name in _POWERS and value & value - 1:
                raise ValueError(f"{name} must be a power of two, not {value!r}")
        for name in ("rotation", "function_table", "zero_first"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be a bool, not {one_line(getattr(self, name))}")
        if self.feature_rows < self.units:
            raise ValueError(f"feature_rows must be units ({self.units}) or more, not {self.feature_rows!r}")
        object.__setattr__(self, "types", families(self.types))

    def replace(self, **changes):
        """The same parameters with some changed."""
        return replace(self, **changes)

    @property
    def lanes(self):
        """Pieces of up to 16 bytes fetched in a cycle: 8, or as many as all units consume in a cycle."""
        return min(_CHUNKS, self.units * self.row_bytes // 16)

    @property
    def write_bytes(self):
        """W: bytes of results written in a cycle."""
        return max(16, CHANNELS_AT_ONCE * self.slaves)

    @property
    def writes_pairs(self):
        """Whether ``write_bytes`` / 2 of each of two points may be written in a cycle: where results come that fast."""
        return self.units > 1 and self.results > self.write_bytes // 2 >= 16

    @property
    def functions(self):
        """Whether some jobs can have a function: there are results of 8 bits."""
        return self.function_table and not {"i8", "i16"}.isdisjoint(self.types)

    @property
    def line_pairs(self):
        """Whether two output lines are computed at once in lane-private mode: if units have room for two rows."""
        return self.rotation and FOLDS * self.units >= 2 * self.row_bytes

    @property
    def peak(self):
        """MACs of 8 bits in a cycle."""
        return self.row_bytes * self.slaves * self.units


CONV_PRESETS = {
    "unit": ConvParams(16, 2, 2, feature_rows=8, weight_bytes=1024, results=1, queue_depth=2, types=("i8",)),
    "ecp5": ConvParams(16, 4, 2, feature_rows=32, weight_bytes=8 * 1024, results=2, rotation=False, types=("i8",)),
    "default": ConvParams(),
    "full": ConvParams(64, 16, 4, feature_rows=64, weight_bytes=64 * 1024, results=64, types=MM_FAMILIES),
}


CONV_REGISTERS = (
    *identification("TWCV", "convolution engine"),
    parameters(0,
        Field("row_bytes", 0, 8, "M: bytes that a compute unit multiplies in a cycle."),
        Field("slaves", 8, 8, "NS: slaves, each with its own output channels."),
        Field("units", 16, 8, "NCU: compute units of a slave."),
        Field("results", 24, 8, "R: results that are post-processed in a cycle."),
    ),
    parameters(1,
        Field("feature_rows", 0, 8, "L1: rows of the first buffer."),
        Field("weight_rows", 8, 8, "L2: rows of the second buffer."),
        Field("queue_depth", 16, 8, "Jobs that wait."),
        Field("types", 24, 4, "Elements that are multiplied, a bit each: 8-bit integers, 16-bit integers, fp16, bf16."),
        Field("rotation", 28, 1, "Slaves can take rows from each other's memories."),
        Field("function_table", 29, 1, "Jobs can have a LUT of a function."),
        Field("zero_first", 30, 1, "Jobs can add the zero point before rounding."),
    ),
    parameters(2, Field("weight_bytes", 0, 32, "Bytes of a slave's weight memory.")),
    Register("control", 0x20, Access.WO, "Acts once.", (CLEAR_COUNTERS, CLEAR_ERROR)),
    Register("status", 0x24, Access.RO, "What the engine does now.", reset=1, fields=(
        Field("idle", 0, 1, "No job is in progress."),
        Field("error", 1, 1, "The error record holds an error."),
        Field("queue_level", 8, 8, "Jobs that wait in the queue."),
    )),
    *interrupts(
        Field("error", 0, 1, "A job ended with an error."),
        Field("done", 1, 1, "A job ended without one."),
    ),
    Register("error", 0x30, Access.RO, "Error record: of the first job with an error since clear_error.", (
        Field("code", 0, 8, "ConvError; 0 if there was none."),
        Field("field", 8, 8, "Number of the field in the job."),
        Field("tag", 16, 16, "Tag of the job."),
    )),
    Register("error_count", 0x34, Access.RO, "Jobs that ended with an error since clear_error.",
             (Field("count", 0, 32, "Stays at its largest value."),)),
    counter("jobs", 0x40, "Jobs accepted."),
    counter("busy_cycles", 0x44, "Cycles in which a job was in progress."),
    counter("steps", 0x48, "Cycles in which the array multiplied."),
    counter("feature_rows_fetched", 0x4C, "Feature rows read from shared memory."),
    counter("weight_rows_fetched", 0x50, "Weight rows read from shared memory."),
    counter("results_written", 0x54, "Results written."),
    counter("stall_features", 0x58, "Cycles in which the array waited for feature rows."),
    counter("stall_weights", 0x5C, "Cycles in which the array waited for weight rows."),
    counter("stall_results", 0x60, "Cycles in which the array waited for space in the result buffers."),
    counter("bank_conflicts", 0x64, "Cycles that reads of shared memory took longer because of bank conflicts."),
)  # fmt: skip
#: Constant in register ``id``.
CONV_ID_VALUE = CONV_REGISTERS[0].reset


def built_with(params):
    """Fields of the parameter registers for a :class:`ConvParams`, by register."""
    names = {"params0": ("row_bytes", "slaves", "units", "results"), "params2": ("weight_bytes",),
             "params1": ("feature_rows", "weight_rows", "queue_depth", "rotation", "function_table",
                         "zero_first")}  # fmt: skip
    shown = {register: {name: getattr(params, name) for name in fields} for register, fields in names.items()}
    shown["params1"]["types"] = sum(1 << bit for bit, family in enumerate(MM_FAMILIES) if family in params.types)
    return shown

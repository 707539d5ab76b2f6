"""What passes between blocks of the convolution engine."""

from amaranth import unsigned as signatures_unsigned
from amaranth.hdl import Const, signed, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from tilewright.spec import Format
from tilewright.spec.conv import CHANNELS_AT_ONCE, JOB, KERNEL_ROWS

from ..lib.component import Port
from ..lib.layouts import struct_layout

__all__ = ["AccumulatorReadLayout", "AccumulatorsLayout", "BiasesLayout", "ConvEndLayout", "ConvProcessorSignature",
           "FollowLayout", "GatherLayout", "GatheredLayout", "HalvesLayout", "LaneReadLayout", "LaneStepLayout",
           "PieceLayout", "PlanLayout", "PostJobLayout", "ResultsLayout", "SetLayout", "StepLayout",
           "WordWriteLayout", "float_flag"]  # fmt: skip

_FLOAT_FLAGS = ("floats", "brain", "ordered")
_POST = {"output", "add", "y_zero", "minimum", "maximum", "add_minimum", "add_maximum", "ratio", "offset"}


class AccumulatorsLayout(data.StructLayout):
    """Finished accumulators, and what belongs to each: of those that ``mask`` leaves out anything."""

    def __init__(self, params):
        super().__init__(
            {
                "acc": data.ArrayLayout(32, params.results),  # or an element of X, in the low bits
                "scale": data.ArrayLayout(32, params.results),  # binary32
                "addend": data.ArrayLayout(8, params.results),  # the element of the second operand
                "mask": unsigned(params.results),
            }
        )


class BiasesLayout(data.StructLayout):
    """Biases of neighbouring channels on their way to the array, for sums of floats; many are powers of two."""

    def __init__(self, params):
        conv = params.conv
        super().__init__(
            {
                "valid": unsigned(1),
                "half": unsigned(1),  # of passes 0, 2, … or 1, 3, …
                "channel": range(max(CHANNELS_AT_ONCE * conv.slaves, conv.row_bytes)),  # of the first one, in its pass
                "entries": data.ArrayLayout(32, min(params.lanes, conv.results)),  # if there are fewer, by turns
            }
        )


class ResultsLayout(data.StructLayout):
    """Results, each in the low bits of 32; higher ones are anything."""

    def __init__(self, params):
        super().__init__({"data": data.ArrayLayout(32, params.results), "mask": unsigned(params.results)})


class PostJobLayout(data.StructLayout):
    """The fields of a job that say what becomes of accumulators, by their names in the table of jobs."""

    def __init__(self):
        fields = tuple(field for field in JOB.fields if field.name in _POST)
        super().__init__(struct_layout(Format("post", JOB.bits, "Post-processing.", fields)).members)


class PieceLayout(data.StructLayout):
    """Up to 16 bytes of shared memory: bytes ``low`` to ``high`` - 1 from ``address`` on; none if not low < high."""

    def __init__(self, params):
        super().__init__({"address": unsigned(params.smem.addr_width), "low": unsigned(5), "high": unsigned(5)})


class GatherLayout(data.StructLayout):
    """Pieces to be read and packed."""

    def __init__(self, params, tag):
        # What is read for a request may be kept for those behind it of the same part.
        kept = {"part": range(params.parts), "keep": 1, "again": 1}  # again: one with ``keep`` has been asked for
        super().__init__(
            {
                **({"kept": data.StructLayout(kept)} if params.keeps_reads else {}),
                "pieces": data.ArrayLayout(PieceLayout(params), params.lanes),
                "size": unsigned(3),  # log2 of the bytes of each piece, 0 to 4
                "fill": unsigned(16),  # what bytes that are not read become, by turns
                "tag": tag,  # comes back with the answer
            }
        )


class GatheredLayout(data.StructLayout):
    """Packed pieces: piece n begins at byte n << size; what is behind the last one is anything."""

    def __init__(self, params, tag):
        super().__init__({"data": data.ArrayLayout(128, params.lanes), "tag": tag})


class FollowLayout(data.StructLayout):
    """A number that goes with the points: where it begins, and what is added from point to point, line, image."""

    def __init__(self, shape):
        super().__init__({"start": shape, "point": shape, "line": shape, "image": shape})


class WordWriteLayout(data.StructLayout):
    """A write of bytes of one word, a row, in the memory of a slave."""

    def __init__(self, params):
        super().__init__(
            {
                "word": range(params.words),
                "data": data.ArrayLayout(128, params.row_slots),
                "strobe": unsigned(params.conv.row_bytes),  # one bit a byte; 0: no write
            }
        )


class SetLayout(data.StructLayout):
    """What a set of rows in the first buffer is in the order of work."""

    def __init__(self):
        super().__init__(
            {
                "first": unsigned(1),  # the first one of a point tile: accumulators begin
                "last": unsigned(1),  # the last one of a point tile: results are complete
                "final": unsigned(1),  # of the last point tile of a pass
            }
        )


class LaneReadLayout(data.StructLayout):
    """What all slaves read: the word of each part of their rows, and by how many parts what is read is turned.

    Part p of what slaves get is part p + ``turn``, modulo their number, of what is read.
    """

    def __init__(self, params):
        parts = params.row_parts
        super().__init__({"words": data.ArrayLayout(range(params.words), parts), "turn": range(parts)})


class HalvesLayout(data.StructLayout):
    """What units do in a step, a bit for each half of them that has a line of its own in lane-private mode."""

    def __init__(self, params):
        super().__init__(
            {
                "first": unsigned(params.halves),  # accumulators begin
                "off": unsigned(params.halves),  # nothing is added
            }
        )


class LaneStepLayout(data.StructLayout):
    """A step of lane-private mode: which words of the slaves, and which rows of the kernel, one for each half."""

    def __init__(self, params):
        kernel = data.ArrayLayout(range(KERNEL_ROWS), params.halves)
        super().__init__(
            {"flags": SetLayout(), "halves": HalvesLayout(params), "read": LaneReadLayout(params), "kernel": kernel}
        )


class PlanLayout(data.StructLayout):
    """A checked job as the blocks need it: what a number is multiplied from is multiplied already.

    Addresses and distances are modulo the bytes of shared memory. C, e, g and pci as on the page; ce = C · e. A *pass*
    is a channel tile, or in lane-private mode a block.
    """

    def __init__(self, params):
        address, position = unsigned(params.smem.addr_width), signed(params.position_width)
        pixel = unsigned(params.pixel_width)
        flags = dict.fromkeys(_FLOAT_FLAGS, unsigned(1)) if params.floats else {}
        super().__init__(
            flags
            | {
                "wide": unsigned(1),  # elements of 16 bits: e is 2
                "x_signed": unsigned(1),
                "k_signed": unsigned(1),
                "lanes": unsigned(1),  # lane-private mode
                "maximum": unsigned(1),  # MAX_POOL
                "pool": unsigned(1),  # SUM_POOL or MAX_POOL: there is no K
                "raster": unsigned(1),  # tiles go on across the ends of lines; lane-private: only if ``keeps``
                "keeps": unsigned(
                    1
                ),  # lane-private: lines of X stay in slaves' memories for all output lines they serve
                "kernel_stays": unsigned(1),  # lane-private: the kernel has at most KERNEL_ROWS rows, or none
                "merged": unsigned(1),  # g > 1
                "bias": unsigned(1),  # there are biases, and MAX_POOL is not what the job does
                "table": unsigned(1),  # biases or scales are read
                "signal": unsigned(1),
                "early": unsigned(1),  # there is a second barrier, of when K has been read
                "granularity": unsigned(3),  # log2 of pci
                "result_log2": unsigned(2),  # log2 of the bytes of a result
                "x_fill": unsigned(16),  # what is no element of X, as it lies in memory, by turns: x_zero, or the least
                "k_fill": unsigned(16),  # what is no element of K: k_zero; in SUM_POOL 1
                "x_zero": signed(17),  # to be subtracted; 0 in MAX_POOL
                "k_zero": signed(17),  # 0 in pooling
                "x": FollowLayout(
                    address
                ),  # of the first byte of a point's window; ``line`` is a row of X if ``keeps``
                "x_step": address,  # from one step along kw to the next: g · dw · x_pitch[0]
                "x_row": address,  # from one kernel row to the next: dh · x_pitch[1]
                "position": FollowLayout(position),  # of that byte in its row, in bytes if merged, else in columns
                "position_step": position,  # g · ce if merged, else dw
                "position_end": position,  # W · ce if merged, else W
                "row": FollowLayout(signed(19)),  # of X, of kernel row 0
                "row_step": signed(19),  # dh
                "row_end": signed(19),  # H
                "k": address,
                "k_pitch": address,
                "k_step": address,  # g · ce
                "k_row": address,  # Kw · ce
                "pixel_bytes": pixel,  # c = g · ce
                "last_bytes": pixel,  # of a kernel row's last step: (Kw - (steps - 1) · g) · ce
                "last_block": pixel,  # ceil(c / pci) - 1
                "last_step": unsigned(8),  # ceil(Kw / g) - 1
                "last_kernel_row": unsigned(8),  # Kh - 1
                "line_stride": unsigned(8),  # sh - 1
                "pairs": unsigned(1),  # lane-private: two output lines at once; then a *line* means two in what follows
                "alone": unsigned(1),  # with ``pairs``: the last one has no second line
                "last_row_step": unsigned(9),  # lane-private: Kh - 1; lines of X that a pair needs, less one
                "stride": unsigned(9),  # lines of X from a line to the next, less one
                "last_plane": unsigned(8),  # lane-private: columns of the kernel that have words of their own, less one
                "last_group": unsigned(16),  # lane-private: words of a line at one of these columns, less one
                "last_place": unsigned(17),  # lane-private: points of a line that they have, less one
                "last_row": unsigned(24),  # of an image's lines that are fetched one after the other: of X, or of Y
                "row_words": range(params.words),  # from a kernel row's words to those of the next: dh lines of X
                "line_words": range(params.words),  # from an output line's to those of the next: sh lines
                "image_words": range(params.words),  # from the last output line's to those of the next image
                "last_pass": unsigned(params.pixel_width),  # ceil(Co / (4 · NS)) - 1, or last_block
                "stays": unsigned(1),  # Kh · steps · blocks · pci bytes fit a quarter of weight_bytes
                "table_address": address,
                "y": FollowLayout(address),  # ``line`` is two lines if they come by pairs, as in the next one
                "addend": FollowLayout(address),
                "second": data.StructLayout({"y": address, "addend": address}),  # from a pair's line to the second one
                "out_channels": unsigned(17),  # Co
                "last_column": unsigned(16),  # Wo - 1
                "last_line": unsigned(16),  # Ho - 1, or pairs less one
                "last_image": unsigned(16),  # N - 1
                "barrier": address,
                "tag": unsigned(16),
                "post": PostJobLayout(),
            }
        )


def float_flag(params, plan, name):
    """A flag of a plan that there is for floats alone: ``floats`` are summed, ``brain`` for bf16, or ``ordered``:
    the largest of them is looked for, among integers of the same order. Without floats it is a constant 0.
    """
    return plan[name] if params.floats else Const(0)


class AccumulatorReadLayout(data.StructLayout):
    """Which accumulators are read: those of R results.

    Convolution: channel ``t`` · NS + (``part`` · R + r) mod NS of place ``index`` + r div NS of the tile. Lane-private
    mode: element ``index`` + r of the row of slave ``part``.
    """

    def __init__(self, params):
        super().__init__(
            {
                "bank": range(params.accumulator_banks),
                "t": range(CHANNELS_AT_ONCE),
                "index": range(params.sums),
                "part": range(max(2, params.conv.slaves)),
            }
        )


class ConvEndLayout(data.StructLayout):
    """How a job has ended."""

    def __init__(self):
        super().__init__(
            {
                "code": signatures_unsigned(8),  # ConvError, NONE if all is well
                "field": signatures_unsigned(8),  # number of the field
                "tag": signatures_unsigned(16),  # that of the job
            }
        )


class ConvProcessorSignature(Port):
    """What a processor sees of a convolution engine besides registers. As the engine sees it.

    Members
    -------
    jobs : In(stream of JOB.bits)
        Jobs as words of 1024 bits, in the order in which they run.
    job_ended : Out(1)
        Strobe: a job has ended; the arrival at its barrier is done.
    job_end : Out(ConvEndLayout())
        How.
    """

    def __init__(self):
        super().__init__({"jobs": In(stream.Signature(JOB.bits)), "job_ended": Out(1), "job_end": Out(ConvEndLayout())})


class StepLayout(data.StructLayout):
    """One cycle of the array: a set of feature rows and one row in each slave."""

    def __init__(self, params):
        half = {"half": unsigned(1)} if params.floats else {}  # of the biases: passes 0, 2, … or 1, 3, …
        super().__init__(
            half
            | {
                "read": LaneReadLayout(params),  # of slaves' memories
                "part": unsigned(4),  # of the word, if a row is less than it: the part-th pci bytes
                "channel": range(CHANNELS_AT_ONCE),  # t
                "bank": range(params.accumulator_banks),  # of accumulators
                "halves": HalvesLayout(params),
            }
        )

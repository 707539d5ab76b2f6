"""Layouts and signatures that the blocks of the convolution engine share."""

from amaranth.hdl import Const, signed, unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from tilewright.spec import Format
from tilewright.spec.conv import CHANNELS_AT_ONCE, JOB, KERNEL_ROWS

from ..lib.component import Port
from ..lib.layouts import struct_layout

__all__ = [
    "AccumulatorReadLayout",
    "AccumulatorsLayout",
    "BiasesLayout",
    "ConvEndLayout",
    "ConvProcessorSignature",
    "FollowLayout",
    "GatherLayout",
    "GatheredLayout",
    "HalvesLayout",
    "LaneReadLayout",
    "LaneStepLayout",
    "PieceLayout",
    "PlanLayout",
    "PostJobLayout",
    "SetLayout",
    "StepLayout",
    "WordWriteLayout",
    "float_flag",
]

_FLOAT_FLAGS = ("floats", "brain", "ordered")
_POST = {
    "output", "add", "y_zero", "minimum", "maximum", "add_minimum", "add_maximum", "ratio", "offset", "function",
    "zero_first",
}  # fmt: skip


class ConvEndLayout(data.StructLayout):
    """How a job has ended."""

    def __init__(self):
        super().__init__(
            {
                "code": unsigned(8),  # ConvError; NONE if the job was performed
                "field": unsigned(8),  # number of the offending field
                "tag": unsigned(16),  # the job's tag
            }
        )


class ConvProcessorSignature(Port):
    """What a processor sees of a convolution engine, apart from its registers; as the engine sees it."""

    def __init__(self):
        super().__init__(
            {
                # Jobs as words of 1024 bits, in the order in which they run.
                "jobs": In(stream.Signature(JOB.bits)),
                # Strobe: a job has ended, and its arrival at a barrier has been performed.
                "job_ended": Out(1),
                # How it ended; valid with ``job_ended``.
                "job_end": Out(ConvEndLayout()),
            }
        )


class PostJobLayout(data.StructLayout):
    """The fields of a job that control post-processing, by their names in the table of jobs."""

    def __init__(self):
        fields = tuple(field for field in JOB.fields if field.name in _POST)
        super().__init__(struct_layout(Format("post", JOB.bits, "Post-processing.", fields)).members)


class FollowLayout(data.StructLayout):
    """A number that follows the points: its start, and the increments from point to point, line to line, image to
    image.
    """

    def __init__(self, shape):
        super().__init__(dict.fromkeys(("start", "point", "line", "image"), shape))


class PlanLayout(data.StructLayout):
    """A checked job as the blocks need it, with all products computed.

    Addresses and distances are modulo the bytes of shared memory. C, e, g and pci are those of docs/conv.md; ce = C ·
    e. A *pass* is a channel tile, or in lane-private mode a block. With ``pairs`` a *line* means two output lines.
    """

    def __init__(self, params):
        address, position = unsigned(params.smem.addr_width), signed(params.position_width)
        pixel, words = unsigned(params.pixel_width), range(params.words)
        flags = dict.fromkeys(_FLOAT_FLAGS, unsigned(1)) if params.floats else {}
        super().__init__(
            flags
            | {
                "wide": unsigned(1),  # elements have 16 bits: e is 2
                "x_signed": unsigned(1),
                "k_signed": unsigned(1),
                "lanes": unsigned(1),  # lane-private mode
                "maximum": unsigned(1),  # MAX_POOL
                "pool": unsigned(1),  # SUM_POOL or MAX_POOL: there is no K
                "raster": unsigned(1),  # tiles cross the ends of lines; in lane-private mode only with ``keeps``
                "keeps": unsigned(1),  # lane-private: slaves keep a line of X for all output lines that need it
                "kernel_stays": unsigned(1),  # lane-private: the kernel has at most KERNEL_ROWS rows, or none
                "merged": unsigned(1),  # g > 1
                "bias": unsigned(1),  # there are biases, and the operation is not MAX_POOL
                "table": unsigned(1),  # biases or scales are read
                "signal": unsigned(1),
                "early": unsigned(1),  # there is a second barrier, for the end of reading K
                "granularity": unsigned(3),  # log2 of pci
                "result_log2": unsigned(2),  # log2 of the bytes of a result
                "x_fill": unsigned(16),  # low and high byte alternately for elements outside X: x_zero, or the least
                "k_fill": unsigned(16),  # the same for K: k_zero, or 1 in SUM_POOL
                "x_zero": signed(17),  # to be subtracted; 0 in MAX_POOL
                "k_zero": signed(17),  # 0 in pooling
                "x": FollowLayout(address),  # first byte of a point's window; ``line``: one row of X if ``keeps``
                "x_step": address,  # from one step along kw to the next: g · dw · x_pitch[0]
                "x_row": address,  # from one kernel row to the next: dh · x_pitch[1]
                "position": FollowLayout(position),  # of that byte in its row, in bytes if merged, else in columns
                "position_step": position,  # g · ce if merged, else dw
                "position_end": position,  # W · ce if merged, else W
                "row": FollowLayout(signed(19)),  # row of X for kernel row 0
                "row_step": signed(19),  # dh
                "row_end": signed(19),  # H
                "k": address,
                "k_pitch": address,
                "k_step": address,  # g · ce
                "k_row": address,  # Kw · ce
                "pixel_bytes": pixel,  # c = g · ce
                "last_bytes": pixel,  # in the last step of a kernel row: (Kw - (steps - 1) · g) · ce
                "last_block": pixel,  # ceil(c / pci) - 1
                "last_step": unsigned(8),  # ceil(Kw / g) - 1
                "last_kernel_row": unsigned(8),  # Kh - 1
                "line_stride": unsigned(8),  # sh - 1
                "pairs": unsigned(1),  # lane-private: two output lines are computed at once
                "alone": unsigned(1),  # with ``pairs``: the last pair has only its first line
                "last_row_step": unsigned(9),  # lane-private: Kh - 1, or one less than the lines of X for a pair
                "stride": unsigned(9),  # lines of X from a line to the next, minus one
                "last_plane": unsigned(8),  # lane-private: kernel columns with words of their own, minus one
                "last_group": unsigned(16),  # lane-private: words of a line at one of these columns, minus one
                "last_place": unsigned(17),  # lane-private: points of a line in these words, minus one
                "last_row": unsigned(24),  # last line of an image that is fetched: of X with ``keeps``, else of Y
                "row_words": words,  # from the words of a kernel row to those of the next: dh lines of X
                "line_words": words,  # from the words of an output line to those of the next: sh lines
                "image_words": words,  # from the words of an image's last output line to those of the next image
                "last_pass": pixel,  # ceil(Co / (4 · NS)) - 1, or last_block
                "stays": unsigned(1),  # Kh · steps · blocks · pci bytes fit in a quarter of weight_bytes
                "table_address": address,
                "function_address": address,  # of the LUT of a function
                "y": FollowLayout(address),
                "addend": FollowLayout(address),
                "second": data.StructLayout({"y": address, "addend": address}),  # from a pair's line to its second
                "out_channels": unsigned(17),  # Co
                "last_column": unsigned(16),  # Wo - 1
                "last_line": unsigned(16),  # lines of an image, minus one
                "last_image": unsigned(16),  # N - 1
                "barrier": address,
                "tag": unsigned(16),
                "post": PostJobLayout(),
            }
        )


def float_flag(params, plan, name):
    """A flag of a plan that exists only with floats, otherwise a constant 0.

    ``floats``: floats are summed. ``brain``: they are bf16. ``ordered``: the maximum of floats is computed, on integers
    of the same order.
    """
    return plan[name] if params.floats else Const(0)


class PieceLayout(data.StructLayout):
    """Up to 16 bytes of shared memory: bytes ``low`` to ``high`` - 1 from ``address`` on; none unless low < high."""

    def __init__(self, params):
        super().__init__({"address": unsigned(params.smem.addr_width), "low": unsigned(5), "high": unsigned(5)})


class GatherLayout(data.StructLayout):
    """Pieces to be read and packed."""

    def __init__(self, params, tag):
        # The chunks that are read for a request with ``keep`` may serve later requests for the same part with
        # ``again``, which needs an earlier one with ``keep``.
        reuse = data.StructLayout({"part": range(params.parts), "keep": 1, "again": 1})
        super().__init__(
            {
                **({"reuse": reuse} if params.reuses_reads else {}),
                "pieces": data.ArrayLayout(PieceLayout(params), params.lanes),
                "size": unsigned(3),  # log2 of the bytes of each piece, 0 to 4
                "fill": unsigned(16),  # low and high byte alternately replace bytes that are not read
                "tag": tag,  # returned with the answer
            }
        )


class GatheredLayout(data.StructLayout):
    """Packed pieces: piece n begins at byte n << size; bytes after the last piece are undefined."""

    def __init__(self, params, tag):
        super().__init__({"data": data.ArrayLayout(128, params.lanes), "tag": tag})


class WordWriteLayout(data.StructLayout):
    """A write to bytes of one word, a row, in the memory of a slave."""

    def __init__(self, params):
        super().__init__(
            {
                "word": range(params.words),
                "data": data.ArrayLayout(128, params.row_slots),
                "strobe": unsigned(params.conv.row_bytes),  # one bit a byte; 0: no write
            }
        )


class SetLayout(data.StructLayout):
    """The position of a set of rows in the order of work."""

    def __init__(self):
        super().__init__(
            {
                "first": unsigned(1),  # the first set of a point tile: accumulators begin
                "last": unsigned(1),  # the last set of a point tile: results are complete
                "final": unsigned(1),  # the tile is the last one of a pass
            }
        )


class LaneReadLayout(data.StructLayout):
    """What all slaves read: the word for each part of their rows, and the number of parts by which rows are rotated.

    Part p of the slaves' rows is part p + ``turn``, modulo the number of parts, of what is read.
    """

    def __init__(self, params):
        parts = params.row_parts
        super().__init__({"words": data.ArrayLayout(range(params.words), parts), "turn": range(parts)})


class HalvesLayout(data.StructLayout):
    """What units do in a step: one bit for each half of the units that computes its own line in lane-private mode."""

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


class StepLayout(data.StructLayout):
    """One cycle of the array: a set of feature rows, and one row in each slave."""

    def __init__(self, params):
        super().__init__(
            {
                **({"half": unsigned(1)} if params.floats else {}),  # half of the bias memory: passes alternate
                "read": LaneReadLayout(params),  # of slaves' memories
                "part": unsigned(4),  # of the word, if a row is less than a word: the part-th pci bytes
                "channel": range(CHANNELS_AT_ONCE),  # t
                "bank": range(params.accumulator_banks),
                "halves": HalvesLayout(params),
            }
        )


class AccumulatorReadLayout(data.StructLayout):
    """Which R accumulators are read.

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


class BiasesLayout(data.StructLayout):
    """Biases of neighbouring channels on their way to the array, where sums of floats begin with them."""

    def __init__(self, params):
        conv = params.conv
        super().__init__(
            {
                "valid": unsigned(1),
                "half": unsigned(1),  # passes use the halves of the bias memory alternately
                # The first channel, counted in its pass.
                "channel": range(max(CHANNELS_AT_ONCE * conv.slaves, conv.row_bytes)),
                # A power of two of them; if there are fewer biases, they repeat.
                "entries": data.ArrayLayout(32, min(params.lanes, conv.results)),
            }
        )


class AccumulatorsLayout(data.StructLayout):
    """Finished accumulators with their operands."""

    def __init__(self, params):
        super().__init__(
            {
                "acc": data.ArrayLayout(32, params.results),  # or an element of X, in the low bits
                "scale": data.ArrayLayout(32, params.results),  # binary32
                "addend": data.ArrayLayout(8, params.results),  # the element of the second operand
            }
        )

"""Payloads that several rooms of the TMAU share; one between two neighbours is defined in the file of the first."""

from amaranth import unsigned
from amaranth.lib import data

from tilewright.golden.spec import COMMAND

from ..lib.formats import struct_layout

__all__ = ["CompletionLayout", "ErrorLayout", "RowLayout", "TransferLayout", "WordLayout", "command_layout"]


def command_layout():
    """A command as a processor issues it: the fields of ``golden.spec.COMMAND``."""
    return struct_layout(COMMAND)


class TransferLayout(data.StructLayout):
    """What all rows of one transfer have in common, from setup to the write side.

    A *run* is what the write side lays down without a gap: one row of the box, or several rows that adjoin both in
    global and in shared memory and that setup has folded into one. All runs of a transfer have the same length, and, as
    far as they are inside the tensor at all, the same part inside.
    """

    def __init__(self, params):
        length = params.smem.addr_width + 1
        super().__init__(
            {
                "tag": unsigned(16),  # of the command
                "signal": unsigned(1),  # complete the barrier's transaction count
                "barrier": unsigned(params.smem.addr_width),  # byte address
                "line": unsigned(params.smem.row_width),  # destination of the first run: byte address >> 7
                "run_bytes": unsigned(length),  # multiple of 16, at least 16
                "data_start": unsigned(length),  # first byte of an inside run that lies in the tensor
                "data_end": unsigned(length),  # first byte after it that does not; data_start < data_end <= run_bytes
                "pitch": unsigned(length),  # bytes from run to run in shared memory, multiple of 16, >= run_bytes
                "swizzle": unsigned(2),  # golden.spec.Swizzle
                "fill": unsigned(32),  # pattern for bytes outside the tensor, little-endian at every multiple of 4
                "tf32": unsigned(1),  # round every 32-bit word that comes from the tensor
                "bytes": unsigned(length),  # of the whole transfer, fill included, gaps not
            }
        )


class RowLayout(data.StructLayout):
    """One run of a transfer, in order; small, because as many wait as there are reads in flight."""

    def __init__(self, params):
        super().__init__(
            {
                "inside": unsigned(1),  # 0: the whole run is fill, nothing was requested
                "offset": unsigned(params.bus_log2),  # of the run's first inside byte in its bus word
                "shared": unsigned(
                    1
                ),  # its first bus word is the last one of the previous inside run: not requested again
                "last": unsigned(1),  # last run of the transfer
            }
        )


class WordLayout(data.StructLayout):
    """A bus word as it comes back, in the order of the requests."""

    def __init__(self, params):
        super().__init__(
            {
                "data": unsigned(params.bus_width),
                "error": unsigned(1),  # SLVERR or DECERR
                "address": unsigned(params.addr_width),  # byte address of the word; meaningful with error only
            }
        )


class CompletionLayout(data.StructLayout):
    """The end of a transfer: presented when its last byte is being written, so that whoever sees it can read."""

    def __init__(self, params):
        super().__init__(
            {
                "tag": unsigned(16),
                "signal": unsigned(1),
                "barrier": unsigned(params.smem.addr_width),
                "bytes": unsigned(params.smem.addr_width + 1),
                "error": unsigned(1),  # a word of it came with an error: the barrier must not be completed
                "address": unsigned(params.addr_width),  # of the first word with an error
            }
        )


class ErrorLayout(data.StructLayout):
    """An error record (tmau.md section 9)."""

    def __init__(self):
        super().__init__(
            {
                "code": unsigned(8),  # golden.spec.Error
                "tag": unsigned(16),  # of the command
                "field": unsigned(8),  # number in DESCRIPTOR, or COMMAND_FIELD + number in COMMAND
                "value": unsigned(64),  # the offending value as stored, or the address
            }
        )

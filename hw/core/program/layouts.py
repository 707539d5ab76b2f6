"""Payloads between the stages of the command processor."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.spec.core import WORD_BITS

from ...pe.layouts import INSTRUCTION_BITS

__all__ = ["INSTRUCTIONS", "LINE_LOG2", "CauseLayout", "DecodedLayout", "FetchedLayout", "LineLayout", "RunLayout"]

#: Log2 of the bytes of a line: what is read at once, a word of a program or four instructions.
LINE_LOG2 = 6
#: Instructions of the processing engine in a line.
INSTRUCTIONS = (8 << LINE_LOG2) // INSTRUCTION_BITS


class LineLayout(data.StructLayout):
    """A line of global memory as it comes back."""

    def __init__(self):
        super().__init__({"data": unsigned(8 << LINE_LOG2), "error": 1})


class FetchedLayout(data.StructLayout):
    """A word of the program, in order, or why there is none."""

    def __init__(self):
        super().__init__({"word": unsigned(WORD_BITS), "code": unsigned(8)})


class DecodedLayout(data.StructLayout):
    """A word with the verdict on its bits alone."""

    def __init__(self):
        super().__init__(
            {
                "word": unsigned(WORD_BITS),
                "kind": unsigned(4),  # spec.core.Kind; of a half of a job it means nothing
                "code": unsigned(8),  # ProgramError, or NONE
                "tag": unsigned(16),  # for the error record; 0 if the word did not come
            }
        )


class RunLayout(data.StructLayout):
    """Instructions to be streamed, all of which may be read."""

    def __init__(self, addr_width):
        super().__init__(
            {
                "line": unsigned(addr_width - LINE_LOG2),  # where the first four are
                "count": unsigned(32),  # instructions, at least 1
            }
        )


class CauseLayout(data.StructLayout):
    """Why a program stops: the error record, code NONE if it does not."""

    def __init__(self):
        super().__init__(
            {
                "code": unsigned(8),  # ProgramError
                "engine": unsigned(8),  # spec.core.Engine, or NONE
                "tag": unsigned(16),
                "index": unsigned(32),  # of the word
            }
        )

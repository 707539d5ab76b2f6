"""What passes between the blocks that a job goes through before it runs."""

from amaranth.hdl import unsigned
from amaranth.lib import data

from tilewright.golden.spec.conv.job import JOB

__all__ = ["CheckedJobLayout", "FoundLayout"]


class CheckedJobLayout(data.StructLayout):
    """A job with what is wrong with it."""

    def __init__(self):
        super().__init__(
            {
                "word": unsigned(JOB.bits),  # as packed
                "code": unsigned(8),  # golden.spec ConvError: NONE if it is to run
                "field": unsigned(8),  # number of the field in the table of jobs; 0 with NONE
                # Whether X and K have bytes of Y, or of a barrier, of the last job that was not refused.
                "x_follows": unsigned(1),
                "k_follows": unsigned(1),
            }
        )


class FoundLayout(data.StructLayout):
    """What is found out about a job by arithmetic: ones where a rule is broken."""

    def __init__(self):
        places = {name: unsigned(1) for name in ("barrier", "x", "k", "table", "y", "addend")}
        super().__init__(
            {
                "apart": unsigned(1),  # x_pitch[0] is not C · e
                "pitch": unsigned(1),  # results overlap each other
                "outside": data.StructLayout(places),  # does not end in shared memory
                "overlap": data.StructLayout(places),  # of what is read, and Y
            }
        )

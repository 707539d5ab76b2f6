"""Ports of the convolution engine, each as its user sees it."""

from amaranth import unsigned
from amaranth.lib import data, stream
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.conv.job import JOB

from ..lib.join import Port

__all__ = ["ConvEndLayout", "ConvProcessorSignature"]


class ConvEndLayout(data.StructLayout):
    """How a job has ended."""

    def __init__(self):
        super().__init__(
            {
                "code": unsigned(8),  # ConvError, NONE if all is well
                "field": unsigned(8),  # number of the field
                "tag": unsigned(16),  # that of the job
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

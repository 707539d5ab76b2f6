"""What the first bits of a job say."""

from amaranth.hdl import Cat, Const

from tilewright.golden.spec.conv.job import ConvOperation, ConvOutput

__all__ = ["JobKind"]


class JobKind:
    """Flags of a job, as Values of one bit. They mean something if operation, type and output exist and go together.

    Parameters
    ----------
    params : ConvUnitParams
    job : view of packed_layout(JOB)

    Attributes
    ----------
    wide
        Elements have 16 bits.
    convolution, depthwise, maximum
        The operation.
    weights
        There is K.
    quantised
        Results are U8 or S8.
    bias
        Sums begin with biases.
    table
        Biases or scales are read.
    add
        There is a second operand.
    result_log2
        Log2 of the bytes of a result, of two bits.
    """

    def __init__(self, params, job):
        types = params.conv.types
        self.wide = job.type[2] if {"i8", "i16"} <= set(types) else Const("i16" in types, 1)
        self.convolution = job.operation == ConvOperation.CONVOLUTION
        self.depthwise = job.operation == ConvOperation.DEPTHWISE
        self.maximum = job.operation == ConvOperation.MAX_POOL
        self.weights = self.convolution | self.depthwise
        self.quantised = (job.output == ConvOutput.U8) | (job.output == ConvOutput.S8)
        self.bias = job.bias & ~self.maximum
        self.table = self.quantised | self.bias
        self.add = job.add & self.quantised
        # RAW results have 4 bytes, those of MAX_POOL are elements.
        self.result_log2 = Cat((job.output == ConvOutput.ELEMENT) & self.wide, job.output == ConvOutput.RAW)

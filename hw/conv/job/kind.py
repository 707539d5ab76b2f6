"""What the first bits of a job say."""

from amaranth.hdl import Cat, Const

from tilewright.golden.spec.conv.job import ConvOperation, ConvOutput
from tilewright.golden.spec.pe.instruction import MmType

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
    floating, brain
        They are floats, of type bf16.
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
    early
        It arrives at a second barrier, when K has been read.
    result_log2
        Log2 of the bytes of a result, of two bits.
    """

    def __init__(self, params, job):
        types = params.conv.types
        self.floating = job.type[3] if params.floats else Const(0)
        self.brain = self.floating & (job.type == MmType.BF16)
        self.wide = (job.type[2] | self.floating) if "i8" in types and params.wide else Const("i8" not in types, 1)
        self.convolution = job.operation == ConvOperation.CONVOLUTION
        self.depthwise = job.operation == ConvOperation.DEPTHWISE
        self.maximum = job.operation == ConvOperation.MAX_POOL
        self.weights = self.convolution | self.depthwise
        self.quantised = (job.output == ConvOutput.U8) | (job.output == ConvOutput.S8)
        self.bias = job.bias & ~self.maximum
        self.table = self.quantised | self.bias
        self.add = job.add & self.quantised
        self.early = job.early & job.signal & self.convolution
        # RAW results have 4 bytes, those of MAX_POOL are elements.
        half = (job.output == ConvOutput.F16) | (job.output == ConvOutput.BF16) if params.floats else Const(0)
        self.result_log2 = Cat((job.output == ConvOutput.ELEMENT) & self.wide | half, job.output == ConvOutput.RAW)

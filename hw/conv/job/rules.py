"""The rules of a job, in their order (docs/conv.md, "Checks")."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import exact_log2

from tilewright.spec.conv import FUNCTION_ALIGNMENT, JOB, JOB_VERSION, ConvError, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType

from ...lib.layouts import packed_layout
from ...lib.logic import is_one_of, mux_tree

__all__ = ["CheckedJobLayout", "JobKind", "JobRules", "SpanErrorsLayout"]

#: The exponent of a binary32 number.
_EXPONENT = slice(23, 31)
#: Outputs of integers, and of floats.
_OUTPUTS = (ConvOutput.RAW, ConvOutput.U8, ConvOutput.S8, ConvOutput.ELEMENT)
_FLOAT_OUTPUTS = (ConvOutput.RAW, ConvOutput.F16, ConvOutput.BF16, ConvOutput.ELEMENT)


class JobKind:
    """Flags of a job, as Values of one bit; valid if operation, type and output are legal together.

    Parameters
    ----------
    params : ConvUnitParams
    job : view of packed_layout(JOB)

    Attributes
    ----------
    wide
        Elements have 16 bits.
    floating, brain
        Elements are floats; they are bf16.
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
    function
        Results select bytes of a LUT.
    early
        The job arrives at a second barrier when K has been read.
    result_log2
        Log2 of the bytes of a result; two bits.
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
        self.function = job.function if params.conv.function_table else Const(0)
        self.early = job.early & job.signal & self.convolution
        # RAW results have 4 bytes, and results of MAX_POOL are elements.
        half = (job.output == ConvOutput.F16) | (job.output == ConvOutput.BF16) if params.floats else Const(0)
        self.result_log2 = Cat((job.output == ConvOutput.ELEMENT) & self.wide | half, job.output == ConvOutput.RAW)


class CheckedJobLayout(data.StructLayout):
    """A job with the outcome of its check."""

    def __init__(self):
        super().__init__(
            {
                "word": unsigned(JOB.bits),  # as packed
                "code": unsigned(8),  # ConvError; NONE if the job is legal
                "field": unsigned(8),  # number of the field in the table of jobs; 0 with NONE
                # X or K overlaps with Y or a barrier of the last legal job.
                "x_follows": unsigned(1),
                "k_follows": unsigned(1),
            }
        )


class SpanErrorsLayout(data.StructLayout):
    """The rules about spans that a job breaks."""

    def __init__(self):
        tensors = {name: unsigned(1) for name in ("barrier", "x", "k", "table", "y", "addend", "function_table")}
        super().__init__(
            {
                "apart": unsigned(1),  # pixels of X are not contiguous: x_pitch[0] is not C · e
                "pitch": unsigned(1),  # results overlap each other
                "outside": data.StructLayout(tensors),  # the tensor does not end in shared memory
                "overlap": data.StructLayout(tensors),  # the tensor, which is read, overlaps with Y
            }
        )


class JobRules(wiring.Component):
    """Checks the rules one after the other, those of spans last.

    Latency: ``done`` is high at the first broken rule, one cycle of ``advance`` for each rule before it: at most
    ``rules``.

    Parameters
    ----------
    params : ConvUnitParams

    Attributes
    ----------
    rules, span_rules : int
        The number of rules, each with a code and a field, and of those that need spans.
    """

    def __init__(self, params):
        self._params = params
        built = params.conv.function_table
        self.rules, self.span_rules = 35 + built + (not params.conv.zero_first), 11
        super().__init__(
            {
                "start": In(1),  # Strobe: return to the first rule.
                # Go to the next rule unless the current one is broken; ``job`` and ``errors`` must be constant since
                # the previous cycle.
                "advance": In(1),
                "job": In(packed_layout(JOB)),
                "errors": In(SpanErrorsLayout()),  # zeros for a tensor that the job does not have
                "spans": Out(1),  # the current rule needs more of ``errors`` than ``apart``, or there is none
                "done": Out(1),  # with ``advance``: code and field are final, until ``start``
                "code": Out(8),  # ``ConvError`` of the first broken rule, or NONE
                "field": Out(8),  # number of its field; 0 with NONE
            }
        )

    def elaborate(self, platform):
        m = Module()
        kind = JobKind(self._params, self.job)
        rules = [*self._kind_rules(kind), *self._value_rules(kind), *self._place_rules(kind)]
        assert len(rules) == self.rules
        rules.append((ConvError.NONE, JOB.fields[0].name, Const(1)))  # if no rule is broken
        broken, index = Signal(len(rules)), Signal(range(len(rules)))
        m.d.sync += broken.eq(Cat(condition for _, _, condition in rules))
        here = mux_tree(index, dict(enumerate(broken)))
        m.d.comb += [self.done.eq(here), self.spans.eq(index >= self.rules - self.span_rules)]
        with m.If(self.start):
            m.d.sync += index.eq(0)
        with m.Elif(self.advance & ~here):
            m.d.sync += index.eq(index + 1)
        with m.Switch(index):
            for number, (code, field, _) in enumerate(rules):
                with m.Case(number):
                    m.d.comb += [self.code.eq(code), self.field.eq(JOB.index(field))]
                    if field == "addend" and self._params.conv.function_table:
                        with m.If(~self._spans_of(code).addend):
                            m.d.comb += self.field.eq(JOB.index("function_table"))
        return m

    def _spans_of(self, code):
        """The findings for RANGE or OVERLAP."""
        return self.errors.outside if code == ConvError.RANGE else self.errors.overlap

    # A rule is (code, field, broken); they are in the order of the page. The LUT of a function shares the rules of the
    # second operand, which come before its own: so they take no cycle.

    def _kind_rules(self, kind):
        """Rules for the operation, its types and outputs."""
        job, maximum = self.job, ConvOperation.MAX_POOL
        conv = self._params.conv
        reserved = [job.as_value()[bit] for bit in range(JOB.bits) if JOB.reserved_mask >> bit & 1]
        supported = [kind for kind in MmType if kind.family in conv.types]
        unfit = (job.operation == maximum) ^ (job.output == ConvOutput.ELEMENT)
        exists = is_one_of(job.output, _OUTPUTS)
        if self._params.floats:
            exists = Mux(kind.floating, is_one_of(job.output, _FLOAT_OUTPUTS), exists)
        missing = {"function": not conv.function_table, "zero_first": not conv.zero_first}
        elements = (job.output == ConvOutput.ELEMENT) & ~kind.wide
        functions = [(ConvError.OUTPUT, "function", kind.function & ~(kind.quantised | elements))]
        return [
            (ConvError.VERSION, "version", job.version != JOB_VERSION),
            (ConvError.RESERVED, JOB.fields[0].name, Cat(reserved).any()),
            (ConvError.OPERATION, "operation", job.operation > max(ConvOperation)),
            (ConvError.TYPE, "type", job.type > max(MmType)),
            (ConvError.UNSUPPORTED, "type", ~is_one_of(job.type, supported)),
            *((ConvError.UNSUPPORTED, name, job[name]) for name, is_missing in missing.items() if is_missing),
            (ConvError.OUTPUT, "output", ~exists | unfit),
            *(functions if conv.function_table else []),
        ]

    def _value_rules(self, kind):
        """Rules for numbers that are not addresses."""
        job = self.job
        most = self._params.conv.row_bytes.bit_length() - 1
        # With the sign bit of s8 inverted the order is that of unsigned numbers.
        sign = (job.output == ConvOutput.S8) << 7

        def above(low, high):
            return kind.quantised & ((low ^ sign) > (high ^ sign))

        infinite = [bits[_EXPONENT].all() for bits in (*job.ratio, job.offset)]
        return [
            (ConvError.ZERO, "x_zero", ~kind.wide & ~kind.maximum & job.x_zero[8:].any()),
            (ConvError.ZERO, "k_zero", ~kind.wide & kind.weights & job.k_zero[8:].any()),
            (ConvError.CLAMP, "minimum", above(job.minimum, job.maximum)),
            (ConvError.CLAMP, "add_minimum", kind.add & above(job.add_minimum, job.add_maximum)),
            (ConvError.FACTOR, "ratio", kind.add & (infinite[0] | infinite[1])),
            (ConvError.FACTOR, "offset", kind.add & infinite[2]),
            (
                ConvError.MERGE,
                "merge",
                job.merge.any() & (~kind.convolution | job.dilation[0].any() | self.errors.apart),
            ),
            (
                ConvError.GRANULARITY,
                "granularity",
                ~is_one_of(job.granularity, range(most - 4, most + 1)) | (kind.wide & (job.granularity == 0)),
            ),
            (ConvError.CHANNELS, "out_channels", ~kind.convolution & (job.out_channels != job.channels)),
        ]

    def _place_rules(self, kind):
        """Rules for addresses and pitches. The second operand consists of bytes, which are always aligned."""
        job, errors = self.job, self.errors
        odd = kind.wide & Cat(pitch[0] for pitch in job.x_pitch).any()

        def ragged(bits):
            """Not a multiple of the bytes of a result."""
            return (bits[0] & kind.result_log2.any()) | (bits[1] & kind.result_log2[1])

        has_functions = self._params.conv.function_table
        unaligned = kind.function & job.function_table[: exact_log2(FUNCTION_ALIGNMENT)].any()

        def spans(code, *names):
            found = self._spans_of(code)
            broken = {name: found[name] for name in names}
            if has_functions:
                broken["addend"] |= found.function_table
            return [(code, name, each) for name, each in broken.items()]

        return [
            (ConvError.ALIGNMENT, "barrier", job.signal & job.barrier[:3].any()),
            (ConvError.ALIGNMENT, "x", kind.wide & job.x[0]),
            (ConvError.ALIGNMENT, "k", kind.weights & kind.wide & job.k[0]),
            (ConvError.ALIGNMENT, "table", kind.table & job.table[:3].any()),
            (ConvError.ALIGNMENT, "y", ragged(job.y)),
            *([(ConvError.ALIGNMENT, "function_table", unaligned)] if has_functions else []),
            (ConvError.ALIGNMENT, "x_pitch", odd),
            (ConvError.ALIGNMENT, "k_pitch", kind.weights & kind.wide & job.k_pitch[0]),
            (ConvError.ALIGNMENT, "y_pitch", Cat(ragged(pitch) for pitch in job.y_pitch).any()),
            (ConvError.PITCH, "y_pitch", errors.pitch),
            *spans(ConvError.RANGE, "barrier", "x", "k", "table", "y", "addend"),
            *spans(ConvError.OVERLAP, "x", "k", "table", "addend"),
        ]

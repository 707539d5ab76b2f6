"""The rules of a job, in their order (docs/conv.md, "Checks")."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from tilewright.golden.spec.conv.errors import ConvError
from tilewright.golden.spec.conv.job import JOB, JOB_VERSION, ConvOperation, ConvOutput
from tilewright.golden.spec.pe.instruction import MmType

from ...lib.choice import chosen
from ...lib.formats import packed_layout
from ...lib.table import is_one_of
from .kind import JobKind
from .layouts import FoundLayout

__all__ = ["JobRules"]

#: Where a float has its exponent.
_EXPONENT = slice(23, 31)
#: Outputs of integers, and of floats.
_OUTPUTS = (ConvOutput.RAW, ConvOutput.U8, ConvOutput.S8, ConvOutput.ELEMENT)
_FLOAT_OUTPUTS = (ConvOutput.RAW, ConvOutput.F16, ConvOutput.BF16, ConvOutput.ELEMENT)


class JobRules(wiring.Component):
    """Looks at the rules one after the other. Those of spans are the last ones.

    Latency: ``done`` comes with the broken rule, after as many cycles of ``looking`` as there are rules before it: at
    most ``RULES``.

    Parameters
    ----------
    params : ConvUnitParams

    Members
    -------
    start : In(1)
        Strobe: back to the first rule.
    looking : In(1)
        On to the next rule, until one is broken. Only while ``job`` and ``found`` are what they were a cycle ago.
    job : In(packed_layout(JOB))
    found : In(FoundLayout())
        Zeros for a tensor that the job does not have.
    spans : Out(1)
        The rule that is looked at needs more of ``found`` than ``apart``, or there is none.
    done : Out(1)
        With ``looking``: code and field are found, and hold until ``start``.
    code : Out(8)
        ``ConvError`` of the first rule that is broken, NONE if there is none.
    field : Out(8)
        Number of its field; 0 with NONE.
    """

    #: Rules, each of a code and a field; those of them that need spans.
    RULES, SPANS = 34, 11

    def __init__(self, params):
        self.params = params
        super().__init__(
            {
                "start": In(1),
                "looking": In(1),
                "job": In(packed_layout(JOB)),
                "found": In(FoundLayout()),
                "spans": Out(1),
                "done": Out(1),
                "code": Out(8),
                "field": Out(8),
            }
        )

    def elaborate(self, platform):
        m = Module()
        kind = JobKind(self.params, self.job)
        rules = [*self._kind_rules(kind), *self._value_rules(kind), *self._place_rules(kind)]
        assert len(rules) == self.RULES
        rules.append((ConvError.NONE, JOB.fields[0].name, Const(1)))  # what is found where no rule is broken
        broken, index = Signal(len(rules)), Signal(range(len(rules)))
        m.d.sync += broken.eq(Cat(condition for _, _, condition in rules))
        here = chosen(index, dict(enumerate(broken)))
        m.d.comb += [self.done.eq(here), self.spans.eq(index >= self.RULES - self.SPANS)]
        with m.If(self.start):
            m.d.sync += index.eq(0)
        with m.Elif(self.looking & ~here):
            m.d.sync += index.eq(index + 1)
        with m.Switch(index):
            for number, (code, field, _) in enumerate(rules):
                with m.Case(number):
                    m.d.comb += [self.code.eq(code), self.field.eq(JOB.index(field))]
        return m

    # Every rule is (code, field, broken), in the order of the page.

    def _kind_rules(self, kind):
        """Until it is known what the job is."""
        job, maximum = self.job, ConvOperation.MAX_POOL
        reserved = [job.as_value()[bit] for bit in range(JOB.bits) if JOB.reserved_mask >> bit & 1]
        supported = [kind for kind in MmType if kind.family in self.params.conv.types]
        unfit = (job.operation == maximum) ^ (job.output == ConvOutput.ELEMENT)
        exists = is_one_of(job.output, _OUTPUTS)
        if self.params.floats:
            exists = Mux(kind.floating, is_one_of(job.output, _FLOAT_OUTPUTS), exists)
        return [
            (ConvError.VERSION, "version", job.version != JOB_VERSION),
            (ConvError.RESERVED, JOB.fields[0].name, Cat(reserved).any()),
            (ConvError.OPERATION, "operation", job.operation > max(ConvOperation)),
            (ConvError.TYPE, "type", job.type > max(MmType)),
            (ConvError.UNSUPPORTED, "type", ~is_one_of(job.type, supported)),
            (ConvError.OUTPUT, "output", ~exists | unfit),
        ]

    def _value_rules(self, kind):
        """Numbers that are not places."""
        job = self.job
        most = self.params.conv.row_bytes.bit_length() - 1
        # The sign bit of s8 turned, so that the order is that of unsigned numbers.
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
                job.merge.any() & (~kind.convolution | job.dilation[0].any() | self.found.apart),
            ),
            (
                ConvError.GRANULARITY,
                "granularity",
                ~is_one_of(job.granularity, range(most - 4, most + 1)) | (kind.wide & (job.granularity == 0)),
            ),
            (ConvError.CHANNELS, "out_channels", ~kind.convolution & (job.out_channels != job.channels)),
        ]

    def _place_rules(self, kind):
        """Addresses and pitches. The second operand has results of one byte, which are nowhere misaligned."""
        job, found = self.job, self.found
        odd = kind.wide & Cat(pitch[0] for pitch in job.x_pitch).any()

        def ragged(bits):
            """Not a multiple of a result."""
            return (bits[0] & kind.result_log2.any()) | (bits[1] & kind.result_log2[1])

        outside = [
            (ConvError.RANGE, name, found.outside[name]) for name in ("barrier", "x", "k", "table", "y", "addend")
        ]
        overlap = [(ConvError.OVERLAP, name, found.overlap[name]) for name in ("x", "k", "table", "addend")]
        return [
            (ConvError.ALIGNMENT, "barrier", job.signal & job.barrier[:3].any()),
            (ConvError.ALIGNMENT, "x", kind.wide & job.x[0]),
            (ConvError.ALIGNMENT, "k", kind.weights & kind.wide & job.k[0]),
            (ConvError.ALIGNMENT, "table", kind.table & job.table[:3].any()),
            (ConvError.ALIGNMENT, "y", ragged(job.y)),
            (ConvError.ALIGNMENT, "x_pitch", odd),
            (ConvError.ALIGNMENT, "k_pitch", kind.weights & kind.wide & job.k_pitch[0]),
            (ConvError.ALIGNMENT, "y_pitch", Cat(ragged(pitch) for pitch in job.y_pitch).any()),
            (ConvError.PITCH, "y_pitch", found.pitch),
            *outside,
            *overlap,
        ]

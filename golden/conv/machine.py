"""A convolution engine without cycles, which executes one job after another (docs/conv.md, "Jobs")."""

from typing import NamedTuple

import numpy as np

from tilewright.spec import BARRIER
from tilewright.spec.conv import JOB, JOB_VERSION, ConvError, ConvOperation, ConvOutput, ConvParams
from tilewright.spec.pe import MmType

from ..arguments import format_values, packed, shown
from ..memory import OpenBytes, check_shared
from ..smem import Barrier
from .job import barriers_of, check_job, parts_of, shape_of
from .results import (
    add_residual,
    convolve_floats,
    convolve_integers,
    half_floats,
    largest,
    requantise,
    requantise_zero_first,
    sum_floats,
    sum_integers,
)

__all__ = ["Conv", "ConvRecord", "job_word"]


class ConvRecord(NamedTuple):
    """An error record: its code, the number of the field in the job, and the tag."""

    code: ConvError
    field: int
    tag: int


def job_word(**fields):
    """A packed job of 1024 bits; omitted fields have their lowest value, and ``version`` the current one.

    Members of enumerations may be names: ``job_word(operation="depthwise", type="u8s8")``. ValueError for an unknown
    field or a value out of range, TypeError for a value of the wrong kind.
    """
    values = {field.name: [field.range[0]] * field.count if field.count else field.range[0] for field in JOB.fields}
    return JOB.pack(**values | {"version": JOB_VERSION} | format_values("job", JOB.fields, fields))


class Conv:
    """A convolution engine; each job is complete when :meth:`execute` returns.

    Parameters
    ----------
    smem : uint8 array
        Shared memory, changed in place.
    params : ConvParams, optional
        ``row_bytes``, ``types``, ``function_table`` and ``zero_first`` decide which jobs are refused; the others are
        not used.
    open_bytes : OpenBytes or None
        Bytes of shared memory that the specification leaves open, if other engines share this record.

    Attributes
    ----------
    errors : list of ConvRecord
        In the order of the jobs.
    stopped : bool
        Whether all jobs are refused (docs/cluster.md, "Stopping one core").
    """

    def __init__(self, smem, params=None, open_bytes=None):
        check_shared(smem)
        if not isinstance(params, ConvParams | None):
            raise TypeError(f"params must be golden.ConvParams, not {shown(params)}")
        self.smem = smem
        self.params = params or ConvParams()
        self.open_bytes = OpenBytes(smem) if open_bytes is None else open_bytes
        self.errors = []
        self.stopped = False

    def execute(self, word):
        """Runs one packed job; returns whether it ended without an error. A refused job changes nothing."""
        word = packed("word", word, JOB.bits)
        fields = JOB.unpack(word)
        stopped = (ConvError.STOPPED, JOB.fields[0].name) if self.stopped else None
        refused = stopped or check_job(word, self.params, len(self.smem))
        if not refused:
            run = _Run(fields, self.smem)
            run.run()
            run.mark(self.open_bytes)
            arrivals = [self._arrive(address) for address in barriers_of(fields)]
            if not all(arrivals):
                refused = ConvError.BARRIER, "barrier"
        if refused:
            code, name = refused
            self.errors.append(ConvRecord(code, JOB.index(name), fields["tag"]))
        return not refused

    def _arrive(self, address):
        """Arrives at a barrier; returns whether the barrier accepts it."""
        self.open_bytes.rely_on(slice(address, address + BARRIER.bytes), f"the barrier at {address:#x}")
        barrier = Barrier.read(self.smem, address)
        try:
            barrier.arrive(1)
        except ValueError:
            return False
        barrier.write(self.smem, address)
        return True


class _Run:
    """A job that has passed its checks."""

    def __init__(self, fields, smem):
        self.fields, self.smem = fields, smem
        self.kind, self.output = MmType(fields["type"]), ConvOutput(fields["output"])
        self.operation = ConvOperation(fields["operation"])
        self.shape, self.parts = shape_of(fields), parts_of(fields)

    def run(self):
        """Writes the results."""
        y, results = self._read("y"), self._results()
        if self.fields["function"]:
            results = self._read("function_table")[results]
        y[...] = results.astype(y.dtype).reshape(y.shape)

    def mark(self, open_bytes):
        """Notes whether the results are open: all of them are if any byte that the job reads is."""
        if open_bytes:
            read = (part.view(open_bytes.marks, f"<u{part.item}") for name, part in self.parts.items() if name != "y")
            y = self.parts["y"]
            marks = y.view(open_bytes.marks, f"<u{y.item}")
            marks[...] = np.iinfo(marks.dtype).max if any(part.any() for part in read) else 0

    def _read(self, name):
        """The raw bits of a part, or None if the job does not use it."""
        part = self.parts.get(name)
        return part and part.view(self.smem, f"<u{part.item}")

    def _results(self):
        """Raw bits of all results, of shape (points, Co)."""
        if self.operation == ConvOperation.MAX_POOL:
            return largest(self.shape, self.kind, self._read("x"))
        acc = self._accumulators()
        if self.output == ConvOutput.RAW:
            return acc & 0xFFFFFFFF
        if self.output.half:
            return half_floats(acc, self.output)
        return self._requantised(acc)

    def _accumulators(self):
        """Sums of all windows, int64, correct modulo 2^32."""
        shape, kind, fields = self.shape, self.kind, self.fields
        table = self._read("table")
        acc = np.zeros((shape.points, shape.out_channels), np.int64)
        if fields["bias"]:
            acc += table[0::2].astype(np.int64)
        x, k = self._read("x"), self._read("k")
        zeros = fields["x_zero"], fields["k_zero"]
        if self.operation.lanes:
            k = k if k is None else k.reshape(shape.kernel[1], shape.kernel[0], shape.channels)
            if kind.is_float:
                sum_floats(shape, kind, x, k, acc)
            else:
                sum_integers(shape, kind, x, k, zeros, acc)
            return acc
        k = k.reshape(shape.out_channels, shape.kernel[1], shape.kernel[0], shape.channels)
        if kind.is_float:
            convolve_floats(shape, kind, x, k, 1 << fields["granularity"], fields["merge"], acc)
        else:
            convolve_integers(shape, kind, x, k, zeros, acc)
        return acc

    def _requantised(self, acc):
        """Raw bits of 8-bit results."""
        fields = self.fields
        scale = self._read("table")[1::2]
        convert = requantise_zero_first if fields["zero_first"] else requantise
        results = convert(acc, scale, self._number(fields["y_zero"]), self._clamp("minimum", "maximum"))
        if fields["add"]:
            second = self._number(self._read("addend").reshape(acc.shape).astype(np.int64))
            clamp = self._clamp("add_minimum", "add_maximum")
            results = add_residual(results, second, fields["ratio"], fields["offset"], clamp)
        return results & 0xFF

    def _number(self, bits):
        """Raw bits of the output type as numbers."""
        return (bits ^ 0x80) - 0x80 if self.output == ConvOutput.S8 else bits

    def _clamp(self, *names):
        return tuple(self._number(self.fields[name]) for name in names)

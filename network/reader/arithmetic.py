"""Quotients and sums of tensors that a kernel computes in floats (docs/network.md, "Exact arithmetic")."""

import numpy as np

from ..arithmetic import limits, numbers
from ..attributes import Arithmetic
from .operator import Constant, reads
from .sums import sum_of_two
from .tables import binary, bytes_in_common, repeated

__all__ = []


@reads("Div")
def _div(op, reading):
    """Div of floats: of a tensor and a number, of functions of one tensor, or of two tensors."""
    op.refuse_if(len(op) != 2, f"it has {len(op)} inputs, and only two are supported")
    reals = [None if isinstance(op.value(index), Constant) else reading.real(op.input_name(index)) for index in (0, 1)]
    if None in reals or bytes_in_common(reading, *(real.name for real in reals)):
        binary(op, reading)
    else:
        _defer(op, reading, reals)


@reads("Sum")
def _sum(op, reading):
    """Sum of floats: of any number of tensors, which is rounded once."""
    if len(op) <= 2:
        sum_of_two(op, reading)
    else:
        _defer(op, reading, [op.real(index) for index in range(len(op))])


def _defer(op, reading, reals):
    shapes = [tuple(reading.shape(real.name)) for real in reals]
    try:
        shape = np.broadcast_shapes(*shapes)
    except ValueError:
        listed = " and ".join(str(list(each)) for each in shapes)
        raise op.refusal(f"its inputs are {listed}, which do not fit") from None

    def finish(output, y, clamp):
        names = tuple(repeated(op, reading, real.name, shape) for real in reals)
        quantities = tuple((real.quantity.scale, real.quantity.zero) for real in reals)
        made = output if clamp == limits(y.dtype) else reading.fresh(f"{output}.whole")
        reading.emit(op, names, made, Arithmetic(op.kind, quantities, y.scale, y.zero), shape, y.dtype)
        if made != output:
            reading.table(op, made, output, np.clip(numbers(y.dtype), *clamp).astype(y.dtype))

    reading.defer(op, shape, finish)

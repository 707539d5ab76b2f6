"""Kernels that compute an LSTM, a GRU or an RNN step by step (docs/network.md, "Kernels")."""

from dataclasses import dataclass, replace

import numpy as np

from tilewright.sim.kernels.text import kernel_words

from ..arithmetic import dequantise, numbers
from ..recurrence import PHASES
from .kernels import Kernel, UnfitError, engine_of, fitting
from .layers import Layer
from .operators import refuse
from .places import LINE, padded, place_of
from .recurrent_text import WORDS, depth_of, text_of_phase

__all__ = ["ALIGNMENT", "WORDS", "RecurrentKernel", "Stage", "by_steps", "recurrent_kernel"]

#: Rows of weights, of 128 bytes, that lie in different banks. Eight of them are a period of the swizzle.
_BANKS = 8
#: Bytes that the address of weights is a multiple of.
ALIGNMENT = 4 * WORDS * _BANKS
#: Rows of x, and of results, that are in shared memory at a time, unless a step has more; and most rows of a box.
_ROWS, _MOST_ROWS = 64, 256
#: Segments of a call.
_SEGMENTS = 6


@dataclass(frozen=True)
class Stage:
    """A phase of a step, by calls of a kernel. Its weights are the constant of the same number.

    Attributes
    ----------
    entry : int
        Where it begins, from the beginning of the kernel.
    pairs : int
        Pairs of blocks of units.
    bytes : int
        Of the weights of a pair.
    cycles : int
        Expected cycles of a pair.
    """

    entry: int
    pairs: int
    bytes: int
    cycles: int


@dataclass(frozen=True, eq=False)
class RecurrentKernel(Kernel):
    """A kernel for a step of a layer. ``columns`` are inputs; ``rows`` are those of all steps, one for each batch.

    Attributes
    ----------
    stages : tuple of Stage
        The constant after their weights has the first states, twice, and the first cells.
    units : int
        Units of a pair.
    batch, hidden, cells : int
        States of a step, numbers of a state, and numbers of a state's cells.
    reverse : bool
    """

    stages: tuple = ()
    units: int = 0
    batch: int = 1
    hidden: int = 0
    cells: int = 0
    reverse: bool = False

    @property
    def band(self):
        """Rows of x, and of results, that are in shared memory at a time: those of whole steps."""
        return max(min(_ROWS, self.rows) // self.batch, 1) * self.batch

    @property
    def state_bytes(self):
        """Bytes of the states before and after a step, and of the cells, of all batches."""
        return tuple(self.batch * padded(4 * size) for size in (self.hidden, self.hidden, self.cells))

    @property
    def rooms(self):
        """Bytes of shared memory of the states, of a band of results, and of one of x."""
        page = LINE << (self.band - 1).bit_length()
        bands = (padded(columns, LINE) // LINE * page for columns in (self.hidden, self.columns))
        return padded(sum(self.state_bytes), LINE), *bands

    @property
    def least_bytes(self):
        """Bytes of shared memory that the layer needs, with the weights of one pair of blocks of a stage."""
        return max(stage.bytes for stage in self.stages) + ALIGNMENT + sum(self.rooms)


def recurrent_kernel(node, rows, x_dtype, pe, room):
    """The :class:`RecurrentKernel` of a ``Recurrent`` of some rows on an engine with ``room`` bytes of shared memory.

    UnfitError if there is none.
    """
    threads, (batch, hidden) = engine_of(pe).threads, node.hidden.shape
    if batch > _MOST_ROWS:
        raise UnfitError(f"a step has {batch} batches, and at most {_MOST_ROWS} are supported")
    half = min(threads // _BANKS * _BANKS, padded(-(-hidden // 2), _BANKS))
    pages = sum(-(-columns // LINE) for columns in (hidden, node.weight.shape[1]))
    if not half or pe.segments < _SEGMENTS or pe.pages < pages:
        sizes = f"{_BANKS} threads, {_SEGMENTS} segments and {pages} pages"
        raise UnfitError(f"it needs a processing engine with at least {sizes}")
    code, stages, constants = [], [], []
    for number, phase in enumerate(PHASES[node.cells, node.after]):
        text, registers = text_of_phase(node, number, half, threads)
        if pe.regs < registers:
            raise UnfitError(f"the kernel needs {registers} registers")
        weights = _weights(node, phase, node.bias[number], half)
        chunks = (weights.shape[1] // half - 1) // 2
        stages.append(Stage(len(code), len(weights), 4 * WORDS * weights.shape[1], 500 + 240 * chunks))
        constants.append(_swizzled(weights))
        code += kernel_words(text, {})
    # A GRU keeps the state that a gate has scaled, a sum, and another gate.
    cells = np.zeros((batch, 6 * half * stages[0].pairs), np.float32) if node.cells == "GRU" else node.cell
    states = [np.pad(each, [(0, 0), (0, -each.shape[1] % 4)]).reshape(-1) for each in (node.hidden, node.hidden, cells)]
    constants.append(np.concatenate(states))
    words = tuple(np.ascontiguousarray(each).view(np.uint32).reshape(-1) for each in constants)
    table = dequantise(numbers(x_dtype), node.x_scale, node.x_zero)
    lookup = np.resize(table.view(np.uint32), pe.lookup_words)
    kernel = RecurrentKernel(
        node.cells.lower(), tuple(code), tuple(lookup.tolist()), words, (), node.weight.shape[1], (1, 1), 1, 0,
        rows=rows, dtype=x_dtype, stages=tuple(stages), units=2 * half, batch=batch, hidden=hidden,
        cells=cells.shape[1], reverse=node.reverse,
    )  # fmt: skip
    if kernel.least_bytes > room:
        sentence = f"{kernel.least_bytes:,} bytes for its states and for the weights of {2 * half} units"
        raise UnfitError(f"{sentence} do not fit {room:,} bytes of shared memory")
    return fitting(kernel, pe)


def _weights(node, phase, bias, half):
    """Rows of weights of a phase, [pairs, rows, WORDS]: a row for each unit of a half.

    First the biases of both halves; then for each chunk of the vectors the weights of one half, and of the other.
    """
    hidden = node.recurrence.shape[1]

    def by_unit(array):
        """Numbers [gates, hidden, …] as [pairs, 2, half, gates, …], with zeros for units that do not exist."""
        array = np.pad(array, [(0, 0), (0, -hidden % (2 * half))] + [(0, 0)] * (array.ndim - 2))
        return np.moveaxis(array, 0, 1).reshape(-1, 2, half, len(array), *array.shape[2:])

    biases = by_unit(bias)
    rows = [np.concatenate([biases[:, 0], biases[:, 1]], axis=-1)]
    for name, gates in phase.products:
        weights = node.weight if name == "x" else node.recurrence
        length, deep = weights.shape[1], depth_of(gates)
        weights = weights.reshape(-1, hidden, length)[[gate for _, gate in gates]]
        weights = by_unit(np.pad(weights, [(0, 0), (0, 0), (0, -length % deep)])).swapaxes(-1, -2)
        for first in range(0, length, deep):
            rows.append(weights[..., first : first + deep, :].reshape(len(weights), 2 * half, -1))
    rows = [np.pad(each, [(0, 0), (0, 0), (0, WORDS - each.shape[-1])]) for each in rows]
    return np.concatenate(rows, axis=1)


def _swizzled(weights):
    """Rows with each block of 16 bytes where a swizzle with a span of 128 bytes has it."""
    blocks = weights.reshape(-1, _BANKS, _BANKS, WORDS // _BANKS)
    row, block = np.indices((_BANKS, _BANKS))
    return blocks[:, row, block ^ row]


def by_steps(tensors, node, pe, room):
    """Adds the layer of a ``Recurrent``."""
    source, output = tensors.place(node.inputs[0]), place_of(tensors.graph.tensors[node.output])
    try:
        kernel = recurrent_kernel(node.attributes, source.batch, source.dtype, pe, room)
    except UnfitError as error:
        refuse(node, str(error))
    source, output = (replace(place, batch=1, height=place.batch) for place in (source, output))
    tensors.append(Layer(node.name, node.operator or node.kind, output, (source,), kernel=kernel))

"""Steps of a layer that only moves elements, in bands if it does not fit (docs/network.md, "Moves").

A transpose is faster as a product: its data are the weights, and X is the identity.
"""

from itertools import product
from math import ceil, prod
from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import CHANNEL_BYTES, ConvOperation, ConvOutput

from ..graph import node_error
from ..lower.layers import Part
from ..lower.places import BLOCK, LINE, padded
from .costs import plan_part
from .steps import Jobs, Load, Store, block

__all__ = ["Identity", "has_transposes", "move_steps"]

#: Buffers: a band of the output and pieces of the sources, and those of the next band.
_BUFFERS = 4
#: Output channels of a job at most: the entries of the table.
_MOST = 256


class _Piece(NamedTuple):
    """Bytes of a source that are loaded at once, and the moves that read them."""

    source: int
    first: int
    last: int
    moves: list


def has_transposes(layer, conv, room):
    """Whether a layer has moves that are faster as products, and the identity fits into ``room`` bytes."""
    products = (_product_jobs(move, conv, _cycles(move, conv), 0, 0, 0) for move in layer.moves)
    return _BUFFERS * Identity(conv).size <= room and any(products)


def move_steps(layer, low, high, down, addresses, conv, identity):
    """Steps of a layer of moves, with buffers from ``low`` to ``high``; at the end if ``down`` and all of it fits.

    ``identity`` is the address of an :class:`Identity` in global memory.
    """
    own = None
    if has_transposes(layer, conv, high - low):
        own, size = low, Identity(conv).size
        low += padded(size, LINE)
        yield Load([block(identity, own, size)])
    whole = sum(padded(place.size, LINE) for place in (*layer.sources, layer.output))
    if whole <= high - low:
        base = high - whole if down else low
        share, outputs = layer.output.size, [base]
        spots = [base + padded(share, LINE)] * 2
        room = whole - padded(share, LINE)
    else:
        share = room = (high - low) // _BUFFERS // LINE * LINE
        if not share:
            sentence = f"{high - low} bytes of shared memory are less than {_BUFFERS} lines of {LINE}"
            raise node_error(layer.name, layer.operator, sentence)
        outputs, spots = [low, low + share], [low + 2 * share, low + 3 * share]
    number = 0
    for turn, (first, last, moves) in enumerate(_bands(layer.moves, layer.output.size, share)):
        target = outputs[turn % len(outputs)]
        for pieces in _at_once(moves, len(layer.sources), room):
            yield from _moved(pieces, layer, spots[number % 2], target - first, (target, target + last - first),
                              addresses, conv, own)  # fmt: skip
            number += 1
        yield Store([block(addresses[layer.output.name] + first, target, last - first)])


def _unit(moves, side, room):
    """Bytes at whose multiples source or output is cut: the largest step of a loop that fits, or a block."""
    steps = (loop[1 + side] for move in moves for loop in move.loops)
    return max((step for step in steps if 0 < step <= room and step % BLOCK == 0), default=BLOCK)


def _bands(moves, size, share):
    """The output in bands of at most ``share`` bytes: offset of the first byte, end, and the moves into it."""
    unit = _unit(moves, 1, share)
    most = share // unit * unit
    for first in range(0, size, most):
        last = min(first + most, size)
        cut = [move.split(1, last) for move in moves]
        yield first, last, [move for before, _ in cut for move in before]
        moves = [move for _, after in cut for move in after]


def _at_once(moves, sources, room):
    """Lists of the :class:`_Piece` that are loaded at once for a band, at most ``room`` bytes each."""
    pieces = [piece for number in range(sources)
              for piece in _pieces([move for move in moves if move.source == number], room)]  # fmt: skip
    group, free = [], room
    for piece in pieces:
        size = padded(piece.last - piece.first, LINE)
        if size > free:
            yield group
            group, free = [], room
        group.append(piece)
        free -= size
    yield group


def _pieces(moves, room):
    """The bytes of a source that moves read, in pieces of at most ``room`` bytes."""
    unit = _unit(moves, 0, room)
    while moves:
        low = min(move.span(0)[0] for move in moves)
        cut = [move.split(0, low // unit * unit + room // unit * unit) for move in moves]
        now = [move for before, _ in cut for move in before]
        last = max(move.span(0)[1] for move in now)
        yield _Piece(now[0].source, low // BLOCK * BLOCK, padded(last), now)
        moves = [move for _, after in cut for move in after]


def _cycles(move, conv):
    """Cycles of a move by jobs that copy contiguous bytes."""
    return sum(max(prod(job.sizes[1:]) * ceil(job.sizes[0] / conv.row_bytes), ceil(prod(job.sizes) / conv.results))
               for job in move.jobs)  # fmt: skip


def _moved(pieces, layer, spot, target, band, addresses, conv, identity):
    """Steps that load pieces of sources to ``spot`` and move them; the first byte of the output is at ``target``."""
    transfers, jobs, reads, cycles = [], [], [], 0
    for piece in pieces:
        size = piece.last - piece.first
        transfers.append(block(addresses[layer.sources[piece.source].name] + piece.first, spot, size))
        reads.append((spot, spot + size))
        for move in piece.moves:
            ends, copy_cycles = (spot - piece.first, target), _cycles(move, conv)
            product = None if identity is None else _product_jobs(move, conv, copy_cycles, identity, *ends)
            if product:
                reads.append((identity, identity + Identity(conv).size))
            move_jobs, move_cycles = product or ([_plain(job, conv, *ends) for job in move.jobs], copy_cycles)
            jobs += move_jobs
            cycles += move_cycles
        spot += padded(size, LINE)
    yield Load(transfers)
    yield Jobs(jobs, reads, [band], cycles)


def _plain(job, conv, spot, target):
    """The fields of a :class:`Job` that copies bytes."""
    channels, columns, rows, images = job.sizes
    # A step reads one block of a pixel: small blocks would make long runs slow.
    block = min(conv.row_bytes, max(conv.row_bytes // 16, 1 << (channels - 1).bit_length()))
    return {
        "operation": ConvOperation.MAX_POOL, "type": "u8u8", "output": ConvOutput.ELEMENT,
        "granularity": block.bit_length() - 1, "channels": channels, "out_channels": channels,
        "width": columns, "height": rows, "batch": images, "out_width": columns, "out_height": rows,
        "x": spot + job.x, "x_pitch": job.x_pitch, "y": target + job.y, "y_pitch": job.y_pitch,
    }  # fmt: skip


class Identity:
    """Constants of products that transpose, with the interface of an ``Image``: X, and a table whose scales are 1.

    Parameters
    ----------
    conv : ConvParams

    Attributes
    ----------
    table : int
        Byte offset of the table.
    size : int
        Bytes of both.
    """

    def __init__(self, conv):
        self._row = conv.row_bytes
        self.table = conv.row_bytes**2
        self.size = self.table + CHANNEL_BYTES * _MOST

    def data(self):
        """The bytes."""
        table = np.tile(np.array([0, np.float32(1).view(np.uint32)], np.uint32), _MOST)
        return np.concatenate((np.eye(self._row, dtype=np.uint8).ravel(), table.view(np.uint8)))


def _product_jobs(move, conv, most, identity, spot, target):
    """Fields of jobs that do a :class:`Move`, and their cycles; None if it is not a transpose or takes ``most`` cycles.

    Bytes contiguous in the source become pixels of the output, bytes contiguous in the output become its channels: the
    weights of channel c are the bytes of channel c, for as many pixels as the identity has rows.

    Parameters
    ----------
    move : Move
    conv : ConvParams
    most : int
    identity : int
        Address of an :class:`Identity` in shared memory.
    spot, target : int
        Addresses in shared memory of offset 0 of source and output.
    """
    channels = next((loop for loop in move.loops if loop[2] == 1 and loop[1] > 1), None)
    pixels = next((loop for loop in move.loops if loop[1] == 1 and loop[2] > 1), None)
    if channels is None or pixels is None:
        return None
    others = [loop for loop in move.loops if loop not in (channels, pixels)]
    blocks = list(product(_cut(channels[0], _MOST), _cut(pixels[0], conv.row_bytes)))
    parts = [_product(pixel[1], channel[1], conv, identity) for channel, pixel in blocks]
    cycles = prod(size for size, *_ in others) * sum(cycles for _, cycles in parts)
    if cycles >= most:
        return None
    jobs = []
    for index in product(*(range(size) for size, *_ in others)):
        k, y = (begin + start + sum(i * loop[side] for i, loop in zip(index, others, strict=True))
                for side, begin, start in zip((1, 2), (spot, target), move.start, strict=True))  # fmt: skip
        jobs += [
            fields | {"k": k + channel * channels[1] + pixel, "k_pitch": channels[1],
                      "y": y + channel + pixel * pixels[2], "y_pitch": (pixels[2],) * 3}
            for ((channel, _), (pixel, _)), (fields, _) in zip(blocks, parts, strict=True)
        ]  # fmt: skip
    return jobs, cycles


def _cut(size, most):
    """Pieces of at most ``most`` indices: the first index, and how many there are."""
    return [(first, min(size - first, most)) for first in range(0, size, most)]


def _product(pixels, channels, conv, identity):
    """Fields of a job of some pixels and output channels, without addresses of weights and results; and its cycles."""
    part = Part(operation=ConvOperation.CONVOLUTION, source=0, channels=(0, pixels), out_channels=(0, channels),
                rows=(0, 1), columns=(0, pixels), table=np.empty((channels, 2)))  # fmt: skip
    plan, cost = plan_part(part, channels, 1, pixels, conv.row_bytes, conv)
    fields = {
        "operation": ConvOperation.CONVOLUTION, "type": "u8u8", "output": ConvOutput.U8, "minimum": 0, "maximum": 255,
        "raster": plan.raster, "granularity": plan.block_bytes.bit_length() - 1, "merge": plan.merge,
        "channels": pixels, "out_channels": channels, "width": pixels, "height": 1, "out_width": pixels,
        "out_height": 1, "x": identity, "x_pitch": (conv.row_bytes,) * 3, "table": identity + Identity(conv).table,
    }  # fmt: skip
    return fields, cost.cycles

"""Steps of a layer that only moves elements, in bands if it does not fit (docs/network.md, "Moves").

A transpose is faster as a product: its data are the weights, and X is the identity.
"""

from dataclasses import replace
from itertools import product
from math import ceil, prod
from typing import NamedTuple

import numpy as np

from tilewright.spec.conv import CHANNEL_BYTES, ConvOperation, ConvOutput

from ..graph import node_error
from ..lower.layers import Part
from ..lower.moves import Move
from ..lower.places import BLOCK, LINE, Place, cut_place, padded
from ..tiling.costs import plan_part
from ..tiling.shares import chunk
from .layer_steps import transfers_of
from .steps import Jobs, Load, Store, block

__all__ = ["Identity", "has_transposes", "move_steps"]

#: Buffers: a band of the output and pieces of the sources, and those of the next band.
_BUFFERS = 4
#: Output channels of a job at most: the entries of the table.
_MOST = 256
#: Most bytes of a row of a box.
_WIDEST = 2048


class _Piece(NamedTuple):
    """Bytes of a source that are loaded at once, and the moves that read them.

    Attributes
    ----------
    source : int
    first, last : int
        Offsets of the first byte and of the end: in the source, or in shared memory if ``cut`` is given.
    moves : list of Move
    cut : Place or None
        What is loaded by boxes: some bytes of each of ``rows``, the first one and the end.
    """

    source: int
    first: int
    last: int
    moves: list
    cut: Place | None = None
    rows: tuple[int, int] = (0, 0)


def has_transposes(layer, conv, room):
    """Whether a layer has moves that are faster as products, and the identity fits into ``room`` bytes."""
    products = (_product_jobs(move, conv, _cycles(move, conv), 0, 0, 0) for move in layer.moves)
    return _BUFFERS * Identity(conv).size <= room and any(products)


def move_steps(layer, low, high, down, addresses, conv, identity, share=(0, 1)):
    """Steps of a layer of moves, with buffers from ``low`` to ``high``; at the end if ``down`` and all of it fits.

    ``identity`` is the address of an :class:`Identity` in global memory. ``share`` is the number of the core, and the
    number of cores.
    """
    own = None
    if has_transposes(layer, conv, high - low):
        own, size = low, Identity(conv).size
        low += padded(size, LINE)
    whole = sum(padded(place.size, LINE) for place in (*layer.sources, layer.output))
    if whole <= high - low and share[1] == 1:
        base = high - whole if down else low
        most, outputs = layer.output.size, [base]
        spots = [base + padded(most, LINE)] * 2
        room = whole - padded(most, LINE)
    else:
        room = (high - low) // _BUFFERS // LINE * LINE
        most = min(room, padded(ceil(layer.output.size / share[1]), LINE))
        if not room:
            sentence = f"{high - low} bytes of shared memory are less than {_BUFFERS} lines of {LINE}"
            raise node_error(layer.name, layer.operator, sentence)
        outputs, spots = [low, low + room], [low + 2 * room, low + 3 * room]
    number, unit = 0, _unit(layer.moves, 1, most)
    in_boxes = own is not None and len(outputs) > 1
    if in_boxes:
        unit = _unit_of_boxes(layer.moves, most) or unit
    bands = chunk(list(_bands(layer.moves, layer.output.size, most, unit)), share)
    if own is not None and bands:
        yield Load([block(identity, own, size)])
    for turn, (first, last, moves) in enumerate(bands):
        target = outputs[turn % len(outputs)]
        boxes = _boxes(layer, moves, conv) if in_boxes else []
        for pieces in _at_once(boxes or _in_order(moves, len(layer.sources), room), room):
            yield from _moved(pieces, layer, spots[number % 2], target - first, (target, target + last - first),
                              addresses, conv, own)  # fmt: skip
            number += 1
        yield Store([block(addresses[layer.output.name] + first, target, last - first)])


def _unit(moves, side, room):
    """Bytes at whose multiples source or output is cut: the largest step of a loop that fits, or a block."""
    steps = (loop[1 + side] for move in moves for loop in move.loops)
    return max((step for step in steps if 0 < step <= room and step % BLOCK == 0), default=BLOCK)


def _bands(moves, size, share, unit):
    """The output in bands of at most ``share`` bytes: offset of the first byte, end, and the moves into it."""
    most = share // unit * unit
    for first in range(0, size, most):
        last = min(first + most, size)
        cut = [move.split(1, last) for move in moves]
        yield first, last, [move for before, _ in cut for move in before]
        moves = [move for _, after in cut for move in after]


def _at_once(pieces, room):
    """Lists of pieces that are loaded at once for a band, at most ``room`` bytes each."""
    group, free = [], room
    for piece in pieces:
        size = padded(piece.last - piece.first, LINE)
        if size > free:
            yield group
            group, free = [], room
        group.append(piece)
        free -= size
    yield group


def _in_order(moves, sources, room):
    """The :class:`_Piece` of each source, one after the other."""
    return [piece for number in range(sources)
            for piece in _pieces([move for move in moves if move.source == number], room)]  # fmt: skip


def _unit_of_boxes(moves, share):
    """Bytes of the output for a block of each row that transposes read; 0 if rows are no blocks or too long."""
    units = set()
    for move in moves:
        channels, pixels = _transposed(move)
        blocks = channels and pixels and not any(part % BLOCK for part in (channels[1], pixels[0], move.start[0]))
        units.add(BLOCK * pixels[2] if blocks else 0)
    unit = units.pop()
    return unit if not units and unit <= share else 0


def _boxes(layer, moves, conv):
    """A :class:`_Piece` for each transpose of a matrix that ``moves`` do, without other bytes of its rows.

    None if they do anything else, or if boxes do not begin and end at whole blocks.
    """
    pieces = []
    for move in moves:
        channels, pixels = _transposed(move)
        if not channels or not pixels or not _product_jobs(move, conv, _cycles(move, conv), 0, 0, 0):
            return []
        place, (count, pitch, _), (wide, _, apart) = layer.sources[move.source], channels, pixels
        rows = replace(place, batch=1, height=place.size // pitch, width=1, channels=pitch)
        others = [loop for loop in move.loops if loop not in (channels, pixels)]
        for index in product(*(range(size) for size, *_ in others)):
            start, target = (begin + sum(i * loop[side] for i, loop in zip(index, others, strict=True))
                             for side, begin in zip((1, 2), move.start, strict=True))  # fmt: skip
            row, first = divmod(start, pitch)
            inside = first + wide <= pitch and place.size % pitch == 0
            if not inside or wide > _WIDEST or any(part % BLOCK for part in (pitch, first, wide)):
                return []
            moved = Move(((count, wide, 1), (wide, 1, apart)), (0, target), move.source)
            cut = cut_place(rows, (first, wide), (0, 1))
            pieces.append(_Piece(move.source, 0, count * wide, [moved], cut, (row, row + count)))
    return pieces


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
        if piece.cut is None:
            transfers.append(block(addresses[layer.sources[piece.source].name] + piece.first, spot, size))
        else:
            transfers += transfers_of(piece.cut, addresses, 0, *piece.rows, size, spot)
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


def _transposed(move):
    """The loops over bytes that are contiguous in the output, and in the source; None if there is no such loop."""
    return (next((loop for loop in move.loops if loop[side] == 1 and loop[3 - side] > 1), None) for side in (2, 1))


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
    channels, pixels = _transposed(move)
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

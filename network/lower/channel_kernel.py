"""A kernel that normalises channels over all pixels of an image (docs/network.md, "Kernels").

A thread has four channels side by side, or twice four; sums stay in its registers from band to band. If channels form
groups, each thread adds the sums of the groups of its channels, which all threads have stored.
"""

from dataclasses import dataclass
from math import ceil, lcm

import numpy as np

from tilewright.sim.kernels.text import kernel_words

from .kernels import Kernel, UnfitError, engine_of, fitting, float_bits
from .places import BLOCK

__all__ = ["ChannelKernel", "channel_kernel"]

#: Registers: words of pixels, places of sums, temporary numbers, and the first of eight for each group of channels.
_WORDS, _PLACES, _TEMPORARY, _SUMS = 4, 8, 12, 20
#: Channels of a thread in a group, groups, and channels that are done at once.
_FOUR, _GROUPS, _MOST = 4, 2, 128
_MOST_PIXELS = 65536  # sums of squares have 32 bits


@dataclass(frozen=True, eq=False)
class ChannelKernel(Kernel):
    """A kernel that normalises channels; ``entries`` says where each of its four steps begins."""

    entries: tuple = ()


def channel_kernel(node, width, x_dtype, y_dtype, pe, pixels):
    """The :class:`ChannelKernel` of a ``NormaliseChannels`` of images of ``pixels`` pixels; UnfitError if none fits."""
    threads = engine_of(pe).threads
    if pixels > _MOST_PIXELS:
        raise UnfitError(f"{pixels:,} pixels of an image are more than {_MOST_PIXELS:,}")
    if pixels * node.members > _MOST_PIXELS:
        raise UnfitError(f"{pixels * node.members:,} elements of a group are more than {_MOST_PIXELS:,}")
    most = min(_GROUPS * _FOUR * threads, _MOST)
    # Bands of channels begin at multiples of 16 bytes, and with a group.
    unit = lcm(node.members, BLOCK)
    if width > most < unit:
        raise UnfitError(f"groups of {node.members} channels do not fit bands of {most} channels")
    group = width if width <= most else most // unit * unit
    groups = ceil(group / (_FOUR * threads))
    registers = _SUMS + 2 * _FOUR * (groups + (node.members > 1))
    if pe.regs < registers:
        raise UnfitError(f"the kernel needs {registers} registers")
    code, entries = [], []
    for text in _texts(node, pixels, groups, _FOUR * threads, x_dtype, y_dtype):
        entries.append(len(code))
        code += kernel_words(text, {})
    constants = (node.gain.view(np.uint32), node.shift.view(np.uint32))
    if node.members > 1:
        constants += (np.zeros(2 * _MOST, np.uint32),)  # room for sums
    kernel = ChannelKernel("channel_norm", tuple(code), (), constants, (), width, (1, 1), 1, 45 + 25 * groups, group,
                           entries=tuple(entries), dtype=x_dtype)  # fmt: skip
    return fitting(kernel, pe)


def _texts(node, pixels, groups, wide, x_dtype, y_dtype):
    """The texts of the steps: begin with no sums; add pixels; find factors; apply them to pixels.

    Arguments are the segment of pixels, their number, and the segments of gains and shifts, and of sums of groups.
    """
    four, u = range(_FOUR), "u" if x_dtype == "uint8" else ""
    words = [_WORDS + group for group in range(groups)]
    first, second = ([[_SUMS + 8 * group + 4 * half + n for n in four] for group in range(groups)] for half in (0, 1))
    rows = ["mov r1, 0", "loop ur1", *(f"ld r{word}, ur0:rf0:{wide * group}, 1" for group, word in enumerate(words))]
    yield _text(["mov r0, tid", "shl r0, r0, 2", "mov r2, 0"],
                (f"mov r{register}, 0" for sums in (*first, *second) for register in sums))  # fmt: skip
    added, applied = [], []
    for group, word in enumerate(words):
        bytes_of = [_TEMPORARY + 4 * (group % 2) + n for n in four]
        extracted = [f"xb{u}.{n} r{bytes_of[n]}, r{word}, {-node.x_zero}" for n in four]
        added += [*extracted, *(f"add r{first[group][n]}, r{first[group][n]}, r{bytes_of[n]}" for n in four)]
        added += [f"mad r{second[group][n]}, r{bytes_of[n]}, r{bytes_of[n]}, r{second[group][n]}" for n in four]
        applied += [*extracted, *(f"fs r{each}, r{each}" for each in bytes_of)]
        applied += [f"fma r{bytes_of[n]}, r{bytes_of[n]}, r{first[group][n]}, r{second[group][n]}" for n in four]
        applied += [f"sf r{each}, r{each}" for each in bytes_of]
        pack = "packbu" if y_dtype == "uint8" else "packb"
        applied += [f"{pack}.0 r{word}, r{bytes_of[0]}, r{bytes_of[1]}, r2",
                    f"{pack}.1 r{word}, r{bytes_of[2]}, r{bytes_of[3]}, r{word}",
                    f"st r{word}, ur0:rf0:{wide * group}, 1"]  # fmt: skip
    yield _text(rows, [*added, "add r1, r1, 1", "end"])
    together = _sums_of_groups(node.members, wide, first, second) if node.members > 1 else ()
    yield _text(["mov r3, 1.0"], together, _factors(node, pixels * node.members, wide, first, second))
    yield _text(rows, [*applied, "add r1, r1, 1", "end"])


def _sums_of_groups(members, wide, first, second):
    """Instructions that put the sums of its group in the place of those of each channel."""
    four = range(_FOUR)
    for group in range(len(first)):
        for number, sums in enumerate((first, second)):
            yield f"st r{sums[group][0]}, ur4:rf0:{wide * group + number * _MOST}, {_FOUR}"
    totals = _SUMS + 2 * _FOUR * len(first)
    for group, sums in enumerate(first):
        for n in four:
            yield from (f"add r{_PLACES + n}, r0, {wide * group + n}",
                        f"divu r{_PLACES + n}, r{_PLACES + n}, {members}",
                        f"mul r{_PLACES + n}, r{_PLACES + n}, {members}",
                        f"mov r{totals + n}, 0", f"mov r{totals + _FOUR + n}, 0")  # fmt: skip
        yield f"loop {members}"
        yield from (f"ld r{_TEMPORARY + half * _FOUR + n}, ur4:rf{_PLACES + n}:{half * _MOST}, 1"
                    for half in (0, 1) for n in four)  # fmt: skip
        yield from (f"add r{totals + n}, r{totals + n}, r{_TEMPORARY + n}" for n in range(2 * _FOUR))
        yield from (f"add r{_PLACES + n}, r{_PLACES + n}, 1" for n in four)
        yield "end"
        yield from (f"mov r{sums[0] + n}, r{totals + n}" for n in range(2 * _FOUR))


def _factors(node, count, wide, first, second):
    """Instructions that put a and s of each channel in the place of its sums of ``count`` elements."""
    share = float_bits(np.float32(1) / np.float32(count))
    for group, (sums, squares) in enumerate(zip(first, second, strict=True)):
        gains, shifts = _TEMPORARY, _TEMPORARY + 4
        yield f"ld r{gains}, ur2:rf0:{wide * group}, 4"
        yield f"ld r{shifts}, ur3:rf0:{wide * group}, 4"
        for step in (
            "fs r{m}, r{m}",
            "fu r{v}, r{v}",
            f"fmul r{{m}}, r{{m}}, {share}",
            f"fmul r{{v}}, r{{v}}, {share}",
        ):
            yield from (step.format(m=m, v=v) for m, v in zip(sums, squares, strict=True))
        for n, (m, v) in enumerate(zip(sums, squares, strict=True)):
            yield from (f"xor r{_WORDS}, r{m}, 0x80000000", f"fma r{v}, r{_WORDS}, r{m}, r{v}", f"fmax r{v}, r{v}, 0",
                        f"fadd r{v}, r{v}, {float_bits(node.epsilon)}", f"fsqrt r{v}, r{v}", f"fdiv r{v}, r3, r{v}",
                        f"fmul r{_WORDS}, r{_WORDS}, r{v}", f"fmul r{m}, r{v}, r{gains + n}",
                        f"fma r{v}, r{_WORDS}, r{gains + n}, r{shifts + n}")  # fmt: skip


def _text(*parts):
    return "\n".join([*(line for part in parts for line in part), "return"])

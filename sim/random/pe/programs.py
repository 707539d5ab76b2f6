"""Random programs of the processing engine, legal and illegal, whose result does not depend on time.

The first registers, the *offsets*, are known for as long as a program runs: most of them differ from thread to thread
by a known gap and are never written again, so that two threads never store to the same byte. All else may become
anything.
"""

import random

import numpy as np

from tilewright.golden.pe.machine import instruction_word as word
from tilewright.golden.spec.pe.instruction import Operation, Source
from tilewright.golden.spec.pe.segment import SEGMENT, SegmentElement

from ...session.pe_program import PeProgram
from .body import RandomBody
from .tables import RandomTables, SegmentPlan
from .values import fill_memory, offset_values, register_values

__all__ = ["random_program", "random_programs"]

_LINE = 128  # at the end of shared memory, with barriers
_WORD = 4


def random_programs(seed, params, count, *, late=False):
    """Yields ``count`` programs; a function of its arguments alone. See :func:`random_program`."""
    rng = random.Random(seed)
    for _ in range(count):
        yield random_program(rng.getrandbits(48), params, late=late)


def random_program(seed, params, *, late=False):
    """A program of 5 to 40 instructions, with a setup before and an ending behind them.

    Parameters
    ----------
    seed : int
    params : PeParams
    late : bool
        Some pages are not loaded when the program begins.
    """
    rng = random.Random(seed)
    clean = rng.random() < 0.4
    table = _Table(params)
    tables = RandomTables(rng, params, table.bytes, params.smem.size_bytes - _LINE, clean, late=late)
    plans = {0: table.plan} | {
        index: tables.wrong() if not clean and rng.random() < 0.12 else tables.legal()
        for index in range(1, params.segments)
        if clean or rng.random() < 0.9
    }
    smem = fill_memory(seed, params.smem.size_bytes)
    offsets = offset_values(rng, params)
    values = register_values(seed, params, table.width)
    values[:, : len(offsets)] = np.transpose([offset.values for offset in offsets])
    smem[: table.bytes] = 0
    rows = smem[: table.bytes].view("<u4").reshape(params.threads, table.pitch)
    rows[:, : table.width] = values
    # Two barriers: their first phase is the current one in the first, complete in the second.
    smem[-_LINE:] = 0
    smem[-_LINE + 8 : -_LINE + 16] = list((1 << 61 | 1 << 20 | 1).to_bytes(8, "little"))
    smem[-_LINE : -_LINE + 8] = list((1 << 20 | 1).to_bytes(8, "little"))
    body = RandomBody(rng, params, plans, offsets, clean)
    setup = [*table.setup(), *body.setup()]
    return PeProgram(
        params=params,
        smem=smem,
        segments={index: plan.word for index, plan in plans.items()},
        pages=tables.pages,
        late=tables.late,
        setup=tuple(setup),
        body=tuple(body.instructions(rng.randint(5, 40))),
        ending=tuple(table.ending(rng, len(offsets))),
    )


class _Table:
    """The rows of registers, one a thread, that a program begins and ends with; they lie at address 0, as segment 0.

    Attributes
    ----------
    width : int
        Registers of a row: all, or as many as a fourth of shared memory has room for.
    """

    def __init__(self, params):
        self._params = params
        room = params.smem.size_bytes // 4 // (_WORD * params.threads)
        log2 = min((params.regs - 1).bit_length(), room.bit_length() - 1)
        self.pitch = 1 << log2
        self.width = min(self.pitch, params.regs)
        self.bytes = _WORD * self.pitch * params.threads
        fields = {"element": SegmentElement.U32, "rank": 2, "size": [self.width, params.threads]}
        fields |= {"page_log2": [log2, (params.threads - 1).bit_length()]}
        self.plan = SegmentPlan(fields, SEGMENT.pack(**fields), stores=False)

    def setup(self):
        """Loads all registers; those past the width of a row get the values of the first ones."""
        yield from self._named()
        for first in range(0, self._params.regs, self.width):
            done = 0 if first else 2
            count = min(self.width, self._params.regs - first) - done
            yield word(Operation.LD, rd=first + done, ur=0, rf=0, imm=done, n=count)

    def ending(self, rng, free):
        """Stores registers, with predicates as ones and zeros in the last ones; ``free``: the first that may change."""
        regs = self._params.regs
        shown = rng.sample(range(8), min(8, (regs - free) // 4)) if rng.random() < 0.7 else []
        for register, predicate in enumerate(shown, regs - len(shown)):
            yield word(Operation.MOV, rd=register, imm=0)
            yield word(Operation.MOV, rd=register, imm=1, guard=1, predicate=predicate)
        yield from self._named()
        first = regs - self.width if shown else rng.randint(0, regs - self.width)
        yield word(Operation.ST, rs=first, ur=0, rf=0, imm=0, n=self.width)
        yield word(Operation.HALT)

    def _named(self):
        """Segment 0, and the offsets of a row."""
        yield word(Operation.MOVU, ud=0, imm=0)
        yield word(Operation.MOV, rd=0, imm=0)
        yield word(Operation.MOV, rd=1, source=Source.THREAD)

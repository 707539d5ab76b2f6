"""Random segments with their page entries: legal ones, wrong ones, and pages that are not where they should be."""

import random
from dataclasses import dataclass, replace

import numpy as np

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.sim.session.products import PeProgram
from tilewright.spec.memory import Swizzle
from tilewright.spec.pe import MAX_PAGE_LOG2, PAGE_ENTRY, SEGMENT, Operation, SegmentElement, Source

from .pe_instructions import RandomBody
from .pe_kernels import LONGEST_LOAD
from .pe_values import fill_memory, offset_values, register_values

__all__ = ["RandomTables", "SegmentPlan", "random_program", "random_programs"]

_CHUNK = 16
_DIMENSIONS = 4


@dataclass(frozen=True)
class SegmentPlan:
    """A segment of the table.

    Attributes
    ----------
    fields : dict
        Of its format; of a wrong one, as they were before.
    word : int
    stores : bool
        Its pages are disjoint and keep off what must not be written: instructions may store there.
    wrong : bool
        It breaks a rule.
    """

    fields: dict
    word: int
    stores: bool
    wrong: bool = False

    @property
    def element(self):
        """Type of its elements."""
        return SegmentElement(self.fields["element"])

    @property
    def rank(self):
        """Its dimensions."""
        return self.fields["rank"]

    @property
    def size(self):
        """Elements of each dimension."""
        return self.fields["size"]


class RandomTables:
    """Makes segments, one after the other, and the entries of their pages.

    Parameters
    ----------
    rng : random.Random
    params : PeParams
    first, end : int
        Bytes of shared memory in which stores may land; 1 KiB or more.
    clean : bool
        Every page is where it should be.

    Attributes
    ----------
    pages : dict of int to int
        Page entries.
    late : dict of int to int
        Those of them that begin as not loaded, as they are later.
    """

    def __init__(self, rng, params, first, end, clean, *, late=False):
        self._rng = rng
        self._params = params
        self._first, self._end = first, end
        self._clean = clean
        self._late = late
        self._free = 0  # the first page entry that no segment has
        self.pages = {}
        self.late = {}

    def legal(self, elements=tuple(SegmentElement)):
        """A segment that breaks no rule."""
        rng = self._rng
        element, rank = rng.choice(elements), rng.choice([1, 2, 2, 2, 3, 4])
        stores = rng.random() < 0.6
        pages = [rng.randint(0, 3)] + [rng.randint(0, 5 if d == 1 else 2) for d in range(1, rank)]
        pages[0] += (_CHUNK // element.bytes).bit_length() - 1
        bits = element.bytes.bit_length() - 1
        large = not stores and rng.random() < 0.05
        room = (1 << MAX_PAGE_LOG2) if large else (self._end - self._first) // 4
        while sum(pages) + bits > room.bit_length() - 1:
            largest = max(range(rank), key=lambda d: (pages[d], d))
            pages[largest] -= 1
        fields = {"element": element, "rank": rank, "swizzle": rng.choice(list(Swizzle)), "page_log2": pages}
        page_bytes = 1 << sum(pages) + bits
        if rng.random() < 0.5 and not large and (not stores or self._free < self._params.pages):
            fields |= self._paged(pages, page_bytes, stores)
        else:
            fields["size"] = [rng.choice([1 << log2, rng.randint(1, 1 << log2)]) for log2 in pages]
            fields["base"] = self._place(page_bytes, stores)
        return SegmentPlan(fields, SEGMENT.pack(**fields), stores)

    def wrong(self):
        """A segment that breaks one rule."""
        rng = self._rng
        plan = self.legal()
        fields = {"first_entry": 0, "base": 0, "paged": 0} | plan.fields
        for name in ("size", "page_log2"):
            fields[name] = [*fields[name], *[0] * (_DIMENSIONS - plan.rank)]
        rules = [self._unknown, self._reserved, self._no_size, self._short_row, self._too_large, self._wrong_place]
        rules += [self._unused] if plan.rank < _DIMENSIONS else []
        word = rng.choice(rules)(fields, plan)
        return replace(plan, word=word, wrong=True)

    def _unknown(self, fields, plan):
        known = [int(element) for element in SegmentElement]
        fields["element"] = self._rng.choice([number for number in range(16) if number not in known])
        return SEGMENT.pack(**fields)

    def _reserved(self, fields, plan):
        mask = SEGMENT.reserved_mask
        return plan.word | 1 << self._rng.choice([bit for bit in range(SEGMENT.bits) if mask >> bit & 1])

    def _no_size(self, fields, plan):
        fields["size"][self._rng.randrange(plan.rank)] = 0
        return SEGMENT.pack(**fields)

    def _unused(self, fields, plan):
        fields[self._rng.choice(["size", "page_log2"])][self._rng.randrange(plan.rank, _DIMENSIONS)] = 1
        return SEGMENT.pack(**fields)

    def _short_row(self, fields, plan):
        shortest = (_CHUNK // plan.element.bytes).bit_length() - 1
        fields["page_log2"][0] = self._rng.randrange(shortest)
        fields["size"][0] = 1
        return SEGMENT.pack(**fields)

    def _too_large(self, fields, plan):
        """A page larger than any may be, or a size larger than the only page."""
        if plan.rank > 1:
            fields["page_log2"][: plan.rank] = [15] * plan.rank
        else:
            fields |= {"paged": 0, "first_entry": 0, "base": 0}
            fields["size"][0] = (1 << fields["page_log2"][0]) + 1
        return SEGMENT.pack(**fields)

    def _wrong_place(self, fields, plan):
        if not fields["paged"]:
            change = self._rng.choice([{"base": fields["base"] + self._rng.randint(1, 15)}, {"first_entry": 1}])
        else:
            change = self._rng.choice([{"base": _CHUNK}, {"first_entry": self._params.pages}])
        fields |= change
        return SEGMENT.pack(**fields)

    def _paged(self, pages, page_bytes, stores):
        """Fields of a paged segment, whose entries are made here if they are its own."""
        rng = self._rng
        table = self._params.pages
        counts = [rng.randint(1, 3) for _ in pages]
        while _product(counts) > (table - self._free if stores else table):
            counts[counts.index(max(counts))] -= 1
        total = _product(counts)
        shared = self._free + total > table or (not stores and rng.random() < 0.15)
        first = rng.randint(0, table - total) if shared else self._free
        if not shared:
            self._free += total
            self._enter(first, total, page_bytes, stores)
        size = [rng.choice([n << log2, rng.randint((n - 1 << log2) + 1, n << log2)])
                for n, log2 in zip(counts, pages, strict=True)]  # fmt: skip
        return {"paged": 1, "first_entry": first, "size": size}

    def _enter(self, first, total, page_bytes, stores):
        """Entries of the pages of one segment."""
        rng = self._rng
        slots = (self._end - self._first) // page_bytes
        places = rng.sample(range(slots), min(total, slots)) if slots else []
        for entry in range(first, first + total):
            if stores:
                address = self._first + page_bytes * places.pop() if places else self._beyond(stores)
            else:
                address = self._place(page_bytes, stores)
            word = PAGE_ENTRY.pack(address=address, valid=1, loaded=1, on_chip=1)
            if not self._clean:
                word = self._perhaps_absent(word, address, stores)
            if word is None:
                continue
            self.pages[entry] = word
            if self._late and PAGE_ENTRY.unpack(word)["valid"] and rng.random() < 0.3:
                self.late[entry] = word
                self.pages[entry] = PAGE_ENTRY.pack(address=rng.choice([0, address]), valid=1)

    def _perhaps_absent(self, word, address, stores):
        """The entry, or now and then one of a page that is not there; None: not written."""
        kind = self._rng.random()
        if kind < 0.05:
            return None
        if kind < 0.1:
            return PAGE_ENTRY.pack(address=address, loaded=1, on_chip=1)
        if kind < 0.2:
            return PAGE_ENTRY.pack(address=address, valid=1, loaded=1)
        if kind < 0.25:
            return PAGE_ENTRY.pack(address=self._beyond(stores), valid=1, loaded=1, on_chip=1)
        return word

    def _place(self, page_bytes, stores):
        """Address of a page on the chip; one that is only read may reach past the end, or begin there."""
        rng = self._rng
        if not stores and not self._clean and rng.random() < 0.15:
            return rng.choice([self._beyond(stores), self._params.smem.size_bytes - _CHUNK * rng.randint(1, 8)])
        first, end = (self._first, self._end) if stores else (0, self._params.smem.size_bytes)
        return first + _CHUNK * rng.randint(0, max(0, (end - first - page_bytes) // _CHUNK))

    def _beyond(self, stores):
        """An address past the end; a page that is only read may begin so late that it goes on at address 0."""
        size = self._params.smem.size_bytes
        far = size + _CHUNK * self._rng.randrange(1 << 16)
        return self._rng.choice([size, far] if stores else [size, far, (1 << 32) - _CHUNK])


def _product(numbers):
    product = 1
    for number in numbers:
        product *= number
    return product


_LINE = 128  # at the end of shared memory, with barriers
_WORD = 4


def random_programs(seed, params, count, *, late=False):
    """Yields ``count`` programs; a function of its arguments alone. See :func:`random_program`."""
    rng = random.Random(seed)
    for _ in range(count):
        yield random_program(rng.getrandbits(48), params, late=late)


def random_program(seed, params, *, late=False):
    """A program of 5 to 40 instructions, with a setup before and an ending after them.

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
    instructions = tuple(body.instructions(rng.randint(5, 40)))
    # A part of the program may lack the words of a load, which then takes what follows.
    spare = [word(Operation.FENCE)] * LONGEST_LOAD if body.loads else []
    return PeProgram(
        params=params,
        smem=smem,
        segments={index: plan.word for index, plan in plans.items()},
        pages=tables.pages,
        late=tables.late,
        setup=tuple(setup),
        body=instructions,
        ending=(*spare, *table.ending(rng, len(offsets))),
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

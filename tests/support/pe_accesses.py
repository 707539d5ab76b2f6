"""Accesses of a job, element by element as docs/pe.md specifies them: the reference of the sequencer's tests."""

from dataclasses import dataclass

from tilewright.hw.pe.layouts import BASES_SETS, AccessKind, JobKind
from tilewright.hw.pe.params import LANES
from tilewright.spec.pe import PeError

__all__ = ["BlockDirectory", "OffsetSets", "Segment", "Threads", "expected", "observed"]


@dataclass(frozen=True)
class Segment:
    """A segment, and the entry that hardware has of it."""

    number: int
    element_log2: int
    size: tuple
    page_log2: tuple
    paged: bool
    swizzle: int = 0
    base: int = 0
    first_entry: int = 0

    @property
    def rank(self):
        return len(self.size)

    @property
    def page_counts(self):
        return [-(-size >> log2) for size, log2 in zip(self.size, self.page_log2, strict=True)]

    def entry(self):
        """A constant for ``SegmentEntryLayout``."""
        spare = [0] * (4 - self.rank)
        pages_below, shift = [], []
        pages, bytes_log2 = 1, self.element_log2
        for count, log2 in zip(self.page_counts[:-1], self.page_log2[:-1], strict=True):
            pages, bytes_log2 = pages * count, bytes_log2 + log2
            pages_below.append(pages)
            shift.append(bytes_log2)
        return {
            "good": 1,
            "element_log2": self.element_log2,
            "rank": self.rank - 1,
            "swizzle": self.swizzle,
            "paged": int(self.paged),
            "first_entry": self.first_entry,
            "base": self.base,
            "size": [*self.size, *spare],
            "page_log2": [*self.page_log2, *spare],
            "pages_below": [*pages_below, *spare][:3],
            "shift": [*shift, *spare][:3],
        }

    def inside(self, element):
        return all(coordinate < size for coordinate, size in zip(element, self.size, strict=True))

    def place(self, element):
        """Page entry (0 if not paged) and byte offset in the page, of an element that is inside."""
        page, offset = 0, 0
        for coordinate, count, log2 in reversed(list(zip(element, self.page_counts, self.page_log2, strict=True))):
            page = page * count + (coordinate >> log2)
            offset = (offset << log2) + coordinate % (1 << log2)
        return self.first_entry + page if self.paged else 0, offset << self.element_log2


@dataclass
class Threads:
    """State of the threads that the sequencer reads."""

    registers: list  # by thread, by register
    predicates: list  # by thread: eight bits

    def takes_part(self, thread, job):
        return not job["guard"] or bool(self.predicates[thread] >> job["predicate"] & 1)

    def element(self, thread, segment, job, distance=0):
        """The thread's element, or the one at a distance along dimension 0."""
        coordinates = self.registers[thread][job["rf"] : job["rf"] + segment.rank]
        return ((coordinates[0] + job["imm"] + distance) % (1 << 32), *coordinates[1:])


class BlockDirectory:
    """Two blocks of rows; the one used last but one is replaced."""

    def __init__(self):
        self.blocks = [None, None]
        self.recent = 0

    def find(self, block):
        """Its slot, and whether it must be filled."""
        filled = block in self.blocks
        self.recent = self.blocks.index(block) if filled else 1 - self.recent
        self.blocks[self.recent] = block
        return self.recent, not filled

    def forget(self):
        self.blocks = [None, None]


class OffsetSets:
    """Cached sets of offsets by their keys; the first invalid set is replaced, or otherwise the next one in turn."""

    def __init__(self):
        self.held = [None] * BASES_SETS  # (key, registers)
        self.next = 0

    def find(self, key):
        """The set for a job, and whether it must be read."""
        for number, held in enumerate(self.held):
            if held is not None and held[0] == key:
                return number, False
        return (self.held.index(None) if None in self.held else self.next), True

    def use(self, lookup, key, registers):
        """A job with these offset registers is issued, with what ``find`` said."""
        number, rebuild = lookup
        self.held[number] = (key, set(registers))
        if rebuild and number == self.next:
            self.next = (self.next + 1) % BASES_SETS

    def write(self, registers):
        self.held = [None if held and held[1] & set(registers) else held for held in self.held]

    def forget(self):
        self.held = [None] * BASES_SETS


def expected(params, threads, segment, job, directory):
    """The accesses of a job, in the form of :func:`observed`."""
    if job["flush"]:
        directory.forget()
    accesses = list(
        _multiply(params, threads, segment, job, directory)
        if job["kind"] == JobKind.MULTIPLY
        else _words(params, threads, segment, job)
    )
    if job["kind"] == JobKind.STORE:
        directory.forget()
    common = {"number": job["number"], "paged": int(segment.paged), "swizzle": segment.swizzle}
    common |= {"base": segment.base, "fault_register": job["register"]}
    issued = [access for access in accesses[:-1] if access.get("on") != 0] + accesses[-1:]
    for position, access in enumerate(issued):
        access |= common | {"last": int(position == len(issued) - 1), "flush": int(job["flush"] and position == 0)}
        if access["kind"] == AccessKind.LOAD and access["on"] == 0:
            nothing = {"kind": AccessKind.NOTHING, "number": job["number"], "last": 1}
            issued[position] = nothing | {"flush": access["flush"]}
    return issued


def _lane(segment, elements, limit_bytes, code=0):
    """A lane that accesses these elements, of which the first ones are inside."""
    inside = [element for element in elements if segment.inside(element)]
    if code or not inside:
        return {"enable": 0, "code": code}
    entry, offset = segment.place(inside[0])
    keep = (1 << (len(inside) << segment.element_log2)) - 1
    assert keep < 1 << limit_bytes
    return {"enable": 1, "code": 0, "entry": entry, "offset": offset, "keep": keep}


def _items(threads, ka, kb):
    """First column and number of columns of each item, as ``ColumnsLayout`` says."""
    first, fit = 0, LANES // kb
    while first < threads:
        count = fit // ka * ka if fit >= ka else min(fit, ka - first % ka)
        yield first, min(count, threads - first)
        first += count


def _multiply(params, threads, segment, job, directory):
    ka, kb = job["ka"] + 1, job["kb"] + 1
    unit = params.unit_bytes >> segment.element_log2  # elements
    along = job["transpose"]
    for first, count in _items(params.threads, ka, kb):
        wanted, codes = {}, {}  # by column of the item: first element, error
        for column in range(count):
            element = threads.element(first + column, segment, job)
            if threads.takes_part(first + column, job) and segment.inside(element):
                wanted[column] = element
                if job["register"] + (first + column) // ka >= params.regs:
                    codes[column] = PeError.PRODUCT
                elif not along and element[0] % unit:
                    codes[column] = PeError.ALIGNMENT
        access = {
            "thread": first,
            "register": (job["register"] + first // ka) % (1 << params.reg_width),
            "first_member": first % ka,
            "wide": segment.element_log2,
            "ka": job["ka"],
            "kb": job["kb"],
        }
        parts = [wanted]
        if along:
            parts = _parts(segment, wanted, codes) or [{}]
        for part in parts:
            lanes = [{"enable": 0, "code": 0} for _ in range(LANES)]
            picks = along and part and not any(column in codes for column in part)
            for column, element in part.items():
                for q in range(kb):
                    elements = [_along(element, along, q * unit + e) for e in range(unit)]
                    lanes[column * kb + q] = _lane(segment, elements, params.unit_bytes + 1, codes.get(column, 0))
            access = {**access, "on": sum(1 << column for column in part), "lanes": lanes}
            if not picks:
                yield {**access, "kind": AccessKind.COLUMNS}
                continue
            number, leader = next(iter(part.items()))
            chunk = 16 >> segment.element_log2
            corner = (leader[0] // chunk * chunk, *leader[1:])
            slot, fills = directory.find((segment.number, kb, corner))
            if fills:
                yield from _fills(segment, corner, kb * unit, slot)
            codes_alone = [{"code": lane["code"]} for lane in lanes]  # the rows of the block were read, not the columns
            place = (leader[0] - number << segment.element_log2) % 16
            yield {**access, "kind": AccessKind.PICK, "lanes": codes_alone, "slot": slot, "place": place}


def _parts(segment, wanted, codes):
    """Neighbours side by side in a block; those with an error together. In the order of the first column of each."""
    parts, run, before = {}, 0, None
    for column, element in wanted.items():
        block = ((element[0] << segment.element_log2) // 16, element[1:], element[0] - column)
        run += (column - 1, block) != before
        before = (column, block)
        parts.setdefault("error" if column in codes else run, {})[column] = element
    return list(parts.values())


def _along(element, dimension, distance):
    return tuple(c + distance if d == dimension else c for d, c in enumerate(element))


def _fills(segment, corner, rows, slot):
    for octet in range(-(-rows // LANES)):
        lanes = []
        for row in range(LANES * octet, LANES * (octet + 1)):
            element = _along(corner, 1, row)
            lane = {"enable": 0, "code": 0}
            if row < rows and segment.inside(element):
                entry, offset = segment.place(element)
                lane = {"enable": 1, "code": 0, "entry": entry, "offset": offset}
            lanes.append(lane)
        yield {"kind": AccessKind.FILL, "slot": slot, "octet": octet, "wide": segment.element_log2, "lanes": lanes}


def _words(params, threads, segment, job):
    per_word = 4 >> segment.element_log2
    for group in range(params.groups):
        for word in range(job["count"]):
            lanes, on, values = [{"enable": 0, "code": 0} for _ in range(LANES)], 0, {}
            for lane in range(min(LANES, params.threads - LANES * group)):
                thread = LANES * group + lane
                if not threads.takes_part(thread, job):
                    continue
                elements = [threads.element(thread, segment, job, per_word * word + e) for e in range(per_word)]
                touched = any(map(segment.inside, elements))
                misaligned = touched and elements[0][0] % per_word
                lanes[lane] = _lane(segment, elements, 5, PeError.ALIGNMENT if misaligned else 0)
                if touched or job["kind"] == JobKind.LOAD:
                    on |= 1 << lane
                    values[lane] = threads.registers[thread][(job["register"] + word) % params.regs]
            access = {"thread": LANES * group, "on": on, "lanes": lanes}
            if job["kind"] == JobKind.LOAD:
                yield {**access, "kind": AccessKind.LOAD, "register": job["register"] + word, "group": group}
            else:
                yield {**access, "kind": AccessKind.STORE, "data": values}


#: Fields that have a meaning, by kind.
_ALWAYS = ("last", "flush", "number")
_PLACES = ("paged", "swizzle", "base", "fault_register")
_OF_COLUMNS = ("thread", "on", "register", "first_member", "wide", "ka", "kb")
_FIELDS = {
    AccessKind.COLUMNS: (*_ALWAYS, *_PLACES, *_OF_COLUMNS),
    AccessKind.FILL: (*_ALWAYS, *_PLACES, "slot", "octet", "wide"),
    AccessKind.PICK: (*_ALWAYS, *_PLACES, *_OF_COLUMNS, "slot", "place"),
    AccessKind.LOAD: (*_ALWAYS, *_PLACES, "thread", "on", "register", "group"),
    AccessKind.STORE: (*_ALWAYS, *_PLACES, "thread", "on"),
    AccessKind.NOTHING: _ALWAYS,
}


def observed(payload):
    """The fields of a ``LinearLayout`` payload that have a meaning for its kind."""
    kind = AccessKind(payload["kind"])
    access = {"kind": kind} | {name: payload[name] for name in _FIELDS[kind]}
    if kind == AccessKind.NOTHING:
        return access
    access["lanes"] = [_observed_lane(payload["lanes"][lane], kind, payload["paged"]) for lane in range(LANES)]
    if kind == AccessKind.STORE:
        access["data"] = {lane: payload["data"][lane] for lane in range(LANES) if payload["on"] >> lane & 1}
    return access


def _observed_lane(lane, kind, paged):
    if kind == AccessKind.PICK:
        return {"code": lane["code"]}
    seen = {"enable": lane["enable"], "code": lane["code"]}
    if not lane["enable"]:
        return seen
    seen |= {"entry": lane["entry"] if paged else 0}
    seen |= {"offset": lane["offset"] & ~0xF if kind == AccessKind.FILL else lane["offset"]}
    if kind != AccessKind.FILL:
        seen |= {"keep": lane["keep"]}
    return seen

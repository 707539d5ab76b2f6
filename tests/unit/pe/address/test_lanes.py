"""Pages, offsets and bytes to keep of every lane, element by element; an access a cycle, and none without effect."""

import random

import pytest

from support.pe_accesses import Segment
from support.streams import transact
from tilewright.hw.pe.address.lanes import AddressLanes
from tilewright.hw.pe.layouts import AccessKind, JobKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import PeError
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 20261121
PARAMS = PE_PRESETS["unit"].replace(threads=16, pages=64)
#: An access stage_ready two cycles.
PACED = PARAMS.replace(smem=PARAMS.smem.replace(chunks_a_cycle=4))
LATENCY = 4
SEGMENTS = [
    Segment(0, 0, (61, 33), (4, 2), paged=True, first_entry=5),
    Segment(1, 1, (30, 9, 3), (3, 3, 1), paged=True, swizzle=2),
    Segment(2, 2, (21,), (5,), paged=False, base=77),
]
JOB_KIND = {AccessKind.LOAD: JobKind.LOAD, AccessKind.STORE: JobKind.STORE}


class Request:
    """A random access: the request and the expected lanes."""

    def __init__(self, rng):
        self.segment = segment = rng.choice(SEGMENTS)
        words = [AccessKind.LOAD, AccessKind.STORE]
        self.kind = rng.choice(words if segment.rank == 1 else [*words, *[AccessKind.COLUMNS, AccessKind.PICK] * 2])
        if self.kind == AccessKind.PICK and rng.random() < 0.5:
            self.kind = AccessKind.FILL
        self.multiplies = self.kind not in words
        self.kb = rng.randint(1, 4) if self.multiplies else 1
        self.bytes = PARAMS.unit_bytes if self.multiplies else 4
        self.octet = rng.randrange(4) if self.kind == AccessKind.FILL else 0
        self.last, self.flush = rng.randrange(2), rng.randrange(2)
        granule = 1 if self.kind in (AccessKind.FILL, AccessKind.PICK) else self.bytes >> segment.element_log2
        self.elements = [
            (rng.randrange(0, segment.size[0], granule), *(rng.randrange(size) for size in segment.size[1:]))
            for _ in range(LANES)
        ]
        self.codes = [rng.choice([PeError.NONE] * 4 + [PeError.ALIGNMENT]) for _ in range(LANES)]
        self.inside = [self.kind != AccessKind.LOAD or rng.random() < 0.8 for _ in range(LANES)]
        columns = LANES // self.kb
        self.on = rng.choice([0, (1 << columns) - 1, rng.getrandbits(columns)])
        if self.kind == AccessKind.FILL:
            self.on = 1
        self.words = [rng.getrandbits(32) for _ in range(LANES)]
        self.origin = rng.randrange(16)

    def given(self):
        segment = self.segment
        columns = []
        for element, code, inside in zip(self.elements, self.codes, self.inside, strict=True):
            rows = self.kind in (AccessKind.FILL, AccessKind.PICK)
            outer = [0, *element[1:]]
            if rows:
                outer[1] = 0
            page, offset = segment.place(outer)
            columns.append({"inner": element[0], "page": page, "offset": offset, "code": code, "inside": inside})
        leader = columns[0] | {"outer": self.elements[0][1] if segment.rank > 1 else 0}
        job = {"kind": JOB_KIND.get(self.kind, JobKind.MULTIPLY), "segment": segment.entry(), "kb": self.kb - 1}
        job |= {"flush": self.flush, "register": 40000, "number": 7}
        item = {"job": job, "register": 9, "thread": 8, "last": self.last}
        part = {"item": item, "columns": columns, "on": self.on, "leader": leader, "origin": self.origin}
        return {"part": part, "kind": self.kind, "octet": self.octet, "slot": 1}

    def lane(self, number):
        """enable, code, entry, offset, keep; None: it does not matter. A PICK reads nothing, and has codes only."""
        segment = self.segment
        elements_of_unit = self.bytes >> segment.element_log2
        if self.kind == AccessKind.FILL:
            row = 8 * self.octet + number
            chunk = 16 >> segment.element_log2
            first = self.elements[0]
            element = (first[0] // chunk * chunk, first[1] + row, *first[2:])
            if row >= self.kb * elements_of_unit or not segment.inside(element):
                return 0, 0, None, None, None
            return 1, 0, *segment.place(element), None
        column, unit = divmod(number, self.kb)
        on = self.on >> column & 1
        if self.kind == AccessKind.PICK:
            return None, self.codes[column] if on else 0, None, None, None
        if not on:
            return 0, 0, None, None, None
        first, *outer = self.elements[column]
        elements = [(first + unit * elements_of_unit + e, *outer) for e in range(elements_of_unit)]
        count = sum(map(segment.inside, elements))
        if self.codes[column] or not count or not self.inside[column]:
            return 0, self.codes[column], None, None, None
        keep = (1 << (count << segment.element_log2)) - 1
        return 1, 0, *segment.place(elements[0]), keep


@pytest.mark.parametrize(
    ("mode", "params"), [*((mode, PARAMS) for mode in STALL_MODES), ("none", PACED), ("both", PACED)]
)
def test_lanes(mode, params):
    rng = random.Random(f"{SEED} {mode}")
    requests = [Request(rng) for _ in range(120)]
    requests[-1].last = 1
    sent = [request for request in requests if request.on or request.last]
    words = [request.words for request in requests if request.kind == AccessKind.STORE]
    due, flushes = 0, []  # an access that is dropped passes its flush to the next one
    for request in requests:
        due |= request.flush
        if request in sent:
            flushes.append(due)
            due = 0
    given = [request.given() for request in requests]
    dut = elaborated(AddressLanes, params)

    payloads, cycles = transact(dut, {"i": given, "words": words}, {"o": len(sent)}, mode, pauses={"words": 0.0})
    assert [access.flush for access in payloads["o"]] == flushes
    for request, access in zip(sent, payloads["o"], strict=True):
        nothing = request.kind == AccessKind.LOAD and not request.on
        assert access.kind == (AccessKind.NOTHING if nothing else request.kind)
        assert (access.last, access.on, access.fault_register) == (request.last, request.on, 40000)
        for number, lane in enumerate(access.lanes):
            enable, code, entry, offset, keep = request.lane(number)
            assert lane.code == code
            if entry is not None and request.segment.paged:
                assert lane.entry == entry
            for value, wanted in ((lane.enable, enable), (lane.offset, offset), (lane.keep, keep)):
                assert wanted is None or value == wanted
        if access.kind == AccessKind.PICK:
            assert access.place == (request.origin << request.segment.element_log2) % 16
        if access.kind == AccessKind.STORE:
            assert list(access.data) == request.words
    if mode == "none":
        # An access that is dropped takes a cycle too, and paced stages stand in the cycle in which an access leaves.
        waits, cycles = len(sent) - 1 if params.paced else 0, cycles["o"]
        assert cycles[-1] - cycles[0] == requests.index(sent[-1]) - requests.index(sent[0]) + waits
        assert cycles[0] == LATENCY + requests.index(sent[0])

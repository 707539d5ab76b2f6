"""The fault collector: accesses that leave, and the report of every instruction, against docs/pe.md lane by lane."""

import random

import pytest

from support.streams import transact
from tilewright.hw.pe.address.faults import FaultCollector
from tilewright.hw.pe.layouts import AccessKind
from tilewright.hw.pe.params import LANES, PE_PRESETS
from tilewright.spec.pe import PeError
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

PARAMS = PE_PRESETS["default"]
#: An access takes two cycles.
PACED = PARAMS.replace(smem=PARAMS.smem.replace(chunks_a_cycle=4))
SEED = 33
_OF_THREADS = list(range(PeError.PRODUCT, PeError.MEMORY + 1))
_BY_COLUMN = (AccessKind.COLUMNS, AccessKind.PICK)


def access(kind, codes=(0,) * LANES, **others):
    """A translated access; ``on`` and ``enable`` as given, or all."""
    fields = {"kind": kind, "on": 255, "kb": 0, "ka": 0, "slot": 0, "octet": 0, "last": 0} | others
    outer = {name: fields.pop(name, 0) for name in ("number", "thread", "fault_register")}
    enable = fields.pop("enable", [1] * LANES)
    lanes = [{"enable": bit, "chunk": 7 * k, "byte": k, "keep": 255} for k, bit in enumerate(enable)]
    unused = {"register": 3, "first_member": 1, "group": 1, "wide": 0, "data": [0] * LANES}
    return {"access": unused | fields | {"lanes": lanes}, "codes": list(codes), **outer}


def random_codes(rng, count=LANES):
    likely = rng.choice([0.0, 0.0, 0.1, 0.5])
    some = rng.sample(_OF_THREADS, rng.randint(1, 3))
    return [rng.choice(some) if rng.random() < likely else 0 for _ in range(count)] + [0] * (LANES - count)


def random_instructions(rng, count):
    """Accesses of instructions of each kind."""
    items = []
    for number in range(count):
        kind = rng.choice([AccessKind.COLUMNS, AccessKind.PICK, AccessKind.LOAD, AccessKind.STORE])
        kb = rng.randrange(4) if kind in _BY_COLUMN else 0
        columns = LANES // (kb + 1)
        same = {"kb": kb, "number": number, "fault_register": rng.randrange(1 << 16)}
        for _ in range(rng.randint(1, 4)):
            slot = rng.randrange(2)
            if kind == AccessKind.PICK and rng.random() < 0.6:
                for octet in range(rng.randint(1, 4)):
                    enable = [rng.getrandbits(1) for _ in range(LANES)]
                    fill = {"slot": slot, "octet": octet, "enable": enable, "on": rng.randrange(256)}
                    items.append(access(AccessKind.FILL, random_codes(rng), **same, **fill))
            lanes = columns * (kb + 1)
            enable = [rng.random() < 0.8 for _ in range(lanes)] + [0] * (LANES - lanes)
            here = {"slot": slot, "enable": enable, "on": rng.getrandbits(columns), "octet": rng.randrange(4),
                    "thread": rng.randrange(PARAMS.threads - LANES + 1)}  # fmt: skip
            items.append(access(kind, random_codes(rng, lanes), **same, **here))
        if rng.random() < 0.2:
            items.append(access(AccessKind.NOTHING, on=0, enable=[0] * LANES, **same))
        items[-1]["access"]["last"] = 1
    return items


class Reference:
    """Accesses that leave, and reports."""

    def __init__(self):
        self.slots = [set(), set()]
        self.out, self.records = [], []
        self.met = []  # pairs of code and thread, of the instruction

    def take(self, item):
        access = item["access"]
        kind, on = access["kind"], access["on"]
        codes = [{code} - {0} for code in item["codes"]]
        enable = [lane["enable"] for lane in access["lanes"]]
        if kind == AccessKind.FILL:
            if access["octet"] == 0:
                self.slots[access["slot"]] = set()
            self.slots[access["slot"]] |= set().union(*codes)
            enable = [bit and not code for bit, code in zip(enable, codes, strict=True)]
        else:
            wide = access["kb"] + 1 if kind in _BY_COLUMN else 1
            for first in range(0, LANES // wide * wide, wide):
                column = first // wide
                wrong = set().union(*codes[first : first + wide])
                if kind == AccessKind.PICK and on >> column & 1:
                    wrong |= self.slots[access["slot"]]
                if wrong:
                    on &= ~(1 << column)
                    enable[first : first + wide] = [0] * wide
                self.met += [(code, item["thread"] + column) for code in wrong]
        self.out.append((enable, on))
        if access["last"]:
            code = min((code for code, _ in self.met), default=0)
            threads = [thread for met, thread in self.met if met == code]
            self.records.append((code, item["number"], item["fault_register"], min(threads, default=None),
                                 max(threads, default=None)))  # fmt: skip
            self.met = []


def run(items, mode="none", params=PARAMS):
    """Sends accesses through a fault collector."""
    ends = sum(item["access"]["last"] for item in items)
    return transact(elaborated(FaultCollector, params), {"i": items}, {"o": len(items), "faults": ends}, mode)


@pytest.mark.parametrize(("mode", "params"), [*((mode, PARAMS) for mode in STALL_MODES), ("both", PACED)])
def test_what_leaves_and_what_is_reported(mode, params):
    items = random_instructions(random.Random(SEED), 65)
    payloads, _ = run(items, mode, params)
    reference = Reference()
    for item, output in zip(items, payloads["o"], strict=True):
        reference.take(item)
        enable, on = reference.out[-1]
        wanted = item["access"] | {"on": on}
        wanted["lanes"] = [lane | {"enable": bit} for lane, bit in zip(wanted["lanes"], enable, strict=True)]
        assert output == output.shape().const(wanted)
    for record, wanted in zip(payloads["faults"], reference.records, strict=True):
        assert (record.code, record.number, record.register) == wanted[:3]
        if record.code:
            assert (record.first, record.last) == wanted[3:]
    assert {record.code for record in payloads["faults"]} == {0, *_OF_THREADS}


@pytest.mark.parametrize(("params", "pace"), [(PARAMS, 1), (PACED, 2)])
def test_latency_and_rate(params, pace):
    items = random_instructions(random.Random(SEED), 40)
    _, cycles = run(items, params=params)
    assert cycles["o"] == list(range(2, 2 + pace * len(items), pace))
    assert cycles["faults"] == [pace * k + 3 for k, item in enumerate(items) if item["access"]["last"]]
    assert pace > 1 or cycles["i"] == list(range(len(items)))

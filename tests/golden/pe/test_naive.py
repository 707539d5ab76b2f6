"""The golden processing engine against a second one: thread by thread, element by element, from docs/pe.md alone."""

import numpy as np
import pytest

from tilewright.golden.pe.checks import instruction_word
from tilewright.golden.pe.machine import Pe
from tilewright.golden.pe.segment import Segment, wrong_segment
from tilewright.golden.pe.sizes import PeSizes
from tilewright.spec import Swizzle
from tilewright.spec.pe import PAGE_ENTRY, MmType, Operation, PeError, SegmentElement

SMEM_BYTES = 4096
PAGES = 64


def address_of(coordinates, segment, entries):
    """Address of an element that is inside, or the code of the error that it meets."""
    number = offset = 0
    pages = elements = 1
    for coordinate, size, log2 in zip(coordinates, segment.size, segment.page_log2, strict=True):
        number += (coordinate >> log2) * pages
        offset += coordinate % (1 << log2) * elements
        pages *= -(-size // (1 << log2))
        elements *= 1 << log2
    base = segment.base
    if segment.paged:
        entry = entries[segment.first_entry + number]
        if not entry["valid"]:
            return None, PeError.UNMAPPED
        if not entry["on_chip"]:
            return None, PeError.OFF_CHIP
        base = entry["address"]
    address = (base + offset * segment.element.bytes) % (1 << 32)
    for bit in range(int(segment.swizzle)):
        address ^= (address >> 7 + bit & 1) << 4 + bit
    return (address, None) if address < SMEM_BYTES else (None, PeError.MEMORY)


def is_inside(coordinates, segment):
    return all(c < size for c, size in zip(coordinates, segment.size, strict=True))


class Naive:
    """Executes an mm, ld or st that no error of the whole instruction stops; threads are rows of ``registers``."""

    def __init__(self, pe, segment, entries):
        self.sizes, self.segment, self.entries = pe.sizes, segment, entries
        self.registers = pe.registers.astype(object)
        self.smem = bytearray(pe.smem.tobytes())
        self.predicates = pe.predicates.copy()
        self.codes = {}  # the lowest of each thread

    def takes_part(self, thread, values):
        return not values["guard"] or self.predicates[values["predicate"]][thread]

    def meet(self, thread, code):
        self.codes[thread] = min(code, self.codes.get(thread, code))

    def first(self, thread, values):
        coordinates = [int(self.registers[thread][values["rf"] + d]) for d in range(self.segment.rank)]
        return [(coordinates[0] + values["imm"]) % (1 << 32), *coordinates[1:]]

    def element(self, thread, coordinates):
        """Bits of an element, or None if it met an error."""
        if not is_inside(coordinates, self.segment):
            return 0
        address, code = address_of(coordinates, self.segment, self.entries)
        if code:
            self.meet(thread, code)
            return None
        return int.from_bytes(self.smem[address : address + self.segment.element.bytes], "little")

    def column(self, thread, values, k):
        """Elements of a column, or None if it is off."""
        first = self.first(thread, values)
        if not self.takes_part(thread, values) or not is_inside(first, self.segment):
            return None
        if values["rc"] + thread // values["ka"] >= self.sizes.regs:
            return self.meet(thread, PeError.PRODUCT)
        along = values["transpose"]
        if not along and first[0] % k:
            return self.meet(thread, PeError.ALIGNMENT)
        elements = []
        for e in range(values["kb"] * k):
            coordinates = first.copy()
            coordinates[along] += e
            elements.append(self.element(thread, coordinates))
        return None if None in elements else elements

    def mm(self, **values):
        kind, ka, kb = values["type"], values["ka"], values["kb"]
        k = 4 * self.sizes.factor_regs // kind.bytes
        bits = 8 * kind.bytes
        columns = [self.column(thread, values, k) for thread in range(self.sizes.threads)]
        factors = []
        for row in self.registers:
            packed = sum(int(row[values["ra"] + f]) << 32 * f for f in range(self.sizes.factor_regs))
            factors.append([packed >> bits * e & (1 << bits) - 1 for e in range(k)])
        for group in range(self.sizes.threads // (ka * kb)):
            for j, column in enumerate(columns):
                if column is None:
                    continue
                first = group * ka * kb + j % ka * kb
                row = [element for member in factors[first : first + kb] for element in member]
                total = sum(signed(x, bits, not kind & 2) * signed(y, bits, not kind & 1)
                            for x, y in zip(row, column, strict=True))  # fmt: skip
                register = values["rc"] + j // ka
                self.registers[first][register] = (int(self.registers[first][register]) + total) % (1 << 32)

    def words(self, values):
        """Yields thread, word, and coordinates of its elements, for all that has an element inside or is to be 0."""
        per_word = 1 if values["element"] else 4 // self.segment.element.bytes
        for thread in range(self.sizes.threads):
            if not self.takes_part(thread, values):
                continue
            first = self.first(thread, values)
            for w in range(values["n"]):
                elements = [[(first[0] + w * per_word + e) % (1 << 32), *first[1:]] for e in range(per_word)]
                if first[0] % per_word and any(is_inside(element, self.segment) for element in elements):
                    self.meet(thread, PeError.ALIGNMENT)
                else:
                    yield thread, w, elements

    def ld(self, **values):
        size = self.segment.element.bytes
        loaded = {}
        for thread, w, elements in self.words(values):
            bits = [self.element(thread, element) for element in elements]
            if None not in bits:
                loaded[thread, values["rd"] + w] = sum(value << 8 * size * e for e, value in enumerate(bits))
        signed_element = self.segment.element in (SegmentElement.S8, SegmentElement.S16)
        for place, word in loaded.items():
            if values["element"] and signed_element:
                word = signed(word, 8 * size, True) % (1 << 32)
            self.registers[place] = word

    def st(self, **values):
        size = self.segment.element.bytes
        for thread, w, elements in self.words(values):
            word = int(self.registers[thread][values["rs"] + w]).to_bytes(4, "little")
            if None in [self.element(thread, element) for element in elements]:
                continue
            for e, element in enumerate(elements):
                if is_inside(element, self.segment):
                    address, _ = address_of(element, self.segment, self.entries)
                    self.smem[address : address + size] = word[size * e : size * e + size]

    def fault(self, register):
        if not self.codes:
            return None
        code = min(self.codes.values())
        threads = sorted(thread for thread, met in self.codes.items() if met == code)
        return code, 1, threads[0], threads[-1], register


def signed(bits, width, is_signed):
    return bits - (bits >> width - 1 << width) if is_signed else bits


def random_segment(rng, size_bytes):
    """A segment that is not wrong, of elements of that size."""
    element = rng.choice([kind for kind in SegmentElement if kind.bytes == size_bytes])
    while True:
        rank = int(rng.integers(1, 5))
        size = tuple(rng.integers(1, (70, 9, 5, 4), 4)[:rank].tolist())
        page_log2 = tuple(rng.integers(0, (8, 4, 3, 3), 4)[:rank].tolist())
        paged = bool(rng.integers(2))
        place = {"first_entry": int(rng.integers(0, 9))} if paged else {"base": 16 * int(rng.integers(0, 280))}
        segment = Segment(SegmentElement(element), size, page_log2, Swizzle(rng.integers(4)), paged, **place)
        if wrong_segment(segment.pack(), PAGES) is None:
            return segment


def random_entry(rng):
    good = rng.random() < 0.9
    return {"address": 16 * int(rng.integers(0, 260 if good else 600)), "valid": int(good or rng.random() < 0.5),
            "loaded": 1, "on_chip": int(good or rng.random() < 0.5)}  # fmt: skip


def random_pe(rng, segment, rf):
    """A machine whose offset registers point mostly into the segment, and its page entries."""
    sizes = PeSizes(int(rng.integers(4, 20)), 2 * int(rng.integers(8, 20)), int(rng.integers(1, 3)), pages=PAGES)
    pe = Pe(rng.integers(0, 256, SMEM_BYTES, np.uint8), sizes)
    pe.registers[:] = rng.integers(0, 1 << 32, pe.registers.shape, np.uint32)
    pe.predicates[:] = rng.random(pe.predicates.shape) < 0.7
    for d, size in enumerate(segment.size):
        pe.registers[:, rf + d] = rng.integers(0, size + (size > 2), sizes.threads)
    if rng.random() < 0.8:
        pe.registers[:, rf] &= ~np.uint32(7)
    pe.write_segment(3, segment.pack())
    entries = [random_entry(rng) for _ in range(PAGES)]
    for index, entry in enumerate(entries):
        pe.write_page(index, PAGE_ENTRY.pack(**entry))
    pe.execute(instruction_word(Operation.MOVU, ud=5, imm=3))
    return pe, entries


def check(pe, naive, operation, register, **values):
    """Both machines execute the same, and agree."""
    fault = pe.execute(instruction_word(operation, ur=5, **values))
    getattr(naive, operation.name.lower())(**values)
    assert fault == naive.fault(register)
    assert (pe.registers == naive.registers.astype(np.uint32)).all()
    assert pe.smem.tobytes() == bytes(naive.smem)
    return fault


def common(rng, rf):
    guard = int(rng.integers(2))
    imm = int(rng.choice([0, 0, 8, 16, 4, 1, 0xFFFFFFF8]))
    return {"rf": rf, "imm": imm, "guard": guard, "predicate": int(rng.integers(8)) * guard}


@pytest.mark.parametrize("transpose", [0, 1])
def test_mm(transpose):
    rng = np.random.default_rng(20261121 + transpose)
    codes, products = set(), 0
    for _ in range(150):
        kind = MmType(int(rng.integers(8)))
        segment = random_segment(rng, kind.bytes)
        if transpose and segment.rank == 1:
            continue
        rf = int(rng.integers(0, 12))
        pe, entries = random_pe(rng, segment, rf)
        ka, kb = next((a, b) for a, b in rng.integers(1, 5, (99, 2)).tolist() if a * b <= pe.sizes.threads)
        values = {"ka": ka, "kb": kb, "transpose": transpose, "type": kind, "ra": int(rng.integers(pe.sizes.regs - 2)),
                  "rc": int(rng.integers(pe.sizes.regs + 4))} | common(rng, rf)  # fmt: skip
        before = pe.registers.copy()
        fault = check(pe, Naive(pe, segment, entries), Operation.MM, values["rc"], **values)
        codes.add(fault and fault.code)
        products += (pe.registers != before).sum()
    expected = {None, PeError.PRODUCT, PeError.UNMAPPED, PeError.OFF_CHIP, PeError.MEMORY}
    assert codes == expected | (set() if transpose else {PeError.ALIGNMENT})
    assert products > 1000


@pytest.mark.parametrize("operation", [Operation.LD, Operation.ST])
def test_ld_and_st(operation):
    rng = np.random.default_rng(20261122 + operation)
    codes = set()
    for _ in range(150):
        segment = random_segment(rng, int(rng.choice([1, 2, 4])))
        rf = int(rng.integers(0, 12))
        pe, entries = random_pe(rng, segment, rf)
        n = int(rng.integers(1, 6))
        values = {
            "n": n,
            "element": int(rng.integers(2)),
            ("rd" if operation == Operation.LD else "rs"): int(rng.integers(pe.sizes.regs - n)),
        }
        values |= common(rng, rf)
        if operation == Operation.ST:
            # What several threads write to the same byte is not promised: all store the same bytes.
            pe.registers[:, values["rs"] : values["rs"] + n] = 0x5A5A5A5A
        fault = check(pe, Naive(pe, segment, entries), operation, values.get("rd", values.get("rs")), **values)
        codes.add(fault and fault.code)
    assert codes == {None, PeError.ALIGNMENT, PeError.UNMAPPED, PeError.OFF_CHIP, PeError.MEMORY}

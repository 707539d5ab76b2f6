"""Random contents of memory and registers: numbers of all kinds that instructions take, and offsets."""

from dataclasses import dataclass

import ml_dtypes
import numpy as np

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.spec.pe import INSTRUCTIONS, Compare, MmType, Operation, Source

__all__ = ["Offset", "RandomBody", "fill_memory", "offset_values", "register_values"]

_BLOCK = 32  # bytes of one kind side by side


@dataclass(frozen=True)
class Offset:
    """One of the first registers.

    Attributes
    ----------
    values : list of int
        Of each thread.
    gap : int
        By so much at least the values of any two threads differ, modulo 2^32; 0 if two may be equal.
    """

    values: list
    gap: int


def offset_values(rng, params):
    """The first registers, at most half of them: zero, the thread's index, and then others."""
    threads = range(params.threads)
    offsets = [Offset([0] * len(threads), 0), Offset(list(threads), 1)]
    kinds = ["spread", "zero", "mixed", "small", "spread", "eights", "small", "mixed"]
    for number in range(2, min(16, params.regs // 2)):
        order = list(threads)
        kind = kinds[(number - 2) % len(kinds)]
        if kind in ("spread", "mixed"):
            rng.shuffle(order)
            gap = 1 if kind == "mixed" else rng.choice([2, 4, 8, 16])
            first = rng.choice([0, 0, gap * rng.randint(0, 4)])
            offsets.append(Offset([first + gap * place for place in order], gap))
        elif kind == "zero":
            offsets.append(Offset([rng.choice([0, 0, 1])] * len(order), 0))
        elif kind == "small":
            offsets.append(Offset([rng.randrange(rng.choice([1, 2, 4])) for _ in order], 0))
        else:
            far = rng.random() < 0.3
            offsets.append(Offset([(8 * rng.randint(0, 8) - 64 * far) & 0xFFFFFFFF for _ in order], 0))
    return offsets


def fill_memory(seed, size):
    """``size`` bytes, in blocks of numbers of one kind."""
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal(size // 2)
    special = [0x0000, 0x8000, 0x0001, 0x83FF, 0x7C00, 0xFC00, 0x7E01, 0x7BFF, 0x7F80, 0xFF80, 0x7FC1, 0x7F7F, 0x0080]
    kinds = np.stack(
        [
            rng.integers(0, 256, size, np.uint8),
            normal.astype(np.float16).view(np.uint8),
            normal.astype(ml_dtypes.bfloat16).view(np.uint8),
            (normal * 2.0 ** rng.integers(-30, 12, size // 2)).astype(np.float16).view(np.uint8),
            rng.choice(np.array(special, np.uint16), size // 2).view(np.uint8),
            rng.integers(0, 4, size, np.uint8),
        ]
    )
    chosen = np.repeat(rng.choice(len(kinds), size // _BLOCK, p=[0.35, 0.2, 0.2, 0.1, 0.05, 0.1]), _BLOCK)
    return kinds[chosen, np.arange(size)]


def register_values(seed, params, width):
    """The first ``width`` registers of all threads, uint32 of shape (threads, width)."""
    rng = np.random.default_rng([seed, 1])
    shape = params.threads, width
    kinds = np.stack(
        [
            rng.integers(0, 1 << 32, shape, np.uint32),
            rng.standard_normal(shape, np.float32).view(np.uint32),
            rng.integers(0, 256, shape, np.uint32),
            np.zeros(shape, np.uint32),
            rng.standard_normal((*shape[:1], 2 * width)).astype(np.float16).view(np.uint32),
            rng.standard_normal((*shape[:1], 2 * width)).astype(ml_dtypes.bfloat16).view(np.uint32),
        ]
    )
    chosen = rng.choice(len(kinds), width, p=[0.25, 0.2, 0.1, 0.1, 0.2, 0.15])
    return kinds[chosen, :, np.arange(width)].T


_PREDICATES = 8
_LINE = 128


class RandomBody:
    """Makes instructions, one after the other; it keeps account of what uniform registers and offsets hold.

    Parameters
    ----------
    rng : random.Random
    params : PeParams
    plans : dict of int to SegmentPlan
        The segments that are written. No instruction names the first.
    offsets : list of Offset
        The first registers.
    clean : bool
        Hardly any instruction meets an error.
    """

    def __init__(self, rng, params, plans, offsets, clean):
        self._rng = rng
        self._params = params
        self._plans = plans
        self._offsets = list(offsets)
        self._free = len(offsets)  # the first register that may become anything
        self._clean = clean
        self._uniform = {0: 0}  # segments that uniform registers name

    def setup(self):
        """Predicates, and uniform registers; without ``clean`` not all of these."""
        rng = self._rng
        for predicate in range(_PREDICATES):
            limit = rng.choice([0, self._params.threads, rng.randint(0, self._params.threads)])
            compare = rng.choice([Compare.LTU, Compare.LTU, Compare.GE, Compare.NE])
            yield word(Operation.SETP, pd=predicate, source=Source.THREAD, compare=compare, imm=limit)
        for uniform in range(1, self._params.uniform_regs):
            if self._clean or rng.random() < 0.85:
                yield self._name(uniform)

    def instructions(self, count):
        """Yields ``count`` instructions."""
        makers = {
            self._multiply: 40, self._load: 15, self._store: 14, self._move: 9, self._set_predicate: 9, self._rename: 5,
            self._wait: 4, self._fence: 3, self._illegal: 0 if self._clean else 5,
        }  # fmt: skip
        for _ in range(count):
            yield self._rng.choices(list(makers), list(makers.values()))[0]()

    def _multiply(self):
        rng, params = self._rng, self._params
        uniform = self._choose(lambda plan: plan.element.bytes < 4)
        plan = self._plan(uniform)
        kinds = [kind for kind in MmType if kind.family in params.types]
        kinds = [kind for kind in kinds if plan is None or kind.bytes == plan.element.bytes]
        kind = rng.choice(list(MmType) if not kinds or self._slip(0.1) else kinds)
        ka, kb = rng.choice([(ka, kb) for ka in range(1, 5) for kb in range(1, 5)
                             if ka * kb <= params.threads or self._slip(0.2)])  # fmt: skip
        transpose = rng.getrandbits(1) if plan is None or plan.rank > 1 or self._slip(0.2) else 0
        whole = params.unit_bytes // kind.bytes  # elements of an issue
        rf = self._offset(plan, 1 if transpose else whole)
        size = 16 if plan is None else plan.size[0]
        imm = self._immediate(size, 1 if transpose or self._slip(0.1) else whole)
        products = -(-params.threads // ka)
        rc = rng.randint(self._free, max(self._free, params.regs - products))
        if self._slip(0.1):
            rc = rng.choice([params.regs - rng.randint(0, products), 0xFFFF, params.regs + rng.randint(0, 8)])
            rc = max(rc, self._free)
        ra = self._register(params.factor_regs)
        return word(Operation.MM, ka=ka, kb=kb, transpose=transpose, type=kind, rc=rc, ra=ra, rf=rf, ur=uniform,
                    imm=imm, **self._guard())  # fmt: skip

    def _load(self):
        rng = self._rng
        uniform = self._choose(lambda plan: True)
        plan = self._plan(uniform)
        n = self._count()
        rd = rng.randint(self._free, max(self._free, self._params.regs - n))
        if self._slip(0.08):
            rd, n = rng.choice([(self._params.regs - 1, 2), (0xFFFF, 1), (self._free, 0xFFFF)])
        return word(Operation.LD, rd=rd, n=n, **self._address(plan, uniform), **self._guard())

    def _store(self):
        """Threads store to different bytes: one of their offsets differs by enough."""
        rng = self._rng
        uniform = self._choose(lambda plan: plan.stores or plan.wrong)
        plan = self._plan(uniform)
        n = self._count()
        address = self._address(plan, uniform)
        if plan is not None and not plan.wrong:
            places = [rf for rf in range(self._free - plan.rank + 1) if self._apart(rf, plan, n)]
            if not plan.stores or not places:
                return self._load()
            aligned = [rf for rf in places if self._aligned(rf, self._whole(plan))]
            address["rf"] = rng.choice(places if not aligned or self._slip(0.1) else aligned)
        return word(Operation.ST, rs=self._register(n), n=n, **address, **self._guard())

    def _apart(self, rf, plan, n):
        """Whether no two threads can store to one element, n registers each from these offsets."""
        gaps = [offset.gap for offset in self._offsets[rf : rf + plan.rank]]
        return any(gaps[1:]) or gaps[0] * plan.element.bytes >= 4 * n

    def _move(self):
        rng = self._rng
        changeable = [rf for rf, offset in enumerate(self._offsets) if not offset.gap]
        rd = rng.choice(changeable) if rng.random() < 0.3 else rng.randint(self._free, self._params.regs - 1)
        if self._slip(0.08):
            rd = rng.choice([self._params.regs, 0xFFFF])
        kind = rng.random()
        fields = {"source": Source.THREAD} if kind < 0.3 else {"imm": rng.choice([0, 1, 8 * rng.randint(0, 8)])}
        fields |= {"core": 1} if kind < 0.05 or kind > 0.8 else {}  # which is 0 here
        if rng.random() < 0.1:
            fields["imm"] = rng.getrandbits(32)
        guard = self._guard()
        if rd < self._free:
            values = range(self._params.threads) if "source" in fields else [fields["imm"]] * self._params.threads
            old = self._offsets[rd].values
            # A guard leaves the value unknown: both values must satisfy every condition.
            self._offsets[rd] = type(self._offsets[rd])([*values, *old] if guard else list(values), 0)
        return word(Operation.MOV, rd=rd, **fields, **guard)

    def _set_predicate(self):
        rng = self._rng
        fields = {"pd": rng.randrange(_PREDICATES), "compare": rng.choice(list(Compare))}
        if rng.random() < 0.5:
            fields |= {"source": Source.THREAD, "imm": rng.randint(0, self._params.threads)}
        else:
            imm = rng.choice([rng.getrandbits(32), rng.randint(0, 16), 0x80000000])
            fields |= {"rs": self._register(1), "imm": imm}
        return word(Operation.SETP, **fields, **self._guard())

    def _rename(self):
        if self._slip(0.2):
            return word(Operation.MOVU, ud=self._rng.choice([self._params.uniform_regs, 255]), imm=1)
        return self._name(self._rng.randrange(1, self._params.uniform_regs))

    def _name(self, uniform):
        """A uniform register names a segment, or what is none."""
        known = [index for index in self._plans if index]
        segment = self._rng.choice(known) if known else 0
        if self._slip(0.1):
            segment = self._rng.choice([self._params.segments, self._rng.randrange(self._params.segments), 0xFFFFFFFF])
        self._uniform[uniform] = segment
        return word(Operation.MOVU, ud=uniform, imm=segment)

    def _wait(self):
        """One of two barriers, for the phase that is complete."""
        number = self._rng.getrandbits(1)
        size = self._params.smem.size_bytes
        imm = size - _LINE + 8 * number
        if self._slip(0.3):
            imm = self._rng.choice([imm + self._rng.randint(1, 7), size, size + imm, 0xFFFFFFF8])
        return word(Operation.BAR_WAIT, imm=imm, parity=1 - number)

    def _fence(self):
        return word(Operation.FENCE)

    def _illegal(self):
        """An unknown operation or value, a bit of no field, or a count of 0."""
        rng = self._rng
        operation = rng.choice(list(Operation))
        fmt = INSTRUCTIONS[operation]
        choices = [rng.randrange(max(Operation) + 1, 256), 0]
        if operation == Operation.MM:
            choices.append(operation | rng.randrange(len(MmType), 16) << fmt["type"].lsb)
        if operation == Operation.SETP:
            choices.append(operation | rng.randrange(len(Compare), 16) << fmt["compare"].lsb)
        if operation in (Operation.LD, Operation.ST):
            choices.append(word(operation, ur=1, n=1) & ~(0xFFFF << fmt["n"].lsb))
        reserved = [bit for bit in range(fmt.bits) if fmt.reserved_mask >> bit & 1]
        choices.append(operation | 1 << rng.choice(reserved))
        return rng.choice(choices)

    def _choose(self, good):
        """A uniform register, mostly one that names a segment for which ``good`` holds."""
        rng = self._rng
        if self._slip(0.04):
            return rng.choice([self._params.uniform_regs, 255, rng.randrange(self._params.uniform_regs)])
        plans = {uniform: self._plan(uniform) for uniform in self._uniform if uniform}
        fitting = [uniform for uniform, plan in plans.items() if plan is not None and good(plan)]
        return rng.choice(fitting or [1])

    def _plan(self, uniform):
        """The segment that it names, or None; as segment 0 counts what may not be written at all."""
        segment = self._uniform.get(uniform)
        return self._plans.get(segment) if segment else None

    def _address(self, plan, uniform):
        rf = self._offset(plan, self._whole(plan))
        size = 16 if plan is None else plan.size[0]
        return {"ur": uniform, "rf": rf, "imm": self._immediate(size, 1 if self._slip(0.1) else self._whole(plan))}

    @staticmethod
    def _whole(plan):
        """Elements of a register."""
        return 1 if plan is None else 4 // plan.element.bytes

    def _offset(self, plan, multiple):
        """First offset register: mostly of known ones that are multiples in dimension 0."""
        rng = self._rng
        rank = 4 if plan is None else plan.rank
        if self._slip(0.1):
            return rng.choice([self._params.regs - rng.randint(0, 4), 0xFFFF, rng.randrange(self._params.regs)])
        known = range(max(1, self._free - rank + 1))
        aligned = [rf for rf in known if self._aligned(rf, multiple)]
        return rng.choice(aligned or known)

    def _aligned(self, rf, multiple):
        return all(value % multiple == 0 for value in self._offsets[rf].values)

    def _immediate(self, size, multiple):
        rng = self._rng
        number = multiple * rng.choice([0, 0, 1, rng.randint(0, size // multiple)])
        return number if rng.random() < 0.95 else -multiple & 0xFFFFFFFF

    def _count(self):
        return self._rng.choice([1, 1, 2, 2, 3, 4, self._rng.randint(1, min(12, self._params.regs - self._free))])

    def _register(self, count):
        """The first of ``count`` registers that are read."""
        if self._slip(0.06):
            return self._rng.choice([self._params.regs, self._params.regs - count + 1, 0xFFFF])
        return self._rng.randint(0, self._params.regs - count)

    def _guard(self):
        rng = self._rng
        if rng.random() < 0.4:
            return {"guard": 1, "predicate": rng.randrange(_PREDICATES)}
        return {"predicate": rng.randrange(_PREDICATES)} if rng.random() < 0.03 else {}

    def _slip(self, probability):
        """Now and then, in a program that is not clean."""
        return not self._clean and self._rng.random() < probability

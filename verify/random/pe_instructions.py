"""Random instructions of the processing engine, one after the other."""

from tilewright.golden.pe.checks import instruction_word as word
from tilewright.spec.arithmetic import Function, Operand
from tilewright.spec.pe import INSTRUCTIONS, Compare, MmType, Operation, Source

from .pe_arithmetic import random_arithmetic, wrong_arithmetic
from .pe_kernels import RandomKernels, load_entries

__all__ = ["RandomBody"]

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
        self._named = range(1, params.uniform_regs - 1)  # uniform registers that may name segments
        self._in_kernel = False
        self._fixed = set()  # those of them that kernels use, which name the same segment throughout
        self._entries = rng.random() < 0.5  # the lookup memory is loaded
        self._kernels = None
        self.loads = False  # whether words after loads follow the setup

    def setup(self):
        """Predicates, uniform registers and memories of kernels; without ``clean`` not all uniform registers."""
        rng = self._rng
        for predicate in range(_PREDICATES):
            limit = rng.choice([0, self._params.threads, rng.randint(0, self._params.threads)])
            compare = rng.choice([Compare.LTU, Compare.LTU, Compare.GE, Compare.NE])
            yield word(Operation.SETP, pd=predicate, source=Source.THREAD, compare=compare, imm=limit)
        for uniform in self._named:
            if self._clean or rng.random() < 0.85:
                yield self._name(uniform)
        if not self._params.units:
            return
        if rng.random() < 0.6:
            self._kernels = RandomKernels(rng, self._params, self._repeated, self._named.stop, self._clean)
            yield self._kernels.count()
            yield from self._kernels.setup()
        if "lookup" in self._params.units and self._entries:
            yield from load_entries(rng, self._params)

    def instructions(self, count):
        """Yields ``count`` instructions."""
        makers = {
            self._multiply: 40, self._load: 20, self._store: 20, self._move: 9, self._set_predicate: 9, self._rename: 5,
            self._wait: 4, self._fence: 3, self._illegal: 0 if self._clean else 5,
        }  # fmt: skip
        if self._params.units:
            makers |= {self._compute: 35, self._shift_offset: 3}
        elif not self._clean:
            makers |= {self._compute: 3}
        if self._kernels or not self._clean:
            makers |= {self._call: 8}
        for _ in range(count):
            if self._kernels and self._rng.random() < 0.03:
                self.loads = True
                wrong = not self._clean and self._rng.random() < 0.5
                yield from self._kernels.refused() if wrong else self._kernels.reload()
            yield self._rng.choices(list(makers), list(makers.values()))[0]()

    def _repeated(self):
        """An instruction of a kernel: it leaves offsets and names of segments as they are."""
        makers = {
            self._compute: 50, self._multiply: 10, self._load: 12, self._store: 10, self._set_predicate: 5,
            self._wait: 2, self._fence: 2, self._illegal: 0 if self._clean else 2,
        }  # fmt: skip
        self._in_kernel = True
        instruction = self._rng.choices(list(makers), list(makers.values()))[0]()
        self._in_kernel = False
        return instruction

    def _compute(self):
        return random_arithmetic(
            self._rng, self._params, self._free, sorted(self._uniform), clean=self._clean, entries=self._entries
        )

    def _shift_offset(self):
        """Arithmetic that changes an offset register, in which two threads may have equal values."""
        rng = self._rng
        changeable = [rf for rf, offset in enumerate(self._offsets) if not offset.gap]
        rd = rng.choice(changeable)
        imm = rng.choice([0, 1, 8, 8 * rng.randint(0, 8), -8 & 0xFFFFFFFF])
        moved = rng.random() < 0.5
        guard = self._guard()
        old = self._offsets[rd].values
        new = [imm if moved else value + imm & 0xFFFFFFFF for value in old]
        self._offsets[rd] = type(self._offsets[rd])([*new, *old] if guard else new, 0)
        fields = {"function": Function.MOV} if moved else {"function": Function.ADD, "ra": rd}
        return word(Operation.ARITH, rd=rd, b=Operand.IMMEDIATE, imm=imm, **fields, **guard)

    def _call(self):
        """A call of a kernel, or a control at a wrong place."""
        if self._kernels and (self._clean or self._rng.random() < 0.8):
            return self._kernels.count() if self._rng.random() < 0.15 else self._kernels.call()
        wrong = [Operation.RETURN, Operation.END, Operation.LOOP, Operation.CALL]
        operation = self._rng.choice(wrong)
        fields = {"b": Operand.IMMEDIATE, "imm": 2} if operation == Operation.LOOP else {}
        return word(operation, **fields | ({"imm": self._params.kernel_words} if operation == Operation.CALL else {}))

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
        n, element = self._count(), self._element()
        rd = rng.randint(self._free, max(self._free, self._params.regs - n))
        if self._slip(0.08):
            rd, n = rng.choice([(self._params.regs - 1, 2), (0xFFFF, 1), (self._free, 0xFFFF)])
        address = self._address(plan, uniform, element)
        return word(Operation.LD, element=element, rd=rd, n=n, **address, **self._guard())

    def _store(self):
        """Threads store to different bytes: one of their offsets differs by enough."""
        rng = self._rng
        uniform = self._choose(lambda plan: plan.stores or plan.wrong)
        plan = self._plan(uniform)
        n, element = self._count(), self._element()
        address = self._address(plan, uniform, element)
        if plan is not None and not plan.wrong:
            places = [rf for rf in range(self._free - plan.rank + 1) if self._apart(rf, plan, n, element)]
            if not plan.stores or not places:
                return self._load()
            aligned = [rf for rf in places if self._aligned(rf, self._whole(plan, element))]
            address["rf"] = rng.choice(places if not aligned or self._slip(0.2) else aligned)
        return word(Operation.ST, element=element, rs=self._register(n), n=n, **address, **self._guard())

    def _apart(self, rf, plan, n, element):
        """Whether no two threads can store to one element, n registers each from these offsets."""
        gaps = [offset.gap for offset in self._offsets[rf : rf + plan.rank]]
        return any(gaps[1:]) or gaps[0] >= n * self._whole(plan, element)

    def _element(self):
        """Whether a load or store moves single elements."""
        return int(self._rng.random() < 0.3)

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
        free = [uniform for uniform in self._named if uniform not in self._fixed]
        return self._name(self._rng.choice(free)) if free else self._fence()

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
        if operation in (Operation.LD, Operation.ST, Operation.LOAD):
            choices.append(word(operation, n=1) & ~(0xFFFF << fmt["n"].lsb))
        if operation in (Operation.ARITH, Operation.LOOP):
            return wrong_arithmetic(rng)
        reserved = [bit for bit in range(fmt.bits) if fmt.reserved_mask >> bit & 1]
        choices.append(operation | 1 << rng.choice(reserved))
        return rng.choice(choices)

    def _choose(self, good):
        """A uniform register, mostly one that names a segment for which ``good`` holds."""
        chosen = self._chosen(good)
        self._fixed |= {chosen} if self._in_kernel else set()
        return chosen

    def _chosen(self, good):
        rng = self._rng
        if self._slip(0.04):
            return rng.choice([self._params.uniform_regs, 255, rng.choice([0, *self._named])])
        plans = {uniform: self._plan(uniform) for uniform in self._uniform if uniform}
        fitting = [uniform for uniform, plan in plans.items() if plan is not None and good(plan)]
        return rng.choice(fitting or [1])

    def _plan(self, uniform):
        """The segment that it names, or None; as segment 0 counts what may not be written at all."""
        segment = self._uniform.get(uniform)
        return self._plans.get(segment) if segment else None

    def _address(self, plan, uniform, element):
        whole = self._whole(plan, element)
        size = 16 if plan is None else plan.size[0]
        imm = self._immediate(size, 1 if self._slip(0.2) else whole)
        return {"ur": uniform, "rf": self._offset(plan, whole), "imm": imm}

    @staticmethod
    def _whole(plan, element):
        """Elements of a register."""
        return 1 if plan is None or element else 4 // plan.element.bytes

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

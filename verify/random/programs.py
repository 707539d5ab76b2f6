"""Random garbage for the command processor: programs that are mostly wrong, in windows that nothing may leave."""

import random
from typing import NamedTuple

import numpy as np

from tilewright.golden import (
    TensorMap,
    command_word,
    conv_words,
    delivery_bits,
    instruction_word,
    program_bytes,
    program_word,
)
from tilewright.golden.core.processor import kind_of
from tilewright.golden.memory import mix_pattern
from tilewright.spec import DESCRIPTOR, PAGE_BYTES, BarrierOp, Opcode, Space
from tilewright.spec.core import BARRIER_VALUES, PROGRAM_WORDS, WORD_BITS, WORD_BYTES, WRITABLE, Engine, Kind
from tilewright.spec.pe import INSTRUCTIONS, PE_REGISTERS, Operation, Put

from .conv_jobs import garbage_jobs, random_jobs

__all__ = ["DATA_WINDOW", "GLOBAL_BYTES", "PROGRAM_AT", "PROGRAM_WINDOW", "GarbagePair", "GarbageProgram",
           "garbage_pairs", "garbage_programs"]  # fmt: skip

#: Bytes of global memory that there are.
GLOBAL_BYTES = 4 * PAGE_BYTES
#: First and last byte of commands and programs: this window extends past the end of memory.
DATA_WINDOW = PAGE_BYTES, 3 * PAGE_BYTES - 1
PROGRAM_AT = 3 * PAGE_BYTES
PROGRAM_WINDOW = PROGRAM_AT, 5 * PAGE_BYTES - 1

_INSTRUCTIONS_AT = PROGRAM_AT + PAGE_BYTES // 2
_INSTRUCTIONS = 32
_INSTRUCTION_POOL = 500
_MOST_WORDS = 24
_MAPS = 8
_JOBS = 100
_KIND_LSB = PROGRAM_WORDS[Kind.END]["kind"].lsb
_PUT = next(register for register in PE_REGISTERS if register.name == "put")
_U32 = (1 << 32) - 1
#: Bit of an index past the end of any instruction memory.
_NO_KERNEL = 1 << 16


class GarbageProgram(NamedTuple):
    """A program of ``words`` words at ``PROGRAM_AT`` of global memory, which is ``gmem`` (uint8) before it."""

    gmem: np.ndarray
    words: int


def garbage_programs(seed, params, smem_bytes, count):
    """Yields ``count`` programs; a function of its arguments alone.

    Parameters
    ----------
    seed : int
    params : ConvParams
        Of jobs.
    smem_bytes : int
        Bytes of shared memory, 4096 or more.
    count : int
    """
    rng = random.Random(seed)
    maker = _Words(rng, params, smem_bytes)
    contents = mix_pattern(GLOBAL_BYTES, seed & 0xFFFF)
    for number in range(_MAPS):
        raw = np.frombuffer(_map(rng, number).pack(), np.uint8)
        contents[PAGE_BYTES + number * len(raw) :][: len(raw)] = raw
    instructions = [maker.instruction() for _ in range(_INSTRUCTION_POOL)]
    for _ in range(count):
        words = maker.program()
        contents[PROGRAM_AT:] = 0
        contents[PROGRAM_AT:][: len(words) * WORD_BYTES] = program_bytes(words)
        raw = b"".join(word.to_bytes(16, "little") for word in rng.choices(instructions, k=_INSTRUCTIONS))
        contents[_INSTRUCTIONS_AT:][: len(raw)] = np.frombuffer(raw, np.uint8)
        yield GarbageProgram(contents.copy(), max(0, len(words) + rng.choice([0] * 12 + [-1, 3])))


def _map(rng, number):
    """A descriptor; one of three reaches out of the window."""
    address = PAGE_BYTES * (1 + number % 3) + 2048
    return TensorMap(
        element="u8", size=(32, 16), stride=(32,), box=(16, rng.choice([1, 4, 8])), address=address, fill="zero"
    )


class _Words:
    """Makes words and instructions."""

    def __init__(self, rng, params, smem_bytes):
        self._rng, self._smem_bytes = rng, smem_bytes
        seed = rng.getrandbits(32)
        self._jobs = [job.word for job in random_jobs(seed, params, _JOBS, most_macs=300, smem_bytes=4096)]
        self._wrong_jobs = list(garbage_jobs(seed, params, _JOBS, smem_bytes=4096))
        self._wrong = 1.0  # probability that something is wrong on purpose
        self._kinds = {
            self._command: 25, self._job: 5, self._run: 8, self._barrier: 20, self._wait_all: 5, self._register: 15,
            self._loop: 8, self._kernel: 4,
        }  # fmt: skip

    def program(self):
        """Words of a program, as a list."""
        rng = self._rng
        self._wrong = rng.choice([0, 0.01, 0.05, 0.3])
        words = [*self._start_barrier(0), *self._start_barrier(8)]
        for _ in range(rng.randint(0, 12)):
            words += rng.choices(list(self._kinds), list(self._kinds.values()))[0]()
        if not self._slips():
            words += [self._packed(Kind.END, interrupt=rng.getrandbits(1))]
        return words[:_MOST_WORDS]

    def instruction(self):
        """A packed instruction, wrong more often than not."""
        rng = self._rng
        operation = rng.choice([Operation.MOV, Operation.MOVU, Operation.ST, Operation.LD, *Operation])
        fields = {}
        for field in INSTRUCTIONS[operation].fields[1:]:
            low, high = field.range
            fields[field.name] = rng.randint(low, min(high, rng.choice([low + 1, low + 3, low + 15, high])))
        if operation == Operation.BAR_WAIT:
            fields["imm"] = self._barrier_address()
        if operation == Operation.CALL:
            fields["imm"] |= _NO_KERNEL
        word = instruction_word(operation, **fields)
        if operation == Operation.LOAD:
            return word & ~instruction_word(operation, n=0xFFFF) | operation  # it takes no words
        return word ^ 1 << rng.randrange(128) if rng.random() < 0.1 else word

    def _slips(self):
        return self._rng.random() < self._wrong

    def _pick(self, right, wrong):
        """One of the values that are right, or of the wrong ones, whose last is the largest of any."""
        return self._rng.choice(wrong[:-1] + [self._rng.randint(0, wrong[-1])] if self._slips() else right)

    def _packed(self, kind, **fields):
        """A word with such fields, of which a bit may be turned."""
        if self._slips() and self._slips():
            return self._rng.getrandbits(WORD_BITS)
        word = program_word(kind, tag=self._rng.getrandbits(15), **fields)
        return word ^ 1 << self._rng.randrange(WORD_BITS) if self._slips() else word

    def _start_barrier(self, address):
        return [self._packed(Kind.BARRIER, operation=BarrierOp.INIT, value=self._rng.randint(1, 3), barrier=address)]

    def _barrier_address(self):
        last = self._smem_bytes
        return self._pick([0, 0, 8], [16, last - 8, last, 4, _U32])

    def _command(self):
        rng = self._rng
        fields = {"signal": rng.getrandbits(1), "barrier": self._barrier_address(), "tag": rng.getrandbits(15)}
        kind = rng.choice([Opcode.COPY_BLOCK, Opcode.COPY_BLOCK, Opcode.LOAD, Opcode.STORE, Opcode.WAIT_ALL])
        if kind == Opcode.COPY_BLOCK:
            fields["size"] = self._pick([0, 16, 64, 256], [512, 8, 1 << 20, _U32])
            for side in ("source", "destination"):
                fields[f"{side}_space"] = space = rng.choice(list(Space))
                fields[side] = self._address(space)
        elif kind == Opcode.WAIT_ALL:
            kind = self._pick([Opcode.COMMIT, Opcode.WAIT, Opcode.WAIT_ALL, Opcode.INVALIDATE_ALL], [15, 0, 15])
            fields = {"tag": fields["tag"]}
        else:
            kind = self._pick([kind], [Opcode.REDUCE, Opcode.PREFETCH, 1])
            fields["descriptor"] = PAGE_BYTES + DESCRIPTOR.bytes * self._pick([0, 3, 6], [1, 2, 100, 1 << 20])
            fields["coords"] = [self._pick([0, 8, 16], [(1 << 31) - 1, 31]) for _ in range(2)]
            fields["smem"] = 128 * self._pick([1, 5, 20], [32, 1 << 24])
        word = command_word(kind, **fields)
        return [(word ^ 1 << rng.randrange(_KIND_LSB) if self._slips() else word) | Kind.TMAU << _KIND_LSB]

    def _address(self, space):
        if space == Space.SHARED:
            return 16 * self._rng.randrange(1, self._smem_bytes // 16 - 16)
        first, last = DATA_WINDOW
        return self._pick([first + 2048, first + 4096, last - 255], [0, first - 16, last - 15, PROGRAM_AT, 1 << 63])

    def _job(self):
        words = conv_words(self._rng.choice(self._wrong_jobs if self._slips() else self._jobs))
        return words[:2] if self._slips() else words

    def _run(self):
        address = self._pick([_INSTRUCTIONS_AT, _INSTRUCTIONS_AT + 64], [GLOBAL_BYTES - 64, 0, 8, (1 << 64) - 64])
        return [self._packed(Kind.PE, address=address, count=self._pick([1, 2, 3, 4, 5, 8], [0, 200, _U32, _U32]))]

    def _barrier(self):
        operation = self._rng.choice([BarrierOp.ARRIVE, BarrierOp.TRY_WAIT, *BarrierOp])
        right = [0, 1] if operation == BarrierOp.TRY_WAIT else [1]
        value = self._pick(right, [0, 2, 16, BARRIER_VALUES - 1, BARRIER_VALUES, _U32])
        return [self._packed(Kind.BARRIER, operation=operation, value=value, barrier=self._barrier_address())]

    def _wait_all(self):
        return [self._packed(Kind.WAIT_ALL, engines=self._rng.choice([0, 1, 2, 4, 7]))]

    def _register(self):
        """Most often to the processing engine, where something is put."""
        rng = self._rng
        engine = self._pick([Engine.PE, Engine.PE, Engine.PE, Engine.TMAU], [Engine.CONV, 0, 15])
        offset = self._pick(list(WRITABLE.get(engine, (0,))), [0, 0x24, 0x70, 0x144, 0x148, _U32])
        value = rng.choice([0, 1, 2, rng.getrandbits(32)])
        if engine == Engine.PE and rng.random() < 0.3:
            index = self._pick([0], [1, 3, 0xFFFF])
            offset, value = _PUT.offset, _PUT.format.pack(kind=rng.choice(list(Put)), index=index)
        return [self._packed(Kind.REGISTER, engine=engine, offset=offset, value=value)]

    def _kernel(self):
        """A call of what is no kernel: no program loads one."""
        count = self._pick([0, 1, 3], [12, 13, 15])
        arguments = [self._rng.randrange(4) for _ in range(min(count, 12) if not self._slips() else 12)]
        first = self._pick([0, 1, 2], [6, 8, 200, 255])
        return [self._packed(Kind.KERNEL, first=first, count=count, argument=arguments, entry=_NO_KERNEL | count)]

    def _loop(self):
        count = self._pick([1, 2, 2, 3], [0, _U32])
        return [self._packed(Kind.LOOP, count=count, back=self._pick([1, 2, 3], [0, 5, 100, _U32]))]


#: Address of the second program, after the first one and the instructions of both.
_OTHER_AT = GLOBAL_BYTES - 24 * WORD_BYTES
#: Bits of a loop's count that are too many for a program to end soon.
_ROUNDS = PROGRAM_WORDS[Kind.LOOP].pack(count=(1 << 32) - 4)


class GarbagePair(NamedTuple):
    """Programs of two cores: global memory before them (uint8), and of each its address and number of words."""

    gmem: np.ndarray
    starts: list


def garbage_pairs(seed, params, smem_bytes, count):
    """Yields ``count`` pairs; a function of its arguments alone, see ``garbage_programs``."""
    rng = random.Random(seed)
    programs = garbage_programs(seed, params, smem_bytes, 2 * count)
    for first, second in zip(programs, programs, strict=True):
        gmem, starts = first.gmem, []
        for address, program in ((PROGRAM_AT, first), (_OTHER_AT, second)):
            raw = program_bytes([_changed(rng, word) for word in _words(program)])[: GLOBAL_BYTES - address]
            gmem[address:][: len(raw)] = raw
            starts.append((address, program.words))
        yield GarbagePair(gmem, starts)


def _words(program):
    raw = program.gmem[PROGRAM_AT:].tobytes()
    return [int.from_bytes(raw[WORD_BYTES * place :][:WORD_BYTES], "little") for place in range(program.words)]


def _changed(rng, word):
    """The word: a command may bring bytes to other cores, or read their shared memory; and no loop has many rounds."""
    kind = kind_of(word)
    if kind == Kind.LOOP:
        return word & ~_ROUNDS
    if kind != Kind.TMAU or rng.random() < 0.3:
        return word
    cores = rng.choice([None, 1, 2, 3, 3, 3, rng.getrandbits(16)])
    source = rng.choice([None, None, 0, 1, rng.randrange(16)])
    return word | delivery_bits(cores, source)

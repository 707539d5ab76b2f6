"""Instructions of the processing engine, packed and unpacked, and errors that refuse them (docs/pe.md, "Errors")."""

from functools import lru_cache
from types import MappingProxyType

from tilewright.spec import BARRIER
from tilewright.spec.arithmetic import FUNCTIONS, Function, Operand
from tilewright.spec.pe import INSTRUCTIONS, MEMORY_OPERATIONS, MmType, Operation, PeError, Target

from ..arguments import member

__all__ = ["PREDICATES", "decode", "instruction_word", "refusal"]

#: Operations that need the unit `alu`.
_COMPUTING = (Operation.ARITH, Operation.CALL, Operation.RETURN, Operation.LOOP, Operation.END, Operation.LOAD)

#: Predicates of a thread.
PREDICATES = 8

_RESERVED = {operation: fmt.reserved_mask for operation, fmt in INSTRUCTIONS.items()}
_NUMBERS = {
    operation: {field.name: frozenset(field.enum) for field in fmt.fields if field.enum}
    for operation, fmt in INSTRUCTIONS.items()
}
#: Fields that hold operand b of each kind.
_FIELDS_OF_B = {Operand.REGISTER: {"rb"}, Operand.IMMEDIATE: {"imm"}, Operand.UNIFORM: {"rb"}}


def instruction_word(operation, **fields):
    """A packed instruction of 128 bits; omitted fields have their lowest value."""
    operation = member("operation", Operation, operation)
    fmt = INSTRUCTIONS[operation]
    lowest = {field.name: field.range[0] for field in fmt.fields}
    return fmt.pack(**lowest | fields | {"opcode": operation})


@lru_cache(maxsize=4096)  # a kernel's words are decoded in every round
def decode(word):
    """The fields of a packed instruction, or None if it has the error OPCODE."""
    opcode = word & 0xFF
    if opcode not in INSTRUCTIONS or word & _RESERVED[opcode]:
        return None
    values = INSTRUCTIONS[opcode].unpack(word)
    if values.get("n") == 0 or any(values[name] not in numbers for name, numbers in _NUMBERS[opcode].items()):
        return None
    if opcode == Operation.ARITH and _wrong_arithmetic(**values):
        return None
    if opcode == Operation.LOOP and _wrong_loop(**values):
        return None
    return MappingProxyType(values)


def _wrong_arithmetic(function, b, part, ps, rd, ra, rb, rc, imm, **_):
    info = FUNCTIONS[function]
    unused = {"ps": ps if not info.selects else 0}
    unused |= {f"r{name}": value for name, value in (("a", ra), ("c", rc)) if name not in info.operands}
    if "b" in info.operands:
        unused |= {name: value for name, value in (("rb", rb), ("imm", imm)) if name not in _FIELDS_OF_B[b]}
    else:
        unused |= {"b": b, "rb": rb, "imm": imm}
    return any(unused.values()) or part >= info.parts or (info.predicate and rd >= PREDICATES)


def _wrong_loop(b, rb, imm, **_):
    if b == Operand.UNIFORM:
        return imm != 0
    return b != Operand.IMMEDIATE or rb != 0 or imm == 0


def refusal(word, pe):
    """The error that stops a whole packed instruction on ``pe``, in the order of docs/pe.md, "Errors".

    Returns its code and register; the code is ``PeError.NONE`` if the instruction can be executed.
    """
    if word & 0xFF in _COMPUTING and "alu" not in pe.sizes.units:
        return PeError.UNSUPPORTED, 0
    values = decode(word)
    if values is None:
        return PeError.OPCODE, 0
    operation, sizes = values["opcode"], pe.sizes
    missing = _missing(operation, values, sizes)
    if missing is not None:
        return PeError.UNSUPPORTED, missing
    if operation == Operation.MM and values["ka"] * values["kb"] > sizes.threads:
        return PeError.MERGE, 0
    if operation in MEMORY_OPERATIONS:
        return _refusal_of_access(operation, values, pe)
    if operation == Operation.MOVU and values["ud"] >= sizes.uniform_regs:
        return PeError.UNIFORM, values["ud"]
    if values.get("b") == Operand.UNIFORM and not _is_set(values["rb"], pe):
        return PeError.UNIFORM, values["rb"]
    for register in _registers(operation, values):
        if register >= sizes.regs:
            return PeError.REGISTER, register
    if operation == Operation.BAR_WAIT and (values["imm"] % BARRIER.bytes or values["imm"] >= len(pe.smem)):
        return PeError.BARRIER, 0
    return pe.kernels.refusal(operation, values, pe.uniform)


def _missing(operation, values, sizes):
    """The type or function that the engine was built without, 0 if it is neither; None if nothing is missing."""
    if operation == Operation.MM and MmType(values["type"]).family not in sizes.types:
        return values["type"]
    if operation == Operation.ARITH and FUNCTIONS[values["function"]].unit not in sizes.units:
        return values["function"]
    if operation == Operation.LOAD and values["target"] == Target.LOOKUP and "lookup" not in sizes.units:
        return 0
    return 0 if values.get("element") and "alu" not in sizes.units else None


def _is_set(number, pe):
    """Whether the uniform register exists and is set."""
    return number < pe.sizes.uniform_regs and pe.uniform[number] is not None


def _registers(operation, values):
    """The registers that an instruction without a logical address uses, in the order of their check."""
    if operation != Operation.ARITH:
        return [values.get("rd", values.get("rs", 0))]
    info = FUNCTIONS[Function(values["function"])]
    used = [] if info.predicate else [values["rd"]]
    for name in info.operands:
        used += [values[f"r{name}"]] if name != "b" or values["b"] == Operand.REGISTER else []
    return used


def _refusal_of_access(operation, values, pe):
    """The same for an instruction with a logical address."""
    sizes, ur = pe.sizes, values["ur"]
    if not _is_set(ur, pe):
        return PeError.UNIFORM, ur
    number = pe.uniform[ur]
    segment = pe.segments[number] if number < sizes.segments else None
    if segment is None:
        return PeError.SEGMENT, ur
    if operation == Operation.MM:
        misfit = segment.element.bytes != MmType(values["type"]).bytes
        if misfit or (values["transpose"] and segment.rank == 1):
            return PeError.SEGMENT, ur
        first, count = values["ra"], sizes.factor_regs
    else:
        first, count = values.get("rd", values.get("rs")), values["n"]
    if first + count > sizes.regs:
        return PeError.REGISTER, first
    if values["rf"] + segment.rank > sizes.regs:
        return PeError.REGISTER, values["rf"]
    return PeError.NONE, 0

"""Errors that concern the whole instruction, in the order of their codes (docs/pe.md, "Errors")."""

from ..spec import BARRIER
from ..spec.pe.errors import PeError
from ..spec.pe.instruction import INSTRUCTIONS, MEMORY_OPERATIONS, MmType, Operation

__all__ = ["decode", "refusal"]

_RESERVED = {operation: fmt.reserved_mask for operation, fmt in INSTRUCTIONS.items()}
_NUMBERS = {
    operation: {field.name: frozenset(field.enum) for field in fmt.fields if field.enum}
    for operation, fmt in INSTRUCTIONS.items()
}


def decode(word):
    """The fields of a packed instruction, or None if it has the error OPCODE."""
    opcode = word & 0xFF
    if opcode not in INSTRUCTIONS or word & _RESERVED[opcode]:
        return None
    values = INSTRUCTIONS[opcode].unpack(word)
    if values.get("n") == 0 or any(values[name] not in numbers for name, numbers in _NUMBERS[opcode].items()):
        return None
    return values


def refusal(values, pe):
    """Code and register of the error that stops an instruction with these fields on ``pe``, a machine.

    The code is ``PeError.NONE`` if the instruction can be executed.
    """
    operation, sizes = values["opcode"], pe.sizes
    if operation == Operation.MM and MmType(values["type"]).family not in sizes.types:
        return PeError.UNSUPPORTED, values["type"]
    if operation == Operation.MM and values["ka"] * values["kb"] > sizes.threads:
        return PeError.MERGE, 0
    if operation in MEMORY_OPERATIONS:
        return _refusal_of_access(operation, values, pe)
    if operation == Operation.MOVU and values["ud"] >= sizes.uniform_regs:
        return PeError.UNIFORM, values["ud"]
    register = values.get("rd", values.get("rs", 0))
    if register >= sizes.regs:
        return PeError.REGISTER, register
    if operation == Operation.BAR_WAIT and (values["imm"] % BARRIER.bytes or values["imm"] >= len(pe.smem)):
        return PeError.BARRIER, 0
    return PeError.NONE, 0


def _refusal_of_access(operation, values, pe):
    """The same of an instruction with a logical address."""
    sizes, ur = pe.sizes, values["ur"]
    number = pe.uniform[ur] if ur < sizes.uniform_regs else None
    if number is None:
        return PeError.UNIFORM, ur
    segment = pe.segments[number] if number < sizes.segments else None
    if segment is None:
        return PeError.SEGMENT, ur
    if operation == Operation.MM:
        unfit = segment.element.bytes != MmType(values["type"]).bytes
        if unfit or (values["transpose"] and segment.rank == 1):
            return PeError.SEGMENT, ur
        first, count = values["ra"], sizes.factor_regs
    else:
        first, count = values.get("rd", values.get("rs")), values["n"]
    if first + count > sizes.regs:
        return PeError.REGISTER, first
    if values["rf"] + segment.rank > sizes.regs:
        return PeError.REGISTER, values["rf"]
    return PeError.NONE, 0

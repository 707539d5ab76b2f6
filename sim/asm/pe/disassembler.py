"""The text of instructions of the processing engine, written: a 128-bit word as a line that the assembler reads."""

from tilewright.golden.spec.pe.instruction import INSTRUCTIONS, Compare, MmType, Operation, Source

from ...usage import UsageError
from .assembler import FLOATS, assemble_instruction

__all__ = ["disassemble_instruction"]

_FLOAT_NAMES = {number: name for name, number in FLOATS.items()}
_OPCODE = INSTRUCTIONS[Operation.HALT]["opcode"]


def disassemble_instruction(word):
    """The line of an instruction; ``word n`` if it has bits that no line says, as most illegal ones have."""
    opcode = word & (1 << _OPCODE.width) - 1
    if opcode in INSTRUCTIONS:
        fields = INSTRUCTIONS[opcode].unpack(word)
        try:
            text = _WRITERS[opcode](fields)
            text = f"@p{fields['predicate']}, {text}" if fields.get("guard") else text
            if assemble_instruction(text) == word:
                return text
        except (UsageError, ValueError):
            pass  # an enumeration has no name for the number, or no line may have it
    return f"word {word:#x}"


def _address(fields):
    return f"ur{fields['ur']}:rf{fields['rf']}:{fields['imm']:#x}"


def _multiply(fields):
    kind = MmType(fields["type"])
    parts = [f"mm{8 * kind.bytes}"]
    parts += [f"{name}{fields[name]}" for name in ("ka", "kb") if fields[name] > 1]
    parts += ["t1"] if fields["transpose"] else []
    if kind in _FLOAT_NAMES:
        parts.append(_FLOAT_NAMES[kind])
    else:
        parts += ["ua" if kind & MmType.U8S8 else "sa", "ub" if kind & MmType.S8U8 else "sb"]
    return f"{'.'.join(parts)} r{fields['rc']}, {_address(fields)}, r{fields['ra']}"


def _move(fields):
    return f"mov r{fields['rd']}, " + ("tid" if fields["source"] == Source.THREAD else f"{fields['imm']:#x}")


def _set_predicate(fields):
    thread = fields["source"] == Source.THREAD
    compared = f"tid, {fields['imm']}" if thread else f"r{fields['rs']}, {fields['imm']:#x}"
    return f"setp.{Compare(fields['compare']).name.lower()} p{fields['pd']}, {compared}"


_WRITERS = {
    Operation.MM: _multiply,
    Operation.LD: lambda fields: f"ld r{fields['rd']}, {_address(fields)}, {fields['n']}",
    Operation.ST: lambda fields: f"st r{fields['rs']}, {_address(fields)}, {fields['n']}",
    Operation.MOV: _move,
    Operation.MOVU: lambda fields: f"movu ur{fields['ud']}, {fields['imm']}",
    Operation.SETP: _set_predicate,
    Operation.BAR_WAIT: lambda fields: f"bar.wait {fields['imm']:#x}, {fields['parity']}",
    Operation.FENCE: lambda fields: "fence",
    Operation.HALT: lambda fields: "halt",
}

"""Programs of replay cases of kind kernel: they load a kernel, and call it (docs/replay.md, "Kind kernel")."""

from tilewright.golden.pe.checks import instruction_word
from tilewright.spec.pe import Operation, Target

from ..asm.pe import assemble_program
from .fields import read_text

__all__ = ["read_kernel"]

#: Entries of the lookup memory in a word, and their bits.
_ENTRIES, _BITS = 4, 32
_LEAST, _MOST = -(1 << 31), (1 << 32) - 1


def read_kernel(fields, params):
    """Reads a kernel, its table and its calls: the words of a program that ends with a halt."""
    kernel = read_text(fields, "kernel", assemble_program)
    if not 1 <= len(kernel) <= params.kernel_words:
        raise fields.wrong("kernel", f"must have 1 to {params.kernel_words} instructions, not {len(kernel)}")
    words = [instruction_word(Operation.LOAD, target=Target.CODE, n=len(kernel)), *kernel]
    entries = fields.integers("lookup", _LEAST, _MOST, [])
    if len(entries) > params.lookup_words:
        raise fields.wrong("lookup", f"must have at most {params.lookup_words} entries, not {len(entries)}")
    if entries:
        lines = [entries[first : first + _ENTRIES] for first in range(0, len(entries), _ENTRIES)]
        words.append(instruction_word(Operation.LOAD, target=Target.LOOKUP, n=len(lines)))
        words += [sum((entry & _MOST) << _BITS * place for place, entry in enumerate(line)) for line in lines]
    for arguments in _calls(fields, params):
        words += [
            instruction_word(Operation.MOVU, ud=number, imm=value & _MOST) for number, value in enumerate(arguments)
        ]
        words.append(instruction_word(Operation.CALL))
    return (*words, instruction_word(Operation.HALT))


def _calls(fields, params):
    """The arguments of each call; by default there is one, without arguments."""
    calls = fields.listed("calls", [[]])
    for index, arguments in enumerate(calls):
        name = f"calls[{index}]"
        if not isinstance(arguments, list) or len(arguments) > params.uniform_regs:
            raise fields.wrong(name, f"must be a list of at most {params.uniform_regs} arguments")
        for place, value in enumerate(arguments):
            fields.check_integer(f"{name}[{place}]", value, _LEAST, _MOST)
    return calls

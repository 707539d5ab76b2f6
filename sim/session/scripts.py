"""Rows of the harness's scripts, from what a user writes."""

from tilewright.golden import command_word
from tilewright.golden.spec import BANKS, CHUNK_BYTES

__all__ = ["AFTER_TABLES", "barrier_row", "command_row", "command_rows", "program_rows", "read_row", "register_row"]

#: The order of the ports of :func:`program_rows`: a program begins when the tables are written.
AFTER_TABLES = {"instructions": ("segments", "pages")}


def program_rows(program, segments, pages):
    """Rows of a program's ports: instructions as words, and words of segments and page entries by number, or None."""
    tables = {"segments": segments or {}, "pages": pages or {}}
    return {"instructions": [{"item": word} for word in program]} | {
        port: [{"item": {"index": index, "word": word}} for index, word in words.items()]
        for port, words in tables.items()
    }


def command_rows(commands):
    """Rows of commands; a dictionary without a tag gets its index as one."""
    return [command_row(command, number) for number, command in enumerate(commands)]


def command_row(command, number):
    """A command: packed, or a dictionary of fields of the format that its opcode has in ``golden.spec.FORMATS``.

    In a dictionary, the tag is ``number`` if left out; ``wait`` may be there; an opcode of no operation has the fields
    of ``COMMAND``.
    """
    if isinstance(command, int):
        return {"item": command}
    fields = {"opcode": 0, "tag": number} | command
    wait = fields.pop("wait", False)
    return {"item": command_word(**fields), "wait": wait}


def read_row(lanes):
    """A read of the consumer: up to eight byte addresses, None for a lane that does not read."""
    if len(lanes) > BANKS or any(address is not None and address % CHUNK_BYTES for address in lanes):
        raise ValueError(f"a read has up to {BANKS} addresses that are multiples of {CHUNK_BYTES}, not {lanes!r}")
    wanted = sum(1 << lane for lane, address in enumerate(lanes) if address is not None)
    return {"item": {"lanes": wanted, "chunks": [(address or 0) // CHUNK_BYTES for address in lanes]}}


def barrier_row(op, address, value=0, retry=False):
    """An operation on a barrier."""
    return {"item": {"request": {"op": op, "address": address, "value": value}, "retry": retry}}


def register_row(address, *word):
    """A read of a register, or a write of one word."""
    return {"item": {"address": address, "write": len(word), "data": word[0] if word else 0, "strobe": 0b1111}}

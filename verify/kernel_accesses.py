"""Which bytes of shared memory a kernel may touch: those of the segments that its loads and stores name."""

from tilewright.golden.pe.segment import Segment
from tilewright.spec.core import PROGRAM_WORDS, Kind
from tilewright.spec.pe import INSTRUCTIONS, PAGE_ENTRY, PE_REGISTERS, SEGMENT, Operation, Put, Target

__all__ = ["KernelAccesses"]

_REGISTERS = {register.name: register for register in PE_REGISTERS}
_INSTRUCTION = 16


class KernelAccesses:
    """The tables and the instruction memory of a processing engine, as the words of a program change them.

    Parameters
    ----------
    memory : uint8 array
        Global memory from address 0 on.
    """

    def __init__(self, memory):
        self._memory, self._data, self._code = memory, {}, {}
        self._segments, self._pages = {}, {}

    def register(self, offset, value):
        """A word writes a register."""
        put = _REGISTERS["put"]
        if offset != put.offset:
            self._data[offset - _REGISTERS["data0"].offset >> 2] = value
            return
        fields = put.format.unpack(value)
        table, fmt = (self._segments, SEGMENT) if fields["kind"] == Put.SEGMENT else (self._pages, PAGE_ENTRY)
        table[fields["index"]] = sum(self._data[number] << 32 * number for number in range(fmt.bits // 32))

    def instructions(self, address, count):
        """A word hands over instructions: those that load a kernel."""
        raw = self._memory[address : address + _INSTRUCTION * count].tobytes()
        words = [int.from_bytes(raw[first : first + _INSTRUCTION], "little")
                 for first in range(0, len(raw), _INSTRUCTION)]  # fmt: skip
        while words:
            fields = INSTRUCTIONS[Operation.LOAD].unpack(words.pop(0))
            loaded, words = words[: fields["n"]], words[fields["n"] :]
            if fields["target"] == Target.CODE:
                self._code.update(enumerate(loaded, start=fields["imm"]))

    def call(self, word):
        """A word calls a kernel: slices of shared memory that it reads, and that it writes."""
        fields = PROGRAM_WORDS[Kind.KERNEL].unpack(word)
        index, read, written = fields["entry"], set(), set()
        while (operation := Operation(self._code[index] & 0xFF)) != Operation.RETURN:
            if operation in (Operation.LD, Operation.ST):
                register = INSTRUCTIONS[operation].unpack(self._code[index])["ur"]
                segment = fields["argument"][register - fields["first"]]
                (read if operation == Operation.LD else written).add(segment)
            index += 1
        return [[place for number in numbers for place in self._bytes(number)] for numbers in (read, written)]

    def _bytes(self, number):
        """Slices of the pages of a segment; of a segment without pages only what has elements."""
        segment = Segment.unpack(self._segments[number])
        if not segment.paged:
            pitch = segment.element.bytes << sum(segment.page_log2[:-1])
            return [slice(segment.base, segment.base + segment.size[-1] * pitch)]
        count = 1
        for pages in segment.pages:
            count *= pages
        entries = (PAGE_ENTRY.unpack(self._pages[segment.first_entry + page]) for page in range(count))
        return [slice(entry["address"], entry["address"] + segment.page_bytes) for entry in entries]

"""Payloads and signatures between the parts of the shared memory; those at its ports are in ``layouts.py``."""

from amaranth import unsigned
from amaranth.lib import data, wiring
from amaranth.lib.wiring import In, Out

from .params import BANKS, CHUNK_BYTES

__all__ = ["CHUNK_BITS", "BanksReadLayout", "BanksWriteLayout", "ChunkWriteLayout", "write_back_signature"]

CHUNK_BITS = 8 * CHUNK_BYTES


class BanksReadLayout(data.StructLayout):
    """What the banks read in one cycle."""

    def __init__(self, params):
        super().__init__(
            {
                "enable": unsigned(BANKS),  # banks that read; the others keep their output
                "rows": data.ArrayLayout(params.row_width, BANKS),
            }
        )


class BanksWriteLayout(data.StructLayout):
    """What the banks write in one cycle."""

    def __init__(self, params):
        super().__init__(
            {
                "rows": data.ArrayLayout(params.row_width, BANKS),
                "data": data.ArrayLayout(CHUNK_BITS, BANKS),
                "strobes": data.ArrayLayout(CHUNK_BYTES, BANKS),  # one bit a byte; 0: the bank does not write
            }
        )


class ChunkWriteLayout(data.StructLayout):
    """A write of bytes of one chunk."""

    def __init__(self, params):
        super().__init__(
            {
                "chunk": unsigned(params.addr_width - 4),  # byte address >> 4
                "data": unsigned(CHUNK_BITS),
                "strobe": unsigned(CHUNK_BYTES),
            }
        )


def write_back_signature(params):
    """A register that wants to be written to memory. Not a stream: while it waits, its contents may be brought up to date.

    Members
    -------
    payload : Out(ChunkWriteLayout)
    valid : Out(1)
        The register is ahead of the memory.
    urgent : Out(1)
        It gets other contents at the end of this cycle, so ``taken`` must be high if ``valid`` is.
    taken : In(1)
        The write happens in this cycle; low if ``valid`` is.
    """
    return wiring.Signature(
        {"payload": Out(ChunkWriteLayout(params)), "valid": Out(1), "urgent": Out(1), "taken": In(1)}
    )

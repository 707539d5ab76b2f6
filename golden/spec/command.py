"""The command: what a processor hands to the TMAU (tmau.md section 7)."""

from enum import IntEnum

from .fields import Field, Format

__all__ = ["COMMAND", "Opcode"]


class Opcode(IntEnum):
    """Operation of a command. Zero is no operation, so that an empty word is refused."""

    LOAD = 1  #: global to shared memory, as the descriptor says
    INVALIDATE = 2  #: drop the descriptor at ``descriptor`` from the cache
    INVALIDATE_ALL = 3  #: drop every cached descriptor


COMMAND = Format(
    "command",
    512,
    "One request of a processor. Fields that an operation does not use are ignored.",
    (
        Field("opcode", 0, 4, "Operation.", enum=Opcode),
        Field("signal", 4, 1, "1: the bytes that land complete the transaction count of ``barrier``."),
        Field("tag", 16, 16, "Chosen by the issuer; returned with the completion and in error records."),
        Field("smem", 32, 32, "Destination byte address in shared memory: a multiple of 128."),
        Field("barrier", 64, 32, "Byte address of the barrier in shared memory: a multiple of 8."),
        Field("descriptor", 128, 64, "Global byte address of the descriptor: a multiple of 64."),
        Field("coords", 192, 32, "Tensor coordinates of the box, innermost first; zero where the rank does not reach.",
              count=5, pitch=32, signed=True),
    ),
)  # fmt: skip

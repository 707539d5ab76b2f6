"""Registers: 32-bit words at byte offsets, seen by a processor over AXI4-Lite."""

from dataclasses import dataclass
from enum import Enum

from .fields import Field, Format

__all__ = [
    "CLEAR_COUNTERS", "CLEAR_ERROR", "Access", "Register", "address_halves", "counter", "identification", "interrupts",
    "parameters",
]  # fmt: skip

#: Fields of register ``control``.
CLEAR_COUNTERS = Field("clear_counters", 0, 1, "Set all performance counters to zero.")
CLEAR_ERROR = Field("clear_error", 1, 1, "Forget the error record and its count.")


class Access(Enum):
    """What a processor can do with a register."""

    CONSTANT = "constant"  #: read it; it never changes
    RO = "read-only"  #: read what the hardware shows
    RW = "read-write"  #: read back what was written
    W1C = "write 1 to clear"  #: read what the hardware has set; writing a one clears the bit
    WO = "strobe"  #: writing a one acts once; reads as zero
    WRITE = "write-only"  #: keeps what is written, all four bytes whatever the strobes; a read is refused


@dataclass(frozen=True)
class Register:
    """One register.

    Attributes
    ----------
    name : str
        Name in every product of the table.
    offset : int
        Byte offset, a multiple of 4.
    access : Access
    doc : str
        One sentence.
    fields : tuple of Field
        All other bits read as zero.
    reset : int
        Value after reset, and the only one of a constant. The hardware supplies the value of ``params…``.
    """

    name: str
    offset: int
    access: Access
    doc: str
    fields: tuple[Field, ...]
    reset: int = 0

    def __post_init__(self):
        if self.offset % 4 or self.offset < 0:
            raise ValueError(f"offset of {self.name} must be a multiple of 4, not {self.offset!r}")
        if self.reset & self.format.reserved_mask:
            raise ValueError(f"reset of {self.name} sets bits of no field: {self.reset:#x}")

    @property
    def format(self):
        """The register as a 32-bit word of fields."""
        return Format(self.name, 32, self.doc, self.fields)


def counter(name, offset, doc):
    """A performance counter."""
    return Register(name, offset, Access.RO, doc, (Field("count", 0, 32, "Since the last clear, modulo 2^32."),))


def parameters(number, *fields):
    """Register ``params0``, ``params1`` …"""
    return Register(f"params{number}", 0x08 + 4 * number, Access.RO, "Parameters that the hardware was built with.",
                    fields)  # fmt: skip


def identification(letters, engine):
    """The registers that every engine begins with: its kind, in four letters, and the version of its registers."""
    return (
        Register("id", 0x00, Access.CONSTANT, f"Tells that this is a {engine}.",
                 (Field("id", 0, 32, f"The letters {letters}."),), reset=int.from_bytes(letters.encode("ascii"))),
        Register("version", 0x04, Access.CONSTANT, "Version of this register layout.", (
            Field("minor", 0, 16, "Counts changes that old drivers survive."),
            Field("major", 16, 16, "Counts changes that they do not."),
        ), reset=1),
    )  # fmt: skip


def interrupts(*causes):
    """Status and enable of an interrupt: a field for each cause in both."""
    return (
        Register("irq_status", 0x28, Access.W1C, "What has happened since the bit was cleared.", causes),
        Register("irq_enable", 0x2C, Access.RW, "Which bits of irq_status raise the interrupt.", causes),
    )


def address_halves(name, offset, doc, field_doc, access=Access.RW):
    """The two registers of a 64-bit address, the low half first."""
    address = Field("address", 0, 32, field_doc)
    return tuple(
        Register(f"{name}_{half}", offset + place, access, f"{doc}, {half} half.", (address,))
        for place, half in ((0, "lo"), (4, "hi"))
    )

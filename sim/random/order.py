"""One command of a mixed batch."""

from dataclasses import dataclass, replace

from tilewright.golden import TensorMap

__all__ = ["Order"]


@dataclass(frozen=True)
class Order:
    """One command: fields of its format, and the map whose descriptor it uses, with addresses that count from 0.

    Attributes
    ----------
    fields : dict
    tmap : TensorMap or None
    skew : int
        Bytes by which the address of the descriptor is wrong.
    based : tuple of str
        Fields that are global addresses.
    raw : bytes or None
        The descriptor as it stands, instead of a map.
    """

    fields: dict
    tmap: TensorMap | None = None
    skew: int = 0
    based: tuple = ()
    raw: bytes | None = None

    def descriptor(self, base):
        """Bytes of the descriptor, moved by ``base``; None if there is none."""
        if self.tmap is None:
            return self.raw
        return replace(self.tmap, address=self.tmap.address + base, check=False).pack()

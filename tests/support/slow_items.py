"""Items for workers that take their time: how long, and what happens, is in their names."""

import time
from dataclasses import dataclass

from tilewright.errors import HostError
from tilewright.workers import key_of

__all__ = ["Item", "take_time"]


@dataclass(frozen=True)
class Item:
    """An item that takes so many seconds."""

    number: int
    seconds: float = 0.0
    full: bool = False

    @property
    def key(self):
        """Of its name."""
        return key_of("item", self.number)


def take_time(item):
    """Its record."""
    time.sleep(item.seconds)
    if item.full:
        raise HostError("nothing can be built in build/sim: No space left on device")
    return {"square": item.number**2}

"""Items for workers that take their time: how long, and what happens, is in their attributes."""

import time
from dataclasses import dataclass

from tilewright.errors import HostError
from tilewright.processes import run_process
from tilewright.workers import key_of

__all__ = ["Item", "take_time"]


@dataclass(frozen=True)
class Item:
    """An item that takes so many seconds, meets a full disk, or waits for a child that leaves its number in a file."""

    number: int
    seconds: float = 0.0
    full: bool = False
    child: str = ""

    @property
    def key(self):
        """Of its name."""
        return key_of("item", self.number)


def take_time(item):
    """Its record."""
    time.sleep(item.seconds)
    if item.child:
        run_process(["sh", "-c", f"echo $$ > {item.child}.new; mv {item.child}.new {item.child}; sleep 3600; true"])
    if item.full:
        raise HostError("nothing can be built in build/sim: No space left on device")
    return {"square": item.number**2}

"""When words pass the ports that cores share, as is expected (docs/many_cores.md, "Expected cycles")."""

from math import ceil

__all__ = ["Port"]

#: Cycles that are counted as one.
_STEP = 64


class Port:
    """One direction of the port, or of several: a word a cycle each, for whichever core asks first."""

    def __init__(self, ports=1):
        self._ports = ports
        self._taken = {}  # words by steps, where there are any

    def pass_words(self, start, words):
        """When the last of ``words`` that a core asks for in cycle ``start`` has passed."""
        step, end = start // _STEP, start
        while words > 0:
            taken = max(self._taken.get(step, 0), self._ports * (start - step * _STEP))
            now = min(self._ports * _STEP - taken, words)
            if now > 0:
                self._taken[step] = self._taken.get(step, 0) + now
                words -= now
                end = step * _STEP + ceil((taken + now) / self._ports)
            step += 1
        return end

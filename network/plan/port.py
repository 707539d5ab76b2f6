"""When words pass the port that cores share, as is expected (docs/many_cores.md, "Expected cycles")."""

__all__ = ["Port"]

#: Cycles that are counted as one.
_STEP = 64


class Port:
    """One direction of the port: a word a cycle, for whichever core asks first."""

    def __init__(self):
        self._taken = {}  # words by steps, where there are any

    def pass_words(self, start, words):
        """When the last of ``words`` that a core asks for in cycle ``start`` has passed."""
        step, end = start // _STEP, start
        while words > 0:
            taken = self._taken.get(step, 0)
            room = _STEP - max(taken, start - step * _STEP)
            now = min(room, words)
            if now > 0:
                self._taken[step] = taken + now
                words -= now
                end = step * _STEP + max(taken, start - step * _STEP) + now
            step += 1
        return end

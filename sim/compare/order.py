"""Whether commands ended in an order that the specification allows (docs/commands.md, "Order")."""

from tilewright.golden.spec import Error, LaneLayout, Opcode, Space

__all__ = ["order_differences"]

_WAITS = (Opcode.WAIT, Opcode.WAIT_ALL)


def order_differences(commands, stamps):
    """One sentence for each command that ended before one that must end first.

    Parameters
    ----------
    commands : list of dict
        Fields of each command's format, in the order of issue.
    stamps : list of CommandStamp
        Of the same commands, all of them ended.
    """
    found = []
    order = _Order()
    for number, (command, stamp) in enumerate(zip(commands, stamps, strict=True)):
        for name, before in order.first(command, stamp).items():
            late = [other for other in before if stamps[other].done >= stamp.done]
            if late:
                found.append(f"command {number} ended in cycle {stamp.done}, before command {late[0]}: {name}")
        order.note(number, command, stamp)
    return found


class _Order:
    """What has been issued so far, by number."""

    def __init__(self):
        self._all = []
        self._to = {Space.SHARED: [], Space.GLOBAL: []}  # transfers by where they write
        self._open = []  # writers of global memory in no group yet
        self._groups = []
        self._held = []  # what every command from here on ends after

    def first(self, command, stamp):
        """Numbers of the commands that must have ended, by the rule that says so."""
        opcode = command["opcode"]
        if stamp.error:
            return {"what is refused goes ahead of transfers only": self._held}
        rules = {"it waits for this one, or what that waits for": self._held}
        if opcode == Opcode.WAIT_ALL:
            rules["WAIT_ALL ends last"] = self._all
        if opcode == Opcode.WAIT and not command.get("read"):
            finished = self._groups[: max(len(self._groups) - command.get("count", 0), 0)]
            rules["WAIT ends after the groups"] = [number for group in finished for number in group]
        if (space := _destination(command)) is not None:
            rules[f"transfers to {space.name.lower()} memory end in order"] = self._to[space]
        return rules

    def note(self, number, command, stamp):
        """The command has been issued, and ended as ``stamp`` says."""
        opcode, space = command["opcode"], _destination(command)
        self._all.append(number)
        if space is not None and stamp.error in (Error.NONE, Error.READ, Error.WRITE):
            self._to[space].append(number)
            if space == Space.GLOBAL and opcode != Opcode.REPLACE:
                self._open.append(number)
        if opcode == Opcode.COMMIT:
            self._groups.append(self._open)
            self._open = []
        if opcode in _WAITS:
            self._held = [*self._held, number]
        if opcode == Opcode.REPLACE and not stamp.error:
            self._held = list(self._all)


def _destination(command):
    """The memory that a transfer writes; None of commands that move nothing."""
    opcode = command["opcode"]
    if opcode == Opcode.LOAD:
        return Space.SHARED
    if opcode in (Opcode.STORE, Opcode.REDUCE, Opcode.REPLACE):
        return Space.GLOBAL
    if opcode == Opcode.COPY_BLOCK and command.get("size"):
        return Space(command.get("destination_space", Space.GLOBAL))
    if opcode == Opcode.LANES:
        layout = command.get("destination_layout", LaneLayout.GLOBAL)
        return Space.GLOBAL if layout == LaneLayout.GLOBAL else Space.SHARED
    return None

"""Mixed batches on hardware and golden: memories, endings, their order, windows, and a replay case of a failure."""

from collections import Counter
from dataclasses import dataclass, replace

import numpy as np

from tilewright.golden import Machine, Memory, Windows
from tilewright.golden.memory import mix_pattern
from tilewright.golden.smem import Barrier
from tilewright.sim.replay.commands import command_entry
from tilewright.sim.replay.golden import case_of
from tilewright.sim.replay.maps import map_fields
from tilewright.sim.session.golden_options import machine_options
from tilewright.spec import BARRIER, COMMAND, DESCRIPTOR, FORMATS, LINE_BYTES, Error, LaneLayout, Opcode, Space
from tilewright.spec.tmau_registers import processor_of

from ..random.mixed import BARRIERS, DESCRIPTOR_SLOTS, GLOBAL_BYTES, PAGE, MixedBatch
from .differences import bus_differences, ending_differences, memory_differences, smallest

__all__ = ["BATCH_BYTES", "GMEM_SEED", "SMEM_SEED", "MixedGolden", "MixedRun", "batch_commands", "batch_windows",
           "order_case", "order_differences", "processor_windows", "run_golden", "spread_tag"]  # fmt: skip

#: Seeds of the contents of both memories.
GMEM_SEED, SMEM_SEED = 3, 4
#: Bytes of global memory that a batch uses: tensors and blocks, then descriptors.
BATCH_BYTES = GLOBAL_BYTES + DESCRIPTOR_SLOTS * DESCRIPTOR.bytes


@dataclass(frozen=True)
class MixedGolden:
    """A batch that golden has executed.

    Attributes
    ----------
    batch : MixedBatch
    commands : list of dict
        Fields of each order's format, with addresses as they are.
    contents, shared : uint8 array
        Global memory from the batch's base on, and shared memory, before.
    windows : Windows
    machine : Machine
        After it.
    endings : list of Error
        Of each command; NONE if it was not refused.
    """

    batch: MixedBatch
    commands: list
    contents: np.ndarray
    shared: np.ndarray
    windows: Windows
    machine: Machine
    endings: list


def run_golden(batch, params):
    """Executes a batch on golden, as a :class:`MixedGolden`; ``params`` are a TmauParams."""
    contents = mix_pattern(BATCH_BYTES, GMEM_SEED)
    commands = batch_commands(batch, contents)
    shared = _shared_memory(params.smem.size_bytes)
    windows = batch_windows(batch, params.smem.size_bytes, batch.base)
    machine = Machine(
        Memory(contents.copy(), base=batch.base),
        shared.copy(),
        windows=windows,
        **machine_options(params),
        processors=processor_windows(params, batch.base),
    )
    endings = []
    for command in commands:
        before = len(machine.errors)
        done = machine.execute(FORMATS.get(command["opcode"], COMMAND).pack(**command))
        endings.append(machine.errors[before].code if done is None else Error.NONE)
    return MixedGolden(batch, commands, contents, shared, windows, machine, endings)


def batch_windows(batch, smem_bytes, base):
    """All that a batch at ``base`` uses but the first page, and the first line; each if the batch asks for it."""
    in_global, in_shared = batch.windows
    return Windows(
        global_=(base + PAGE, base + BATCH_BYTES // PAGE * PAGE - 1) if in_global else None,
        shared=(LINE_BYTES, smem_bytes - 1) if in_shared else None,
    )


def processor_windows(params, base):
    """Of each processor of an access unit: none, or in one memory or both less than a batch's windows, or more."""
    last = base + BATCH_BYTES // PAGE * PAGE - 1
    return tuple(
        Windows(
            global_=(base + PAGE * (number + 3), last) if number & 1 else None,
            shared=(0 if number & 1 else 4 * LINE_BYTES, params.smem.size_bytes - 1) if number & 2 else None,
        )
        for number in range(params.window_owners if params.confines_apart else 0)
    )


def spread_tag(number):
    """Tag of a command of that number: they differ, and all of their bits are used."""
    return 40503 * number % (1 << 16)


def batch_commands(batch, contents):
    """Fields of the commands; their descriptors are placed after the tensors in ``contents``."""
    slots, commands = {}, []
    for number, order in enumerate(batch.orders):
        fields = order.fields | {"tag": spread_tag(number + batch.seed)}
        fields |= {name: fields[name] + batch.base for name in order.based}
        raw = order.descriptor(batch.base)
        if raw is not None:
            place = GLOBAL_BYTES + DESCRIPTOR.bytes * slots.setdefault(raw, len(slots))
            contents[place : place + len(raw)] = np.frombuffer(raw, np.uint8)
            fields["descriptor"] = batch.base + place + order.skew
        known = {field.name for field in FORMATS.get(fields["opcode"], COMMAND).fields}
        commands.append({name: value for name, value in fields.items() if name in known})
    return commands


def _shared_memory(size):
    """Contents before a batch: a pattern, and barriers that wait for one arrival, half of them in phase 1."""
    contents = mix_pattern(size, SMEM_SEED)
    for number in range(BARRIERS):
        place = len(contents) - BARRIER.bytes * (BARRIERS - number)
        Barrier(pending=1, expected=number + 1, phase=number & 1).write(contents, place)
    return contents


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
    sentences = []
    order = _Order()
    for number, (command, stamp) in enumerate(zip(commands, stamps, strict=True)):
        for name, before in order.first(command, stamp).items():
            late = [other for other in before if stamps[other].done >= stamp.done]
            if late:
                sentences.append(f"command {number} ended in cycle {stamp.done}, before command {late[0]}: {name}")
        order.note(number, command, stamp)
    return sentences


class _Order:
    """Commands that have been issued so far, by number."""

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


def order_case(name, why, batch, params):
    """A file of one case, as a string; or why there is none.

    The batch lies at address 0, and its commands signal no barriers.
    """
    maps = {}
    try:
        entries = [
            _entry(order, maps) | {"async": not batch.wait} | _issuer(number, batch, params)
            for number, order in enumerate(batch.orders)
        ]
    except ValueError as error:
        return f"no replay case: {error}"
    memories = {
        "gmem": {"bytes": BATCH_BYTES, "init": {"mix": GMEM_SEED}},
        "smem": {"bytes": params.smem.size_bytes, "init": {"mix": SMEM_SEED}},
    }
    windows = batch_windows(batch, params.smem.size_bytes, base=0)
    if windows != Windows():
        memories["windows"] = _limits(windows)
    if params.confines_apart:
        memories["processors"] = [_limits(own) for own in processor_windows(params, base=0)]
    placed = {
        name: map_fields(tmap) | {"at": GLOBAL_BYTES + DESCRIPTOR.bytes * number}
        for number, (tmap, name) in enumerate(maps.items())
    }
    return case_of(name, why, placed, entries, **memories)


def _limits(windows):
    """Windows as a case has them."""
    return {name: list(pair) for name, pair in (("global", windows.global_), ("shared", windows.shared)) if pair}


def _issuer(number, batch, params):
    """Whose command is an order of that number, as a case says it."""
    if params.processors == 1:
        return {}
    return {"processor": processor_of(spread_tag(number + batch.seed), params.processors)}


def _entry(order, maps):
    """A command as a case names it; ValueError if it cannot. ``maps`` gives names to maps, and takes new ones."""
    if order.fields["opcode"] not in FORMATS or order.skew or order.raw is not None:
        raise ValueError(f"no case can say {order}")
    entry = command_entry(order.fields["opcode"], order.fields, order.tmap)
    return entry if order.tmap is None else entry | {"map": maps.setdefault(order.tmap, f"m{len(maps)}")}


#: Cycles after which the barrier unit has written back what it holds.
_DRAIN = 32


class MixedRun:
    """Runs mixed batches on a session, whose memories it fills for each batch.

    Parameters
    ----------
    session : Session
        Of a core with an access unit alone.

    Attributes
    ----------
    commands : int
        Compared so far.
    endings : Counter
        How they ended.
    golden : MixedGolden
        The last batch on golden.
    """

    def __init__(self, session):
        self._session = session
        self._params = session.params.tmau
        self.commands = 0
        self.endings = Counter()
        self.golden = None

    def run(self, batch):
        """Runs a batch from a reset on; returns one sentence for each difference from golden."""
        session = self._session
        session.clear(batch.base)
        batch.configure(session)
        self.golden = golden = run_golden(batch, self._params)
        session.global_memory.write(batch.base, golden.contents)
        session.shared_memory.write(0, golden.shared)
        run = session.run(
            [command | {"wait": batch.wait} for command in golden.commands],
            registers=self._window_registers(golden),
            after={"commands": ["registers"]},
            shared=True,
            memory=(batch.base, BATCH_BYTES),
            drain=_DRAIN,
        )
        self.commands += len(golden.commands)
        self.endings.update(golden.endings)
        machine = golden.machine
        return [
            *bus_differences(run),
            *ending_differences(run, machine),
            *order_differences(golden.commands, run.commands),
            *memory_differences("shared memory", run.shared, machine.smem, golden.shared),
            *memory_differences("global memory", run.memory, machine.gmem.data, golden.contents),
        ]

    def _window_registers(self, golden):
        """Accesses that set the windows of a batch, and of each processor."""
        if not self._params.has("windows"):
            return []
        apart = enumerate(golden.machine.processors)
        own = [item for number, windows in apart for item in windows.registers(number).items()]
        return [*golden.windows.registers().items(), *own]

    def reduce(self, batch):
        """The smallest part of a failing batch that fails by itself, or None. The ends of epochs between it stay."""
        ends = {number for number, order in enumerate(batch.orders) if order.fields["opcode"] == Opcode.WAIT_ALL}

        def part(numbers):
            """With one end between two commands that had one or more."""
            kept = []
            for last, number in zip((numbers[0], *numbers), numbers, strict=False):
                kept += [end for end in sorted(ends) if last < end < number][:1] + [number]
            return replace(batch, orders=tuple(batch.orders[number] for number in kept))

        others = tuple(number for number in range(len(batch.orders)) if number not in ends)
        numbers = smallest(others, lambda numbers: self.run(part(numbers)))
        return None if numbers is None else part(numbers)

    def report(self, batch):
        """Failures of a batch: the differences of its smallest part, and a replay case of it."""
        where = f"{batch}; {self._params}"
        part = self.reduce(batch)
        if part is None:
            return f"{where}: does not fail again"
        orders = [str(order) for order in part.orders]
        return "\n".join([where, *self.run(part), *orders, order_case("found_by_mixed", where, part, self._params)])

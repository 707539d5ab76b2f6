"""Expected cycles of a layer that is cut to bands and units (docs/network.md, "Tiles")."""

from math import ceil

from ..lower.places import LINE, Held
from .costs import FOLLOWS, HANDED, BandCosts, moved, transfer_cycles

__all__ = ["CoreCosts", "expected_cycles"]

#: Cycles from the end of a job until the access unit has the load that waited for it.
_ISSUE = 40
#: Cycles until the first core knows that another one is ready for a multicast.
_TOLD = 150
#: Writes of shared memory per cycle, of bus words and of results: two, unless they need the same bank.
_WRITES = 1.9


class CoreCosts(BandCosts):
    """Costs of bands of the first core, and how many cores use the port for other weights, sources and results at once.

    ``way`` says how many cores share the rows and the channels, ``common`` which sources are the same for all cores
    that make the same rows.
    """

    def __init__(self, layer, machine, spans, way, common):
        super().__init__(layer, machine.conv, spans)
        rows, channels = way
        self.machine, self.spans, self.results, self.weights = machine, spans, machine.cores, channels
        self.pixels = [rows if each else machine.cores for each in common]


def _in_turn(work, load, stored, soon, buffers):
    """Cycles of each of many jobs whose buffers are stored, and loaded again, when the job has ended.

    The bus alternates between loads and stores of different buffers; stores take ``stored`` cycles.
    """
    return max(load, ceil((work + max(load * 5 / 4, stored) + soon) / buffers))


def _bus(size, machine, users=1):
    """Cycles of the bus for ``size`` contiguous bytes of each of some users."""
    return transfer_cycles(None, size, machine, users)


def expected_cycles(layer, split, costs, room):
    """Expected cycles of a layer, and how many of them are at its ends.

    A band, or each unit if weights do not stay, takes as long as the longest of its loads, jobs and stores.
    """
    machine, height = costs.machine, costs.spans[0][1]
    soon = machine.latency + _ISSUE + HANDED + (_TOLD if machine.cores > 1 else 0)
    units = [(jobs, last, _bus(size, machine, costs.weights), _bus(size, machine), number)
             for jobs, last, size, number in costs.units(split.units)]  # fmt: skip
    weights = sum(load * number for *_, load, _, number in units)
    loads = list(zip(layer.sources, split.input_bytes, costs.pixels, strict=True))
    brought = sum(transfer_cycles(place, size, machine, users) for place, size, users in loads)
    stored = transfer_cycles(layer.output, split.output_bytes, machine, costs.results)
    # What shared memory is busy for, whatever the share of the port.
    near_weights = sum(alone * number for *_, alone, number in units)
    near_brought = sum(transfer_cycles(place, size, machine) for place, size, _ in loads)
    near_stored = transfer_cycles(layer.output, split.output_bytes, machine)
    words = moved(layer.output, split.output_bytes, machine.bus_bytes)
    total, count = 0, ceil(height / split.rows) * layer.output.batch
    for rows, again, repeated in costs.bands(split.rows, split.resident):
        work, own_cycles, reads, writes, before = 0, 0, 0, 0, 0
        for jobs, last, load, alone, number in units:
            job = costs.turn(rows)
            for (part, channels), times in jobs.items():
                cost = costs.job(part, channels, rows)
                job += times * cost.cycles
                reads, writes = reads + number * times * cost.reads, writes + number * times * cost.writes
                if layer.stages[part][0] in (layer, layer.sums):
                    own_cycles += number * times * cost.cycles
                else:
                    before += times * (cost.reads - cost.cycles)
            if again and not split.resident:
                cost = costs.job(*last, rows)
                held = job - costs.turn(rows) - cost.cycles + cost.held
                # Cores ask for their weights at different times.
                load = max(load, _in_turn(held, (load + alone) / 2, 0, soon, split.slots))
            work += number * (max(job, load) if again else job)
        # Shared memory reads for jobs and stores alternately, and writes loads and results. Each word of a store
        # counts, though a line has several: a layer that reads nearly always is slower than its reads.
        landed = near_brought + (near_weights if again else 0)
        beside = stored + near_stored * min(reads / max(work, 1), 1)
        port = max(brought + (weights if again else 0), stored)
        ports = max(reads + near_stored, writes, landed, ceil((writes + landed) / _WRITES), port)
        # Ranges of one band use two sets of buffers alternately, also for weights.
        turns, load = (split.depth, brought) if count > 1 else (2, brought + (weights if split.resident else 0))
        turn = _in_turn(max(work, ports), load, beside, soon, turns) if turns > 1 else 0
        if turns == 1 and layer.first:
            # Loads and stores of one of both layers go on while the other one is computed.
            turn = work + max(load * 5 // 4 + soon - own_cycles, 0) + max(beside + soon - work + own_cycles, 0)
            # The first one reads while results are stored, a line of several words at a time.
            turn += max(before + words * machine.bus_bytes // LINE, 0)
        total += repeated * max(work, ports, turn)
    # A tensor that stays in shared memory is not loaded or stored, and the next job is queued before it is complete.
    first = FOLLOWS if all(isinstance(place, Held) for place in layer.brought) else brought + machine.latency + HANDED
    ends = first + (0 if isinstance(layer.output, Held) else stored + machine.latency)
    total *= layer.output.batch
    if layer.sums and split.depth == 1:
        total += FOLLOWS * count
    if split.depth == 1 and not layer.first:
        total += ends * (count - 1)
    # With half of the memory, the first weights are loaded during the layer before, and the next ones during this one.
    if split.room <= room // 2:
        return total + ends, ends
    first_bytes = split.image.table_bytes + split.units[0].end - split.units[0].start
    waited = _bus(first_bytes, machine, costs.weights) + machine.latency
    return total + ends + waited + (HANDED if first == FOLLOWS else 0), 0

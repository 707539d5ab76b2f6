"""Why a program stopped, in one sentence (docs/many_cores.md, "When a core stops")."""

from tilewright.spec.core import Engine, ProgramError

from .barriers import barriers_of_cores
from .plan.instructions import Barrier
from .words import tag_layer

__all__ = ["ProgramStoppedError", "check_records"]

#: Engines whose records have the tag of a command or a job, which names its layer.
_TAGGED = (Engine.TMAU, Engine.CONV)


class ProgramStoppedError(RuntimeError):
    """A program stopped before its end; ``records`` has the record of each core, or None."""

    def __init__(self, sentence, records):
        super().__init__(sentence)
        self.records = records


def check_records(plan, records):
    """ProgramStoppedError with the core, the layer and the word, unless the programs of all cores came to their ends.

    Parameters
    ----------
    plan : Plan
    records : sequence of ProgramRecord or None
        Of each core. Cores that only wait for another one are stopped by their watchdogs.
    """
    stops = [_Stop(plan, core, record) for core, record in enumerate(records) if record is not None]
    if not stops:
        return
    stop = min(stops, key=lambda stop: (stop.rank, stop.layer))
    where = f" of core {stop.core}" if len(records) > 1 else ""
    sentence = f"the program{where} stopped with {stop.record}, in layer {plan.layers[stop.layer].name}"
    raise ProgramStoppedError(sentence, list(records))


class _Stop:
    """How the program of a core stopped: its layer, and its rank. Of several the one of the lowest rank is named."""

    def __init__(self, plan, core, record):
        self.core, self.record = core, record
        self.layer, instruction = _instruction_at(plan.schedules[core], record.word)
        if record.code == ProgramError.ENGINE and record.engine in _TAGGED:
            tagged = tag_layer(record.tag)
            self.layer = tagged if 0 <= tagged < len(plan.layers) else self.layer
        waits = isinstance(instruction, Barrier) and instruction.barrier in barriers_of_cores(plan.machine.cores)
        self.rank = {ProgramError.STOPPED: 2, ProgramError.WATCHDOG: 3 if waits else 1}.get(record.code, 0)


def _instruction_at(schedule, word):
    """The layer that a word of a program belongs to, of the last step at or before it; and its instruction, or None."""
    layer, count = 0, 0
    for instruction in schedule.instructions:
        layer, count = getattr(instruction, "layer", layer), count + instruction.words
        if count > word:
            return layer, instruction
    return layer, None

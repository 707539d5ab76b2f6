"""Why a program stopped, in one sentence (docs/many_cores.md, "When a core stops")."""

from tilewright.spec.core import ProgramError

__all__ = ["ProgramStoppedError", "check_records"]


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
    stopped = [(core, record) for core, record in enumerate(records) if record is not None]
    if not stopped:
        return
    core, record = min(stopped, key=lambda pair: pair[1].code == ProgramError.WATCHDOG)
    where = f" of core {core}" if len(records) > 1 else ""
    layer = _layer_at(plan, plan.schedules[core], record.word)
    raise ProgramStoppedError(f"the program{where} stopped with {record}, in layer {layer}", list(records))


def _layer_at(plan, schedule, word):
    """The name of the layer that a word of a program belongs to: of the last step at or before it."""
    layer, count = 0, 0
    for instruction in schedule.instructions:
        if count > word:
            break
        layer, count = getattr(instruction, "layer", layer), count + instruction.words
    return plan.layers[layer].name

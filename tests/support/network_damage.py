"""A network for several cores, and ways to damage the program of one of them, with the record that each must give."""

from typing import NamedTuple

import numpy as np

from tilewright.network.barriers import LOADS
from tilewright.network.drawn import NetworkMaker
from tilewright.network.plan.instructions import Barrier, Command
from tilewright.spec import BLOCK, COMMAND
from tilewright.spec.core import PROGRAM_WORDS, WORD_BYTES, Engine, Kind, ProgramError

__all__ = ["Damage", "damages", "residual", "words_of_core"]


class Damage(NamedTuple):
    """Global memory with something wrong, and how the program of the core stops: code, engine, and layer by number.

    ``word`` is where it stops, or None where that depends on the hardware.
    """

    memory: np.ndarray
    code: ProgramError
    engine: Engine
    layer: int
    word: int | None


def residual():
    """The maker of a network whose convolutions two cores share by rows and by channels."""
    maker = NetworkMaker(3)
    x = maker.conv(maker.input((1, 16, 12, 10)), 64, 3)
    maker.add(maker.conv(maker.conv(x, 48), 64, 3), x)
    return maker


def words_of_core(compiled, core):
    """Yields each instruction of a core between the index of its first word and the number of its layer."""
    index = layer = 0
    for instruction in compiled.plan.schedules[core].instructions:
        layer = getattr(instruction, "layer", layer)
        yield index, instruction, layer
        index += instruction.words


def damages(compiled, memory, core):
    """Each :class:`Damage` of a core by name, in the second half of its program."""
    address, words = compiled.starts[core]
    later = [place for place in words_of_core(compiled, core) if place[0] >= words // 2]

    def damage(change, code, engine=Engine.NONE, *, layer, word=None):
        damaged = memory.copy()
        change(damaged)
        return Damage(damaged, code, engine, layer, word)

    def flip(index, bit):
        def change(damaged):
            damaged[address + WORD_BYTES * index + bit // 8] ^= 1 << bit % 8

        return change

    def clear(first, count):
        def change(damaged):
            damaged[first : first + count] = 0

        return change

    index, _, layer = next(place for place in later if isinstance(place[1], Barrier))
    yield "word", damage(clear(address + WORD_BYTES * index, WORD_BYTES), ProgramError.KIND, layer=layer, word=index)

    index, _, layer = next(place for place in later if isinstance(place[1], Command) and place[1].transfer.map)
    middle = flip(index, COMMAND["descriptor"].lsb + 6)  # half of a descriptor further: there is none
    yield "descriptor", damage(middle, ProgramError.ENGINE, Engine.TMAU, layer=layer)

    index, _, layer = next(place for place in later if isinstance(place[1], Command) and not place[1].transfer.map
                           and place[1].barrier is not None)  # fmt: skip
    outside = flip(index, BLOCK["source"].lsb + 30)  # the bus answers with an error
    yield "address", damage(outside, ProgramError.ENGINE, Engine.TMAU, layer=layer)

    # A load whose barrier expects more bytes than come.
    index, expects, _ = next(place for place in later if isinstance(place[1], Barrier) and
                             place[1].operation == "expect_tx" and place[1].barrier < 8 * LOADS)  # fmt: skip
    word, _, layer = next(place for place in later if place[0] > index and isinstance(place[1], Barrier) and
                          place[1][:2] == ("try_wait", expects.barrier))  # fmt: skip
    value = PROGRAM_WORDS[Kind.BARRIER]["value"]
    yield "bytes", damage(flip(index, value.lsb + value.width // 2), ProgramError.WATCHDOG, layer=layer, word=word)

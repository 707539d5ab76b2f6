"""Which block memory and which multiplier of an ECP5 goes where: attributes for nextpnr."""

import numpy as np
from scipy.optimize import linear_sum_assignment

from tilewright.progress import report

from .device import DEVICES
from .objects import read_objects
from .spreading import Field, Motion

__all__ = ["give_places"]

#: From so many block memories and multipliers on they get places: with fewer, wires come out no shorter.
_MANY = 150
_STEPS = 700
#: Of overlap: what is left when sites begin to pull, when cells stay there, and when all is done.
_PULLED, _FIXED, _DONE = 0.75, 0.35, 0.105


def give_places(module, device, seed):
    """Gives block memories and multipliers their sites (attributes ``BEL``), if there are many.

    nextpnr's static placer spreads all cells at once, and then puts each of these into the nearest site that is free,
    in any order: wires become half as long again. Here all cells are spread in the same way, but sites pull their cells
    while that goes on, those that together make the shortest wires. Only these places are kept.

    Parameters
    ----------
    module : dict
        A mapped netlist, as Yosys writes it with ``write_json``; is changed.
    device : str
        Of :data:`~.device.DEVICES`. What it has not enough of gets no places, and nextpnr says so.
    seed : int
        Of the random numbers.
    """
    objects, die = read_objects(module), DEVICES[device]
    room, cells = die.capacity(), {kind: list(found.values()) for kind, found in objects.cells.items() if found}
    fits = all(len(found) <= len(die.sites(kind)[1]) for kind, found in cells.items())
    if not fits or (objects.areas.sum(1) > room.sum()).any() or sum(map(len, cells.values())) < _MANY:
        return
    kinds = {kind: _Sites(objects, found, die.sites(kind)[0]) for kind, found in cells.items()}
    _spread(Field(objects, room), list(kinds.values()), room.shape, np.random.default_rng(seed))
    for kind, found in kinds.items():
        names = die.sites(kind)[1]
        for name, site in zip(objects.cells[kind], found.chosen, strict=True):
            module["cells"][name]["attributes"]["BEL"] = names[site]


class _Sites:
    """Sites of one kind, and the cells that go there."""

    def __init__(self, objects, cells, places):
        self.cells, self.places, self.chosen = np.array(cells), places, None
        self._others = _others(objects, cells)

    @property
    def at(self):
        """Places of the sites that were chosen, (2, cells)."""
        return self.places[:, self.chosen]

    def choose(self, at):
        """Chooses a site for each cell, all at once: wires are shortest if all else stays."""
        pins, starts, owners = self._others
        cost = np.zeros((len(self.cells), self.places.shape[1]))
        for axis in range(2):
            low, high = np.minimum.reduceat(at[axis][pins], starts), np.maximum.reduceat(at[axis][pins], starts)
            place = self.places[axis]
            for cell in range(len(self.cells)):
                nets = slice(*np.searchsorted(owners, [cell, cell + 1]))
                spans = np.maximum(high[nets, None], place) - np.minimum(low[nets, None], place)
                cost[cell] += spans.sum(0)
        self.chosen = linear_sum_assignment(cost)[1]


def _others(objects, cells):
    """Of each net of each cell the other pins, one net behind the other; where each begins; and whose each is."""
    order = np.argsort(objects.pins, kind="stable")
    ends = np.append(objects.starts, len(objects.pins))
    first = np.searchsorted(objects.pins[order], np.array([cells, np.array(cells) + 1]))
    nets, pins, owners = objects.nets, [], []
    for owner, (cell, begin, end) in enumerate(zip(cells, *first, strict=True)):
        for net in nets[order[begin:end]]:
            of_net = objects.pins[ends[net] : ends[net + 1]]
            pins.append(of_net[of_net != cell])
            owners.append(owner)
    starts = np.cumsum([0, *map(len, pins)])[:-1]
    return np.concatenate(pins), starts, np.array(owners)


def _spread(field, kinds, shape, rng):
    """Spreads all objects until few overlap, and chooses the sites of ``kinds`` on the way."""
    height, width = shape
    count = field.areas.shape[1]
    at = np.array([[width / 2], [height / 2]]) + rng.normal(0, 1, (2, count))
    at[:, count - field.fillers :] = rng.uniform([[1], [1]], [[width - 2], [height - 2]], (2, field.fillers))
    motion = Motion(at, np.array([[width - 1.001], [height - 1.001]]))
    weight, spring, fixed = None, 0.0, False
    for step in range(_STEPS):
        report("places of memories and multipliers", step)
        push, over = field.push(motion.at)
        if step > 420 and over < _DONE:
            break
        # Smooth wires while all is far from where it will be, sharp ones in the end.
        smooth = max(3.2 * 10 ** ((over - 0.1) * 20 / 9 - 1), 0.4) if over < 0.99 else 25
        pull = field.pull(motion.at, smooth)
        if weight is None:
            weight = 0.1 * np.abs(pull).sum() / np.abs(push).sum()
        gradient = pull - weight * push
        scale = np.maximum(1, field.pulls + weight * field.areas.sum(0))
        if over < _PULLED and step % (60 if fixed else 10) == 0:
            for each in kinds:
                each.choose(motion.at)
            spring = min(spring * 1.3, 3) or 0.02
            fixed = fixed or over < _FIXED
            if fixed:
                for each in kinds:
                    motion.put(each.cells, each.at)
        for each in kinds:
            if fixed:
                gradient[:, each.cells] = 0
            elif each.chosen is not None:
                force = spring * field.pulls[each.cells]
                gradient[:, each.cells] += force * (motion.at[:, each.cells] - each.at)
                scale[each.cells] += force
        motion.step(gradient / scale)
        weight *= 1.03 if over > 0.12 else 1.0
    for each in kinds:
        each.choose(motion.at)

"""The tags of the second-level cache: which line is where, and which line leaves."""

from amaranth.hdl import Cat, Const, Module, Mux, Signal, Value, unsigned
from amaranth.lib import data, stream, wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out, connect

from ...lib.stream import Queue, ShallowQueue
from .params import AccessLayout, EntryLayout, Kind, QuickLayout

__all__ = ["MOST_BACK", "Lookup", "least_used", "used"]


def least_used(tree, ways):
    """The way that the tree points to, as a one-hot Value.

    Parameters
    ----------
    tree : Value
        ``ways - 1`` bits: bit n has its halves at 2 n + 1 and 2 n + 2; a one points to the upper ways.
    ways : int
        A power of two.
    """
    return Cat(
        Const(1, 1) if ways == 1 else Cat(tree[node] == up for node, up in _path(way, ways)).all()
        for way in range(ways)
    )


def used(tree, way, ways):
    """The tree after a use of a way, which it then points away from.

    Parameters
    ----------
    tree, ways
        See :func:`least_used`.
    way : Value
        One-hot.
    """
    bits = []
    for node in range(ways - 1):
        halves = [[], []]
        for number in range(ways):
            up = dict(_path(number, ways)).get(node)
            if up is not None:
                halves[up].append(way[number])
        lower, upper = (Cat(half).any() for half in halves)
        bits.append(Mux(lower, 1, Mux(upper, 0, tree[node])))
    return Cat(bits)


def _path(way, ways):
    """The nodes that lead to a way, and whether it is in the upper half of each."""
    node, size, path = 0, ways, []
    while size > 1:
        size //= 2
        up = way // size % 2
        path.append((node, up))
        node = 2 * node + 1 + up
    return path


#: Bits of the number of a line that is written back, and lines that may be on their way at once.
_BACK_WIDTH = 8
MOST_BACK = 128


class Lookup(wiring.Component):
    """Looks up each line, or allocates a way for it, in the order of the accesses.

    Three stages: the tags of the set are read, compared, and changed. Throughput: one access a cycle, but an access
    waits while another one to its set is in the stages. An access becomes an *entry*, which is carried out after all
    entries before it. Only a read of a line that no entry changes, by an ID without a waiting read, leaves as *quick*,
    and overtakes entries.

    A line that is being written back must have arrived before memory is read for it again: a miss waits for the last
    line that was written back from its set.

    Entries and lines written back are numbered and end in order, so that the last number of a kind says whether it has
    ended. Numbers repeat: an old number may then make an access wait without need, until all entries in flight end.

    Parameters
    ----------
    geometry : Geometry
    """

    def __init__(self, geometry):
        self._geometry = g = geometry
        name = data.StructLayout({"tag": g.tag_width, "valid": 1, "born": g.number_width})
        state = data.StructLayout({"dirty": 1, "changed": g.number_width})
        note = data.StructLayout({"tree": max(g.ways - 1, 1), "back": _BACK_WIDTH})
        self.names = Memory(shape=data.ArrayLayout(name, g.ways), depth=g.sets, init=[])
        self.states = Memory(shape=data.ArrayLayout(state, g.ways), depth=g.sets, init=[])
        self.notes = Memory(shape=note, depth=g.sets, init=[])
        self.waits = Memory(shape=unsigned(g.number_width), depth=1 << g.id_width, init=[])
        self.rows = [memory.read_port() for memory in (self.names, self.states, self.notes)]  # what is compared
        self.queue = Queue(EntryLayout(g), g.entries)
        self.asked = ShallowQueue(unsigned(g.line_width), 4)
        # Access that is compared, and access that is decided.
        self.comparing, self.compared = Signal(), Signal(AccessLayout(g))
        self.deciding, self.access = Signal(), Signal(AccessLayout(g))
        self.hits = Signal(g.ways)  # where the line is
        self.settled = Signal()  # and no entry changes it
        self.chosen = Signal(g.ways)  # the place that is named, or that a new line would get
        self.old = Signal(name)  # what is there
        self.old_dirty = Signal()
        self.hit_dirty = Signal()  # the line that was found has been written
        self.note = Signal(note)
        self.clear = Signal()  # nothing is on its way back from this set
        self.number = Signal(g.number_width)  # of the next entry
        self.carried = Signal(g.number_width)  # of the next one to be carried out
        self.back = Signal(_BACK_WIDTH)  # of the next line to be written back
        self.landed = Signal(_BACK_WIDTH)  # of the next one to arrive
        self.few = Signal()  # more may be on their way back
        self.room = Signal(range(g.misses + 1), init=g.misses)  # lines that memory may still be asked for
        super().__init__(
            {
                "accesses": In(stream.Signature(AccessLayout(g))),
                # Registered. As many wait as ``geometry.entries``.
                "entries": Out(stream.Signature(EntryLayout(g))),
                "quick": Out(stream.Signature(QuickLayout(g))),
                # Lines that memory is to bring, in the order of the entries.
                "fills": Out(stream.Signature(unsigned(g.line_width))),
                # Strobe: an entry has been carried out.
                "done": In(1),
                # Strobe: a line that memory brought is where it belongs.
                "filled": In(1),
                # Strobe: a line has been written back.
                "arrived": In(1),
                # Nothing is under way, but perhaps a read that is quick.
                "quiet": Out(1),
                # Strobes: a read or write has found its line, or has not; one is written back; memory is asked for one
                # by a prefetch.
                "hit": Out(1),
                "miss": Out(1),
                "eviction": Out(1),
                "prefetch": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        for name in ("names", "states", "notes", "waits", "queue", "asked"):
            m.submodules[name] = getattr(self, name)
        connect(m, queue=self.queue.o, entries=wiring.flipped(self.entries))
        connect(m, asked=self.asked.o, fills=wiring.flipped(self.fills))
        free = Signal()  # the last stage is free, or becomes free
        self._read(m, free)
        self._compare(m, free)
        self._decide(m, free)
        m.d.sync += [self.carried.eq(self.carried + self.done), self.landed.eq(self.landed + self.arrived)]
        m.d.comb += self.quiet.eq(
            ~self.comparing & ~self.deciding & (self.number == self.carried) & (self.back == self.landed)
        )
        return m

    def _set_of(self, access):
        return access.part.line[: self._geometry.set_log2]

    def _read(self, m, free):
        """First stage: the set is read unless an access of the same set is in here."""
        here = self._set_of(self.accesses.payload)
        meets = Signal()
        m.d.comb += [
            meets.eq(
                (self.comparing & (self._set_of(self.compared) == here))
                | (self.deciding & (self._set_of(self.access) == here))
            ),
            self.accesses.ready.eq(free & ~meets),
        ]
        for port in self.rows:
            m.d.comb += [port.addr.eq(here), port.en.eq(free)]
        with m.If(free):
            m.d.sync += [self.comparing.eq(self.accesses.valid & ~meets), self.compared.eq(self.accesses.payload)]

    def _compare(self, m, free):
        """Second stage: where the line is, or what has to leave for it."""
        names, states, note = (port.data for port in self.rows)
        ways, access = self._geometry.ways, self.compared
        tag = access.part.line[self._geometry.set_log2 :]
        matches, still = Signal(ways), Signal(ways)
        chosen, old, dirty = Signal(ways), Signal.like(self.old), Signal()
        under_way = Signal.like(self.number)
        m.d.comb += under_way.eq(self.number - self.carried)
        named = (access.kind == Kind.EXPEL) | (access.kind == Kind.FORGET)
        m.d.comb += [
            *(matches[way].eq(names[way].valid & (names[way].tag == tag)) for way in range(ways)),
            *(
                still[way].eq((states[way].changed - self.carried)[: len(under_way)] >= under_way)
                for way in range(ways)
            ),
            chosen.eq(Mux(named, 1 << access.way, least_used(note.tree, ways))),
            Value.cast(old).eq(_picked(chosen, [Value.cast(names[way]) for way in range(ways)])),
            dirty.eq(_picked(chosen, [states[way].dirty for way in range(ways)])),
        ]
        with m.If(free):
            m.d.sync += [
                self.deciding.eq(self.comparing),
                self.access.eq(access),
                self.hits.eq(matches),
                self.settled.eq((matches & still).any()),
                self.hit_dirty.eq((matches & Cat(states[way].dirty for way in range(ways))).any()),
                self.chosen.eq(chosen),
                self.old.eq(old),
                self.old_dirty.eq(dirty),
                self.note.eq(note),
            ]
        # Looked at again while it waits.
        back = Mux(free, note.back, self.note.back)
        m.d.sync += self.clear.eq((back - self.landed)[:_BACK_WIDTH] >= (self.back - self.landed)[:_BACK_WIDTH])

    def _decide(self, m, free):
        """Last stage: the memories change as the access leaves."""
        g, access, part = self._geometry, self.access, self.access.part
        kind = {which: access.kind == which for which in Kind}
        hit, wanted, fresh, fills, evicts = (
            Signal(name=name) for name in ("hit", "wanted", "fresh", "fills", "evicts")
        )
        quick, entry, goes, forgets = (Signal(name=name) for name in ("is_quick", "is_entry", "goes", "forgets"))
        target, waits = Signal(g.ways), self.waits.read_port(domain="comb")
        m.d.comb += [
            wanted.eq(kind[Kind.READ] | kind[Kind.WRITE] | kind[Kind.PREFETCH]),
            hit.eq(self.hits.any()),
            fresh.eq(wanted & ~hit),
            fills.eq(fresh & ~access.full),
            evicts.eq(
                (self.old.valid & self.old_dirty & (fresh | (kind[Kind.EXPEL] & access.keep)))
                | (kind[Kind.DISCARD] & access.keep & self.hit_dirty)
            ),
            target.eq(Mux((wanted & hit) | kind[Kind.DISCARD], self.hits, self.chosen)),
            waits.addr.eq(part.id),
            quick.eq(kind[Kind.READ] & hit & self.settled & ~self._pending(waits.data)),
            entry.eq(((kind[Kind.READ] | kind[Kind.WRITE]) & ~quick) | fresh | evicts),
            forgets.eq(kind[Kind.FORGET] & (self.old.born == access.born)),
        ]
        m.d.sync += self.few.eq((self.back - self.landed)[:_BACK_WIDTH] < MOST_BACK - 1)
        may_fill, may_enter = Signal(), Signal()
        m.d.comb += [
            may_fill.eq(~fills | (self.asked.i.ready & (self.room != 0) & self.clear)),
            may_enter.eq(~entry | (self.queue.i.ready & self.few)),
            goes.eq(self.deciding & may_fill & Mux(quick, self.quick.ready, may_enter)),
            free.eq(~self.deciding | goes),
            self.quick.valid.eq(self.deciding & quick),
            self.queue.i.valid.eq(goes & entry),
            self.asked.i.valid.eq(goes & fills),
            self.asked.i.payload.eq(part.line),
        ]
        place = Cat(part.line[: g.set_log2], _binary(target))
        item = self.queue.i.payload
        m.d.comb += [
            item.kind.eq(access.kind),
            item.fresh.eq(fresh),
            item.fills.eq(fills),
            item.evicts.eq(evicts),
            item.victim.eq(
                Cat(part.line[: g.set_log2], Mux(kind[Kind.DISCARD], part.line[g.set_log2 :], self.old.tag))
            ),
            item.number.eq(self.number),
        ]
        for payload in (item, self.quick.payload):
            m.d.comb += [payload[name].eq(part[name]) for name in ("id", "first", "last", "end")]
            m.d.comb += payload.place.eq(place)
        m.d.sync += [
            self.number.eq(self.number + (goes & entry)),
            self.back.eq(self.back + (goes & evicts)),
            self.room.eq(self.room - (goes & fills) + self.filled),
            self.hit.eq(goes & hit & (kind[Kind.READ] | kind[Kind.WRITE])),
            self.miss.eq(goes & fresh & ~kind[Kind.PREFETCH]),
            self.eviction.eq(goes & evicts),
            self.prefetch.eq(goes & fresh & kind[Kind.PREFETCH]),
        ]
        self._keep(m, goes, target, fresh, forgets, evicts, wanted, kind)

    def _pending(self, number):
        """Whether the entry of that number is in flight, if it is a recent one."""
        width = self._geometry.number_width
        return (number - self.carried)[:width] < (self.number - self.carried)[:width]

    def _keep(self, m, goes, target, fresh, forgets, evicts, wanted, kind):
        g, access, part = self._geometry, self.access, self.access.part
        here = part.line[: g.set_log2]
        names, states = self.names.write_port(granularity=1), self.states.write_port(granularity=1)
        notes, waits = self.notes.write_port(), self.waits.write_port()
        everywhere = kind[Kind.EXPEL] & ~access.keep
        drops = kind[Kind.EXPEL] | kind[Kind.DISCARD] | forgets
        m.d.comb += [
            *(port.addr.eq(here) for port in (names, states, notes)),
            names.en.eq(Mux(goes & (fresh | drops), target | everywhere.replicate(g.ways), 0)),
            states.en.eq(Mux(goes & (fresh | kind[Kind.WRITE]), target, 0)),
            notes.en.eq(goes & (wanted | evicts)),
            notes.data.tree.eq(Mux(wanted, used(self.note.tree, target, g.ways), self.note.tree)),
            notes.data.back.eq(Mux(evicts, self.back, self.note.back)),
            waits.addr.eq(part.id),
            waits.data.eq(self.number),
            waits.en.eq(self.queue.i.valid & kind[Kind.READ]),
        ]
        for way in range(g.ways):
            m.d.comb += [
                names.data[way].tag.eq(part.line[g.set_log2 :]),
                names.data[way].valid.eq(~drops),
                names.data[way].born.eq(self.number),
                states.data[way].dirty.eq(kind[Kind.WRITE]),
                states.data[way].changed.eq(self.number),
            ]


def _picked(chosen, values):
    """Of several values the one whose bit is set, of at most one."""
    picked = 0
    for bit, value in zip(chosen, values, strict=True):
        picked |= value & bit.replicate(len(value))
    return picked


def _binary(one_hot):
    """The number of the bit that is set."""
    return Cat(
        Cat(bit for number, bit in enumerate(one_hot) if number >> digit & 1).any()
        for digit in range((len(one_hot) - 1).bit_length())
    )

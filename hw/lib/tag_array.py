"""Associative tags."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["TagArray"]


class TagArray(wiring.Component):
    """The tags of a fully associative cache; at most one entry holds a tag.

    A tag is looked up in the cycle before it counts: so what it is compared with is behind a register, where its entry
    is an address. Changes are seen from the next cycle on. A tag takes the place of the entry that was filled longest
    ago, the *victim*. Of several strobes in a cycle the first of ``invalidate_all``, ``invalidate``, ``evict`` and
    ``insert`` counts.

    Parameters
    ----------
    entries : int
        Number of entries, a power of two.
    tag_width : int
        Bits of a tag.

    Members
    -------
    look : In(1)
        Strobe: look ``ahead`` up; not together with ``insert``.
    ahead : In(tag_width)
    place : Out(range(entries))
        The entry that holds ``ahead``; zero if none does. Combinational.
    hit : Out(1)
        An entry holds ``tag``. From registers.
    tag : In(tag_width)
        The tag that was looked up last.
    victim : Out(range(entries))
        The entry that ``insert`` fills and ``evict`` empties. Registered.
    insert : In(1)
        Strobe: enter ``tag``; not if there is a ``hit``.
    evict : In(1)
        Strobe: drop the tag of the victim, which stays the victim.
    invalidate : In(1)
        Strobe: drop ``tag``.
    invalidate_all : In(1)
        Strobe: drop all tags.

    Attributes
    ----------
    tags : list of Signal
    present : Signal
        Which of them count.
    found : Signal
        The entry that held ``tag`` as it was looked up, or got it since, one-hot or zero; for proofs.
    """

    def __init__(self, entries, tag_width):
        if not isinstance(entries, int) or entries < 1 or entries & (entries - 1):
            raise ValueError(f"entries must be a power of two, not {entries!r}")
        self._entries = entries
        index_width = ceil_log2(entries)
        self.tags = [Signal(tag_width, name=f"tag{k}") for k in range(entries)]
        self.present = Signal(entries)
        self.found = Signal(entries)
        super().__init__(
            {
                "look": In(1),
                "ahead": In(tag_width),
                "place": Out(index_width),
                "hit": Out(1),
                "tag": In(tag_width),
                "victim": Out(index_width),
                "insert": In(1),
                "evict": In(1),
                "invalidate": In(1),
                "invalidate_all": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        holds, chosen = Signal(self._entries), Signal(self._entries)  # one-hot, or zero
        m.d.comb += [
            holds.eq(Cat(self.present[k] & (tag == self.ahead) for k, tag in enumerate(self.tags))),
            chosen.eq(1 << self.victim),
            self.place.eq(self._encoded(holds)),
            self.hit.eq((self.found & self.present).any()),
        ]
        with m.If(self.look):
            m.d.sync += self.found.eq(holds)
        with m.If(self.invalidate_all):
            m.d.sync += self.present.eq(0)
        with m.Elif(self.invalidate):
            m.d.sync += self.present.eq(self.present & ~self.found)
        with m.Elif(self.evict):
            m.d.sync += self.present.eq(self.present & ~chosen)
        with m.Elif(self.insert):
            m.d.sync += [self.victim.eq(self.victim + 1), self.present.eq(self.present | chosen), self.found.eq(chosen)]
            for k, tag in enumerate(self.tags):
                with m.If(chosen[k]):
                    m.d.sync += tag.eq(self.tag)
        return m

    def _encoded(self, one_hot):
        places = range(self._entries)
        return Cat(Cat(one_hot[k] for k in places if k >> b & 1).any() for b in range(ceil_log2(self._entries)))

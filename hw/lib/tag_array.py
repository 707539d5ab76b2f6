"""The tags of a fully associative cache."""

from amaranth.hdl import Cat, Module, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["TagArray"]


class TagArray(wiring.Component):
    """Tags of a fully associative cache; at most one entry holds a tag.

    A tag is looked up one cycle before it is used, so that ``hit`` comes from registers. Changes are visible from the
    next cycle on. A new tag replaces the oldest entry, the *victim*. Of several strobes in one cycle, the first of
    ``invalidate_all``, ``invalidate``, ``evict`` and ``insert`` is carried out.

    Parameters
    ----------
    entries : int
        Number of entries, a power of two.
    tag_width : int
        Bits of a tag.
    """

    def __init__(self, entries, tag_width):
        if not isinstance(entries, int) or entries < 1 or entries & (entries - 1):
            raise ValueError(f"entries must be a power of two, not {entries!r}")
        self._entries = entries
        index_width = ceil_log2(entries)
        self.tags = [Signal(tag_width, name=f"tag{k}") for k in range(entries)]
        self.present = Signal(entries)  # the entries that hold a tag
        self.match = Signal(entries)  # the entry that held ``tag`` at its lookup, or was filled with it since; one-hot
        super().__init__(
            {
                "look": In(1),  # strobe: look ``ahead`` up; not together with ``insert``
                "ahead": In(tag_width),
                "place": Out(index_width),  # the entry that holds ``ahead``, combinational; zero if none does
                "tag": In(tag_width),  # the tag that was looked up last
                "hit": Out(1),  # an entry holds ``tag``
                "victim": Out(index_width),  # a register: the entry that ``insert`` fills and ``evict`` empties
                "insert": In(1),  # strobe: enter ``tag``; only without a hit
                "evict": In(1),  # strobe: drop the tag of the victim, which stays the victim
                "invalidate": In(1),  # strobe: drop ``tag``
                "invalidate_all": In(1),  # strobe: drop all tags
            }
        )

    def elaborate(self, platform):
        m = Module()
        ahead, victim = Signal(self._entries), Signal(self._entries)  # one-hot, or zero
        m.d.comb += [
            ahead.eq(Cat(self.present[k] & (tag == self.ahead) for k, tag in enumerate(self.tags))),
            victim.eq(1 << self.victim),
            self.place.eq(self._encoded(ahead)),
            self.hit.eq((self.match & self.present).any()),
        ]
        with m.If(self.look):
            m.d.sync += self.match.eq(ahead)
        with m.If(self.invalidate_all):
            m.d.sync += self.present.eq(0)
        with m.Elif(self.invalidate):
            m.d.sync += self.present.eq(self.present & ~self.match)
        with m.Elif(self.evict):
            m.d.sync += self.present.eq(self.present & ~victim)
        with m.Elif(self.insert):
            m.d.sync += [self.victim.eq(self.victim + 1), self.present.eq(self.present | victim), self.match.eq(victim)]
            for k, tag in enumerate(self.tags):
                with m.If(victim[k]):
                    m.d.sync += tag.eq(self.tag)
        return m

    def _encoded(self, one_hot):
        entries = range(self._entries)
        return Cat(Cat(one_hot[k] for k in entries if k >> b & 1).any() for b in range(ceil_log2(self._entries)))

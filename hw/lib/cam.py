"""Associative tags."""

from amaranth.hdl import Cat, Module, Mux, Signal
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out
from amaranth.utils import ceil_log2

__all__ = ["TagArray"]


class TagArray(wiring.Component):
    """The tags of a fully associative cache; at most one entry holds a tag.

    Look-up is combinational; changes are seen from the next cycle on. A tag that is not there takes the place of the
    entry that was filled longest ago; a tag that is there keeps its entry. With ``invalidate`` or ``invalidate_all``
    in the same cycle nothing is inserted: what is dropped while it is being fetched is not kept.

    Parameters
    ----------
    entries : int
        Number of entries, a power of two.
    tag_width : int
        Bits of a tag.

    Members
    -------
    tag : In(tag_width)
        Tag to look up.
    hit : Out(1)
        An entry holds ``tag``.
    index : Out(range(entries))
        The entry that holds ``tag``; zero if none does.
    insert, invalidate : In(1)
        Strobes: enter or drop ``update_tag``.
    update_tag : In(tag_width)
    insert_index : Out(range(entries))
        The entry that ``insert`` fills, valid in the same cycle.
    invalidate_all : In(1)
        Strobe: drop all tags.
    """

    def __init__(self, entries, tag_width):
        if not isinstance(entries, int) or entries < 1 or entries & (entries - 1):
            raise ValueError(f"entries must be a power of two, not {entries!r}")
        self._entries = entries
        index_width = ceil_log2(entries)
        self.tags = [Signal(tag_width, name=f"tag{k}") for k in range(entries)]
        self.present = Signal(entries)
        self.victim = Signal(index_width)
        super().__init__(
            {
                "tag": In(tag_width),
                "hit": Out(1),
                "index": Out(index_width),
                "insert": In(1),
                "invalidate": In(1),
                "update_tag": In(tag_width),
                "insert_index": Out(index_width),
                "invalidate_all": In(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        found = Signal(self._entries)
        held = Signal(self._entries)  # the entry, if any, that holds ``update_tag``
        held_index = Signal(ceil_log2(self._entries))
        m.d.comb += [
            found.eq(self._match(self.tag)),
            held.eq(self._match(self.update_tag)),
            self.hit.eq(found.any()),
            self.index.eq(self._encoded(found)),
            held_index.eq(self._encoded(held)),
            self.insert_index.eq(Mux(held.any(), held_index, self.victim)),
        ]
        with m.If(self.invalidate_all):
            m.d.sync += self.present.eq(0)
        with m.Elif(self.invalidate):
            m.d.sync += self.present.eq(self.present & ~held)
        with m.Elif(self.insert):
            m.d.sync += self.victim.eq(self.victim + (held == 0))
            for k, tag in enumerate(self.tags):
                with m.If(self.insert_index == k):
                    m.d.sync += tag.eq(self.update_tag)
                    m.d.sync += self.present[k].eq(1)
        return m

    def _match(self, tag):
        return Cat(present & (other == tag) for present, other in zip(self.present, self.tags, strict=True))

    def _encoded(self, one_hot):
        places = range(self._entries)
        return Cat(Cat(one_hot[k] for k in places if k >> b & 1).any() for b in range(ceil_log2(self._entries)))

"""Specifications of proofs: a device, the rules of its streams, and the inputs that are free."""

from operator import attrgetter
from types import SimpleNamespace

import pytest
from amaranth.hdl import Cat, Const, Elaboratable, Module, Signal, Value, ValueCastable
from amaranth.lib.wiring import In

from tilewright.verify.formal import StreamRules

__all__ = ["Spec", "channel_rules", "proved_and_covered"]


class Spec(Elaboratable):
    """A device, and in :meth:`specify` what is assumed and asserted of it.

    Attributes
    ----------
    dut : Component
    given, made : str
        Streams of the device by their paths, such as ``"i writes.words"``: those whose rules are assumed, because the
        environment drives them, and those whose rules are asserted. A path may be that of an array of streams.
    constant : str
        Those of ``ports`` that stay at their initial values, by their paths from the specification.
    """

    given = made = constant = ""

    def __init__(self, dut):
        self.dut = dut

    @property
    def ports(self):
        """Inputs of the device, and signals and streams that are attributes; those that are driven are not free."""
        inputs = [value for _, member, value in self.dut.signature.flatten(self.dut) if member.flow == In]
        inputs += _signals([value for name, value in vars(self).items() if name != "dut"])
        constant = [id(attrgetter(path)(self)) for path in self.constant.split()]
        return [each for each in inputs if id(each) not in constant and not isinstance(each, Const)]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = self.dut
        for paths, assume in ((self.given, True), (self.made, False)):
            for path in paths.split():
                streams = attrgetter(path)(self.dut)
                for stream in streams if isinstance(streams, list | tuple) else [streams]:
                    m.submodules += StreamRules(stream, assume=assume)
        self.specify(m, self.dut)
        return m


def _signals(values):
    """Signals among values, in lists and dictionaries of them, and in interfaces."""
    found = []
    for value in values:
        if isinstance(value, list | tuple | dict):
            found += _signals(value.values() if isinstance(value, dict) else value)
        elif isinstance(value, Signal | ValueCastable):
            found.append(value)
        elif hasattr(value, "signature"):
            found += [signal for _, _, signal in value.signature.flatten(value)]
    return found


def channel_rules(axi, channel, *, assume=False):
    """The rules of a stream for a channel of AXI4, such as ``"ar"``: its members hold until accepted."""
    members = {name.removeprefix(channel): getattr(axi, name) for name in axi.signature.members
               if name.startswith(channel)}  # fmt: skip
    handshake = {name: members.pop(name) for name in ("valid", "ready")}
    return StreamRules(SimpleNamespace(**handshake, payload=Cat(map(Value.cast, members.values()))), assume=assume)


def proved_and_covered(prove, cover):
    """Gives a test the arguments mode and depth: of the proof, and, if it is long, that every case is reached."""
    modes = [("prove", prove), pytest.param("cover", cover, marks=pytest.mark.long)]
    return pytest.mark.parametrize(("mode", "depth"), modes)

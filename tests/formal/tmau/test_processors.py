"""Each access has one answer, the last word's behind its command, and a command is what was written."""

from amaranth.hdl import Assert, Assume, Cat, Cover, Mux, Signal
from amaranth.lib import stream
from amaranth.lib.wiring import connect

from support.formal import Spec
from tilewright.hw.lib.layouts import command_layout
from tilewright.hw.tmau.processors import CommandWindow, ProcessorShare
from tilewright.verify.formal import StreamRules, prove


class CommandWindowSpec(Spec):
    """Follows one bit of each word of the command."""

    given, made = "accesses.requests", "accesses.answers commands"

    def __init__(self):
        self.dut = CommandWindow()

    def specify(self, m, dut):
        requests, answers, commands = dut.accesses.requests, dut.accesses.answers, dut.commands
        access = requests.payload
        accepted, answered = requests.valid & requests.ready, answers.valid & answers.ready
        taken = commands.valid & commands.ready
        owed, sends = Signal(), Signal()  # an access has no answer yet; it is one that sends a command
        index = access.address[2:7]
        last = access.write & (index == 15)
        m.d.sync += owed.eq((owed | accepted) & ~answered)
        with m.If(accepted):
            m.d.sync += sends.eq(last)
        with m.If(taken):
            m.d.sync += sends.eq(0)
        m.d.comb += [
            Assert(~(accepted & owed)),
            Assert(owed == (answers.valid | commands.valid)),
            # Behind the command, and with it nothing else is under way.
            Assert(~(answers.valid & commands.valid)),
            Assert(commands.valid == (owed & sends)),
            Cover(answered & (answers.payload.error == 1)),
            Cover(taken),
        ]
        words = commands.payload.as_value()
        for number in range(16):
            written = Signal(name=f"written{number}")
            with m.If(accepted & access.write & (index == number)):
                m.d.sync += written.eq(access.data[number])
            m.d.comb += Assert(words[33 * number] == written)


def test_command_window():
    prove(CommandWindowSpec(), name="command-window", depth=2)
    prove(CommandWindowSpec(), name="command-window-cover", mode="cover", depth=6)


N, OWN_BITS = 3, 14


class ShareSpec(Spec):
    """Of a command the tag is free and the rest, which passes beside it, constant."""

    made = "merged"

    def __init__(self):
        self.dut = ProcessorShare(N)
        signature = stream.Signature(command_layout())
        self.sources = [signature.create(path=(f"source{number}",)) for number in range(N)]
        self.tags = [Signal(16, name=f"tag{number}") for number in range(N)]

    def specify(self, m, dut):
        m.d.comb += Assert(dut.buffer.o.valid | ~dut.buffer.skidded)
        for number, (source, tag) in enumerate(zip(self.sources, self.tags, strict=True)):
            m.d.comb += source.payload.tag.eq(tag)
            connect(m, source=source, dut=dut.commands[number])
            m.submodules[f"rules{number}"] = StreamRules(source, assume=True)
            taken = dut.buffer.i.payload
            with m.If(source.valid & source.ready):
                m.d.comb += Assert(taken.tag == Cat(tag[:OWN_BITS], (number >> 0) & 1 == 1, (number >> 1) & 1 == 1))
            for other in range(N):
                if other != number:
                    self._wait(m, number, other)
            done = dut.done[number]
            m.d.comb += Assert(done.valid == (dut.ended.valid & (dut.ended.tag[OWN_BITS:] == number)))
            m.d.comb += Assert(done.tag == dut.ended.tag[:OWN_BITS])
        takes = [source.valid & source.ready for source in self.sources]
        m.d.comb += Assert((dut.buffer.i.valid & dut.buffer.i.ready) == Cat(takes).any())
        m.d.comb += Assume(dut.ended.tag[OWN_BITS:] < N)
        m.d.comb += Assert(sum((done.valid for done in dut.done), 0) == dut.ended.valid)

    def _wait(self, m, one, other):
        source, theirs = self.sources[one], self.sources[other]
        passed = Signal(2, name=f"passed{one}{other}")
        m.d.sync += passed.eq(Mux(source.valid & ~source.ready, passed + (theirs.valid & theirs.ready), 0))
        mask, before = self.dut.arbiter.arbiter.mask, Signal(name=f"before{one}{other}")
        for position in range(N + 1):
            with m.If(mask == (1 << N) - (1 << position)):
                m.d.comb += before.eq((one - position) % N < (other - position) % N)
        m.d.comb += [
            Assert(~mask & (~mask + 1)[:N] == 0),
            Assert((passed == 0) | before),
            Assert(passed <= 1),
            Cover(passed == 1),
        ]


def test_nobody_waits_long():
    prove(ShareSpec(), name="tmau-processors", depth=2, proves="F2")

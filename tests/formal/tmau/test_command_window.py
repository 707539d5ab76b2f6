"""Each access has one answer, the last word's behind its command, and a command is what was written."""

from amaranth.hdl import Assert, Cover, Elaboratable, Module, Signal

from tilewright.hw.tmau.command_window import CommandWindow
from tilewright.sim.formal import StreamRules, prove


class CommandWindowSpec(Elaboratable):
    """Follows one bit of each word of the command."""

    def __init__(self):
        self.dut = dut = CommandWindow()
        accesses = dut.accesses
        self.ports = [accesses.requests.valid, accesses.requests.payload, accesses.answers.ready, dut.commands.ready]

    def elaborate(self, platform):
        m = Module()
        m.submodules.dut = dut = self.dut
        requests, answers, commands = dut.accesses.requests, dut.accesses.answers, dut.commands
        m.submodules.requests_rules = StreamRules(requests, assume=True)
        m.submodules.answers_rules = StreamRules(answers)
        m.submodules.commands_rules = StreamRules(commands)
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
        return m


def test_command_window():
    spec = CommandWindowSpec()
    prove(spec, spec.ports, name="command-window", depth=2)
    prove(spec, spec.ports, name="command-window-cover", mode="cover", depth=6)

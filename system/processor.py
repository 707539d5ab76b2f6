"""The processor with its own memory, and the serial port that it writes."""

from amaranth.hdl import ClockSignal, Const, Instance, Module, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.board.serial import UartTransmitter
from tilewright.hw.bus.axi4_lite import AccessSignature

__all__ = ["IRQ", "FirmwareMemory", "Processor", "SerialPort"]

#: Number of the processor's interrupt that the core raises; lower numbers are the processor's own.
IRQ = 4


class Processor(wiring.Component):
    """PicoRV32 with multiplication, division and interrupts: RV32IM.

    It starts at address 0, and its interrupt handler is at 0x10. It accesses memory once at a time.
    """

    def __init__(self):
        super().__init__(
            {
                "accesses": Out(AccessSignature()),
                # A level, masked until the firmware enables it.
                "irq": In(1),
                # The processor has stopped, at an instruction that it does not have, or an ebreak.
                "trap": Out(1),
                # Some access was answered with an error since the reset.
                "failed": Out(1),
            }
        )

    def elaborate(self, platform):
        m = Module()
        requests, answers = self.accesses.requests, self.accesses.answers
        access = requests.payload
        valid, ready, waiting = Signal(), Signal(), Signal()
        strobe, irq = Signal(4), Signal(32)
        m.submodules.cpu = Instance(
            "picorv32",
            p_ENABLE_MUL=1, p_ENABLE_FAST_MUL=1, p_ENABLE_DIV=1, p_BARREL_SHIFTER=1,
            p_ENABLE_IRQ=1, p_ENABLE_IRQ_TIMER=0, p_LATCHED_IRQ=Const(0, 32),
            p_PROGADDR_RESET=Const(0, 32), p_PROGADDR_IRQ=Const(0x10, 32),
            i_clk=ClockSignal(), i_resetn=~ResetSignal(), o_trap=self.trap,
            o_mem_valid=valid, i_mem_ready=ready, o_mem_addr=access.address, o_mem_wdata=access.data,
            o_mem_wstrb=strobe, i_mem_rdata=answers.payload.data, i_irq=irq,
            i_pcpi_wr=Const(0), i_pcpi_rd=Const(0, 32), i_pcpi_wait=Const(0), i_pcpi_ready=Const(0),
        )  # fmt: skip
        m.d.comb += [
            irq[IRQ].eq(self.irq),
            access.strobe.eq(strobe),
            access.write.eq(strobe.any()),
            requests.valid.eq(valid & ~waiting),
            answers.ready.eq(1),
            ready.eq(waiting & answers.valid),
        ]
        with m.If(requests.valid & requests.ready):
            m.d.sync += waiting.eq(1)
        with m.If(ready):
            m.d.sync += [waiting.eq(0), self.failed.eq(self.failed | answers.payload.error)]
        return m


class FirmwareMemory(wiring.Component):
    """Memory of the processor alone, which answers in the cycle after an access.

    Parameters
    ----------
    size_bytes : int
        A power of two. Higher bits of addresses are ignored.
    """

    def __init__(self, size_bytes):
        self.memory = Memory(shape=32, depth=size_bytes // 4, init=[])
        super().__init__({"accesses": In(AccessSignature())})

    def elaborate(self, platform):
        m = Module()
        m.submodules.memory = self.memory
        read, write = self.memory.read_port(), self.memory.write_port(granularity=8)
        requests, answers = self.accesses.requests, self.accesses.answers
        access = requests.payload
        m.d.comb += [
            requests.ready.eq(~answers.valid),
            read.addr.eq(access.address[2:]),
            read.en.eq(requests.ready),
            write.addr.eq(access.address[2:]),
            write.data.eq(access.data),
            write.en.eq(access.strobe & (requests.valid & requests.ready & access.write).replicate(4)),
            answers.payload.data.eq(read.data),
        ]
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(requests.valid & requests.ready):
            m.d.sync += answers.valid.eq(1)
        return m


class SerialPort(wiring.Component):
    """One register: a write sends its lowest byte, and waits while the byte before is sent. A read gives 0.

    Parameters
    ----------
    cycles_per_bit : int
    """

    def __init__(self, cycles_per_bit):
        self._cycles_per_bit = cycles_per_bit
        super().__init__({"accesses": In(AccessSignature()), "line": Out(1, init=1)})

    def elaborate(self, platform):
        m = Module()
        m.submodules.transmitter = transmitter = UartTransmitter(self._cycles_per_bit)
        requests, answers = self.accesses.requests, self.accesses.answers
        access = requests.payload
        m.d.comb += [
            self.line.eq(transmitter.line),
            transmitter.i.payload.eq(access.data[:8]),
            transmitter.i.valid.eq(requests.valid & access.write & ~answers.valid),
            requests.ready.eq(~answers.valid & (transmitter.i.ready | ~access.write)),
        ]
        with m.If(answers.ready):
            m.d.sync += answers.valid.eq(0)
        with m.If(requests.valid & requests.ready):
            m.d.sync += answers.valid.eq(1)
        return m

"""The processor with its own memory, and the serial port that it writes."""

from importlib.metadata import distribution

from amaranth.hdl import ClockSignal, Const, Instance, Module, Mux, ResetSignal, Signal
from amaranth.lib import wiring
from amaranth.lib.memory import Memory
from amaranth.lib.wiring import In, Out

from tilewright.board.serial import UartTransmitter
from tilewright.hw.bus.axi4_lite import AccessLayout, AccessSignature

__all__ = ["IRQ", "FirmwareMemory", "Processor", "SerialPort", "processor_verilog"]

#: Number of the processor's interrupt that the core raises; lower numbers are the processor's own.
IRQ = 4


def processor_verilog():
    """The text of PicoRV32, which is not part of the Verilog that Amaranth makes."""
    package = distribution("pythondata-cpu-picorv32")
    return package.locate_file("pythondata_cpu_picorv32/verilog/picorv32.v").read_text(encoding="utf-8")


class Processor(wiring.Component):
    """PicoRV32 with multiplication, division and interrupts: RV32IM.

    It starts at address 0, and its interrupt handler is at 0x10. It accesses memory once at a time, and sends an access
    in the cycle before PicoRV32 waits for it: memory that answers in the next cycle costs no further cycle.
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
        valid, ready, waiting, irq = Signal(), Signal(), Signal(), Signal(32)
        # What PicoRV32 is going to ask for, for a cycle, and what it asks for until it has the answer.
        reads, writes, early, held = Signal(), Signal(), Signal(AccessLayout()), Signal(AccessLayout())
        m.submodules.cpu = Instance(
            "picorv32",
            p_ENABLE_MUL=1, p_ENABLE_FAST_MUL=1, p_ENABLE_DIV=1, p_BARREL_SHIFTER=1,
            p_ENABLE_IRQ=1, p_ENABLE_IRQ_TIMER=0, p_LATCHED_IRQ=Const(0, 32),
            p_PROGADDR_RESET=Const(0, 32), p_PROGADDR_IRQ=Const(0x10, 32),
            i_clk=ClockSignal(), i_resetn=~ResetSignal(), o_trap=self.trap,
            o_mem_la_read=reads, o_mem_la_write=writes, o_mem_la_addr=early.address, o_mem_la_wdata=early.data,
            o_mem_la_wstrb=early.strobe, o_mem_valid=valid, i_mem_ready=ready, o_mem_addr=held.address,
            o_mem_wdata=held.data, o_mem_wstrb=held.strobe, i_mem_rdata=answers.payload.data, i_irq=irq,
            i_pcpi_wr=Const(0), i_pcpi_rd=Const(0, 32), i_pcpi_wait=Const(0), i_pcpi_ready=Const(0),
        )  # fmt: skip
        m.d.comb += [
            irq[IRQ].eq(self.irq),
            access.address.eq(Mux(reads | writes, early.address, held.address)),
            access.data.eq(Mux(writes, early.data, held.data)),
            access.strobe.eq(Mux(reads | writes, early.strobe & writes.replicate(4), held.strobe)),
            access.write.eq(access.strobe.any()),
            requests.valid.eq(reads | writes | (valid & ~waiting)),
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

"""The hardware around a TMAU in simulation: memory behind it, players before it, and logs of what happens."""

from amaranth import unsigned
from amaranth.hdl import Cat, Mux
from amaranth.lib.wiring import In, Out, connect

from tilewright.hw.reduce.unit import IN_FLIGHT
from tilewright.hw.smem.params import BANKS, CHUNK_BYTES

from .axi_monitor import Axi4Monitor
from .axi_rules import Rule, Wait
from .drivers import BarrierDriver, RegisterDriver
from .memory_model import CHANNELS, MAX_LATENCY, MemoryModel
from .records import LOG_DEPTHS, PORTS, READ_IDS, SCRIPT_DEPTH, log_entries, script_items
from .scripted import ScriptedHarness
from .stall import Stall
from .testbench import Array

__all__ = ["Harness"]

_FIRST_STALL = len(CHANNELS)  # numbers of stalls: the memory's first, then the players', then the consumer's


class Harness(ScriptedHarness):
    """A :class:`~tilewright.hw.tmau.subsystem.TmauSubsystem` with all of its ports served.

    Parameters
    ----------
    dut : TmauSubsystem
    params : TmauParams
        Its parameters.
    memory_words : int
        Bus words of global memory.

    Attributes
    ----------
    latency, base, ar_stall, …, error_first, … : Signal, in
        See :class:`~tilewright.sim.memory_model.MemoryModel`.
    answer_stall : Signal, in
        Probability, in 256ths, of a pause before each answer of the consumer port.
    commands_done, … : Signal, out
        For commands, those that pulsed ``done_valid``.
    accepted_count, flips_count, requests_count, beats_count, write_requests_count, write_beats_count : Signal, out
        Entries of the other logs: commands accepted, barrier phases completed, AR, R, AW and W transfers.
    data_requests, data_beats, descriptor_requests, … : Signal, out
        Accepted AR and R of each ID since the start.
    violations, late : Signal, out
        See :class:`~tilewright.sim.axi_monitor.Axi4Monitor`.
    irq : Signal, out

    and those of :class:`~tilewright.sim.scripted.ScriptedHarness`.
    """

    def __init__(self, dut, params, *, memory_words):
        self._dut = dut
        self._params = params
        self._memory_words = memory_words
        word = unsigned(params.word_width)
        stalls = {f"{what}_stall": In(8) for what in (*CHANNELS, "answer")}
        memory = {"latency": In(range(MAX_LATENCY + 1)), "base": In(word), "error_response": In(2)}
        memory |= {"error_reads": In(1), "error_writes": In(1)}
        window = dict.fromkeys(("error_first", "error_last"), In(word))
        counts = {f"{kind}_{what}": Out(32) for kind in READ_IDS for what in ("requests", "beats")}
        watch = {"violations": Out(len(Rule)), "late": Out(len(Wait)), "irq": Out(1)}
        super().__init__(
            script_items(params),
            log_entries(params),
            LOG_DEPTHS,
            script_depth=SCRIPT_DEPTH,
            first_stall=_FIRST_STALL,
            members=stalls | memory | window | counts | watch,
        )

    def arrays(self):
        """Every memory that a session loads or dumps, by name."""
        arrays = {"memory": Array("memory.array.array.words", self._params.bus_width, self._memory_words)}
        for bank in range(BANKS):
            path = f"dut.smem.banks.bank{bank}"
            arrays[f"bank{bank}"] = Array(path, 8 * CHUNK_BYTES, self._params.smem.rows)
        return arrays | self.script_arrays()

    def elaborate(self, platform):
        m = super().elaborate(platform)
        m.submodules.dut = dut = self._dut
        self._serve_memory(m, dut.m_axi)
        self._serve_commands(m)
        self._serve_reads(m)

        m.submodules.barrier_driver = barriers = BarrierDriver(self._params.smem)
        m.submodules.register_driver = registers = RegisterDriver(dut.s_axil.signature.addr_width)
        connect(m, player=self.players["barriers"].o, driver=barriers.i)
        connect(m, driver=barriers.requests, dut=dut.barriers)
        connect(m, dut=dut.barrier_results, driver=barriers.results)
        connect(m, player=self.players["registers"].o, driver=registers.i)
        connect(m, driver=registers.axi, dut=dut.s_axil)
        self.log(m, "barriers", barriers.answer_valid, barriers.answer)
        self.log(m, "registers", registers.answer_valid, registers.answer)
        self.log(m, "flips", dut.flip_valid, dut.flip_address)
        m.d.comb += self.irq.eq(dut.irq)
        return m

    def _serve_memory(self, m, axi):
        params = self._params
        m.submodules.memory = memory = MemoryModel(
            addr_width=params.addr_width, data_width=params.bus_width, depth=self._memory_words
        )
        connect(m, dut=axi, memory=memory.axi)
        for name in memory.signature.members:
            if name != "axi":
                m.d.comb += getattr(memory, name).eq(getattr(self, name))

        m.submodules.monitor = monitor = Axi4Monitor(
            axi,
            # Descriptor fetches come on top of the data, and what the reducer reads for the writes in flight.
            reads=params.max_outstanding + params.cache_entries + IN_FLIGHT,
            writes=params.max_outstanding,
            max_burst=params.max_burst,
        )
        m.d.comb += [self.violations.eq(monitor.violations), self.late.eq(monitor.late)]

        requested, answered = axi.arvalid & axi.arready, axi.rvalid & axi.rready
        self.log(m, "requests", requested, Cat(axi.arid, axi.arlen, axi.araddr))
        self.log(m, "beats", answered, Cat(axi.rid, axi.rlast))
        self.log(m, "write_requests", axi.awvalid & axi.awready, Cat(axi.awid, axi.awlen, axi.awaddr))
        self.log(m, "write_beats", axi.wvalid & axi.wready, axi.wlast)
        for kind, number in READ_IDS.items():
            for what, happens, mine in (("requests", requested, axi.arid), ("beats", answered, axi.rid)):
                count = getattr(self, f"{kind}_{what}")
                m.d.sync += count.eq(Mux(self.start, 0, count + (happens & (mine == number))))

    def _serve_commands(self, m):
        dut = self._dut
        connect(m, player=self.players["commands"].o, dut=dut.commands)
        self.log(m, "accepted", dut.commands.valid & dut.commands.ready, dut.commands.payload.tag)
        self.log(m, "commands", dut.done_valid, Cat(dut.done_tag, dut.done_error))

    def _serve_reads(self, m):
        dut = self._dut
        m.submodules.answer_stall = stall = Stall(_FIRST_STALL + len(PORTS))
        connect(m, player=self.players["reads"].o, dut=dut.reads)
        m.d.comb += [
            stall.probability.eq(self.answer_stall),
            stall.seed.eq(self.seed),
            stall.start.eq(self.start),
            dut.read_data.ready.eq(stall.go),
        ]
        self.log(m, "reads", dut.read_data.valid & dut.read_data.ready, dut.read_data.payload)

"""What a harness connects to the ports of a design: memory at the bus, drivers and logs at the others."""

from amaranth.hdl import Cat, Mux
from amaranth.lib.wiring import Out, connect

from tilewright.hw.bus.read_port import DESCRIPTOR_BYTES
from tilewright.hw.cluster.l2.lookup import MOST_BACK
from tilewright.hw.tmau.signatures import DoneSignature
from tilewright.spec import BANKS, CHUNK_BYTES, LINE_BYTES
from tilewright.spec.tmau_registers import own_tag_bits

from ..hdl.testbench import Array
from .axi_channels import Rule, Wait
from .axi_monitor import Axi4Monitor
from .drivers import BarrierDriver, RegisterDriver, add_stall
from .memory_model import MemoryModel, memory_controls
from .records import READ_IDS

__all__ = [
    "bus_members",
    "memory_array",
    "register_arrays",
    "serve_bus",
    "serve_core",
    "serve_reads",
    "shared_memory_arrays",
]


def bus_members(params, words):
    """Members of a harness with ``words`` bus words of global memory on an AXI4 port.

    Inputs are the ``memory_controls``. Outputs are
    ``violations`` and ``late`` of the ``Axi4Monitor``, and accepted AR and R of each ID since the start:
    ``data_requests``, ``data_beats``, ``descriptor_requests`` and so on.
    """
    counts = {f"{kind}_{what}": Out(32) for kind in READ_IDS for what in ("requests", "beats")}
    watch = {"violations": Out(len(Rule)), "late": Out(len(Wait))}
    return memory_controls(params.word_width, words) | counts | watch


def memory_array(params, words):
    """The array of global memory, of :func:`serve_bus`, by name."""
    return {"memory": Array("memory.array.array.words", params.bus_width, words)}


def shared_memory_arrays(smem, path="dut", prefix=""):
    """The banks of the design at ``path`` that has the shared memory ``smem`` (SmemParams), by name."""
    return {
        f"{prefix}bank{bank}": Array(f"{path}.smem.banks.bank{bank}", 8 * CHUNK_BYTES, smem.rows)
        for bank in range(BANKS)
    }


def register_arrays(params):
    """The register file of a processing engine, whose even and odd registers lie apart; PeParams."""
    return {
        f"{parity}_registers": Array(f"dut.pe.registers.bank{bank}", 32 * params.threads, params.regs // 2)
        for bank, parity in enumerate(("even", "odd"))
    }


def serve_bus(harness, m, axi, core, words, cores=1, cache=None):
    """Connects ``words`` bus words of memory and a monitor to ``axi``, the port of one core or several; CoreParams.

    The lowest two bits of an ID are a core's own. With a cache in between, of L2Params, memory sees its lines only.
    """
    params = core.tmau
    programs = core.program.bursts(params.bus_bytes, params.max_burst) if core.program else 0
    m.submodules.memory = memory = MemoryModel(
        addr_width=params.addr_width, data_width=params.bus_width, id_width=len(axi.arid), depth=words
    )
    connect(m, dut=axi, memory=memory.axi)
    for name in memory.signature.members:
        if name != "axi":
            m.d.comb += getattr(memory, name).eq(getattr(harness, name))

    # On top of data come the bursts of one descriptor, which a page may cut, and what the reducer reads beforehand.
    descriptor = max(2, DESCRIPTOR_BYTES // (params.bus_bytes * params.max_burst))
    limits = {
        "reads": cores * (params.max_outstanding + descriptor + params.old_words // 2 + programs),
        "writes": cores * params.max_outstanding,
        "max_burst": params.max_burst,
    }
    if cache:
        limits = {"reads": cache.misses, "writes": MOST_BACK, "max_burst": LINE_BYTES // params.bus_bytes}
    m.submodules.monitor = monitor = Axi4Monitor(axi, **limits)
    m.d.comb += [harness.violations.eq(monitor.violations), harness.late.eq(monitor.late)]

    requested, answered = axi.arvalid & axi.arready, axi.rvalid & axi.rready
    harness.log(m, "requests", requested, Cat(axi.arid, axi.arlen, axi.araddr))
    harness.log(m, "beats", answered, Cat(axi.rid, axi.rlast))
    harness.log(m, "write_requests", axi.awvalid & axi.awready, Cat(axi.awid, axi.awlen, axi.awaddr))
    harness.log(m, "write_beats", axi.wvalid & axi.wready, axi.wlast)
    for kind, number in READ_IDS.items():
        for what, happens, mine in (("requests", requested, axi.arid), ("beats", answered, axi.rid)):
            count = getattr(harness, f"{kind}_{what}")
            m.d.sync += count.eq(Mux(harness.start, 0, count + (happens & (mine[:2] == number))))


def serve_core(harness, m, dut, smem, cores=1):
    """Connects all ports of a design, or of one of ``cores`` cores, but for its bus and its consumer; SmemParams."""
    for port, serve in (("commands", _serve_commands), ("instructions", _serve_instructions), ("jobs", _serve_jobs)):
        if port in harness.drivers:
            serve(harness, m, dut)
    _serve_processor(harness, m, dut, smem, cores)
    if "words" in harness.logs:
        _serve_program(harness, m, dut)


def _serve_commands(harness, m, dut):
    """Issues commands to an access unit; logs when they are accepted and done."""
    issued, done = harness.drivers["commands"].o, dut.done
    if isinstance(dut.commands, list):
        done = _serve_processors(m, issued, dut)
    else:
        connect(m, driver=issued, dut=dut.commands)
    harness.log(m, "accepted", issued.valid & issued.ready, issued.payload.tag)
    harness.log(m, "commands", done.valid, Cat(done.tag, done.error))


def _serve_processors(m, issued, dut):
    """Issues each command as the processor that its tag names; returns what has ended, with whole tags."""
    count = len(dut.commands)
    own_bits, done = own_tag_bits(count), DoneSignature().create()
    for number, (port, ended) in enumerate(zip(dut.commands, dut.done, strict=True)):
        here = issued.payload.tag[own_bits:] == number
        m.d.comb += [port.payload.eq(issued.payload), port.valid.eq(issued.valid & here)]
        # Whatever a processor writes there is replaced.
        m.d.comb += port.payload.tag[own_bits:].eq(~number)
        with m.If(here):
            m.d.comb += issued.ready.eq(port.ready)
        with m.If(ended.valid):
            m.d.comb += [done.valid.eq(1), done.tag.eq(ended.tag | number << own_bits), done.error.eq(ended.error)]
    return done


def _serve_instructions(harness, m, dut):
    """Issues segments, pages and instructions to a processing engine; logs reports and halts."""
    for port in ("instructions", "segments", "pages"):
        stream = getattr(dut, port)
        connect(m, driver=harness.drivers[port].o, dut=stream)
        harness.log(m, "issued" if port == "instructions" else port, stream.valid & stream.ready, 0)
    harness.log(m, "instructions", dut.fault_valid & ~dut.fault.inside, dut.fault)
    harness.log(m, "inside", dut.fault_valid & dut.fault.inside, dut.fault)
    harness.log(m, "halts", dut.halted, 0)


def _serve_jobs(harness, m, dut):
    """Issues jobs to a convolution engine, and logs how they end."""
    connect(m, driver=harness.drivers["jobs"].o, dut=dut.jobs)
    harness.log(m, "queued", dut.jobs.valid & dut.jobs.ready, 0)
    harness.log(m, "jobs", dut.job_ended, dut.job_end)


def _serve_processor(harness, m, dut, smem, cores):
    """Does operations on barriers and accesses to registers, logs flips, and shows ``irq``; SmemParams."""
    m.submodules.barrier_driver = barriers = BarrierDriver(smem, cores)
    m.submodules.register_driver = registers = RegisterDriver(dut.s_axil.signature.addr_width)
    connect(m, script=harness.drivers["barriers"].o, driver=barriers.i)
    connect(m, driver=barriers.requests, dut=dut.barriers)
    connect(m, dut=dut.barrier_results, driver=barriers.results)
    connect(m, script=harness.drivers["registers"].o, driver=registers.i)
    connect(m, driver=registers.axi, dut=dut.s_axil)
    harness.log(m, "barriers", barriers.answer_valid, barriers.answer)
    harness.log(m, "registers", registers.answer_valid, registers.answer)
    harness.log(m, "flips", dut.flip.valid, dut.flip.address)
    m.d.comb += harness.irq.eq(dut.irq)


def _serve_program(harness, m, dut):
    """Logs what a command processor has carried out."""
    harness.log(m, "words", dut.word_done, Cat(dut.word_kind, dut.word_index))
    m.d.comb += harness.running.eq(dut.running)


def serve_reads(harness, m, dut, *, number):
    """Issues reads of the consumer and takes the answers, with the pauses of the ``Stall`` of that number."""
    connect(m, driver=harness.drivers["reads"].o, dut=dut.reads)
    m.d.comb += dut.read_data.ready.eq(add_stall(m, "answer_stall", number, harness.answer_stall, harness))
    harness.log(m, "reads", dut.read_data.valid & dut.read_data.ready, dut.read_data.payload)

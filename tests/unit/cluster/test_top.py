"""The top of a cluster: what is seen of it, and engines of two cores. tests/integration/cluster has all else."""

import numpy as np
import pytest
from amaranth.lib.wiring import Out

from tilewright import golden
from tilewright.golden import GlobalMemory, command_word, delivery_bits, instruction_word
from tilewright.hw.bus.axi4_lite import Axi4LiteSignature
from tilewright.hw.cluster.l2.params import L2Params
from tilewright.hw.cluster.params import CLUSTER_PRESETS, ClusterParams
from tilewright.hw.cluster.top import Cluster
from tilewright.hw.core import CORE_PRESETS, Core
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau import TMAU_PRESETS
from tilewright.sim.asm.pe import assemble_program
from tilewright.sim.session.products import CoreProduct
from tilewright.spec import BarrierOp
from tilewright.spec.pe import SEGMENT, MmType, Operation, SegmentElement
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated, simulate
from tilewright.verify.pysim.streams import receive, send

#: Words 0 to 3 of segment 4 are the number of the core, words 4 to 7 are another number in core 1 alone.
BY_NUMBER = assemble_program("""
    movu ur7, 4
    mov r4, tid
    mov r5, core
    st r5, ur7:rf4:0x0, 1
    setp.eq p1, r5, 1
    mov r6, 0x10
    @p1, mov r6, 0x20
    st r6, ur7:rf4:0x4, 1
""")


def test_members_are_those_of_each_core():
    cluster = Cluster(ClusterParams(3, CORE_PRESETS["unit"]))
    core = Core(CORE_PRESETS["unit"])
    assert set(cluster.signature.members) == set(core.signature.members)
    for name, member in cluster.signature.members.items():
        assert member.dimensions == (() if name == "m_axi" else (3,))
    assert len(cluster.irq) == len(cluster.cores) == 3
    assert cluster.regions == core.regions
    assert len(cluster.m_axi.arid) == 4


def test_one_core_is_the_core():
    """The same unit, without registers or ports of a cluster, and with its own IDs."""
    cluster = Cluster(ClusterParams(1, CoreParams(TMAU_PRESETS["unit"])))
    (core,) = cluster.cores
    alone = Core(CoreParams(TMAU_PRESETS["unit"]))
    assert core.params == alone.params
    assert core.signature == alone.signature
    assert cluster.signature.members["m_axi"] == Out(alone.m_axi.signature)


def test_a_cache_has_registers_of_its_own():
    """Each core's prefetches end inside; nothing else is seen of the cache."""
    unit = CoreParams(TMAU_PRESETS["unit"])
    without, cluster = (Cluster(ClusterParams(2, unit, l2)) for l2 in (None, L2Params(4096, 2)))
    members = dict(cluster.signature.members.items())
    assert members.pop("l2_axil").signature.flip() == Axi4LiteSignature(12)
    assert members == dict(without.signature.members.items())
    assert without.l2 is None


@pytest.mark.long
def test_a_product_on_two_cores_whose_b_is_multicast():
    """Each has half of the rows; its program waits for the barrier that its A and the common B complete.

    Both run the same words, which also do something by the number of the core.
    """
    params = CLUSTER_PRESETS["pair"]
    dut, memory, core_params = elaborated(Cluster, params), GlobalMemory(1 << 14), params.core
    rng, barrier = np.random.default_rng(1), core_params.smem.size_bytes - 8
    a, b = (rng.integers(-128, 128, shape, np.int8) for shape in ((8, 32), (32, 4)))
    parts = [CoreProduct(part, b, MmType.S8S8, core_params, memory.place) for part in np.split(a, 2)]
    assert parts[0].program.words == parts[1].program.words
    shown = barrier // 128 - 1  # line of shared memory
    numbers = SEGMENT.pack(element=SegmentElement.U32, rank=1, size=[8], page_log2=[3], base=128 * shown)
    everyone, ends = delivery_bits([0, 1]), {"signal": 1, "barrier": barrier}

    def loads(core):
        own = [move for segment in (0, 3) for move in parts[core].moves[segment]]
        common = parts[0].moves[1]
        named = [(move, 0) for move in own] + [(move, everyone) for move in common if core == 0]
        words = [command_word(**move.command(memory.place(move.tmap.pack()), **ends)) | bits for move, bits in named]
        return words, sum(golden.tx_bytes(move.tmap) for move in own + common)

    def core(number):
        part, (words, total) = parts[number], loads(number)
        commands, barriers, results = dut.commands[number], dut.barriers[number], dut.barrier_results[number]

        async def processor(ctx):
            segments = [segment.pack() for segment in part.program.placement.segments] + [numbers]
            await send(ctx, dut.segments[number], [{"index": k, "word": word} for k, word in enumerate(segments)])
            for op, value in ((BarrierOp.INIT, 1), (BarrierOp.EXPECT_TX, total), (BarrierOp.ARRIVE, 1)):
                await send(ctx, barriers, [{"op": op, "address": barrier, "value": value}])
                (answer,), _ = await receive(ctx, results, 1)
                assert not answer.error
            armed.append(number)
            while len(armed) < 2:  # a barrier counts bytes that it expects
                await ctx.tick()
            await send(ctx, commands, words)
            waits = instruction_word(Operation.BAR_WAIT, imm=barrier)
            await send(ctx, dut.instructions[number], [waits, *BY_NUMBER, *part.program.words])
            await ctx.tick().until(dut.halted[number])
            chunks = [ctx.get(bank.data[shown]) for bank in dut.cores[number].smem.banks.memories[:2]]
            assert chunks == [word * 0x1_00000001_00000001_00000001 for word in (number, (0x10, 0x20)[number])]
            await send(ctx, commands, [command_word(**move.command(memory.place(move.tmap.pack()), store=True, tag=9))
                                       for move in part.moves[2]])  # fmt: skip
            done = dut.done[number]
            await ctx.tick().until(done.valid & (done.tag == 9))

        async def no_errors(ctx):
            done, fault = dut.done[number], dut.fault[number]
            sampled = ctx.tick().sample(done.valid & (done.error != 0), dut.fault_valid[number] & (fault.code != 0))
            async for _, _, failed, faulty in sampled:
                assert not failed and not faulty

        return processor, no_errors

    armed = []
    processors, watchers = zip(*map(core, (0, 1)), strict=True)
    bus = AxiMemory(dut.m_axi, memory.data)
    simulate(dut, *processors, background=[*watchers, bus.serve, bus.serve_writes])
    found = [memory.data[part.c_address :][: 4 * 4 * 4].view(np.int32).reshape(4, 4) for part in parts]
    assert (np.concatenate(found) == a.astype(np.int32) @ b.astype(np.int32)).all()

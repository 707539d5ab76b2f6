"""The reducer before a write port: memory ends up as if each burst had been completed before the next one."""

import random
from types import SimpleNamespace

import numpy as np
import pytest
from amaranth.hdl import Module
from amaranth.lib import wiring
from amaranth.lib.wiring import In, Out

from support.selection import cases
from support.streams import transact
from tilewright.golden.tmau.reduce import is_legal, reduce
from tilewright.hw.bus.axi4 import Axi4ReadSignature, Axi4WriteSignature
from tilewright.hw.bus.bursts import WritesSignature
from tilewright.hw.bus.write_port import WritePort
from tilewright.hw.reduce.unit import Reducer
from tilewright.spec import Element, Reduction
from tilewright.verify.pysim.axi import AxiMemory
from tilewright.verify.pysim.simulate import elaborated

BUS_BYTES = 16
MAX_BURST = 4
MEMORY_BYTES = 4096
OPERATIONS = [(op, element) for op in Reduction for element in Element if is_legal(op, element)]


class Chain(wiring.Component):
    """Reducer and write port, with the input of the reducer and the read and write channels of the bus as ports."""

    def __init__(self, words):
        self.reducer = Reducer(32, BUS_BYTES, MAX_BURST, words)
        self.port = WritePort(addr_width=32, bus_bytes=BUS_BYTES, max_outstanding=32, id_width=2)
        super().__init__(
            {
                "i": In(WritesSignature(32, BUS_BYTES)),
                "reads": Out(Axi4ReadSignature(32, 8 * BUS_BYTES, 2)),
                "writes": Out(Axi4WriteSignature(32, 8 * BUS_BYTES, 2)),
            }
        )

    def elaborate(self, platform):
        m = Module()
        m.submodules.reducer = reducer = self.reducer
        m.submodules.port = port = self.port
        wiring.connect(m, i=wiring.flipped(self.i), reducer=reducer.i)
        wiring.connect(m, reducer=reducer.o, port=port.writes)
        wiring.connect(m, reducer=reducer.axi, reads=wiring.flipped(self.reads))
        wiring.connect(m, port=port.axi, writes=wiring.flipped(self.writes))
        return m


def some_bursts(count, *, places, seed, plain=0.3):
    """Random bursts to the first ``places`` bus words, and the words of each."""
    rng = random.Random(seed)
    bursts, reducing = [], True
    for n in range(count):
        # Several of a kind in a row, so that reducing bursts interact.
        if rng.random() < 0.3:
            reducing = rng.random() >= plain
        beats, empty = rng.randrange(1, MAX_BURST + 1), rng.random() < 0.1
        op, element = rng.choice(OPERATIONS) if reducing else (Reduction.NONE, Element.U8)
        burst = {"word": rng.randrange(places - beats + 1), "beats_minus_one": beats - 1, "empty": empty}
        burst |= {"last": n % 2, "reduction": op, "element": element}
        words = [
            {"data": rng.getrandbits(8 * BUS_BYTES), "strobe": rng.choice([0xFFFF, 0xFF00, 0x00F0])}
            for _ in range(0 if empty else beats)
        ]
        bursts.append((burst, words))
    return bursts


def expected(bursts, contents, failing):
    """The final contents of the memory, and the responses (address, last, error)."""
    contents, responses = contents.copy(), []
    for burst, words in bursts:
        start, reducing = BUS_BYTES * burst["word"], burst["reduction"] != Reduction.NONE
        addresses = [start + BUS_BYTES * beat for beat in range(len(words))]
        error = reducing and not failing.isdisjoint(addresses)
        responses.append((start, burst["last"], error))
        for address, word in zip(addresses, [] if error else words, strict=not error):
            source = np.frombuffer(word["data"].to_bytes(BUS_BYTES, "little"), np.uint8)
            old = contents[address : address + BUS_BYTES]
            new = reduce(burst["reduction"], burst["element"], old, source) if reducing else source
            written = np.array([word["strobe"] >> offset & 1 for offset in range(BUS_BYTES)], bool)
            old[written] = new[written]
    return contents, responses


def run(dut, bursts, contents, *, mode="none", latency=10, stall=0.0, failing=frozenset()):
    """Runs ``bursts`` to the last response; responses, their cycles, and the bursts on the bus."""
    reads = AxiMemory(dut.reads, contents, latency=latency, stall=stall, seed=1)
    writes = AxiMemory(dut.writes, contents, latency=latency, stall=stall, seed=2)
    reads.failing = failing

    items = {"i.bursts": [burst for burst, _ in bursts], "i.words": [word for _, words in bursts for word in words]}
    payloads, cycles = transact(
        dut, items, {"i.responses": len(bursts)}, mode, seed=1,
        watch=["reducer.o.bursts", "reducer.o.words", "reducer.reader.requests.o"],
        background=[reads.serve, writes.serve_writes], deadline=40_000,
    )  # fmt: skip
    responses = [(response.address, response.last, response.error) for response in payloads["i.responses"]]
    return SimpleNamespace(
        responses=responses, cycles=cycles["i.responses"], reads=reads.requests, writes=writes.writes
    )


def some_contents():
    return np.random.default_rng(7).integers(256, size=MEMORY_BYTES, dtype=np.uint8)


@cases("mode, stall, latency, words",
       [("none", 0.0, 10, 32), ("idle", 0.3, 3, 4), ("stall", 0.0, 1, 16), ("both", 0.5, 40, 32)],
       [("both", 0.0, 3, 32)])  # fmt: skip
def test_random_bursts(mode, stall, latency, words):
    bursts, contents = some_bursts(40, places=24, seed=latency), some_contents()
    wanted, responses = expected(bursts, contents, set())
    dut = elaborated(Chain, words)
    result = run(dut, bursts, contents, mode=mode, latency=latency, stall=stall)
    assert result.responses == responses
    assert (contents == wanted).all()
    reducing = [burst for burst, words in bursts if words and burst["reduction"] != Reduction.NONE]
    assert [(BUS_BYTES * burst["word"], burst["beats_minus_one"] + 1) for burst in reducing] == [
        request[2:] for request in result.reads
    ]
    assert {request[1] for request in result.reads} == {2}


def test_failed_reads():
    """A burst with an old word that cannot be read changes nothing and answers with an error."""
    bursts, contents = some_bursts(40, places=24, seed=1), some_contents()
    failing = {BUS_BYTES * 5, BUS_BYTES * 17}
    wanted, responses = expected(bursts, contents, failing)
    result = run(elaborated(Chain, 32), bursts, contents, mode="both", failing=failing)
    assert result.responses == responses
    assert {error for *_, error in responses} == {False, True}
    assert (contents == wanted).all()


def test_plain_bursts_pass_at_full_rate():
    bursts = [({"word": n % 200, "beats_minus_one": 0, "reduction": 0}, [{"data": n, "strobe": 1}]) for n in range(100)]
    dut = elaborated(Chain, 32)
    result = run(dut, [(burst | {"last": 0}, words) for burst, words in bursts], some_contents(), latency=2)
    assert [cycle for cycle, *_ in result.writes] == list(range(2, 102))
    assert np.diff(result.cycles).tolist() == 99 * [1]


def test_latency_is_hidden():
    """Bursts without common words are read ahead: nine words in ten cycles, with latencies of 40 cycles."""
    burst = {"beats_minus_one": 3, "last": 0, "reduction": Reduction.XOR, "element": Element.U32}
    words = [{"data": 5, "strobe": 0xFFFF}] * 4
    bursts = [(burst | {"word": 4 * n}, words) for n in range(60)]
    dut = elaborated(Chain, 128)
    result = run(dut, bursts, some_contents(), latency=40)
    first = result.cycles[0]
    assert result.cycles[-1] - first < (240 - 4) / 0.9


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((32, 8, 4, 32), r"^bus_bytes must be 16, 32 or 64, not 8$"),
        ((32, 16, 3, 32), r"^max_burst must be a power of two from 1 to 256, not 3$"),
        ((32, 16, 4, 2048), r"^words must be a power of two from 4 to 1024, not 2048$"),
    ],
)
def test_refused_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        Reducer(*arguments)

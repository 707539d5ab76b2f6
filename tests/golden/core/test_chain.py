"""A program with loads, a convolution, a product and stores gives the results of separate machines."""

import numpy as np
import pytest

from tilewright import golden
from tilewright.spec import BarrierOp
from tilewright.spec.conv import JOB

SEED = 5
SMEM_BYTES = 16384
JOB_AT, BARRIER = 8192, 16376
SIZES = golden.PeSizes(threads=16, regs=64)
CONV = golden.ConvParams()


class Chain:
    """Y = X ∗ K, of 16 points with 16 channels; C = Y × B."""

    def __init__(self):
        rng = np.random.default_rng(SEED)
        self.x = rng.integers(0, 256, (1, 6, 6, 8), np.uint8)
        self.k = rng.integers(-128, 128, (16, 3, 3, 8), np.int8)
        self.b = rng.integers(-128, 128, (16, 24), np.int8)
        self.post = golden.PostProcessing("u8", scale=[2.0**-9] * 16, bias=list(range(16)), zero=100)
        self.layer = golden.ConvLayer(self.x, self.k, "u8s8", params=CONV, post=self.post)
        self.product = golden.gemm_program(np.zeros((16, 16), np.uint8), self.b, "u8s8", sizes=SIZES, swizzle="none",
                                    size_bytes=JOB_AT)  # fmt: skip
        self.gmem = golden.GlobalMemory(1 << 17)
        fields = JOB.unpack(self.layer.word)
        self.y = fields["y"] + JOB_AT
        for name in ("x", "k", "table", "y"):
            fields[name] += JOB_AT
        self.job = JOB.pack(**fields | {"signal": 1, "barrier": BARRIER})
        images = self.layer.smem, self.product.placement.smem
        self.sources = [
            (self.gmem.place(image), place, len(image)) for image, place in zip(images, (JOB_AT, 0), strict=True)
        ]
        raw = b"".join(word.to_bytes(16, "little") for word in self.product.words)
        self.instructions = self.gmem.place(raw)
        self.output = self.gmem.place(bytes(4096))

    def loads(self):
        for source, place, size in self.sources:
            fields = {"source": source, "destination": place, "size": size}
            yield golden.command_word("copy_block", destination_space="shared", signal=1, barrier=BARRIER, **fields)

    def move(self):
        """Y becomes A."""
        both = {"source_space": "shared", "destination_space": "shared", "signal": 1, "barrier": BARRIER}
        return golden.command_word("copy_block", source=self.y, destination=0, size=256, **both)

    def store(self):
        return golden.command_word("copy_block", source=0, source_space="shared", destination=self.output, size=4096)

    def program(self):
        def operate(operation, value):
            return golden.program_word("barrier", operation=operation, barrier=BARRIER, value=value)

        yield operate("init", 1)
        yield from map(golden.tmau_word, self.loads())
        yield operate("expect_tx", sum(size for _, _, size in self.sources))
        yield operate("arrive", 1)
        yield operate("try_wait", 0)
        yield from golden.conv_words(self.job)
        for index, segment in enumerate(self.product.placement.segments):
            yield from golden.segment_words(index, segment.pack())
        for index, entry in enumerate(self.product.placement.entries):
            yield from golden.page_words(index, entry)
        yield operate("try_wait", 1)
        yield operate("expect_tx", 256)
        yield golden.tmau_word(self.move())
        yield operate("arrive", 1)
        yield operate("try_wait", 0)
        yield golden.program_word("pe", address=self.instructions, count=len(self.product.words))
        yield golden.program_word("wait_all", engines=2)
        yield golden.tmau_word(self.store())
        yield golden.program_word("end")

    def by_hand(self):
        """Global and shared memory after separate machines."""
        gmem, smem = golden.GlobalMemory(self.gmem.data.copy()), np.zeros(SMEM_BYTES, np.uint8)
        mover, pe = golden.Machine(gmem, smem), golden.Pe(smem, SIZES)
        mover.barrier(BarrierOp.INIT, BARRIER, 1)
        for command in self.loads():
            mover.execute(command)
        mover.barrier(BarrierOp.EXPECT_TX, BARRIER, sum(size for _, _, size in self.sources))
        mover.barrier(BarrierOp.ARRIVE, BARRIER, 1)
        assert golden.Conv(smem, CONV).execute(self.job)
        mover.barrier(BarrierOp.EXPECT_TX, BARRIER, 256)
        mover.execute(self.move())
        mover.barrier(BarrierOp.ARRIVE, BARRIER, 1)
        self.product.placement.load(pe)
        pe.run(self.product.words)
        mover.execute(self.store())
        assert mover.errors == pe.faults == []
        return gmem.data, smem


@pytest.fixture(scope="module")
def chain():
    return Chain()


def test_program_equals_separate_machines(chain):
    gmem, smem = chain.by_hand()
    words = list(chain.program())
    address = chain.gmem.place(golden.program_bytes(words))
    core = golden.Core(golden.GlobalMemory(chain.gmem.data.copy()), np.zeros(SMEM_BYTES, np.uint8), pe=SIZES, conv=CONV)
    assert core.run(address, len(words)) is None
    assert (core.smem == smem).all()
    assert (core.gmem.data[:address] == gmem[:address]).all()


def test_result_is_the_product_of_the_convolution(chain):
    _, smem = chain.by_hand()
    y = golden.convolve(chain.x, chain.k, "u8s8", params=CONV, post=chain.post).reshape(16, 16)
    assert len(set(y.ravel().tolist())) > 50
    expected = golden.multiply(y, chain.b, "u8s8").view(np.int32)
    assert (expected == y.astype(np.int32) @ chain.b).all()
    assert (chain.product.product(smem[:JOB_AT]).view(np.int32) == expected).all()

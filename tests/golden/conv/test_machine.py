"""Jobs on shared memory, by hand: words, barriers, parts of larger tensors, floats, maxima, and refusals."""

import numpy as np
import pytest

from tilewright.golden import CONV_PRESETS, Conv, ConvParams, ConvRecord, job_word
from tilewright.golden.smem import Barrier
from tilewright.spec.conv import CONV_REGISTERS, JOB, ConvError, built_with
from tilewright.spec.pe import MM_FAMILIES

PARAMS = ConvParams(types=MM_FAMILIES)

#: Two pixels of two channels, one output channel.
SMALL = {"type": "u8s8", "granularity": 1, "x": 0, "k": 16, "y": 32, "table": 64, "channels": 2, "width": 2,
         "out_width": 2, "x_pitch": (2, 4, 4), "k_pitch": 2, "y_pitch": (4, 8, 8)}  # fmt: skip


def run(memory, **fields):
    engine = Conv(memory, PARAMS)
    done = engine.execute(job_word(**SMALL | fields))
    return done, engine.errors


def memory_of(**parts):
    """Shared memory of 256 bytes with arrays at the places of ``SMALL``, or of names like ``at96``."""
    memory = np.full(256, 0xCD, np.uint8)
    for name, values in parts.items():
        first = int(name[2:]) if name.startswith("at") else SMALL[name]
        raw = np.asarray(values).view(np.uint8)
        memory[first : first + len(raw)] = raw
    return memory


def test_a_job_by_hand():
    word = job_word(operation="depthwise", type="bf16", output="bf16", raster=1, granularity=5, merge=3, tag=0xBEEF,
                    barrier=0x18, x_zero=0x1234, k_zero=0x5678, x=0x100, k=0x200, table=0x300, y=0x400, addend=0x500,
                    minimum=1, maximum=2, add_minimum=3, add_maximum=4, ratio=(0x3F800000, 0xBF800000),
                    offset=0x40000000, y_zero=9, channels=64, width=56, height=55, batch=2, out_channels=64,
                    out_width=28, out_height=27, kernel=(3, 2), stride=(2, 1), dilation=(1, 4), padding=(1, 0),
                    x_pitch=(64, 3584, 197120), k_pitch=64, y_pitch=(128, 3584, 96768),
                    addend_pitch=(1, 2, 3))  # fmt: skip
    assert [word >> 64 * i & 2**64 - 1 for i in range(16)] == [
        0xBEEF_00_02_05_84_91_01, 0x5678_1234_0000_0018, 0x200_0000_0100, 0x400_0000_0300, 0x04_03_02_01_0000_0500,
        0xBF80_0000_3F80_0000, 0x09_4000_0000, 0x0001_0036_0037_003F, 0x001A_001B_003F, 0x0001_0300_0001_0102,
        0xE00_0000_0040, 0x40_0003_0200, 0xE00_0000_0080, 0x1_0001_7A00, 0x3_0000_0002, 0,
    ]  # fmt: skip


def test_two_points_by_hand():
    memory = memory_of(x=np.array([1, 2, 200, 255], np.uint8), k=np.array([3, -128], np.int8))
    assert run(memory) == (True, [])
    assert memory[32:40].view("<i4").tolist() == [3 - 256, 600 - 255 * 128]
    assert (memory[40:] == 0xCD).all()


def test_a_function_by_hand():
    """Bytes as they are stored: of s8 results, and of elements."""
    lut = np.arange(256, dtype=np.uint8)[::-1]
    memory = np.zeros(1024, np.uint8)
    memory[512:768] = lut
    memory[:4] = [1, 2, 200, 255]
    memory[16:18], memory[64:72] = [1, 0xFF], np.array([0, 0x3F800000], "<u4").view(np.uint8)
    fields = {"function": 1, "function_table": 512, "out_height": 1}
    assert run(memory, output="s8", minimum=0x80, maximum=0x7F, y_pitch=(1, 2, 2), **fields) == (True, [])
    assert memory[32:34].tolist() == [255 - 0xFF, 255 - (200 - 255 & 0xFF)]
    maximum = {"operation": "max_pool", "output": "element", "out_channels": 2, "y_pitch": (2, 4, 4), "y": 48}
    assert run(memory, **maximum, **fields) == (True, [])
    assert memory[48:52].tolist() == [254, 253, 55, 0]
    assert run(memory, output="raw", **fields)[1] == [ConvRecord(ConvError.OUTPUT, JOB.index("function"), 0)]


def test_zero_first_by_hand():
    """0.5 - 2^-25 with a zero point of 128: the sum is rounded to 128.5, and then to an even number."""
    memory = memory_of(x=np.array([255, 255, 0, 0], np.uint8), k=np.array([0, 0], np.int8),
                       table=np.array([(1 << 24) - 1, 0x33000000], "<u4"))  # fmt: skip
    quantised = {"output": "u8", "maximum": 255, "bias": 1, "y_pitch": (1, 2, 2)}
    for first, zero, expected in ((0, 128, 128), (1, 128, 128), (0, 129, 129), (1, 129, 130)):
        run(memory, **quantised, y_zero=zero, zero_first=first)
        assert memory[32:34].tolist() == [expected] * 2


def test_zero_points_and_padding():
    """A window of 1 × 3 with padding on both sides, which has the value x_zero and adds nothing."""
    memory = memory_of(x=np.array([1, 2, 200, 255], np.uint8), k=np.array([1, 1, 2, 2, 3, 3], np.int8))
    run(memory, kernel=(3, 1), padding=(1, 0), k_pitch=6, x_zero=10, k_zero=0xFF)  # x − 10, w + 1
    first, second = 1 + 2 - 20, 200 + 255 - 20
    assert memory[32:40].view("<i4").tolist() == [3 * first + 4 * second, 2 * first + 3 * second]


@pytest.mark.parametrize(("bias", "raw"), [(5, 5 - 253), (-(1 << 31), 2**31 - 253)])
def test_bias_wraps(bias, raw):
    memory = memory_of(
        x=np.array([1, 2, 0, 0], np.uint8), k=np.array([3, -128], np.int8), table=np.array([bias], "<i4")
    )
    run(memory, bias=1)
    assert memory[32:36].view("<i4").tolist() == [raw]


def test_two_jobs_make_one_tensor():
    """A concatenation: channels 0 and 1 of pixels of three bytes."""
    table = np.array([0, 0x3F800000, 0, 0x3F800000], "<u4")
    memory = memory_of(x=np.array([1, 2, 3, 4], np.uint8), k=np.array([1, 0, 0, 1], np.int8), table=table)
    quantised = {"output": "u8", "maximum": 255, "y_pitch": (3, 6, 6)}
    run(memory, **quantised, out_channels=2, k_pitch=2)
    run(memory, **quantised, y=34, k=18)
    assert memory[32:39].tolist() == [1, 2, 2, 3, 4, 4, 0xCD]


def test_addition_in_place():
    table = np.array([0, 0x3F800000], "<u4")
    memory = memory_of(x=np.array([10, 0, 20, 0], np.uint8), k=np.array([1, 0], np.int8), table=table,
                       y=np.array([100, 200], np.uint8))  # fmt: skip
    half = int(np.float32(0.5).view(np.uint32))
    same = {"y_pitch": (1, 2, 2), "addend_pitch": (1, 2, 2), "addend": 32}
    assert run(memory, output="u8", maximum=255, add=1, add_maximum=109, ratio=(half, 0x3F800000), **same)[0]
    assert memory[32:35].tolist() == [105, 109, 0xCD]


def test_barrier():
    """A job arrives when its results are written; of two arrivals the second one ends the phase."""
    memory = memory_of(x=np.zeros(4, np.uint8), k=np.zeros(2, np.int8))
    state = Barrier()
    state.init(2)
    state.write(memory, 96)
    for expected in ((1, 0), (2, 1)):
        assert run(memory, signal=1, barrier=96) == (True, [])
        after = Barrier.read(memory, 96)
        assert (after.pending, after.phase) == expected


def test_a_barrier_that_refuses():
    memory = memory_of(x=np.zeros(4, np.uint8), k=np.zeros(2, np.int8), at96=np.zeros(8, np.uint8))
    number = JOB.index("barrier")
    assert run(memory, signal=1, barrier=96, tag=9) == (False, [ConvRecord(ConvError.BARRIER, number, 9)])
    assert (memory[32:40] == 0).all()
    assert (memory[96:104] == 0).all()


def half(*numbers):
    return np.array(numbers, np.float16).view(np.uint16)


def test_floats_depend_on_the_elements_of_a_step():
    """2^24 + 1 − 2^24: in one step exact; step by step the one is lost, or not, by the order."""
    x = half(4096, 1, -4096, 0)
    k = half(4096, 1, 4096, 0)
    job = {"type": "f16", "channels": 1, "width": 4, "out_width": 1, "kernel": (4, 1), "x_pitch": (2, 8, 8)}
    results = {}
    for merge, granularity in ((1, 1), (4, 2), (4, 3), (2, 2), (3, 3)):
        memory = memory_of(x=x, k=k)
        assert run(memory, **job, merge=merge, granularity=granularity, k_pitch=8)[0]
        results[merge, granularity] = float(memory[32:36].view("<f4")[0])
    assert results == {(1, 1): 0, (4, 2): 0, (4, 3): 1, (2, 2): 0, (3, 3): 1}


def test_elements_after_a_block_do_not_count():
    """Blocks of four elements, pixels of three: the fourth element is infinite and belongs to no pixel."""
    x = half(1, 2, 3, np.inf, 4, 5, 6, np.inf)
    memory = memory_of(x=x, k=half(1, 1, 1, np.inf))
    job = {"type": "f16", "granularity": 3, "channels": 3, "x_pitch": (8, 16, 16), "k_pitch": 8}
    assert run(memory, **job)[0]
    assert memory[32:40].view("<f4").tolist() == [6, 15]


def test_padding_of_floats_is_zero():
    """Zero times infinity is NaN, as where a framework pads."""
    memory = memory_of(x=half(1, 2), k=half(1, np.inf))
    job = {"type": "f16", "granularity": 1, "channels": 1, "x_pitch": (2, 4, 4), "k_pitch": 4, "kernel": (2, 1)}
    run(memory, **job)
    assert memory[32:40].view("<u4").tolist() == [0x7F800000, 0x7FC00000]


@pytest.mark.parametrize(
    ("kind", "elements", "results"),
    [
        ("s8s8", np.array([-128, 5, -3, 127], "i1"), np.array([-3, 127], "i1")),
        ("u8u8", np.array([200, 5, 3, 127], "u1"), np.array([200, 127], "u1")),
        ("f16", half(-0.0, -1, 0.0, -np.inf), half(0.0, -1)),
        ("f16", half(np.nan, 1, 2, 3), np.array([0x7E00, 0x4200], "<u2")),
    ],
)
def test_maxima(kind, elements, results):
    """Two adjoining pixels with two channels; padding follows the last one."""
    memory = memory_of(x=elements)
    size = elements.itemsize
    job = {
        "operation": "max_pool",
        "output": "element",
        "type": kind,
        "out_channels": 2,
        "kernel": (2, 1),
        "granularity": 1,
        "x_pitch": (2 * size, 4 * size, 4 * size),
        "y_pitch": (2 * size, 4 * size, 4 * size),
    }
    assert run(memory, **job)[0]
    assert memory[32 : 32 + 2 * size].tobytes() == results.tobytes()
    last = elements[2:] if kind != "f16" else np.where(elements[2:] == 0x7C00, 0, elements[2:])
    assert memory[32 + 2 * size : 32 + 4 * size].tobytes() == last.tobytes()


@pytest.mark.parametrize(("kind", "bits"), [("s8s8", 0x80), ("u8u8", 0), ("s16s16", 0x8000), ("bf16", 0xFF80)])
def test_maximum_of_padding_alone(kind, bits):
    memory = memory_of()
    size = 1 if bits < 256 else 2
    job = {"operation": "max_pool", "output": "element", "type": kind, "channels": 1, "padding": (4, 0), "out_width": 1,
           "granularity": 1, "y_pitch": (2, 2, 2), "x_pitch": (2, 4, 4)}  # fmt: skip
    assert run(memory, **job)[0]
    assert int.from_bytes(memory[32 : 32 + size].tobytes(), "little") == bits


def test_global_average_pool():
    """Sums of 3 × 3 with a zero point, times 1 / 9."""
    x = np.arange(18, dtype=np.uint8)
    table = np.array([[0, np.float32(1 / 9).view(np.uint32)]] * 2, "<u4").ravel()
    memory = memory_of(x=x, table=table)
    job = {
        "operation": "sum_pool",
        "output": "u8",
        "maximum": 255,
        "width": 3,
        "height": 3,
        "out_channels": 2,
        "out_width": 1,
        "kernel": (3, 3),
        "x_zero": 2,
        "y_zero": 2,
        "x_pitch": (2, 6, 18),
        "y_pitch": (2, 2, 2),
    }
    assert run(memory, **job)[0]
    assert memory[32:34].tolist() == [8, 9]


def test_long_sums_of_16_bits_are_exact():
    """2^21 of the largest differences in a row of the kernel; all pixels have one address."""
    memory = np.full(5 << 20, 0xFF, np.uint8)
    job = {"type": "u16u16", "channels": 1 << 13, "width": 256, "out_width": 1, "kernel": (256, 1), "granularity": 5,
           "x": 0, "k": 0, "y": 9 << 19, "x_pitch": (0, 0, 0)}  # fmt: skip
    assert run(memory, **job) == (True, [])
    assert int(memory[9 << 19 :][:4].view("<u4")[0]) == 256 * 8192 * 65535**2 % 2**32


def test_refused_words():
    with pytest.raises(ValueError, match=r"^a job has no field 'size': its fields are version, operation, "):
        job_word(size=3)
    with pytest.raises(ValueError, match=r"^merge must be 1 to 256, not 0$"):
        job_word(merge=0)
    with pytest.raises(ValueError, match=r"^operation must be one of convolution, .*, not 'add'$"):
        job_word(operation="add")
    with pytest.raises(TypeError, match=r"^tag must be an integer, not 1\.5$"):
        job_word(tag=1.5)
    with pytest.raises(ValueError, match=r"^word must be an integer of 1024 bits, not -1$"):
        Conv(np.zeros(64, np.uint8)).execute(-1)
    with pytest.raises(TypeError, match=r"^smem must be a contiguous one-dimensional uint8 array"):
        Conv(bytes(64))
    with pytest.raises(TypeError, match=r"^params must be golden\.ConvParams, not 'full'$"):
        Conv(np.zeros(64, np.uint8), "full")


def test_registers_show_parameters():
    registers = {register.name: register for register in CONV_REGISTERS}
    shown = {name: registers[name].format.pack(**fields) for name, fields in built_with(CONV_PRESETS["full"]).items()}
    assert shown == {"params0": 0x40041040, "params1": 0x7F040940, "params2": 64 * 1024}
    assert len({register.offset for register in CONV_REGISTERS}) == len(CONV_REGISTERS)

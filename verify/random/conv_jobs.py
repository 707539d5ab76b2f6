"""Random jobs of the convolution engine: legal ones with all that they need in memory, and garbage."""

import random
from typing import NamedTuple

import numpy as np

from tilewright.golden.conv.job import barriers_of, check_job, parts_of
from tilewright.golden.conv.machine import job_word
from tilewright.golden.conv.plan import granularities
from tilewright.spec import BARRIER
from tilewright.spec.conv import JOB, ConvOperation, ConvOutput
from tilewright.spec.pe import MmType

__all__ = ["RandomJob", "garbage_jobs", "random_jobs", "stays_clear"]

_HALF = {MmType.F16: (10, 15), MmType.BF16: (7, 127)}
#: Scales and factors that requantisation must take: zeros, subnormals, huge ones, and for scales infinities and NaN.
_ODD_FINITE = (0, 0x80000000, 1, 0x807FFFFF, 0x7F7FFFFF, 0xFF000000)
_ODD_SCALES = (*_ODD_FINITE, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFF800001)


class RandomJob(NamedTuple):
    """A packed job, and the shared memory in which it runs."""

    word: int
    smem: np.ndarray

    @property
    def fields(self):
        """Fields of the word."""
        return JOB.unpack(self.word)


def random_jobs(seed, params, count, *, most_macs=3000, smem_bytes=16384):
    """Yields legal jobs on an engine of ``params``; a function of its arguments alone.

    A job has at most ``most_macs`` multiplications. About one of a hundred arrives at a barrier that refuses it.
    """
    rng = random.Random(seed)
    made = 0
    while made < count:
        fields = _fields(rng, params, most_macs)
        if fields and _place(rng, fields, smem_bytes):
            word = job_word(**fields)
            assert not check_job(word, params, smem_bytes), check_job(word, params, smem_bytes)
            made += 1
            yield RandomJob(word, _contents(rng, fields, smem_bytes))


def garbage_jobs(seed, params, count, *, smem_bytes=4096):
    """Yields packed jobs that are mostly wrong: legal ones with a few fields or bits changed, and any bits at all.

    Legal words among them are small enough to be carried out.
    """
    rng = random.Random(seed)
    good = list(random_jobs(seed, params, 64, most_macs=500, smem_bytes=smem_bytes))
    for _ in range(count):
        kind = rng.random()
        if kind < 0.03:
            yield rng.getrandbits(JOB.bits)
            continue
        word = rng.choice(good).word
        for _ in range(rng.choice([1, 1, 2, 3, 4])):
            field = rng.choice(JOB.fields)
            lsb, width = rng.choice(field.lsbs), field.width
            bit = rng.randrange(JOB.bits)
            if rng.random() < 0.2:
                word ^= 1 << bit
                continue
            most = (1 << width) - 1
            stored = rng.choice([0, 1, most, most >> 1, rng.randint(0, most), rng.randint(0, min(most, 64))])
            word = word & ~(most << lsb) | stored << lsb
        yield word if stays_clear(word) else word & ~(1 << JOB["early"].lsb)


def stays_clear(word):
    """Whether a job that arrives early has nothing else at that barrier, if it is legal."""
    fields = JOB.unpack(word)
    if fields["operation"] or fields["type"] > max(MmType) or fields["output"] > max(ConvOutput):
        return True
    parts = parts_of(fields)
    if len(barriers_of(fields)) < 2:
        return True
    last = parts.pop("barrier").end
    return not any(part.address < last and last - BARRIER.bytes < part.end for part in parts.values())


def _fields(rng, params, most_macs):
    """Fields without addresses; None if the job would be too large."""
    kind = rng.choice([kind for kind in MmType if kind.family in params.types])
    operation = rng.choice([ConvOperation.CONVOLUTION] * 5 + list(ConvOperation)[1:])
    fields = {"operation": operation, "type": kind, "output": _output(rng, operation, kind)}
    fields |= {name: rng.randint(0, 1) for name in ("bias", "add", "raster")}
    arrivals = rng.random()
    fields |= {"signal": int(arrivals < 0.2), "early": int(arrivals < 0.1)}
    fields["tag"] = rng.getrandbits(16)
    kernel = [_size(rng, 11, 0.25), _size(rng, 11, 0.1)]
    stride, dilation = ([rng.choice(choices) for _ in range(2)] for choices in ([1, 1, 2, 3, 4], [1, 1, 1, 2, 3]))
    channels, out_channels = _size(rng, 300, 0.15), _size(rng, 100, 0.2)
    blocks = [size for size in granularities(params.row_bytes) if size >= kind.bytes]
    if operation.lanes:
        out_channels = channels
    crosses = operation.lanes and rng.random() < 0.2
    batch, width, height = rng.choice([1, 1, 2, 3]), _size(rng, 24, 0.4), _size(rng, 12, 0.4)
    if max(channels, out_channels) > 15:  # then few points, so that these are not all too large
        batch, width, height = rng.choice([1, 2]), rng.randint(1, 6), rng.randint(1, 3)
        kernel = [rng.choice([1, 1, 2, 3]), rng.choice([1, 1, 2])]
    if crosses:  # groups of points go on across the ends of lines, if there are enough of them
        fields["raster"], blocks = 1, sorted(blocks)[-2:]
        kernel[1], stride, dilation = rng.choice([2, 3]), [rng.choice([1, 1, 2]), rng.choice([1, 1, 2])], [1, 1]
        width, height = stride[0] * (params.slaves * rng.choice([1, 1, 2]) + rng.randint(0, 6)), rng.randint(2, 5)
    padding = [rng.choice([0, 0, 1, 2, 5]) for _ in range(2)]
    made = [
        max(1, (size + 2 * before + rng.choice([0, 0, -1, 1]) - (taps - 1) * apart - 1) // step + 1)
        for size, before, taps, apart, step in zip((width, height), padding, kernel, dilation, stride, strict=True)
    ]
    if rng.random() < 0.05:
        made[rng.randint(0, 1)] += 3  # as many points in padding alone
    macs = batch * made[0] * made[1] * out_channels * kernel[0] * kernel[1] * (1 if operation.lanes else channels)
    if macs > most_macs:
        return None
    fields |= {"kernel": kernel, "stride": stride, "dilation": dilation, "padding": padding, "batch": batch,
               "width": width, "height": height, "channels": channels, "out_channels": out_channels,
               "out_width": made[0], "out_height": made[1]}  # fmt: skip
    fields["granularity"] = rng.choice(blocks).bit_length() - 1
    has_function = fields["output"].quantised or (operation == ConvOperation.MAX_POOL and kind.bytes == 1)
    fields["function"] = int(params.function_table and has_function and rng.random() < 0.3)
    fields["zero_first"] = int(params.zero_first and rng.random() < 0.4)
    _set_pitches(rng, fields, kind)
    adjoin = fields["x_pitch"][0] == channels * kind.bytes
    if adjoin and dilation[0] == 1 and not operation.lanes:
        fields["merge"] = rng.choice([1, stride[0], kernel[0], kernel[0], rng.randint(1, 12)])
    else:
        fields["merge"] = 1
    _set_numbers(rng, fields, kind)
    return fields


def _size(rng, most, often):
    """Mostly small numbers; with probability ``often`` any up to ``most``."""
    return rng.randint(1, most) if rng.random() < often else rng.choice([1, 2, 3, 3, 4, 5])


def _output(rng, operation, kind):
    if operation == ConvOperation.MAX_POOL:
        return ConvOutput.ELEMENT
    if kind.is_float:
        return rng.choice([ConvOutput.RAW, ConvOutput.F16, ConvOutput.BF16])
    return rng.choice([ConvOutput.RAW, ConvOutput.U8, ConvOutput.S8])


def _set_pitches(rng, fields, kind):
    """Pitches of all tensors: dense, with gaps, and of X also with overlaps."""
    result = {ConvOutput.RAW: 4, ConvOutput.F16: 2, ConvOutput.BF16: 2, ConvOutput.ELEMENT: kind.bytes}
    unit = result.get(fields["output"], 1)
    x = fields["channels"], fields["width"], fields["height"]
    y = fields["out_channels"], fields["out_width"], fields["out_height"]
    for name, sizes, element in (("x", x, kind.bytes), ("y", y, unit), ("addend", y, unit)):
        pitches, pitch = [], element
        gaps = rng.random() < 0.3
        for count in sizes:
            pitch = pitch * count + (element * rng.choice([0, 0, 1, 5]) if gaps else 0)
            pitches.append(pitch)
        if name == "x" and rng.random() < 0.1:
            pitches[rng.randint(0, 2)] = element * rng.randint(0, 4)
        fields[f"{name}_pitch"] = pitches
    inner = fields["channels"] * kind.bytes
    taps = fields["kernel"][0] * fields["kernel"][1]
    fields["k_pitch"] = inner * (taps if fields["operation"] == ConvOperation.CONVOLUTION else 1)
    fields["k_pitch"] += kind.bytes * rng.choice([0, 0, 0, 3])


def _set_numbers(rng, fields, kind):
    """Zero points, clamps and factors."""
    for name in ("x_zero", "k_zero"):
        fields[name] = 0 if rng.random() < 0.3 else rng.getrandbits(8 * kind.bytes)
    sign = 0x80 if fields["output"] == ConvOutput.S8 else 0
    for prefix in ("", "add_"):
        low, high = sorted((rng.randrange(256), rng.randrange(256))) if rng.random() < 0.3 else (0, 255)
        fields |= {f"{prefix}minimum": low ^ sign, f"{prefix}maximum": high ^ sign}
    fields["y_zero"] = rng.getrandbits(8)
    numbers = [_odd(rng, rng.uniform(-1.5, 1.5), _ODD_FINITE) for _ in range(2)]
    fields |= {"ratio": numbers, "offset": _odd(rng, rng.choice([0.5, rng.uniform(-100, 100)]), _ODD_FINITE)}


def _odd(rng, number, others):
    """The bits of a binary32 number, rarely one of ``others``."""
    return rng.choice(others) if rng.random() < 0.05 else int(np.float32(number).view(np.uint32))


def _place(rng, fields, smem_bytes):
    """Sets all addresses, without an overlap that matters; whether there is room."""
    names = ("barrier", "x", "k", "table", "y", "addend", "function_table")
    fields |= dict.fromkeys(names, 0)
    parts, end = parts_of(JOB.unpack(job_word(**fields))), 0
    order = rng.sample(list(parts), len(parts))
    in_place = "addend" in parts and rng.random() < 0.3
    for name in order:
        unit = parts[name].unit
        fields[name] = (-(-end // unit) + rng.choice([0, 0, 1, 3])) * unit
        if name != "addend" or not in_place:
            end = fields[name] + parts[name].span
    if in_place:
        fields |= {"addend": fields["y"], "addend_pitch": fields["y_pitch"]}
    return end <= smem_bytes


def _contents(rng, fields, smem_bytes):
    """Shared memory: any bytes, but where sums would then be NaN, or scales mean nothing."""
    generator = np.random.default_rng(rng.getrandbits(64))
    smem = generator.integers(0, 256, smem_bytes, np.uint8)
    kind, parts = MmType(fields["type"]), parts_of(JOB.unpack(job_word(**fields)))
    if kind.is_float:
        for name in {"x", "k"} & parts.keys():
            part = parts[name]
            area = smem[part.address : part.end].view("<u2")
            area[...] = _half_bits(rng, generator, kind, len(area))
    if "table" in parts:
        table = parts["table"].view(smem, "<u4")
        large = 1 << rng.choice([0, 8, 14, 30])
        biases = generator.integers(-large, large, len(table) // 2)
        table[0::2] = (
            biases.astype(np.float32).view(np.uint32) if kind.is_float else (biases + (large == 1 << 30) * (3 << 29))
        )
        shrink = 2.0 ** -rng.choice([2, 7, 12, 16 + 8 * kind.bytes])
        table[1::2] = [_odd(rng, rng.uniform(0.3, 1.0) * shrink, _ODD_SCALES) for _ in table[1::2]]
    for address in barriers_of(fields):
        pending = rng.choice([0] + [1, 2, 7] * 7)
        state = BARRIER.pack(pending=pending, expected=7, transactions=rng.choice([0, 0, 5]), phase=rng.randint(0, 1))
        smem[address:][: BARRIER.bytes] = list(state.to_bytes(BARRIER.bytes, "little"))
    return smem


def _half_bits(rng, generator, kind, count):
    """Numbers of few binades, zeros, and sometimes infinities, NaN and subnormals."""
    mantissa, bias = _HALF[kind]
    exponents = generator.integers(bias - 6, bias + 4, count)
    bits = generator.integers(0, 2, count) << 15 | exponents << mantissa | generator.integers(0, 1 << mantissa, count)
    bits = np.where(generator.random(count) < 0.1, bits & 0x8000, bits)
    if rng.random() < 0.3:
        bits = np.where(generator.random(count) < 0.03, generator.integers(0, 1 << 16, count), bits)
    return bits

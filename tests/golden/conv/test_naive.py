"""The golden convolution engine against a second model: loops over elements, from docs/conv.md alone."""

import math
from fractions import Fraction

import numpy as np
import pytest

from tilewright.golden import CONV_PRESETS, Conv, dot
from tilewright.results import record
from tilewright.spec.conv import JOB, ConvOperation, ConvOutput
from tilewright.spec.pe import MM_FAMILIES, MmType
from tilewright.verify.coverage.conv import conv_coverage, sample_job
from tilewright.verify.random.conv_jobs import random_jobs

SEED = 21
#: Engines that take all types, and jobs for each.
PARAMS = {name: CONV_PRESETS[name].replace(types=MM_FAMILIES) for name in ("unit", "ecp5", "default", "full")}
JOBS = {"unit": 800, "ecp5": 500, "default": 450, "full": 450}
RESULT_BYTES = {ConvOutput.RAW: 4, ConvOutput.U8: 1, ConvOutput.S8: 1, ConvOutput.F16: 2, ConvOutput.BF16: 2}


def number(bits, size, is_signed):
    return bits - (1 << 8 * size) if is_signed and bits >> 8 * size - 1 else bits


class Naive:
    """One legal job, computed element by element."""

    def __init__(self, word, smem):
        self.f, self.smem = JOB.unpack(word), smem
        self.before = bytes(smem)
        self.kind, self.output = MmType(self.f["type"]), ConvOutput(self.f["output"])
        self.operation, self.e = ConvOperation(self.f["operation"]), self.kind.bytes
        self.eo = RESULT_BYTES.get(self.output, self.e)
        self.x_signed = self.kind in (MmType.S8S8, MmType.S8U8, MmType.S16S16, MmType.S16U16)
        self.k_signed = self.kind in (MmType.S8S8, MmType.U8S8, MmType.S16S16, MmType.U16S16)

    def read(self, address, size):
        return int.from_bytes(self.before[address : address + size], "little")

    def x(self, n, row, column, channel):
        """Raw bits, None in padding."""
        if not (0 <= row < self.f["height"] and 0 <= column < self.f["width"]):
            return None
        pixel, line, image = self.f["x_pitch"]
        return self.read(self.f["x"] + n * image + row * line + column * pixel + channel * self.e, self.e)

    def k(self, co, kh, kw, channel):
        tap = kh * self.f["kernel"][0] + kw
        if self.operation == ConvOperation.DEPTHWISE:
            return self.read(self.f["k"] + tap * self.f["k_pitch"] + channel * self.e, self.e)
        element = tap * self.f["channels"] + channel
        return self.read(self.f["k"] + co * self.f["k_pitch"] + element * self.e, self.e)

    def run(self):
        f = self.f
        pixel, line, image = f["y_pitch"]
        places = [(n, ho, wo, co) for n in range(f["batch"]) for ho in range(f["out_height"])
                  for wo in range(f["out_width"]) for co in range(f["out_channels"])]  # fmt: skip
        for (n, ho, wo, co), acc in zip(places, self.sums(places), strict=True):
            bits = acc if self.operation == ConvOperation.MAX_POOL else self.result(acc, n, ho, wo, co)
            bits = self.read(f["function_table"] + bits, 1) if f["function"] else bits
            place = f["y"] + n * image + ho * line + wo * pixel + co * self.eo
            self.smem[place : place + self.eo] = list(bits.to_bytes(self.eo, "little"))
        early = f["early"] and self.operation == ConvOperation.CONVOLUTION
        arrivals = [self.arrive(f["barrier"] + offset) for offset in (0, 8)[: 1 + early]] if f["signal"] else []
        return all(arrivals)

    def sums(self, places):
        """The results of windows before post-processing."""
        if self.operation == ConvOperation.MAX_POOL:
            return [self.largest([self.x(n, row, column, co) for _, _, row, column in self.window(ho, wo)])
                    for n, ho, wo, co in places]  # fmt: skip
        biases = [self.read(self.f["table"] + 8 * co, 4) if self.f["bias"] else 0 for *_, co in places]
        if not self.kind.is_float:
            return [bias + sum(self.product(n, co, *place) for place in self.window(ho, wo))
                    for bias, (n, ho, wo, co) in zip(biases, places, strict=True)]  # fmt: skip
        acc = np.array(biases)
        chains = [self.steps(n, co, self.window(ho, wo)) for n, ho, wo, co in places]
        for step in zip(*chains, strict=True):  # the chains of all results side by side
            acc = dot(acc, [a for a, _ in step], [b for _, b in step], self.kind)
        return acc.tolist()

    def window(self, ho, wo):
        """Kernel position and position in X."""
        return [
            (kh, kw, ho * self.f["stride"][1] - self.f["padding"][1] + kh * self.f["dilation"][1],
             wo * self.f["stride"][0] - self.f["padding"][0] + kw * self.f["dilation"][0])
            for kh in range(self.f["kernel"][1]) for kw in range(self.f["kernel"][0])
        ]  # fmt: skip

    def result(self, acc, n, ho, wo, co):
        if self.output == ConvOutput.RAW:
            return acc & 0xFFFFFFFF
        if self.output.quantised:
            return self.requantised(number(acc & 0xFFFFFFFF, 4, True), n, ho, wo, co)
        return self.half(acc)

    def product(self, n, co, kh, kw, row, column):
        """Σ (x − zx)(w − zw) over the channels of one kernel position."""
        zx, zk = number(self.f["x_zero"], self.e, self.x_signed), number(self.f["k_zero"], self.e, self.k_signed)
        total = 0
        channels = [co] if self.operation.lanes else range(self.f["channels"])
        for channel in channels:
            x = self.x(n, row, column, channel)
            if x is not None:
                w = 1
                if self.operation != ConvOperation.SUM_POOL:
                    w = number(self.k(co, kh, kw, channel), self.e, self.k_signed) - zk
                total += (number(x, self.e, self.x_signed) - zx) * w
        return total

    def steps(self, n, co, window):
        """Yields the elements of X and of K in each step of "Order of sums"."""
        columns, one = self.f["kernel"][0], {MmType.F16: 0x3C00, MmType.BF16: 0x3F80}[self.kind]
        if self.operation.lanes:
            for kh, kw, row, column in window:
                w = one if self.operation == ConvOperation.SUM_POOL else self.k(co, kh, kw, co)
                yield [self.x(n, row, column, co) or 0], [w]
            return
        merge, many = self.f["merge"], (1 << self.f["granularity"]) // self.e
        channels = self.f["channels"]
        for kh in range(self.f["kernel"][1]):
            for block in range(math.ceil(merge * channels / many)):
                for step in range(math.ceil(columns / merge)):
                    a, b = [0] * many, [0] * many
                    for i in range(many):
                        ahead, channel = divmod(block * many + i, channels)
                        kw = step * merge + ahead
                        if ahead < merge and kw < columns:
                            _, _, row, column = window[kh * columns + kw]
                            a[i], b[i] = self.x(n, row, column, channel) or 0, self.k(co, kh, kw, channel)
                    yield a, b

    def largest(self, elements):
        elements = [bits for bits in elements if bits is not None]
        if self.kind.is_float:
            mantissa, infinite = (10, 0x7C00) if self.kind == MmType.F16 else (7, 0x7F80)
            if any(bits & 0x7FFF > infinite for bits in elements):
                return infinite | 1 << mantissa - 1
            # The order of numbers of one sign is that of their bits, of negative ones the other way round.
            return max([infinite | 0x8000, *elements], key=lambda b: -(b & 0x7FFF) - 1 if b >> 15 else b)
        numbers = [number(bits, self.e, self.x_signed) for bits in elements]
        least = -(1 << 8 * self.e - 1) if self.x_signed else 0
        return max([least, *numbers]) & (1 << 8 * self.e) - 1

    def half(self, acc):
        value = np.uint32(acc).view(np.float32)
        if np.isnan(value):
            return 0x7E00 if self.output == ConvOutput.F16 else 0x7FC0
        if self.output == ConvOutput.F16:
            with np.errstate(over="ignore"):
                return int(np.float16(value).view(np.uint16))
        upper, rest = acc >> 16, acc & 0xFFFF
        return upper + (rest > 0x8000 or (rest == 0x8000 and upper & 1))

    def requantised(self, acc, n, ho, wo, co):
        """binary32, operation by operation."""
        f, is_signed = self.f, self.output == ConvOutput.S8
        scale = self.read(f["table"] + 8 * co + 4, 4)
        low, high, zero = (number(f[name], 1, is_signed) for name in ("minimum", "maximum", "y_zero"))
        if scale >> 23 & 0xFF == 0xFF:  # a number from 2^128 on
            value = math.copysign(2.0**128, -1 if scale >> 31 else 1) * acc
        else:
            with np.errstate(over="ignore"):
                value = float(np.float32(acc) * np.uint32(scale).view(np.float32))
        if f["zero_first"]:
            value, zero = float(np.float32(max(-(2.0**31), min(2.0**31, value))) + np.float32(zero)), 0
        y = max(low, min(high, round(max(-(2.0**31), min(2.0**31, value))) + zero))
        if f["add"]:
            pixel, line, image = f["addend_pitch"]
            b = number(self.read(f["addend"] + n * image + ho * line + wo * pixel + co, 1), 1, is_signed)
            ratio, offset = (np.array(f[name], np.uint32).view(np.float32) for name in ("ratio", "offset"))
            value = fma(y, ratio[0], fma(b, ratio[1], offset))
            low, high = (number(f[name], 1, is_signed) for name in ("add_minimum", "add_maximum"))
            y = low if value < low else high if value > high else round(float(value))
            y = max(low, min(high, y))
        return y & 0xFF

    def arrive(self, address):
        """Whether the barrier took the arrival."""
        word = int.from_bytes(bytes(self.smem[address : address + 8]), "little")
        pending, expected = word & 0xFFFFF, word >> 20 & 0xFFFFF
        if not pending:
            return False
        pending -= 1
        if not pending and not word >> 40 & 0x1FFFFF:
            pending, word = expected, word ^ 1 << 61
        word = word >> 20 << 20 | pending
        self.smem[address : address + 8] = list(word.to_bytes(8, "little"))
        return True


def fma(a, ratio, addend):
    """a · ratio + addend, exact and then rounded to binary32 once."""
    if np.isinf(addend):
        return addend
    exact = Fraction(int(a)) * Fraction(float(ratio)) + Fraction(float(addend))
    if exact == 0:
        return np.float32(0)
    exponent = max(math.frexp(float(abs(exact)) or 2.0**-140)[1] - 24, -149)
    # The estimate of the exponent may be one too large, where the fraction was rounded up to a power of two.
    if abs(exact) < Fraction(2) ** (exponent + 23) and exponent > -149:
        exponent -= 1
    places = round(exact / Fraction(2) ** exponent)
    with np.errstate(over="ignore"):
        return np.float32(math.ldexp(places, exponent))


@pytest.fixture(scope="module")
def coverage():
    return conv_coverage()


@pytest.mark.parametrize("preset", PARAMS)
def test_random_jobs(preset, coverage):
    """Every byte of shared memory, whether a result or not, and the answer of the barrier."""
    params = PARAMS[preset]
    for index, job in enumerate(random_jobs(f"{SEED} {preset}", params, JOBS[preset], most_macs=1200)):
        expected = job.smem.copy()
        took = Naive(job.word, expected).run()
        smem = job.smem.copy()
        engine = Conv(smem, params)
        assert engine.execute(job.word) == took, f"seed {SEED} {preset}, job {index}: {engine.errors}"
        differing = (smem != expected).nonzero()[0]
        assert not len(differing), f"seed {SEED} {preset}, job {index}: differs at {differing[0]}: {job.fields}"
        sample_job(coverage, job.word, params)


def test_random_jobs_have_shown_every_choice(coverage):
    """After the test before, which counts."""
    assert sum(coverage.hits["operation", "arrivals"].values()) == sum(JOBS.values()) >= 2000
    assert not coverage.empty, coverage.table()
    record("second-opinion-conv", cases=sum(JOBS.values()), mismatches=0)

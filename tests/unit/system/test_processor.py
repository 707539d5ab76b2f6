"""The processor's own memory and its serial port; the processor itself comes as Verilog."""

import random

import pytest
from amaranth.hdl import Const

from support.streams import recording, transact
from tilewright.system.processor import FirmwareMemory, SerialPort
from tilewright.verify.pysim.simulate import elaborated
from tilewright.verify.pysim.streams import STALL_MODES

SEED = 59
BYTES = 256


def access(address, data=0, strobe=0):
    return {"address": address, "write": int(strobe != 0), "data": data, "strobe": strobe}


@pytest.mark.parametrize("mode", STALL_MODES)
def test_memory_keeps_what_was_written(mode):
    rng, contents = random.Random(SEED), bytearray(BYTES)
    accesses, expected = [], []
    for _ in range(200):
        address, data, strobe = (
            4 * rng.randrange(BYTES // 4),
            rng.getrandbits(32),
            rng.choice([0, 0, 15, rng.getrandbits(4)]),
        )
        expected.append(None if strobe else int.from_bytes(contents[address : address + 4], "little"))
        for lane in range(4):
            if strobe >> lane & 1:
                contents[address + lane] = data >> 8 * lane & 0xFF
        accesses.append(access(address, data, strobe))
    dut = elaborated(FirmwareMemory, BYTES)
    payloads, _ = transact(dut, {"accesses.requests": accesses}, {"accesses.answers": len(accesses)}, mode, seed=SEED)
    answers = payloads["accesses.answers"]
    assert all(
        value in (None, answer.data) and not answer.error for value, answer in zip(expected, answers, strict=True)
    )


def test_memory_answers_in_the_next_cycle():
    accesses = [access(4 * number) for number in range(20)]
    dut = elaborated(FirmwareMemory, BYTES)
    _, cycles = transact(dut, {"accesses.requests": accesses}, {"accesses.answers": len(accesses)})
    assert cycles["accesses.answers"] == [cycle + 1 for cycle in cycles["accesses.requests"]] == list(range(1, 41, 2))


@pytest.mark.parametrize("mode", STALL_MODES)
def test_serial_port_sends_what_is_written(mode):
    """The line is that of a transmitter that gets the same bytes; reads send nothing."""
    rng, levels, cycles_per_bit = random.Random(SEED), [], 4
    values = [rng.randrange(256) for _ in range(8)]
    accesses = [each for value in values for each in (access(0, value, 15), access(0))]
    dut = elaborated(SerialPort, cycles_per_bit)
    background = [recording(levels, Const(1), dut.line)]
    transact(dut, {"accesses.requests": accesses}, {"accesses.answers": len(accesses)}, mode, seed=SEED,
             background=background, settle=50)  # fmt: skip
    line = [level for _, level in levels]
    found, place = [], 0
    while 0 in line[place:]:
        place = line.index(0, place)
        bits = line[place + cycles_per_bit // 2 :: cycles_per_bit][:10]
        found.append(sum(bit << number for number, bit in enumerate(bits[1:9])))
        assert bits[9] == 1
        place += 10 * cycles_per_bit - 1
    assert found == values

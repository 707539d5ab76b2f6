"""The picture of a kernel's pipeline: ``python -m tilewright.tools.docs.pipeline docs/pipeline.svg``.

A kernel that multiplies matrices, loads and computes runs in Amaranth's simulator, whose waveform says in which cycles
each part of the engine works.
"""

import re
import sys
import tempfile
from pathlib import Path

from amaranth.sim import Simulator

from tilewright.files import write_atomically
from tilewright.hw.core.params import CoreParams
from tilewright.hw.core.top import Core
from tilewright.hw.pe.params import PE_PRESETS
from tilewright.sim.asm.pe import assemble_program
from tilewright.sim.report.activity import Activity
from tilewright.spec.pe import SEGMENT, SegmentElement
from tilewright.verify.pysim.streams import send

__all__ = ["KERNEL", "PARAMS", "WORKS", "observed", "picture"]

PARAMS = PE_PRESETS["unit"].replace(threads=8, regs=128, types=("i8",), units=("alu",), mm_in_flight=4)
_COMPUTE = [f"  mad r{4 + n}, r{36 + n}, r{37 + n}, r{4 + n}" for n in range(24)]
#: Rounds of two multiplies of matrices, a load and a store that nothing waits for, and arithmetic.
KERNEL = "\n".join([
    "loop ur2",
    *_COMPUTE[:4], "  mm8.t1 r64, ur0:rf0:0, r32",
    *_COMPUTE[4:12], "  ld r100, ur1:rf2:0, 4",
    *_COMPUTE[12:18], "  mm8.t1 r80, ur0:rf0:0, r34",
    *_COMPUTE[18:], "  st r104, ur1:rf2:8, 4",
    "end",
    # Each result is needed at once.
    *[f"mad r4, r{36 + n}, r37, r4" for n in range(6)],
    "return",
])  # fmt: skip
#: What works, by the label of its row: signals that are high together then.
WORKS = {
    "kernel: instructions": ("kernels.o__valid", "kernels.o__ready"),
    "arithmetic starts": ("control.events.arithmetic",),
    "waits for a result": ("control.events.stall_operand",),
    "waits for a port": ("control.events.stall_port",),
    "loads, stores, mm issued": ("issue.jobs__valid", "issue.jobs__ready"),
    "shared memory is read": ("memory.reads__valid", "memory.reads__ready"),
    "loaded words written": ("memory.loads__valid", "memory.loads__ready"),
    "steps of mm": ("compute.step",),
}
_PERIOD = 1_000_000_000  # of the clock, in the waveform's unit


def _program(rounds):
    kernel = assemble_program(KERNEL)
    settings = "\n".join(f"mov r{register}, {register}" for register in range(4, PARAMS.regs))
    return [
        *assemble_program(f"load.code 0, {len(kernel)}"),
        *kernel,
        *assemble_program(f"movu ur0, 0\nmovu ur1, 1\nmovu ur2, {rounds}\nmov r0, tid\nmov r1, 0\nmov r2, 0\n"
                          f"mov r3, tid\n{settings}\nfence\ncall 0\nhalt"),
    ]  # fmt: skip


def _waveform(path, rounds):
    """Leaves the waveform of the kernel in ``path``."""
    core = Core(CoreParams(pe=PARAMS))
    bytes_ = {"element": SegmentElement.S8, "rank": 2, "size": [16, 64], "page_log2": [4, 6], "base": 0}
    words = bytes_ | {"element": SegmentElement.S32, "size": [64, 8], "page_log2": [6, 3], "base": 4096}

    async def testbench(ctx):
        items = [{"index": number, "word": SEGMENT.pack(**fields)} for number, fields in enumerate((bytes_, words))]
        await send(ctx, core.segments, items)
        await send(ctx, core.instructions, _program(rounds))
        await ctx.tick().until(core.halted)

    simulator = Simulator(core)
    simulator.add_clock(1e-6)
    simulator.add_testbench(testbench)
    with simulator.write_vcd(str(path)):
        simulator.run()


def _cycles(path, names):
    """The cycles in which each of the signals is high, by name: a set; and the number of cycles."""
    codes, high, cycles, cycle = {}, {}, {name: set() for name in names}, 0
    scopes = []
    with Path(path).open() as lines:
        for line in lines:
            if line.startswith("$scope"):
                scopes.append(line.split()[2])
            elif line.startswith("$upscope"):
                scopes.pop()
            elif line.startswith("$var"):
                _, _, _, code, name, *_ = line.split()
                full = ".".join([*scopes, name]).replace("\\", "")
                for wanted in names:
                    if full.endswith(f".{wanted}"):
                        codes[code] = wanted
            elif line.startswith("#"):
                # The values before this moment held in the cycles until then.
                until = int(line[1:]) // _PERIOD
                for name, value in high.items():
                    if value:
                        cycles[name].update(range(cycle, until))
                cycle = max(cycle, until)
            elif (match := re.match(r"b?([01]) ?(\S+)$", line)) and match[2] in codes:
                high[codes[match[2]]] = match[1] == "1"
    missing = names - set(codes.values())
    if missing:
        raise LookupError(f"the waveform has no {', '.join(sorted(missing))}")
    return cycles, cycle


def observed(rounds=3):
    """The :class:`Activity` of the kernel: the cycles in which each part of ``WORKS`` worked."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "kernel.vcd"
        _waveform(path, rounds)
        cycles, last = _cycles(path, {name for names in WORKS.values() for name in names} | {"kernels.idle"})
    running = sorted(set(range(last)) - cycles["kernels.idle"])
    rows = {}
    for label, names in WORKS.items():
        both = set.intersection(*(cycles[name] for name in names))
        rows[label] = [(cycle, cycle + 1) for cycle in sorted(both)]
    # Results and loads come after the last instruction.
    return Activity("A kernel", running[0], running[-1] + 20, rows)


def picture(path):
    """Writes the picture."""
    write_atomically(Path(path), observed().svg())


if __name__ == "__main__":
    picture(*sys.argv[1:])

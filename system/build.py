"""Firmware of the reference system: compiled by clang for RV32IM, linked, and read as segments of memory."""

import os
import struct
import subprocess
import sys
from typing import NamedTuple

from tilewright.errors import HostError
from tilewright.files import BUILD

__all__ = ["CLANG", "TARGET", "Segment", "compile_firmware", "library_sizes", "segments_of"]

#: clang, which comes with a package that also has a linker.
CLANG = (sys.executable, "-m", "ziglang", "cc")
#: For a processor without an operating system, with multiplication and division.
TARGET = ("-target", "riscv32-freestanding-none", "-mcpu=generic_rv32+m", "-mabi=ilp32")
_OPTIONS = ("-std=c99", "-Os", "-Wall", "-Wextra", "-Wconversion", "-Werror", "-ffunction-sections", "-fdata-sections",
            "-fno-sanitize=undefined", "-fno-unwind-tables", "-fno-asynchronous-unwind-tables")  # fmt: skip

#: Files of the library with sentences.
_SENTENCES = ("tilewright_text.c", "tilewright_sentences.c")

_LOAD, _ALLOCATED, _NOTHING = 1, 2, 8  # of ELF: a segment to load; a section in memory, and one without contents


_MODEL_ONLY = """\
#include "tilewright.h"

int main(void);

static tw_core core;
static tw_model model;

int main(void)
{
    uint8_t *const memory = (uint8_t *)0x1000;
    tw_status status = tw_open(&core);

    tw_interrupt(&core);
    status |= tw_model_load(&model, &core, memory, 4096, memory, 4096, 0);
    status |= tw_model_input(&model, 0, memory, 16);
    status |= tw_model_run(&model, NULL, NULL, NULL);
    return (int)(status | tw_model_output(&model, 0, memory, 16));
}
"""


class Segment(NamedTuple):
    """A part of the firmware, with the address at which it is loaded."""

    address: int
    data: bytes


def compile_firmware(folder, sources):
    """Compiles and links ``sources``, a dict of text by name, in ``folder``; the path of the program."""
    for name, text in sources.items():
        (folder / name).write_text(text, encoding="utf-8")
    names = [name for name in sources if name.endswith((".c", ".S"))]
    _clang(folder, *_OPTIONS, "-Wl,-T,link.ld", "-Wl,--gc-sections", "-o", "firmware.elf", *names)
    return folder / "firmware.elf"


def library_sizes(folder, sources):
    """Bytes of code and constants of the C library at -Os, a dict of three numbers.

    ``library`` is all but the sentences, ``sentences`` these with their function, and ``model`` what a program that
    loads and runs a model has of the library, with the compiler's functions.
    """
    names = [name for name in sources if name.startswith("tilewright") and name.endswith(".c")]
    sizes = {}
    for name in names:
        _clang(folder, *_OPTIONS, "-c", "-o", "size.o", name)
        sizes[name] = _section_bytes(folder / "size.o")
    sentences = sum(sizes.pop(name) for name in _SENTENCES)
    (folder / "model_only.c").write_text(_MODEL_ONLY, encoding="utf-8")
    _clang(folder, *_OPTIONS, "-Wl,--gc-sections", "-Wl,-e,main", "-o", "model_only.elf", "model_only.c", *names)
    _clang(folder, *_OPTIONS, "-c", "-o", "size.o", "model_only.c")
    model = _section_bytes(folder / "model_only.elf") - _section_bytes(folder / "size.o")
    return {"library": sum(sizes.values()), "sentences": sentences, "model": model}


def _clang(folder, *arguments):
    caches = {f"ZIG_{kind}_CACHE_DIR": str(BUILD.resolve() / "zig") for kind in ("LOCAL", "GLOBAL")}
    done = subprocess.run([*CLANG, *TARGET, *arguments], cwd=folder, capture_output=True, text=True, check=False,
                          env=os.environ | caches)  # fmt: skip
    if done.returncode:
        raise HostError(f"the firmware does not compile: {(done.stderr or done.stdout).strip().splitlines()[0]}")


def segments_of(elf):
    """The segments of a program to load, of a 32-bit ELF file's bytes."""
    (first,), (size, count) = struct.unpack_from("<I", elf, 28), struct.unpack_from("<HH", elf, 42)
    found = []
    for number in range(count):
        kind, offset, _, address, stored, _, _, _ = struct.unpack_from("<8I", elf, first + number * size)
        if kind == _LOAD and stored:
            found.append(Segment(address, elf[offset : offset + stored]))
    return found


def _section_bytes(path):
    """Bytes of an object file's sections that a program has in memory with contents."""
    elf = path.read_bytes()
    (first,), (size, count) = struct.unpack_from("<I", elf, 32), struct.unpack_from("<HH", elf, 46)
    sections = (struct.unpack_from("<6I", elf, first + number * size) for number in range(count))
    return sum(length for _, kind, flags, _, _, length in sections if flags & _ALLOCATED and kind != _NOTHING)

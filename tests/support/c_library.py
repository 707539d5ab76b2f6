"""The C library, compiled and called from Python."""

import ctypes
import shutil
import subprocess

from tilewright.hw.conv.control import built_with as conv_built_with
from tilewright.hw.pe.control import built_with as pe_built_with
from tilewright.hw.tmau.control import built_with as tmau_built_with
from tilewright.sim.session.core import accelerator_params
from tilewright.spec.conv import CONV_REGISTERS
from tilewright.spec.core import PROGRAM_REGISTERS
from tilewright.spec.pe import PE_REGISTERS
from tilewright.spec.tmau_registers import TMAU_REGISTERS
from tilewright.tools.package.library import FORMS, library_files

__all__ = ["STRICT", "CoreStruct", "Hardware", "array_of", "compile_library", "number_of", "open_core", "registers",
           "split", "structure"]  # fmt: skip

#: What the sources are clean with.
STRICT = ("-std=c99", "-pedantic", "-Wall", "-Wextra", "-Wconversion", "-Werror")


class Hardware(ctypes.Structure):
    """``tw_hardware``."""

    _fields_ = [
        (name, ctypes.c_uint32)
        for name in (
            "features", "smem_bytes", "bus_bytes", "addr_width", "queue_depth", "conv_row_bytes", "conv_types",
            "conv_function", "conv_zero_first",
        )
    ] + [("built", ctypes.c_uint32 * 8)]  # fmt: skip


class CoreStruct(ctypes.Structure):
    """``tw_core``."""

    _fields_ = [(name, ctypes.c_void_p) for name in ("tmau", "pe", "conv", "program", "commands", "barriers")] + [
        ("watchdog", ctypes.c_uint32),
        ("events", ctypes.c_uint32),
        ("hardware", Hardware),
    ]


def open_core(library, preset):
    """A ``tw_core`` of a preset, which ``tw_open`` has opened, and the arrays of its registers by engine."""
    params, core = accelerator_params(preset), CoreStruct()
    arrays = {
        "tmau": registers(TMAU_REGISTERS, tmau_built_with(params.tmau)),
        "pe": registers(PE_REGISTERS, pe_built_with(params.pe)),
        "conv": registers(CONV_REGISTERS, conv_built_with(params.conv)),
        "program": registers(PROGRAM_REGISTERS, {}),
    }
    for name, array in arrays.items():
        setattr(core, name, ctypes.addressof(array))
    assert library.tw_open(ctypes.byref(core)) == 0
    return core, arrays


def registers(table, shown):
    """An array with the constants of a register table, and the parameters that the hardware shows."""
    array = (ctypes.c_uint32 * 128)()
    for register in table:
        array[register.offset // 4] = register.format.pack(**shown[register.name]) if register.name in shown else (
            register.reset)  # fmt: skip
    return array


def compile_library(folder, *options, compiler=("gcc",)):
    """Writes the library to ``folder``, compiles it to a shared object, and returns that as a ``CDLL``."""
    folder.mkdir(exist_ok=True)
    for name, text in library_files().items():
        (folder / name).write_text(text)
    sources = [name for name in library_files() if name.endswith(".c")]
    command = [shutil.which(compiler[0]), *compiler[1:], *STRICT, "-O1", "-fPIC", "-shared", *options]
    subprocess.run([*command, "-o", "library.so", *sources], cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "library.so"))
    for name in ("tw_pack", "tw_tensor_map", "tw_check_descriptor", "tw_check_command", "tw_check_job"):
        getattr(library, name).restype = ctypes.c_uint32
    library.tw_sentence.restype = ctypes.c_char_p
    return library


_TYPES = {"uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32, "uint64_t": ctypes.c_uint64}


def structure(form):
    """The class of a structure of the library."""
    members = [field for field in form.format.fields if field.name != form.constant]
    types = {field.name: _TYPES[form.c_type(field)] for field in members}
    fields = [(field.name, types[field.name] * field.count if field.count else types[field.name]) for field in members]
    return type(f"tw_{form.name}", (ctypes.Structure,), {"_fields_": fields})


def split(number, count):
    """A number as an array of 64-bit words."""
    return (ctypes.c_uint64 * count)(*(number >> 64 * i & 2**64 - 1 for i in range(count)))


def number_of(words):
    """The number that an array of 64-bit words is."""
    return sum(word << 64 * i for i, word in enumerate(words))


def array_of(form_name):
    """The form of a structure by its name, and its class."""
    form = next(form for form in FORMS if form.name == form_name)
    return form, structure(form)

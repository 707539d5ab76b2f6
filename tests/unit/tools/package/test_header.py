"""The C header of a top, compiled: by itself, and with those of other tops in one file."""

import re
import shutil
import subprocess
from types import SimpleNamespace

import pytest

from support.c_library import STRICT
from tilewright.board.host import BoardHost
from tilewright.golden import command_word, program_word
from tilewright.hw.core.params import ENGINES
from tilewright.sim.hdl.settings import Setting, groups_of
from tilewright.sim.hdl.tops import TOPS
from tilewright.spec import BARRIER, DESCRIPTOR, Element, Error, LaneLayout, Opcode, Space, Swizzle
from tilewright.spec.conv import JOB, ConvError, ConvOperation, ConvOutput
from tilewright.spec.pe import INSTRUCTIONS, PAGE_ENTRY, SEGMENT, MmType, Operation, SegmentElement
from tilewright.spec.tmau_registers import TMAU_ID_VALUE
from tilewright.tools.cli.main import main
from tilewright.tools.fpga.boards import BOARDS
from tilewright.tools.package.choice import Choice
from tilewright.tools.package.header import board_header, header_text
from tilewright.tools.package.library import library_files
from tilewright.tools.package.ports import maps_of, ports_of

PROGRAM = r"""
#include <stdio.h>
#include <string.h>
#include "tw_default_core.h"
#include "large_core.h"
#include "tw_unit_core.h"
#include "small_core.h"
#include "small_core.h"

#define PUT(words, field, value) tw_put(words, TW_##field##_LSB, TW_##field##_WIDTH, value)
#define PUT_AT(words, field, i, value) tw_put(words, TW_##field##_LSB + (i) * TW_##field##_PITCH, TW_##field##_WIDTH, \
    (uint64_t)(value) - TW_##field##_BIAS)
#define PUT_EACH(words, field, value) for (int i = 0; i < TW_##field##_COUNT; i++) PUT_AT(words, field, i, value)

/* Prints words and clears them. */
static void print(uint64_t *words, int count)
{
    for (int i = 0; i < count; i++)
        printf("%016llx\n", (unsigned long long)words[i]);
    memset(words, 0, count * sizeof(*words));
}

int main(void)
{
    uint64_t d[TW_DESCRIPTOR_WORDS] = {0};
    uint64_t b[TW_BARRIER_WORDS] = {0};
    uint64_t c[TW_COMMAND_WORDS] = {0};
    uint64_t j[TW_CONVOLUTION_WORDS] = {0};

    PUT(d, DESCRIPTOR_VERSION, TW_DESCRIPTOR_LAYOUT_VERSION);
    PUT(d, DESCRIPTOR_RANK, 5);
    PUT(d, DESCRIPTOR_ELEMENT, TW_ELEMENT_BF16);
    PUT(d, DESCRIPTOR_SWIZZLE, TW_SWIZZLE_B64);
    PUT(d, DESCRIPTOR_ADDRESS, UINT64_MAX - 15);
    PUT_EACH(d, DESCRIPTOR_SIZE, UINT64_C(1) << (32 - i));
    PUT_EACH(d, DESCRIPTOR_BOX, 256 - i);
    PUT_EACH(d, DESCRIPTOR_TRAVERSAL, 8 - i);
    PUT_EACH(d, DESCRIPTOR_STRIDE, (UINT64_C(1) << 40) - 16 * (i + 1));
    PUT_EACH(d, DESCRIPTOR_LOWER, -1 - i);
    print(d, TW_DESCRIPTOR_WORDS);

    PUT(b, BARRIER_EXPECTED, 77);
    PUT(b, BARRIER_PENDING, 0xfffff);
    PUT(b, BARRIER_EXPECTED, 3);
    printf("%016llx\n", (unsigned long long)b[0]);

    PUT(c, BLOCK_OPCODE, TW_OPCODE_COPY_BLOCK);
    PUT(c, BLOCK_SIZE, 4096);
    PUT(c, BLOCK_SOURCE_SPACE, TW_SPACE_SHARED);
    PUT(c, BLOCK_DESTINATION, UINT64_MAX - 15);
    print(c, TW_BLOCK_WORDS);
    PUT(c, LANES_OPCODE, TW_OPCODE_LANES);
    PUT(c, LANES_DESTINATION_LAYOUT, TW_LANE_LAYOUT_ROW_ALIGNED);
    PUT_EACH(c, LANES_SHAPE, 7 + i);
    print(c, TW_LANES_WORDS);
    PUT(c, GROUP_OPCODE, TW_OPCODE_WAIT);
    PUT(c, GROUP_COUNT, 2);
    PUT(c, GROUP_READ, 1);
    print(c, TW_GROUP_WORDS);
    PUT(c, REPLACE_OPCODE, TW_OPCODE_REPLACE);
    PUT(c, REPLACE_INDEX, 4);
    PUT(c, REPLACE_VALUE, UINT64_MAX);
    print(c, TW_REPLACE_WORDS);
    PUT(c, PE_MM_OPCODE, TW_PE_OPERATION_MM);
    PUT(c, PE_MM_KA, 4 - TW_PE_MM_KA_BIAS);
    PUT(c, PE_MM_TYPE, TW_PE_MM_TYPE_BF16);
    PUT(c, PE_MM_IMM, 0xffffffff);
    print(c, TW_PE_MM_WORDS);
    PUT(c, SEGMENT_ELEMENT, TW_SEGMENT_ELEMENT_F16);
    PUT_EACH(c, SEGMENT_SIZE, 65535 - i);
    print(c, TW_SEGMENT_WORDS);
    PUT(c, PAGE_ENTRY_ON_CHIP, 1);
    print(c, TW_PAGE_ENTRY_WORDS);
    PUT(c, PROGRAM_REGISTER_KIND, TW_PROGRAM_KIND_REGISTER);
    PUT(c, PROGRAM_REGISTER_ENGINE, TW_ENGINE_CONV);
    PUT(c, PROGRAM_REGISTER_OFFSET, TW_CONV_REG_CONTROL);
    PUT(c, PROGRAM_REGISTER_VALUE, TW_PROGRAM_ERROR_STOPPED + TW_PROGRAM_REG_WATCHDOG);
    print(c, TW_PROGRAM_REGISTER_WORDS);
    PUT(j, CONVOLUTION_VERSION, TW_CONVOLUTION_LAYOUT_VERSION);
    PUT(j, CONVOLUTION_OPERATION, TW_CONV_OPERATION_MAX_POOL);
    PUT(j, CONVOLUTION_TYPE, TW_PE_MM_TYPE_BF16);
    PUT(j, CONVOLUTION_OUTPUT, TW_CONV_OUTPUT_ELEMENT);
    PUT_EACH(j, CONVOLUTION_KERNEL, 256 - i);
    PUT_EACH(j, CONVOLUTION_ADDEND_PITCH, UINT32_MAX - i);
    print(j, TW_CONVOLUTION_WORDS);
    printf("%llu\n", (unsigned long long)tw_get(b, TW_BARRIER_EXPECTED_LSB, TW_BARRIER_EXPECTED_WIDTH));
    printf("%d\n", TW_ERROR_STRIDE + TW_CONV_ERROR_OVERLAP);
    printf("%x %x\n", TW_REG_ERROR_COUNT, TW_REG_ID_VALUE);
    printf("%d %d\n", TW_REG_STATUS_QUEUE_LEVEL_LSB, TW_REG_STATUS_QUEUE_LEVEL_WIDTH);
    printf("%x %x %d\n", TW_PE_REG_PUT, TW_PE_REG_ID_VALUE, TW_PE_PUT_PAGE_IN << TW_PE_REG_PUT_KIND_LSB);
    printf("%x %x %x\n", TW_UNIT_CORE_PE_BASE, LARGE_CORE_SMEM_BASE, SMALL_CORE_SMEM_BASE);
    PUT(c, DEFAULT_CORE_BARRIERS_PAYLOAD_OP, TW_BARRIER_OP_EXPECT_TX);
    PUT(c, DEFAULT_CORE_BARRIERS_PAYLOAD_ADDRESS, 0x48);
    PUT(c, DEFAULT_CORE_BARRIERS_PAYLOAD_VALUE, 1024);
    print(c, 1);
    return 0;
}
"""


#: What every header is clean with.
WARNINGS = ("-Wall", "-Wextra", "-Wconversion", "-pedantic", "-Werror")
#: The tops of the program, and of every kind one.
TOPS_TOGETHER = [
    Choice("core", "default", engines=ENGINES),
    Choice("core", "default", engines=("tmau",), prefix="large"),
    Choice("core", "unit"),
    Choice("core", "unit", engines=("tmau",), prefix="small"),
]
KINDS = [
    *(Choice(top, "unit") for top in TOPS),
    Choice("core", "full", engines=ENGINES),
    Choice("cluster", "unit", engines=ENGINES, l2=True, cores=3, prefix="large"),
    Choice("tmau", "unit", processors=3, prefix="shared"),
]


def compiled(folder, *options, text, file):
    (folder / file).write_text(text)
    compiler = shutil.which("g++" if file.endswith(".cc") else "gcc")
    subprocess.run([compiler, *WARNINGS, *options, file], cwd=folder, check=True)


def defined(text):
    return dict(re.findall(r"^#define (\w+) (0x[0-9a-f]+|\d+)", text, re.MULTILINE))


@pytest.fixture
def printed(tmp_path):
    for choice in TOPS_TOGETHER:
        (tmp_path / f"{choice.name}.h").write_text(header_text(choice))
    options = ["-Wno-conversion", "-Wno-sign-conversion", "-std=c++11", "-o", "program"]
    compiled(tmp_path, *options, text=PROGRAM, file="program.cc")
    return subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True).stdout.split()


def words_of(number, count):
    return [number >> 64 * i & 2**64 - 1 for i in range(count)]


def test_a_driver_in_c_packs_what_python_packs(printed):
    word = DESCRIPTOR.pack(
        version=1,
        rank=5,
        element=Element.BF16,
        swizzle=Swizzle.B64,
        address=2**64 - 16,
        size=[2 ** (32 - i) for i in range(5)],
        box=[256 - i for i in range(5)],
        traversal=[8 - i for i in range(5)],
        stride=[2**40 - 16 * (i + 1) for i in range(4)],
        lower=[-1, -2, -3],
    )
    multiply = INSTRUCTIONS[Operation.MM]
    words, (barrier, *commands) = printed[:16], printed[16:-13]
    expected, error, offset, identity, lsb, width, *engine = printed[-13:-4]
    assert [int(text, 16) for text in words] == words_of(word, 16)
    assert [int(text, 16) for text in commands] == [
        *words_of(command_word(Opcode.COPY_BLOCK, size=4096, source_space=Space.SHARED, destination=2**64 - 16), 8),
        *words_of(command_word(Opcode.LANES, destination_layout=LaneLayout.ROW_ALIGNED, shape=(7, 8, 9, 10)), 8),
        *words_of(command_word(Opcode.WAIT, count=2, read=1), 8),
        *words_of(command_word(Opcode.REPLACE, index=4, value=2**64 - 1), 8),
        *words_of(multiply.pack(opcode=Operation.MM, ka=4, kb=1, type=MmType.BF16, imm=2**32 - 1), 2),
        *words_of(SEGMENT.pack(element=SegmentElement.F16, rank=1, size=[65535 - i for i in range(4)]), 4),
        PAGE_ENTRY.pack(on_chip=1),
        *words_of(program_word("register", engine="conv", offset=0x20, value=14 + 0x9C), 8),
        *words_of(
            # Fields that were not put are stored as zero, which is 1 where that is the lowest value.
            JOB.pack(
                version=1,
                operation=ConvOperation.MAX_POOL,
                type=MmType.BF16,
                output=ConvOutput.ELEMENT,
                kernel=[256, 255],
                addend_pitch=[2**32 - 1, 2**32 - 2, 2**32 - 3],
            ),
            16,
        ),
    ]
    assert int(barrier, 16) == BARRIER.pack(pending=0xFFFFF, expected=3)
    assert int(expected) == 3
    assert int(error) == Error.STRIDE + ConvError.OVERLAP
    assert (offset, identity, lsb, width) == ("3c", "54575254", "8", "8")
    assert engine == ["140", "54575045", "4"]
    assert printed[-4:] == ["1000", "20000", "1000", f"{2 | 0x48 << 3 | 1024 << 20:016x}"]


@pytest.mark.parametrize(("file", "standard"), [("all.c", "c99"), ("all.cc", "c++11")])
def test_headers_of_all_tops_in_one_file(tmp_path, file, standard):
    for choice in KINDS:
        (tmp_path / f"{choice.name}.h").write_text(header_text(choice))
    includes = "".join(f'#include "{path.name}"\n' for path in tmp_path.glob("*.h"))
    assert includes.count("\n") == len(KINDS)
    text = f"{includes}int main(void) {{ uint64_t w = 0; tw_put(&w, 0, 1, 1); return (int)tw_get(&w, 0, 1); }}\n"
    compiled(tmp_path, f"-std={standard}", "-fsyntax-only", text=text, file=file)


@pytest.mark.parametrize("choice", KINDS, ids=lambda choice: choice.options)
def test_a_header_is_of_its_top_alone(choice):
    """It has the addresses and sizes of the component, and nothing of engines that the top lacks."""
    text, component, stem = header_text(choice), choice.component(), choice.name.upper()
    names = defined(text)
    assert len(names) == len(re.findall("^#define .* ", text, re.MULTILINE)), "a name is defined twice"
    for regions in maps_of(component).values():
        for region in regions:
            assert int(names[f"{stem}_{region.name.upper()}_BASE"], 0) == region.base
            assert int(names[f"{stem}_{region.name.upper()}_SIZE"], 0) == region.size
            engine = "" if region.name == "tmau" else f"{region.name.upper()}_"
            for register, _ in region.registers:
                name = re.sub(r"_\d+$", "", register.name) if choice.processors > 1 else register.name
                found = {names.get(f"TW_{each}REG_{name.upper()}") for each in (engine, "PROCESSOR_")}
                assert {None} != found, register.name
    has = {
        "TW_DESCRIPTOR_WORDS": "commands_payload", "TW_PE_REG_STATUS": "halted", "TW_CONVOLUTION_WORDS": "jobs_payload",
        "TW_L2_REG_HITS": "l2_axil_awaddr", "TW_DELIVERY_CORES_LSB": "commands_1_payload",
        "TW_PROCESSOR_REG_STRIDE": "commands_1_payload",
    }  # fmt: skip
    ports = {port.name for port in ports_of(component)}
    ports |= {re.sub(r"_\d+", "", port) for port in ports}
    for name, port in has.items():
        shared = {"TW_DELIVERY_CORES_LSB": choice.top == "cluster", "TW_PROCESSOR_REG_STRIDE": choice.processors > 1}
        assert (name in names) == shared.get(name, port in ports), name
    assert ("TW_PROGRAM_REG_WATCHDOG" in names) == ("program" in choice.engines)
    # Codes of what is no field of a format: operations on barriers, and error records.
    errors = {
        "tmau": "ERROR_WINDOW",
        "pe": "PE_ERROR_STOPPED",
        "conv": "CONV_ERROR_OVERLAP",
        "program": "PROGRAM_ERROR_",
    }
    groups = groups_of(component.params)
    for group, name in errors.items():
        assert any(each.startswith(f"TW_{name}") for each in names) == (group in groups), name
    assert "TW_BARRIER_OP_INIT" in names
    assert text.count(f"{stem}_TMAU_FEATURES_") == len(groups_of(component.params).get("tmau", EMPTY).features)


EMPTY = SimpleNamespace(features=())


def test_options_are_in_the_header():
    """Sizes are those of the component, and features that are left out are missing."""
    settings = (Setting("tmau", "max_outstanding", 256), Setting("smem", "size_bytes", 32768))
    engines = ("tmau", "pe", "program")
    choice = Choice("core", "unit", without=("lanes",), engines=engines, settings=settings, prefix="my_chip")
    text = header_text(choice)
    names = defined(text)
    assert int(names["MY_CHIP_CORE_TMAU_MAX_OUTSTANDING"]) == 256
    assert int(names["MY_CHIP_CORE_SMEM_SIZE"], 0) == 32768 == int(names["MY_CHIP_CORE_SMEM_SIZE_BYTES"])
    assert "MY_CHIP_CORE_TMAU_FEATURES_LANES" not in names
    assert "MY_CHIP_CORE_TMAU_FEATURES_STORES" in names
    options = (
        "--preset unit --top core --engines tmau,pe,program --without lanes "
        "--set tmau.max_outstanding=256,smem.size_bytes=32768 --name my_chip"
    )
    assert f" * Options: {options}\n" in text


def test_command_writes_headers(tmp_path, capsys):
    out = tmp_path / "include"
    assert main(["header", "--preset", "unit", "--top", "core", "--engines", "tmau,pe,program", "--out", str(out)]) == 0
    (path,) = out.iterdir()
    assert path.name == "tw_unit_core.h"
    assert path.read_text() == header_text(Choice("core", "unit", engines=("tmau", "pe", "program")))
    assert main(["header", "--preset", "unit", "--out", str(out)]) == 0
    assert {path.name for path in out.iterdir()} == {f"tw_unit_{top}.h" for top in TOPS}
    assert capsys.readouterr().out.count(".h\n") == 1 + len(TOPS)


#: The frame that writes a command, as a program in C makes it with the library and the header of the board.
FRAME = r"""
#include <stdio.h>

#include "tilewright.h"
#include "ulx3s_85f.h"

int main(void)
{
    struct tw_command load = {.opcode = TW_OPCODE_LOAD, .tag = 5, .smem = 0x180, .descriptor = 0x1000};
    uint8_t frame[6 + TW_COMMAND_WORDS * 8] = {'W', 0, 0, 0, 0, 2 * TW_COMMAND_WORDS - 1};
    uint64_t command[TW_COMMAND_WORDS];

    load.coords[0] = -3;
    if (tw_command_pack(command, &load))
        return 1;
    for (unsigned i = 0; i < 4; i++)
        frame[1 + i] = (uint8_t)(ULX3S_85F_COMMANDS_BASE >> 8 * i);
    for (unsigned i = 0; i < TW_COMMAND_WORDS * 8; i++)
        frame[6 + i] = (uint8_t)(command[i / 8] >> i % 8 * 8);
    return fwrite(frame, sizeof frame, 1, stdout) != 1;
}
"""


class FrameLink:
    """Keeps what is written; answers as an access unit with nothing to say."""

    def __init__(self):
        self.sent, self._replies = b"", TMAU_ID_VALUE.to_bytes(4, "little") + b"KKK"

    def write(self, values):
        self.sent += bytes(values)

    def read(self, count):
        found, self._replies = self._replies[:count], self._replies[count:]
        return found

    def drain(self):
        self.sent = b""


def test_a_program_in_c_sends_the_frames_of_a_board(tmp_path):
    params = BOARDS["ulx3s-85f"].params
    for name, text in (library_files() | {"ulx3s_85f.h": board_header("ulx3s_85f", params), "main.c": FRAME}).items():
        (tmp_path / name).write_text(text)
    sources = ["main.c", "tilewright_words.c", "tilewright_formats.c"]
    subprocess.run(["gcc", *STRICT, "-o", "main", *sources], cwd=tmp_path, check=True)
    host = BoardHost(FrameLink(), params)
    host._link.drain()
    host.command(command_word("load", tag=5, smem=0x180, descriptor=0x1000, coords=(-3, 0, 0, 0, 0)))
    assert subprocess.run(["./main"], cwd=tmp_path, capture_output=True, check=True).stdout == host._link.sent

"""The C library makes golden's words and refuses what golden refuses, with the same codes."""

import ctypes
import random

import pytest

from support.c_library import STRICT, Hardware, array_of, compile_library, number_of, split, structure
from tilewright.golden import DescriptorError, TensorMap, check_block, check_command, check_word, command_word
from tilewright.golden.conv.job import check_job
from tilewright.golden.tmau.lanes import check_lanes
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.spec import COMMAND, DESCRIPTOR, FORMATS, TENSOR_OPCODES, Element, Fill, Mode, Opcode, Swizzle
from tilewright.spec.conv import CONV_PRESETS, JOB, ConvError
from tilewright.spec.core import Engine, ProgramError
from tilewright.spec.fields import Format
from tilewright.spec.pe import MM_FAMILIES, PeError
from tilewright.spec.tmau_registers import FEATURES
from tilewright.tools.package.library import FORMS, library_files
from tilewright.verify.random.conv_jobs import garbage_jobs
from tilewright.verify.random.maps import random_start
from tilewright.verify.random.mixed import garbage_mixes

SEED = 59
LIBRARY = 15
VALUE = 1  # TW_LIBRARY_VALUE
SMEM = 16384


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    return compile_library(tmp_path_factory.mktemp("library"))


def status(engine, code, field=0):
    return code | field << 8 | engine << 16


def refused(refusal):
    return 0 if refusal is None else status(Engine.TMAU, refusal.code, refusal.field)


def hardware(features=tuple(FEATURES), conv=CONV_PRESETS["default"], addr_width=64):
    return Hardware(
        features=sum(1 << bit for bit, name in enumerate(FEATURES) if name in features), smem_bytes=SMEM,
        addr_width=addr_width, conv_row_bytes=conv.row_bytes,
        conv_types=sum(1 << bit for bit, family in enumerate(MM_FAMILIES) if family in conv.types),
        conv_function=conv.function_table, conv_zero_first=conv.zero_first,
    )  # fmt: skip


def drawn(rng, field):
    """A value of a field; of one in a hundred fields a value that does not fit, if its member can hold one."""
    low, high = field.range
    wide = field.range[1] >= 1 << 32
    if rng.random() < 0.01 and field.width < (64 if wide else 32):
        return rng.choice([high + 1, *([low - 1] if low > 0 or field.signed else [])])
    return rng.choice([low, high, rng.randint(low, high), min(high, low + rng.randrange(16))])


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.name)
def test_words_equal_golden(library, form):
    """Every member of every structure, at its edges and beyond."""
    rng, kind = random.Random(f"{SEED} {form.name}"), structure(form)
    fmt: Format = form.format
    words, constant = (ctypes.c_uint64 * (fmt.bits // 64))(), {form.constant: form.value} if form.constant else {}
    table = ctypes.byref(ctypes.c_char.in_dll(library, f"tw_{form.name}_format"))
    refusals = 0
    for _ in range(700):
        values = {
            field.name: tuple(drawn(rng, field) for _ in range(field.count)) if field.count else drawn(rng, field)
            for field in fmt.fields
            if field.name != form.constant
        }
        members = kind(**values)
        found = library.tw_pack(words, table, ctypes.byref(members))
        try:
            expected, wrong = fmt.pack(**values, **constant), None
        except ValueError:
            expected, wrong = None, next(f for f in fmt.fields if f.name in values and not fits(f, values[f.name]))
        if wrong:
            refusals += 1
            assert found == status(LIBRARY, VALUE, fmt.index(wrong.name))
        else:
            assert (found, number_of(words)) == (0, expected), values
            back = kind()
            library.tw_unpack(ctypes.byref(back), table, words)
            assert bytes(back) == bytes(members)
    assert refusals or form.name in {"segment", "page_entry", "program_pe"} or all(f.width >= 32 for f in fmt.fields)


def fits(field, value):
    low, high = field.range
    return all(low <= each <= high for each in (value if field.count else [value]))


def bent(rng, values):
    """Fields of a map with one of them changed."""
    name = rng.choice(list(values))
    value = values[name]
    odd = [0, 1, 3, 8, 15, 17, 255, 256, 257, 300, 1024, 1025, (1 << 16) + 8, (1 << 32) + 1, (1 << 40) + 16]
    if name in ("lower", "upper"):
        odd = [-(1 << 15), -129, -128, -16, -17, 0, 1, 15, 16, 127, 128, (1 << 15) - 1, 1 << 15]
    elif name not in ("size", "stride", "address"):
        odd = [each for each in odd if each < 1 << 32]
    if isinstance(value, tuple) and value:
        place = rng.randrange(len(value))
        return values | {name: (*value[:place], rng.choice(odd), *value[place + 1 :])}
    return values if isinstance(value, tuple) else values | {name: rng.choice(odd)}


def test_tensor_maps_equal_golden(library):
    rng, (_, kind) = random.Random(SEED), array_of("descriptor")
    words, codes = (ctypes.c_uint64 * 16)(), set()
    names = ("size", "stride", "traversal", "lower", "upper", "channels", "pixels", "box")
    enums = ("element", "mode", "interleave", "swizzle", "fill", "l2_promotion")
    for number in range(2500):
        tmap = random_start(rng, first=4096, end=1 << 17, most_bytes=2048).tmap
        values = {name: getattr(tmap, name) for name in (*names, *enums, "address", "fill_constant")}
        values |= {"unaligned": int(tmap.unaligned), "gather0": int(tmap.gather0)}
        changeable = {
            name: value
            for name, value in values.items()
            if name not in (*enums, "unaligned", "gather0", "fill_constant")
            and (name not in ("channels", "pixels") or tmap.mode == Mode.IM2COL)
        }
        if number % 3:
            values |= bent(rng, changeable)
        if number % 5 == 0:
            values |= {name: rng.choice(list(enum)) for name, enum in
                       (("element", Element), ("swizzle", Swizzle), ("fill", Fill))}  # fmt: skip
        try:
            expected, code = TensorMap(**values).pack(), 0
        except DescriptorError as error:
            code = status(Engine.TMAU, error.code, DESCRIPTOR.index(error.field))
        members = kind(**{k: v for k, v in values.items() if not (isinstance(v, tuple) and not v)}, rank=tmap.rank)
        if 0 in values["traversal"]:
            continue  # in C it stands for 1
        found = library.tw_tensor_map(words, ctypes.byref(members))
        assert found == code, values
        codes.add(found)
        if not code:
            assert bytes(words) == expected
    assert len(codes) > 10, codes


def golden_refusal(command, descriptor, features, addr_width=64):
    """What hardware reports for a command, by the functions that the golden model calls."""
    opcode = command & 0xF
    fields = FORMATS.get(opcode, FORMATS[Opcode.LOAD]).unpack(command)
    options = {"addr_width": addr_width, "features": features}
    if opcode in (Opcode.COPY_BLOCK, Opcode.PREFETCH_BLOCK):
        return check_block(fields, SMEM, **options)
    refusal = check_command(fields, None, SMEM, **options)
    if refusal:
        return refusal
    if opcode == Opcode.LANES:
        return check_lanes(fields, SMEM, **options)
    if opcode in TENSOR_OPCODES and descriptor:
        word = int.from_bytes(descriptor, "little")
        return check_word(word, features) or check_command(fields, TensorMap.unpack(descriptor), SMEM, **options)
    return None


@pytest.mark.parametrize("without", [(), ("gather", "reductions_float", "swizzle", "lanes"),
                                     ("stores", "reductions_global", "reductions_float", "local_copies", "im2col",
                                      "unaligned", "interleave", "tf32", "reductions_shared")],
                         ids=["all", "some", "least"])  # fmt: skip
def test_refusals_of_commands_equal_golden(library, without):
    rng, features = random.Random(SEED), tuple(name for name in FEATURES if name not in without)
    params, codes, width = TMAU_PRESETS["unit"], set(), rng.choice([64, 40])
    built = hardware(features, addr_width=width)
    orders = [order for batch in garbage_mixes(SEED + len(without), params, 1200) for order in batch.orders]
    for number, order in enumerate(orders):
        fmt = FORMATS.get(order.fields["opcode"], COMMAND)
        fields = {name: value for name, value in order.fields.items() if name in fmt.names}
        if number % 7 == 0 and "signal" in fmt.names:
            fields |= {"signal": 1, "barrier": rng.choice([0, 8, 12, SMEM - 8, SMEM - 4, SMEM, 1 << 31])}
        if number % 11 == 0 and "descriptor" in fmt.names:
            fields["descriptor"] = rng.choice([32, 64, 1 << 40])
        command = command_word(**fields)
        if number % 50 == 0:
            command = rng.getrandbits(512)
        descriptor = order.descriptor(0)
        expected = refused(golden_refusal(command, descriptor, features, width))
        given = split(int.from_bytes(descriptor, "little"), 16) if descriptor else None
        assert library.tw_check_command(split(command, 8), given, ctypes.byref(built)) == expected, fields
        codes.add(expected & 0xFF)
        if descriptor:
            word = int.from_bytes(descriptor, "little")
            found = library.tw_check_descriptor(split(word, 16), ctypes.c_uint32(built.features))
            assert found == refused(check_word(word, features))
    assert len(codes) > 20, codes


@pytest.mark.parametrize("preset", ["default", "full"])
def test_refusals_of_jobs_equal_golden(library, preset):
    params, codes = CONV_PRESETS[preset], set()
    if preset == "default":
        params = params.replace(function_table=False)
    built = hardware(conv=params)
    for word in garbage_jobs(SEED, params, 2000, smem_bytes=4096):
        broken = check_job(word, params, SMEM)
        expected = 0 if broken is None else status(Engine.CONV, broken.code, JOB.index(broken.field))
        assert library.tw_check_job(split(word, 16), ctypes.byref(built)) == expected, broken
        codes.add(expected & 0xFF)
    assert len(codes) > 12, codes


def test_every_code_has_its_sentence(library):
    sentences = {library.tw_sentence(status(LIBRARY, code)).decode() for code in range(1, 17)}
    assert len(sentences) == 16
    for engine, codes in ((0, ProgramError), (Engine.PE, PeError), (Engine.CONV, ConvError)):
        said = [library.tw_sentence(status(engine, code)).decode() for code in codes]
        assert len(set(said)) == len(codes)
        assert not {"unknown", "an unknown error"} & set(said)
    assert library.tw_sentence(status(Engine.TMAU, 25, 5)).decode() == "the barrier's address is not a multiple of 8"
    assert library.tw_sentence(status(LIBRARY, 99)).decode() == "an unknown error"
    assert "``" not in library_files()["tilewright_sentences.c"]
    assert "-Werror" in STRICT

"""``--set``: every parameter of every top can be changed, and what cannot be is refused in one sentence."""

import argparse

import pytest

from tilewright.errors import UsageError
from tilewright.hw.conv.params import CONV_UNIT_PRESETS
from tilewright.hw.core import CORE_PRESETS
from tilewright.hw.core.params import ENGINES
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.hdl.settings import GROUPS, Setting, add_settings, changed, groups_of, parameters_of
from tilewright.sim.hdl.tops import TOPS, top_params
from tilewright.tools.cli.main import main

MORE = {"core": {"engines": ENGINES}, "cluster": {"engines": ENGINES, "l2": True}}
#: Another value of each parameter, where another one is legal beside the others of preset ``default``.
OTHERS = (
    "tmau.addr_width=40 tmau.bus_bytes=32 tmau.max_outstanding=256 tmau.max_burst=8 tmau.queue_depth=4 "
    "tmau.cache_entries=4 tmau.commands_in_flight=64 tmau.exchange_bytes=512 tmau.prefer_bram=true "
    "tmau.command_window=true tmau.barrier_window=true "
    "tmau.features=swizzle,stores "
    "pe.threads=8 pe.regs=64 pe.factor_regs=1 pe.uniform_regs=16 pe.segments=32 pe.pages=64 pe.mm_in_flight=4 "
    "pe.types=i8,f16 pe.dsp_adders=false pe.units=alu,lookup pe.kernel_words=64 pe.lookup_words=256 "
    "conv.row_bytes=64 conv.slaves=16 conv.units=2 conv.feature_rows=64 conv.weight_rows=8 conv.weight_bytes=65536 "
    "conv.results=16 conv.queue_depth=8 conv.rotation=false conv.types=i8 "
    "conv.function_table=false conv.zero_first=false "
    "program.words=8 program.instruction_lines=8 "
    "smem.size_bytes=0x8000 smem.writes_a_cycle=4 l2.bytes=65536 l2.ways=4 l2.misses=32"
)
#: Parameters that have one value beside a convolution engine.
ALONE = {"smem.chunks_a_cycle"}


def settings_of(*arguments):
    parser = argparse.ArgumentParser(exit_on_error=False)
    add_settings(parser)
    return parser.parse_args([word for argument in arguments for word in ("--set", argument)]).settings


def refusal(*arguments):
    with pytest.raises(argparse.ArgumentError) as error:
        settings_of(*arguments)
    return error.value.message


def test_settings_are_read_by_the_type_of_the_parameter():
    assert settings_of("tmau.max_burst=0x8,pe.dsp_adders=False", "pe.types=i8,i16,smem.size_bytes=1024") == (
        Setting("tmau", "max_burst", 8),
        Setting("pe", "dsp_adders", False),
        Setting("pe", "types", ("i8", "i16")),
        Setting("smem", "size_bytes", 1024),
    )
    texts = ["tmau.max_burst=8", "pe.dsp_adders=true", "pe.types=i8,i16", "tmau.features="]
    assert [str(setting) for setting in settings_of(*texts)] == texts


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["tmau.max_burst"], "must be NAME=VALUE, as tmau.max_outstanding=256, not 'tmau.max_burst'"),
        ([""], "must be NAME=VALUE, as tmau.max_outstanding=256, not ''"),
        (["max_burst=8"], "there is no parameter 'max_burst': did you mean tmau.max_burst?"),
        (["queue_depth=8"], "there is no parameter 'queue_depth': did you mean tmau.queue_depth or conv.queue_depth?"),
        (["tmau.max_bust=8"], "there is no parameter 'tmau.max_bust': did you mean tmau.max_burst?"),
        (["pe.max_burst=8"], "there is no parameter 'pe.max_burst': did you mean tmau.max_burst?"),
        (["coffee=8"], "there is no parameter 'coffee': `tilewright parameters` lists them"),
        (["tmau.cores=2"], "tmau.cores is chosen by --cores of `tilewright verilog`"),
        (["tmau.max_burst=8k"], "tmau.max_burst must be an integer, not '8k'"),
        (["tmau.max_burst=8.0"], "tmau.max_burst must be an integer, not '8.0'"),
        (["tmau.max_burst="], "tmau.max_burst must be an integer, not ''"),
        (["pe.dsp_adders=1"], "pe.dsp_adders must be true or false, not '1'"),
        (["tmau.max_burst=8", "tmau.max_burst=8"], "tmau.max_burst is set twice"),
        (["tmau.max_burst=8,smem.size_bytes=1024,tmau.max_burst=4"], "tmau.max_burst is set twice"),
    ],
)
def test_what_is_no_setting(arguments, sentence):
    assert refusal(*arguments) == sentence


@pytest.mark.parametrize("preset", TMAU_PRESETS)
@pytest.mark.parametrize("top", TOPS)
def test_settings_that_change_nothing(top, preset):
    """What a top is built with, set again, is the same hardware; all groups are those of its parameters."""
    params = top_params(top, preset, **MORE.get(top, {}))
    same = tuple(Setting(*path.split("."), value) for path, value in parameters_of(params).items())
    assert changed(params, same) == params
    assert set(groups_of(params)) == {setting.group for setting in same}


@pytest.mark.parametrize("top", TOPS)
def test_every_parameter_can_be_changed(top):
    """One at a time: it is changed wherever the top has it, and nothing else is."""
    more, others = MORE.get(top, {}), {each.path: each for each in settings_of(*OTHERS.split())}
    before = parameters_of(top_params(top, "default", **more))
    assert set(before) <= set(others) | ALONE
    for path in set(before) - ALONE:
        params = top_params(top, "default", **more, settings=[others[path]])
        after = parameters_of(params)
        assert {name for name in after if after[name] != before[name]} == {path}
        assert after[path] == others[path].value
        assert repr(others[path].value) in repr(params)


def test_all_memories_of_a_core_change_together():
    params = CORE_PRESETS["unit"].with_conv(CONV_UNIT_PRESETS["unit"])
    params = changed(params, settings_of("smem.size_bytes=32768"))
    assert {each.smem.size_bytes for each in (params.tmau, params.pe, params.conv)} == {32768}


def test_settings_are_judged_together():
    """Neither is legal without the other one."""
    params = TMAU_PRESETS["default"].replace(max_burst=64)
    assert changed(params, settings_of("tmau.bus_bytes=16", "tmau.max_burst=256")).max_burst == 256
    with pytest.raises(UsageError, match=r"^--set tmau.max_burst=256: max_burst of 256 words of 64 bytes is longer"):
        changed(params, settings_of("tmau.max_burst=256"))


@pytest.mark.parametrize(
    ("top", "setting", "sentence"),
    [
        ("tmau", "tmau.max_outstanding=3", "max_outstanding must be 4 to 1024, not 3"),
        ("tmau", "smem.size_bytes=3000", "size_bytes must be a power of two from 1024 to 1048576, not 3000"),
        ("tmau", "tmau.features=lains", "features must be of .*, not 'lains'"),
        ("tmau", "tmau.features=local_copies", "feature local_copies needs stores"),
        ("pe", "pe.types=", "types must be one or more of .*"),
        ("conv", "conv.row_bytes=64,conv.units=2", r"row_bytes must be at most 16 \* units \(32\), not 64"),
        ("core", "smem.chunks_a_cycle=4", "smem.chunks_a_cycle must be 8, not 4"),
        ("cluster", "l2.ways=3", "ways must be a power of two, not 3"),
        ("tmau", "pe.threads=8", "what is built has no pe, only tmau, smem"),
        ("pe", "l2.ways=4", "what is built has no l2, only pe, smem"),
    ],
)
def test_hardware_that_cannot_be(top, setting, sentence):
    with pytest.raises(UsageError, match=f"^--set {setting}: {sentence}$"):
        top_params(top, "default", **MORE.get(top, {}), settings=settings_of(setting))


def test_parameters_are_listed(capsys):
    """As ``--set`` takes them."""
    assert main(["parameters", "--preset", "unit"]) == 0
    lines = capsys.readouterr().out.splitlines()
    values = parameters_of(top_params("cluster", "unit", **MORE["cluster"]))
    assert {line.split()[0] for line in lines} == {str(Setting(*path.split("."), it)) for path, it in values.items()}
    assert "tmau.max_outstanding=4         Read bursts in flight, 4 to 1024, a power of two." in lines
    assert all(len(settings_of(line.split()[0])) == 1 and line.endswith(".") for line in lines)
    assert main(["parameters", "--top", "pe"]) == 0
    assert {line.partition(".")[0] for line in capsys.readouterr().out.splitlines()} == {"pe", "smem"}
    assert set(GROUPS) == {path.partition(".")[0] for path in values}

"""What FuseSoC's generator makes of parameters. FuseSoC runs it in ``tests/integration/test_package.py``."""

from tilewright.tools.package.fusesoc import main, options


def test_any_option_is_passed_on():
    parameters = {
        "top": "core",
        "engines": ["conv", "tmau"],
        "l2": True,
        "cores": 3,
        "set": ["a.b=1", "c.d=2"],
        "without": "lanes",
    }
    assert options(parameters) == [
        "--top", "core", "--engines", "conv,tmau", "--l2", "--cores", "3", "--set", "a.b=1,c.d=2", "--without", "lanes",
    ]  # fmt: skip


def test_a_top_must_be_named(tmp_path, capsys):
    (tmp_path / "input.yml").write_text("{parameters: {preset: unit}, vlnv: 'a:b:c:1', gapi: '1.0', files_root: .}\n")
    assert main(tmp_path / "input.yml") == 2
    assert "must name a top, and are {'preset': 'unit'}" in capsys.readouterr().out


def test_a_wrong_option_is_named(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "input.yml").write_text("{parameters: {top: pe, preset: huge}, vlnv: 'a:b:c:1'}\n")
    try:
        status = main(tmp_path / "input.yml")
    except SystemExit as stop:
        status = stop.code
    assert status == 2
    assert "huge" in capsys.readouterr().err

"""Code coverage: how many lines and branches of the generated Verilog a simulation by Verilator ran."""

import os
import re
from contextlib import suppress
from pathlib import Path
from xml.etree import ElementTree

from cocotb_tools.runner import get_runner

from tilewright.files import BUILD

__all__ = ["code_coverage", "run_cocotb"]

_POINT = re.compile(r"^C '(.*)' (\d+)$", re.MULTILINE)
_PAIR = re.compile(r"\x01([^\x02]*)\x02([^\x01]*)")


def code_coverage(path, module):
    """Points of the modules whose names begin with ``module``, from the ``coverage.dat`` that a simulation left.

    Returns
    -------
    dict of str to (int, int)
        By kind, ``"line"`` or ``"branch"``: points that were run, and all.
    """
    counts = {"line": [0, 0], "branch": [0, 0]}
    for text, count in _POINT.findall(Path(path).read_text(errors="replace")):
        point = dict(_PAIR.findall(text))
        kind, _, place = point["page"].removeprefix("v_").partition("/")
        if kind in counts and place.startswith(module):
            counts[kind][0] += count != "0"
            counts[kind][1] += 1
    return {kind: tuple(pair) for kind, pair in counts.items()}


#: Where logs and results are left, one folder for each run.
FOLDER = BUILD / "cocotb"


def run_cocotb(program, module, *, name, seed, environment=None, tests=None):
    """Runs the cocotb tests of a module in one simulation.

    Parameters
    ----------
    program : Program
        From ``build`` with ``cocotb=True``.
    module : str
        Python module with the tests.
    name : str
        Of the folder in ``build/cocotb`` that holds the log.
    seed : int
        Of cocotb's random numbers, and ``cocotb.RANDOM_SEED`` in the tests.
    environment : dict or None
        Further environment variables.
    tests : str or None
        Regular expression that is found in the full names of the tests to run, ``module.test/parameters``; None: all.

    Returns
    -------
    list of str
        Names of the tests that passed.

    Raises
    ------
    AssertionError
        If a test failed or none ran; names the tests and the log.
    """
    folder = (FOLDER / name).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    log = folder / "log.txt"
    results = folder / "results.xml"
    results.unlink(missing_ok=True)
    runner = get_runner(program.simulator)
    # The runner ends the process if a test failed; the results say more.
    with suppress(SystemExit):
        runner.test(
            test_module=module,
            hdl_toplevel=program.top,
            hdl_toplevel_lang="verilog",
            build_dir=program.folder,
            test_dir=folder,
            results_xml=str(results),
            log_file=log,
            seed=seed,
            test_filter=tests,
            extra_env={"COCOTB_ANSI_OUTPUT": "0"} | (environment or {}),
        )
    assert results.exists(), f"{name}: the simulation ended early, see {os.path.relpath(log)}"
    cases = list(ElementTree.parse(results).iter("testcase"))
    failed = [case.get("name") for case in cases if case.find("failure") is not None or case.find("error") is not None]
    assert cases, f"{name}: no test ran, see {os.path.relpath(log)}"
    assert not failed, f"{name}: {', '.join(failed)} failed, see {os.path.relpath(log)}\n{_reasons(log.read_text())}"
    return [case.get("name") for case in cases if case.find("skipped") is None]


def _reasons(log):
    """Lines of ``log`` that name an exception."""
    lines = [line.strip() for line in log.splitlines() if re.match(r"\s*(\w+\.)*\w*(Error|Exception|Warning)\b", line)]
    return "\n".join(dict.fromkeys(lines))

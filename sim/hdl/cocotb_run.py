"""Runs cocotb testbenches in a built simulation."""

import os
import re
from contextlib import suppress
from xml.etree import ElementTree

from cocotb_tools.runner import get_runner

from ..files import BUILD

__all__ = ["run_cocotb"]

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

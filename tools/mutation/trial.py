"""Runs tests once for each mutant of a file, each time in a copy of a process that has imported and collected them.

``python -m tilewright.tools.mutation.trial WORK RECORDS`` takes what to do as JSON and appends a record to the file
``RECORDS``, also JSON, for each mutant.
"""

import hashlib
import importlib
import json
import os
import select
import signal
import sys
import time
import traceback
from itertools import pairwise
from pathlib import Path

import pytest
from amaranth.back import rtlil
from amaranth.hdl import Const, Fragment, Value
from amaranth.hdl._xfrm import FragmentTransformer
from amaranth.lib import wiring
from amaranth.lib.memory import Memory

from tilewright.verify import formal

from .imports import ROOT, module_name
from .mutants import HARDWARE, Mutant, changed_function

__all__ = ["Trial", "main"]

#: Seconds of processor time that a test may take, and seconds by the clock that all of them may take.
_MOST_SECONDS, _PATIENCE = 30, 1800
#: Components whose hardware is compared: tests that build more compare none.
_MOST_COMPONENTS = 50
#: Where an exception means that the source describes no hardware.
_REFUSING = ("/amaranth/hdl/", "/amaranth/lib/", "/amaranth/back/", f"{HARDWARE}/")


class _Late(KeyboardInterrupt):
    """The tests have taken too long."""


class Trial:
    """A plugin of pytest that judges mutants by the tests that were collected.

    Parameters
    ----------
    groups : dict of str to list of str
        Files of tests, which pass without a mutant; a group judges what those before it left.
    mutants : list of Mutant
        Of one file.
    write : callable
        Takes the record of each mutant in turn: ``verdict``, the test that noticed it (``by``) and ``seconds``. A
        mutant is ``"killed"`` by a test that fails, ``"hung"`` if tests take too long, ``"refused"`` if its source
        describes no hardware, ``"equal"`` if it ran and all hardware that tests built is the same, or ``"survived"``.
    """

    def __init__(self, groups, mutants, write):
        self._groups, self._mutants, self._write = groups, mutants, write
        self._failure = None
        self._ran, self._built = [], []

    def pytest_runtestloop(self, session):
        """Instead of pytest's own loop."""
        if session.testsfailed:
            raise session.Failed("tests cannot be collected without a mutant")
        records = {mutant: {"verdict": "survived", "seconds": 0.0, "by": ""} for mutant in self._mutants}
        seen = {mutant: [] for mutant in self._mutants}
        for group, tests in self._groups.items():
            left = [mutant for mutant, record in records.items() if record["verdict"] == "survived"]
            files = {ROOT / test for test in tests}
            items = [item for item in session.items if item.path in files]
            for mutant, record in self._judged(items, left).items() if items and left else ():
                seen[mutant].append((record.pop("ran", False), record.pop("hardware", "")))
                record["seconds"] = round(record["seconds"] + records[mutant]["seconds"], 2)
                records[mutant] = record | {"judge": group}
        for mutant, record in records.items():
            same = [hardware == "same" for _, hardware in seen[mutant]]
            if record["verdict"] == "survived" and same and all(same) and any(ran for ran, _ in seen[mutant]):
                record["verdict"] = "equal"
            self._write(record)
        return True

    def pytest_exception_interact(self, node, call):
        """Notes the first failure."""
        if not self._failure:
            place = traceback.extract_tb(call.excinfo.tb)[-1].filename
            verdict = "refused" if any(part in place for part in _REFUSING) else "killed"
            reason = " ".join(str(call.excinfo.value).split())[:200]
            self._failure = {"verdict": verdict, "by": node.nodeid, "reason": reason}

    def _judged(self, items, mutants):
        """Mutants with their records of some tests; ``hardware`` is ``"same"`` if a mutant does not change it.

        Tests that fail most often come first. Those that failed must pass without a mutant, or all if one survived.
        """
        records, kills = {}, dict.fromkeys([item.nodeid for item in items], 0)
        for mutant in mutants:
            items.sort(key=lambda item: -kills[item.nodeid])
            records[mutant] = record = self._in_child(items, mutant)
            if record["by"]:
                kills[record["by"]] += 1
        survived = any(record["verdict"] == "survived" for record in records.values())
        base = self._in_child([item for item in items if survived or kills[item.nodeid]], None)
        if base["verdict"] != "survived":
            raise RuntimeError(f"{base['by'] or items[0].nodeid} does not pass without a mutant: {base.get('reason')}")
        for record in records.values():
            if record.get("hardware") and record["hardware"] == base["hardware"]:
                record["hardware"] = "same"
        return records

    def _in_child(self, items, mutant):
        """The record of a run in a copy of this process, which is ended if it does not end itself."""
        reader, writer = os.pipe()
        child = os.fork()
        if not child:
            empty = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(empty, stream)
            try:
                with os.fdopen(writer, "w") as file:
                    json.dump(self._run(items, mutant), file)
            finally:
                os._exit(0)
        os.close(writer)
        # The alarm in the copy does not end what does not return to Python; nobody waits for us without a parent.
        end, parent = time.monotonic() + _PATIENCE + 60, os.getppid()
        while not select.select([reader], [], [], 1)[0]:
            if time.monotonic() > end or os.getppid() != parent:
                os.kill(child, signal.SIGKILL)
            if os.getppid() != parent:
                sys.exit("the process that asked for this has ended")
        with os.fdopen(reader) as file:
            text = file.read()
        _, status = os.waitpid(child, 0)
        if text:
            return json.loads(text)
        if os.WIFSIGNALED(status):
            return {"verdict": "hung", "by": "", "seconds": _PATIENCE}
        raise RuntimeError(f"the tests of {mutant} ended by themselves")

    def _run(self, items, mutant):
        """The record of a run of tests up to the first that fails or takes too long."""
        # Also without a mutant: a proof that needs the tool would count as one that every mutant breaks.
        formal.run_tool = _not_proved
        if mutant:
            self._become(mutant)
        self._note_components()
        begin = _seconds()
        for number in (signal.SIGALRM, signal.SIGPROF):
            signal.signal(number, _raise_late)
        signal.alarm(_PATIENCE)
        try:
            for item, following in pairwise([*items, None]):
                signal.setitimer(signal.ITIMER_PROF, _MOST_SECONDS)
                item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
                if self._failure:
                    return self._failure | {"seconds": _seconds() - begin}
        except KeyboardInterrupt:
            return {"verdict": "hung", "by": item.nodeid, "seconds": _seconds() - begin}
        finally:
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
        found = {"verdict": "survived", "by": "", "seconds": _seconds() - begin}
        return found | {"ran": bool(self._ran), "hardware": self._hardware()}

    def _become(self, mutant):
        """Gives the function that the mutant changes its new code, which notes when the changed statement runs."""
        module = importlib.import_module(module_name(Path("hw", mutant.path)))
        module.tilewright_mutant_runs = self._ran.append
        names, code = changed_function(mutant)
        target = module
        for name in names:
            target = vars(target)[name]
        # Of properties, methods of classes, other decorators.
        for wrapped in ("fget", "__func__", "func", "__wrapped__"):
            target = getattr(target, wrapped, target)
        target.__code__ = code

    def _note_components(self):
        """Notes each component that is elaborated from now on, without those inside others."""
        get, inside = Fragment.get, []

        def noting(obj, platform):
            if inside or isinstance(obj, Memory) or not isinstance(obj, wiring.Component):
                return get(obj, platform)
            inside.append(obj)
            try:
                fragment = get(obj, platform)
            finally:
                inside.pop()
            self._built.append((obj, FragmentTransformer()(fragment)))
            return fragment

        Fragment.get = staticmethod(noting)

    def _hardware(self):
        """A word for the RTLIL of the components: equal words mean equal hardware."""
        texts = []
        for component, fragment in self._built[:_MOST_COMPONENTS]:
            # A component with a memory cannot be elaborated again, and a simulation changes what was elaborated.
            Fragment.get = staticmethod(lambda obj, platform, fragment=fragment: fragment)
            values = [Value.cast(value) for _, _, value in component.signature.flatten(component)]
            # A stream that is always ready has a constant for a port.
            ports = [value for value in values if not isinstance(value, Const)]
            texts.append(rtlil.convert(component, ports=ports))
        # Tests run in another order when they have failed.
        digest = hashlib.sha256("".join(sorted(texts)).encode()).hexdigest()
        return digest if 1 <= len(self._built) <= _MOST_COMPONENTS else ""


def _seconds():
    """Processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


def _not_proved(*_, **__):
    raise AssertionError("not proved")


def _raise_late(*_):
    raise _Late


def main():
    """Judges the mutants by the tests in the first argument."""
    work = json.loads(sys.argv[1])
    with Path(sys.argv[2]).open("a") as records:

        def write(record):
            records.write(json.dumps(record) + "\n")

        trial = Trial(work["groups"], [Mutant(*fields) for fields in work["mutants"]], write)
        files = [str(ROOT / test) for tests in work["groups"].values() for test in tests]
        cache = f"cache_dir={os.environ['TILEWRIGHT_BUILD']}/pytest"
        options = ["-q", "-s", "-m", "not long", "-o", cache, "--rootdir", str(ROOT)]
        status = pytest.main([*options, *dict.fromkeys(files)], plugins=[trial])
    sys.exit(int(status))


if __name__ == "__main__":
    main()

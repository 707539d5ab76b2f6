"""The rooms of the repository are parts of one package, ``tilewright``: this is the one place that says so."""

from setuptools import find_packages, setup

ROOMS = ("spec", "golden", "hw", "sim", "network", "verify", "tools", "board", "silicon", "c", "system", "tb")

setup(
    packages=["tilewright"]
    + [
        f"tilewright.{name}" for room in ROOMS for name in (room, *(f"{room}.{inner}" for inner in find_packages(room)))
    ],
    package_dir={f"tilewright.{room}": room for room in ROOMS},
)

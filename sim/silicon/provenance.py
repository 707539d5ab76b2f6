"""Whose answers are kept: GPU, driver, CUDA and date."""

import subprocess
from datetime import UTC, datetime

__all__ = ["provenance"]

_ASK_DRIVER = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]


def provenance(gpu, driver, runtime):
    """What a file of answers says of the GPU that gave them; today's date, UTC.

    Versions of driver and runtime come as CUDA has them.
    """
    return {
        "gpu": gpu,
        "driver": _driver() or f"for CUDA {_version(driver)}",
        "cuda": _version(runtime),
        "date": datetime.now(UTC).date().isoformat(),
    }


def _driver():
    """The driver's own version, which CUDA does not tell; None if it cannot be found."""
    try:
        lines = subprocess.run(_ASK_DRIVER, capture_output=True, text=True, check=True).stdout.splitlines()
    except (OSError, subprocess.CalledProcessError):
        return None
    return lines[0].strip() if lines else None


def _version(number):
    """13000 is 13.0."""
    return f"{number // 1000}.{number % 1000 // 10}"

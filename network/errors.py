"""What is wrong with a model file or with what is given to it."""

from tilewright.sim.usage import UsageError

__all__ = ["ModelError"]


class ModelError(UsageError, ValueError):
    """One sentence that names the file, the node or the tensor. The command line ends with status 2."""

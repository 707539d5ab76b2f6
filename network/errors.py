"""What is wrong with a model file or with what is given to it."""

from tilewright.errors import UsageError

__all__ = ["ModelError", "node_error"]


class ModelError(UsageError, ValueError):
    """One sentence that names the file, the node or the tensor. The command line ends with status 2."""


def node_error(name, operator, sentence):
    """The error to raise of a node: its name, its operator, and what is wrong with it."""
    return ModelError(f"node {name!r} ({operator}): {sentence}")

"""Members that belong together, of a component that has them among its own."""

from types import SimpleNamespace

__all__ = ["bundle"]


def bundle(component, signature):
    """The members of ``signature`` that ``component`` has among its own, as one interface.

    For tops whose ports keep their plain names, to be connected at once to a block that has the signature as a port.
    """
    return SimpleNamespace(signature=signature, **{name: getattr(component, name) for name in signature.members})

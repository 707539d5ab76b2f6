"""What components are declared and connected with beyond ``amaranth.lib.wiring``."""

from types import SimpleNamespace

from amaranth.lib.wiring import Signature

__all__ = ["Port", "bundle", "shared_module"]


class Port(Signature):
    """A signature with a class of its own, equal to signatures of the same class with the same members."""

    def __eq__(self, other):
        return type(self) is type(other) and self.members == other.members


def bundle(component, signature):
    """The members of ``signature`` that ``component`` has among its own, as one interface.

    For tops whose ports keep their plain names, and are connected to a block that has the signature as a port.
    """
    return SimpleNamespace(signature=signature, **{name: getattr(component, name) for name in signature.members})


def shared_module(platform, component, *parameters):
    """``component``, or what the platform puts in place of its identical copies.

    The platform that writes Verilog elaborates one of them and instantiates its module everywhere: elaborating each
    takes hundreds of megabytes and many minutes in large designs. Other platforms get ``component`` itself.

    Parameters
    ----------
    platform : object
        The argument of ``elaborate``. One with a method ``instance`` is given component and parameters.
    component : wiring.Component
        In the domain ``sync``, connected by its ports alone, and not wrapped, for example by ``ResetInserter``.
    *parameters
        Together with the class they determine the module.
    """
    return platform.instance(component, parameters) if hasattr(platform, "instance") else component

"""Components that come many times: where Verilog is written, one module stands for all."""

__all__ = ["alike"]


def alike(platform, component, *parameters):
    """``component``, or what stands for it on a platform that writes a module once for all components that are alike.

    Elaborating each of them takes hundreds of megabytes and many minutes in large designs. On all other platforms
    nothing changes.

    Parameters
    ----------
    platform : object
        As ``elaborate`` is given it. One with a method ``instance`` is asked for what stands for the component.
    component : wiring.Component
        In the domain ``sync``. It is connected by its ports alone, and changed by nothing such as ``ResetInserter``.
    *parameters
        With the class they decide what it is made of.

    Returns
    -------
    Elaboratable or Instance
    """
    return platform.instance(component, parameters) if hasattr(platform, "instance") else component

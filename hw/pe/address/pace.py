"""When a stage of the loading side takes what comes."""

__all__ = ["takes"]


def takes(params, o):
    """Whether the register of the stream ``o`` may be filled: it is empty or, unless ``paced``, becomes so.

    Parameters
    ----------
    params : PeParams
    o : stream
        Registered.

    Returns
    -------
    Value
    """
    return ~o.valid if params.paced else ~o.valid | o.ready

"""When a stage of the loading side takes what comes."""

__all__ = ["takes"]


def takes(params, valid, ready):
    """Whether a register may be filled: it is empty or, unless ``paced``, becomes so.

    Parameters
    ----------
    params : PeParams
    valid : Value
        It is full.
    ready : Value
        What is in it is taken, if it is full.

    Returns
    -------
    Value
    """
    return ~valid if params.paced else ~valid | ready

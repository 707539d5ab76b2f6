"""Sessions: a design that runs in a simulator; numpy arrays in, numpy arrays and cycles out."""

from .core import CoreSession
from .pe import PeSession
from .tmau import TmauSession

__all__ = ["CoreSession", "PeSession", "TmauSession"]

"""Functional coverage: which combinations of features a set of commands has shown."""

from collections import Counter
from itertools import product

__all__ = ["Coverage", "others", "reasons", "telling"]


class Coverage:
    """Counts how often each combination of features, a bin, was hit.

    Parameters
    ----------
    features : dict of str to tuple
        Names of the features, and the values that each may have.
    crosses : sequence of tuple of str
        Features of which every combination of values is a bin.
    exclusions : sequence of (str, dict, ...)
        Why combinations are impossible, and these: values of features, one or a tuple of several each. A bin that has
        all features of one of them, with such values, is none.

    Attributes
    ----------
    hits : dict of tuple to Counter
        For each cross, hits of each combination of values.
    """

    def __init__(self, features, crosses, exclusions=()):
        self.hits = {}
        for cross in crosses:
            combined = product(*(features[name] for name in cross))
            bins = (values for values in combined if not reasons(exclusions, dict(zip(cross, values, strict=True))))
            self.hits[cross] = Counter(dict.fromkeys(bins, 0))

    def sample(self, samples):
        """Counts one command, given by the set of values that it has of each feature.

        Returns whether it is the first in any bin.
        """
        is_new = False
        for cross, hits in self.hits.items():
            for values in product(*(samples[name] for name in cross)):
                if values in hits:
                    is_new |= not hits[values]
                    hits[values] += 1
        return is_new

    @property
    def bins(self):
        """Number of bins."""
        return sum(map(len, self.hits.values()))

    @property
    def empty(self):
        """Names of the bins that were never hit."""
        return [
            _spoken(cross, values) for cross, hits in self.hits.items() for values, count in hits.items() if not count
        ]

    def table(self):
        """A text: one line a cross with its bins and its rarest one, hits of single features, and all empty bins."""
        lines = []
        for cross, hits in self.hits.items():
            reached = sum(map(bool, hits.values()))
            rarest = min(hits, key=hits.get)
            detail = f"rarest {' × '.join(map(str, rarest))}: {hits[rarest]}"
            if len(cross) == 1:
                detail = ", ".join(f"{value}: {count}" for (value,), count in hits.items())
            lines.append(f"{' × '.join(cross):<48} {reached:>3} of {len(hits):>3}   {detail}")
        empty = self.empty
        lines += [f"{self.bins - len(empty)} of {self.bins} bins hit; empty: {'; '.join(empty) or 'none'}"]
        return "\n".join(lines)


def telling(cases, count, sample):
    """Yields the first ``count`` of ``cases``, and of the others those alone that hit an empty bin.

    ``sample`` counts a case, and returns whether it is one of them. So few cases fill all bins that many together fill.
    """
    for number, case in enumerate(cases):
        if sample(case) or number < count:
            yield case


def reasons(exclusions, bin_):
    """Why a bin, values by features, is impossible: of each of the exclusions that it meets."""
    return [why for why, *combinations in exclusions if any(_meets(bin_, each) for each in combinations)]


def others(values, *left_out):
    """The values without some of them, as a tuple."""
    return tuple(value for value in values if value not in left_out)


def _meets(bin_, combination):
    return all(
        name in bin_ and bin_[name] in (values if isinstance(values, tuple) else (values,))
        for name, values in combination.items()
    )


def _spoken(cross, values):
    return " × ".join(f"{name} {value}" for name, value in zip(cross, values, strict=True))

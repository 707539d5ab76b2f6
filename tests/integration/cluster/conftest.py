"""The cluster that most tests run on."""

import pytest

from tilewright.hw.cluster.params import ClusterParams
from tilewright.hw.core.params import CoreParams
from tilewright.hw.tmau.params import TMAU_PRESETS
from tilewright.sim.session.cluster import ClusterSession


@pytest.fixture(scope="module")
def pair():
    """Each core has two processors, the second one smaller windows in random runs."""
    params = ClusterParams(2, CoreParams(TMAU_PRESETS["unit"].replace(processors=2)))
    with ClusterSession(params=params, patience=300_000) as session:
        yield session

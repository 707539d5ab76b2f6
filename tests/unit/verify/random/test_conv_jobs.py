"""Random jobs of the convolution engine: legal, small, the same for the same seed; garbage is mostly wrong."""

from collections import Counter

import pytest

from tilewright.golden import CONV_PRESETS
from tilewright.golden.conv.job import check_job, shape_of
from tilewright.spec.conv import ConvError
from tilewright.verify.random.conv_jobs import garbage_jobs, random_jobs

SMEM_BYTES = 16384


@pytest.mark.parametrize("preset", CONV_PRESETS)
def test_jobs_are_legal_and_small(preset):
    params = CONV_PRESETS[preset]
    jobs = list(random_jobs(1, params, 60, most_macs=900))
    assert len(jobs) == len({job.word for job in jobs}) == 60
    for job in jobs:
        assert check_job(job.word, params, SMEM_BYTES) is None
        assert shape_of(job.fields).macs <= 900
        assert len(job.smem) == SMEM_BYTES
    assert [job.word for job in random_jobs(1, params, 60, most_macs=900)] == [job.word for job in jobs]
    assert [job.word for job in random_jobs(2, params, 60, most_macs=900)] != [job.word for job in jobs]


def test_garbage_breaks_all_rules_of_words():
    params = CONV_PRESETS["default"]
    words = list(garbage_jobs(3, params, 2500))
    assert words == list(garbage_jobs(3, params, 2500))
    codes = Counter(refused.code for word in words if (refused := check_job(word, params, 4096)))
    assert codes.keys() == set(ConvError) - {ConvError.NONE, ConvError.BARRIER, ConvError.STOPPED}
    assert 0.5 < codes.total() / 2000 < 0.9

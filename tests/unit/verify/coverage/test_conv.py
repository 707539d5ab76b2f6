"""What a job of the convolution engine counts as."""

from tilewright.golden import CONV_PRESETS, ConvLayer, PostProcessing
from tilewright.golden.memory import mix_pattern
from tilewright.verify.coverage.conv import conv_coverage, sample_job

UNIT = CONV_PRESETS["unit"]
X = mix_pattern(2 * 5 * 9 * 3, 1).reshape(2, 5, 9, 3)
K = mix_pattern(3 * 3 * 7 * 3, 2).view("i1").reshape(3, 3, 7, 3)


def hits(layer, params=UNIT):
    """The bins that a layer hits, by the features of the cross."""
    coverage = conv_coverage()
    sample_job(coverage, layer.word, params)
    return {cross: {values for values, count in found.items() if count} for cross, found in coverage.hits.items()}


def test_a_convolution():
    post = PostProcessing(
        "u8", bias=[1, 2, 3], scale=[1, 1, 1], maximum=99, addend=mix_pattern(60, 3).reshape(2, 2, 5, 3)
    )
    layer = ConvLayer(X, K, "u8s8", stride=(2, 2), padding=(0, 0, 2, 4), dilation=(1, 1), zeros=(1, 0), post=post,
                      params=UNIT, plan={"block_bytes": 8, "merge": 7, "raster": True})  # fmt: skip
    found = hits(layer)
    assert found["operation", "type"] == {("CONVOLUTION", "U8S8")}
    assert found["output", "addition", "clamp"] == {("U8", "apart", "narrow")}
    assert found["operation", "fold", "raster"] == {("CONVOLUTION", 2, 1)}
    assert found["operation", "blocks", "block"] == {("CONVOLUTION", "more", "ragged")}
    assert found["operation", "padding"] == {("CONVOLUTION", "both")}
    assert found["merge", "kernel", "blocks"] == {("kernel", "6 to 11", "more")}
    assert found["slaves",] == {("ragged",)}
    assert found["batch", "raster"] == {("more", 1)}
    assert found["raster", "line", "points"] == {(1, "ragged", "whole")}
    assert found["operation", "zeros"] == {("CONVOLUTION", "x")}
    assert found["operation", "gaps"] == {("CONVOLUTION", "none")}


def test_a_maximum():
    layer = ConvLayer(X, None, "u8", operation="max_pool", kernel=(2, 2), padding=(2, 0, 0, 0), params=UNIT)
    found = hits(layer)
    assert found["operation", "output"] == {("MAX_POOL", "ELEMENT")}
    assert found["operation", "empty"] == {("MAX_POOL", True)}
    assert found["operation", "bias"] == {("MAX_POOL", 0)}


def test_raster_of_a_lane_private_job():
    """Counts where it makes a difference."""
    for params, raster in ((UNIT, 1), (UNIT.replace(rotation=False), 0)):
        layer = ConvLayer(X, None, "u8", operation="max_pool", kernel=(2, 2), params=params,
                          plan={"block_bytes": 8, "raster": True})  # fmt: skip
        found = hits(layer, params)
        assert found["operation", "fold", "raster"] == {("MAX_POOL", 2, raster)}
        assert found["batch", "raster"] == {("more", raster)}


def test_no_bin_is_impossible():
    """Exclusions leave what random jobs reach: tests of the golden model ask for all of them."""
    coverage = conv_coverage()
    assert 300 < coverage.bins == len(coverage.empty) < 400

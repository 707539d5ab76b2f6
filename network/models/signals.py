"""Well-known networks on sound, sensors and sequences. A function builds each with a maker; weights are random."""

import numpy as np

from .vision import mobilenet_v1

__all__ = ["anomalies", "bert", "lstm", "speech", "tcn", "vit", "yamnet"]


def speech(maker):
    """DS-CNN: keywords in 49 × 10 coefficients, of MLPerf Tiny."""
    x = maker.activate(maker.conv(maker.input((1, 1, 49, 10)), 64, (10, 4), stride=2, pad=(4, 1, 5, 1)), "Relu")
    for _ in range(4):
        x = maker.activate(maker.conv(x, 64, 3, groups=64), "Relu")
        x = maker.activate(maker.conv(x, 64), "Relu")
    x = maker.reshape(maker.pool(x, "sum", maker.shape(x)[2:]), 1, 64)
    maker.activate(maker.matrix(x, 12), "Softmax")


def anomalies(maker):
    """The autoencoder of ToyADMOS, of MLPerf Tiny: each product is followed by a batch normalisation."""
    x = maker.input((1, 640))
    for columns in (128, 128, 128, 128, 8, 128, 128, 128, 128):
        gain, shift, mean = (maker.constant(maker.noise(columns) + more, np.float32) for more in (2, 0, 0))
        variance = maker.constant(np.abs(maker.noise(columns)) + 0.5, np.float32)
        x = maker.other("BatchNormalization", maker.matrix(x, columns), gain, shift, mean, variance)
        x = maker.activate(x, "Relu")
    maker.matrix(x, 640)


def tcn(maker, channels=64, steps=256):
    """A temporal convolutional network: dilated kernels along one dimension that see nothing later."""
    x = maker.conv(maker.input((1, 16, steps)), channels)
    for dilation in (1, 2, 4, 8, 16, 32):
        y = x
        for _ in range(2):
            y = maker.activate(maker.conv(y, channels, 3, dilation=dilation, pad=(2 * dilation, 0)), "Relu")
        x = maker.activate(maker.add(x, y), "Relu")
    maker.conv(x, 10)


def yamnet(maker):
    """YAMNet: MobileNetV1 on a spectrogram of 96 × 64, for 521 sounds."""
    mobilenet_v1(maker, (96, 64), classes=521, channels=1)


def _attention(maker, x, heads):
    _, rows, wide = maker.shape(x)
    deep = wide // heads

    def head(order):
        return maker.transpose(maker.reshape(maker.matrix(x, wide), 1, rows, heads, deep), *order)

    scores = maker.product(head((0, 2, 1, 3)), head((0, 2, 3, 1)))
    scores = maker.other("Softmax", maker.other("Mul", scores, maker.constant(deep**-0.5, np.float32)), axis=-1)
    y = maker.transpose(maker.product(scores, head((0, 2, 1, 3))), 0, 2, 1, 3)
    return maker.matrix(maker.reshape(y, 1, rows, wide), wide)


def _encoder(maker, x, layers, heads):
    def normalised(x):
        wide = maker.shape(x)[-1]
        gain, shift = (maker.constant(maker.noise(wide) + more, np.float32) for more in (1, 0))
        return maker.other("LayerNormalization", x, gain, shift)

    for _ in range(layers):
        x = maker.add(x, _attention(maker, normalised(x), heads))
        y = maker.matrix(normalised(x), 4 * maker.shape(x)[-1])
        y = maker.mul(y, maker.activate(y, "Sigmoid"))
        x = maker.add(x, maker.matrix(y, maker.shape(x)[-1]))
    return normalised(x)


def bert(maker, rows=128, wide=128):
    """BERT-tiny: two layers of two heads, from embedded words on."""
    _encoder(maker, maker.input((1, rows, wide)), 2, 2)


def vit(maker, size=224, wide=192):
    """ViT-tiny's shapes, two of twelve layers."""
    x = maker.conv(maker.input((1, 3, size, size)), wide, 16, stride=16, pad=0)
    rows = (size // 16) ** 2
    maker.matrix(_encoder(maker, maker.transpose(maker.reshape(x, 1, wide, rows), 0, 2, 1), 2, 3), 1000)


def lstm(maker, steps=49, channels=40, wide=64):
    """Keywords by an LSTM."""
    x = maker.input((steps, 1, channels))
    weights = [maker.constant(maker.noise(1, 4 * wide, inner), np.float32) for inner in (channels, wide)]
    y = maker.other("LSTM", x, *weights, shape=(steps, 1, 1, wide), hidden_size=wide)
    y = maker.other("Gather", y, maker.constant(steps - 1, np.int64), shape=(1, 1, wide), axis=0)
    maker.matrix(maker.reshape(y, 1, wide), 12)

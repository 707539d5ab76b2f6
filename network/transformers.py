"""The shapes of networks with attention and normalisations, with random weights, to compile and to measure."""

from .drawn import NetworkMaker

__all__ = ["convnext", "encoder_layer", "mobilevit"]


def encoder_layer(rows, size=768, heads=12, *, first=False):
    """A layer of a transformer's encoder; ``first``: normalisations come first, as in ViT, and not last, as in BERT."""
    maker = NetworkMaker(5)
    x = maker.input((rows, size))
    _encode(maker, x, heads, 4 * size, first)
    return maker


def _encode(maker, x, heads, inner, first):
    rows, size = maker.tensors[x].shape
    y = maker.normalise(x) if first else x
    q, k, v = (maker.transpose(maker.reshape(maker.matrix(y, size), rows, heads, size // heads), 1, 0, 2)
               for _ in range(3))  # fmt: skip
    shares = maker.softmax(maker.product(q, maker.transpose(k, 0, 2, 1)))
    y = maker.reshape(maker.transpose(maker.product(shares, v), 1, 0, 2), rows, size)
    x = maker.add(maker.matrix(y, size), x)
    x = x if first else maker.normalise(x)
    y = maker.matrix(maker.function(maker.matrix(maker.normalise(x) if first else x, inner)), size)
    x = maker.add(y, x)
    return x if first else maker.normalise(x)


def convnext(size=224, depths=(2, 2, 6, 2), widths=(40, 80, 160, 320)):
    """ConvNeXt-atto: depthwise 7 × 7, a normalisation of the channels of each pixel, two products."""
    maker = NetworkMaker(6)

    def normalised(x):
        return maker.transpose(maker.normalise(maker.transpose(x, 0, 2, 3, 1)), 0, 3, 1, 2)

    x = normalised(maker.conv(maker.input((1, 3, size, size)), widths[0], 4, stride=4, pad=0))
    for stage, (depth, width) in enumerate(zip(depths, widths, strict=True)):
        x = maker.conv(normalised(x), width, 2, stride=2, pad=0) if stage else x
        for _ in range(depth):
            y = normalised(maker.conv(x, width, 7, groups=width))
            x = maker.add(maker.conv(maker.function(maker.conv(y, 4 * width)), width), x)
    x = maker.reshape(maker.pool(x, "sum", maker.tensors[x].shape[2:]), 1, widths[-1])
    maker.matrix(maker.normalise(x), 1000)
    return maker


def mobilevit(size=256):
    """MobileViT-xxs: blocks of MobileNetV2, and transformers on patches of 2 × 2 pixels."""
    maker = NetworkMaker(7)

    def block(x, out, kernel=1, stride=1, groups=1):
        return maker.function(maker.conv(x, out, kernel, stride=stride, groups=groups))

    def inverted(x, out, stride=1):
        channels = maker.tensors[x].shape[1]
        y = block(block(x, 2 * channels), 2 * channels, 3, stride, 2 * channels)
        y = maker.conv(y, out)
        return maker.add(y, x) if stride == 1 and channels == out else y

    def transformer(x, deep, layers):
        _, channels, height, width = maker.tensors[x].shape
        y = maker.conv(block(x, channels, 3), deep)
        patches = maker.reshape(y, deep, height // 2, 2, width // 2, 2)
        patches = maker.reshape(maker.transpose(patches, 2, 4, 1, 3, 0), 4, height * width // 4, deep)
        for _ in range(layers):
            patches = _encode_patches(maker, patches, 4, 2 * deep)
        patches = maker.reshape(maker.normalise(patches), 2, 2, height // 2, width // 2, deep)
        y = maker.reshape(maker.transpose(patches, 4, 2, 0, 3, 1), 1, deep, height, width)
        return block(maker.concat(1, x, block(y, channels)), channels, 3)

    x = inverted(block(maker.input((1, 3, size, size)), 16, 3, 2), 16)
    x = inverted(inverted(inverted(x, 24, 2), 24), 24)
    for out, deep, layers in ((48, 64, 2), (64, 80, 4), (80, 96, 3)):
        x = transformer(inverted(x, out, 2), deep, layers)
    x = block(x, 320)
    maker.matrix(maker.reshape(maker.pool(x, "sum", maker.tensors[x].shape[2:]), 1, 320), 1000)
    return maker


def _encode_patches(maker, x, heads, inner):
    """A layer of an encoder for several sequences of rows at once."""
    count, rows, size = maker.tensors[x].shape
    y = maker.normalise(x)
    q, k, v = (maker.transpose(maker.reshape(maker.matrix(y, size), count, rows, heads, size // heads), 0, 2, 1, 3)
               for _ in range(3))  # fmt: skip
    shares = maker.softmax(maker.product(q, maker.transpose(k, 0, 1, 3, 2)))
    y = maker.reshape(maker.transpose(maker.product(shares, v), 0, 2, 1, 3), count, rows, size)
    x = maker.add(maker.matrix(y, size), x)
    return maker.add(maker.matrix(maker.function(maker.matrix(maker.normalise(x), inner)), size), x)

"""Well-known networks on pictures: classes, boxes, masks and larger pictures. A function builds each with a maker.

Only shapes are as published; weights are random. ``tilewright.network.architectures`` has further ones.
"""

from ..architectures import excited

__all__ = ["blazeface", "densenet", "espcn", "ghostnet", "lraspp", "mobilenet_v1", "mobilenet_v2", "mtcnn", "pp_ocr",
           "regnet_y", "resnet8", "resnet18", "shufflenet_v2", "squeezenet", "ssd_lite", "unet"]  # fmt: skip


def _block(maker, x, out, kernel=1, stride=1, groups=1, kind="Relu", **more):
    return maker.activate(maker.conv(x, out, kernel, stride=stride, groups=groups, **more), kind)


def _depthwise(maker, x, kernel=3, stride=1, kind="Relu"):
    channels = maker.shape(x)[1]
    return _block(maker, x, channels, kernel, stride, channels, kind)


def _classes(maker, x, classes=1000):
    batch, channels, *sizes = maker.shape(x)
    return maker.matrix(maker.reshape(maker.pool(x, "sum", sizes), batch, channels), classes)


def mobilenet_v1(maker, size=(224, 224), width=1.0, classes=1000, channels=3):
    """MobileNetV1; with a width of 0.25 and 96 pixels, of visual wake words."""
    x = _block(maker, maker.input((1, channels, *size)), int(32 * width), 3, 2)
    strides = ((64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2), *((512, 1),) * 5, (1024, 2), (1024, 1))
    for out, stride in strides:
        x = _block(maker, _depthwise(maker, x, 3, stride), int(out * width))
    _classes(maker, x, classes)


def _inverted(maker, x, out, stride, grow, kind="Relu6"):
    channels = maker.shape(x)[1]
    y = _block(maker, x, channels * grow, kind=kind) if grow > 1 else x
    y = maker.conv(_depthwise(maker, y, 3, stride, kind), out)
    return maker.add(x, y) if stride == 1 and channels == out else y


def mobilenet_v2(maker, size=224, *, head=True):
    """MobileNetV2; without ``head`` returns its last two feature maps."""
    x = _block(maker, maker.input((1, 3, size, size)), 32, 3, 2, kind="Relu6")
    for grow, out, repeats, stride in (
        (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1),
    ):  # fmt: skip
        for number in range(repeats):
            x = _inverted(maker, x, out, 1 if number else stride, grow)
        if out == 96:
            middle = x
    x = _block(maker, x, 1280, kind="Relu6")
    return _classes(maker, x) if head else (middle, x)


def squeezenet(maker, size=224):
    """SqueezeNet 1.1."""
    x = _block(maker, maker.input((1, 3, size, size)), 64, 3, 2, pad=0)
    for squeezed, pooled in ((16, 1), (16, 0), (32, 1), (32, 0), (48, 1), (48, 0), (64, 0), (64, 0)):
        x = maker.pool(x, "max", 3, stride=2) if pooled else x
        x = _block(maker, x, squeezed)
        x = maker.concat(1, _block(maker, x, squeezed * 4), _block(maker, x, squeezed * 4, 3))
    x = _block(maker, x, 1000)
    maker.reshape(maker.pool(x, "sum", maker.shape(x)[2:]), 1, 1000)


def _shuffled(maker, x, groups=2):
    batch, channels, *sizes = maker.shape(x)
    x = maker.transpose(maker.reshape(x, batch, groups, channels // groups, *sizes), 0, 2, 1, 3, 4)
    return maker.reshape(x, batch, channels, *sizes)


def shufflenet_v2(maker, size=224):
    """ShuffleNetV2 1.0: half of the channels goes on unchanged, and a shuffle mixes both."""
    x = maker.pool(_block(maker, maker.input((1, 3, size, size)), 24, 3, 2), "max", 3, stride=2, pad=1)
    for out, repeats in ((116, 4), (232, 8), (464, 4)):
        for number in range(repeats):
            half, stride = out // 2, 1 if number else 2
            left, right = maker.split(x, 2) if number else (x, x)
            if not number:
                left = _block(maker, _depthwise(maker, left, 3, 2, None), half)
            right = _block(maker, right, half)
            right = _block(maker, _depthwise(maker, right, 3, stride, None), half)
            x = _shuffled(maker, maker.concat(1, left, right))
    _classes(maker, _block(maker, x, 1024))


#: Kernel, expanded channels, channels, squeeze-and-excitation, stride.
_GHOSTS = ((3, 16, 16, 0, 1), (3, 48, 24, 0, 2), (3, 72, 24, 0, 1), (5, 72, 40, 1, 2), (5, 120, 40, 1, 1),
           (3, 240, 80, 0, 2), (3, 200, 80, 0, 1), (3, 184, 80, 0, 1), (3, 184, 80, 0, 1), (3, 480, 112, 1, 1),
           (3, 672, 112, 1, 1), (5, 672, 160, 1, 2), (5, 960, 160, 0, 1), (5, 960, 160, 1, 1), (5, 960, 160, 0, 1),
           (5, 960, 160, 1, 1))  # fmt: skip


def ghostnet(maker, size=224):
    """GhostNet 1.0: half of the channels of a layer are depthwise convolutions of the other half."""

    def ghost(x, out, kind):
        y = _block(maker, x, out // 2, kind=kind)
        return maker.concat(1, y, _depthwise(maker, y, 3, 1, kind))

    x = _block(maker, maker.input((1, 3, size, size)), 16, 3, 2)
    for kernel, expanded, out, squeeze, stride in _GHOSTS:
        channels, y = maker.shape(x)[1], ghost(x, expanded, "Relu")
        y = _depthwise(maker, y, kernel, stride, None) if stride > 1 else y
        y = ghost(excited(maker, y, expanded // 4) if squeeze else y, out, None)
        if stride > 1 or channels != out:
            x = maker.conv(_depthwise(maker, x, kernel, stride, None), out)
        x = maker.add(y, x)
    x = _block(maker, x, 960)
    x = _block(maker, maker.pool(x, "sum", maker.shape(x)[2:]), 1280)
    maker.matrix(maker.reshape(x, 1, 1280), 1000)


def densenet(maker, size=32, growth=12, layers=16):
    """DenseNet-BC of 100 layers for pictures of 32 pixels."""
    x = maker.conv(maker.input((1, 3, size, size)), 2 * growth, 3)
    for number in range(3):
        for _ in range(layers):
            y = _block(maker, maker.activate(x, "Relu"), 4 * growth)
            x = maker.concat(1, x, maker.conv(y, growth, 3))
        if number < 2:
            x = maker.pool(maker.conv(maker.activate(x, "Relu"), maker.shape(x)[1] // 2), "sum", 2, stride=2)
    _classes(maker, maker.activate(x, "Relu"), 10)


def _residual(maker, x, out, stride):
    y = maker.conv(_block(maker, x, out, 3, stride), out, 3)
    if stride > 1 or maker.shape(x)[1] != out:
        x = maker.conv(x, out, stride=stride)
    return maker.activate(maker.add(y, x), "Relu")


def resnet8(maker):
    """ResNet-8 for pictures of 32 pixels, of MLPerf Tiny."""
    x = _block(maker, maker.input((1, 3, 32, 32)), 16, 3)
    for out, stride in ((16, 1), (32, 2), (64, 2)):
        x = _residual(maker, x, out, stride)
    _classes(maker, x, 10)


def resnet18(maker, size=224):
    """ResNet-18."""
    x = maker.pool(_block(maker, maker.input((1, 3, size, size)), 64, 7, 2), "max", 3, stride=2, pad=1)
    for out, stride in ((64, 1), (128, 2), (256, 2), (512, 2)):
        x = _residual(maker, _residual(maker, x, out, stride), out, 1)
    _classes(maker, x)


def regnet_y(maker, size=224):
    """RegNetY-400MF: groups of 8 channels, and squeeze-and-excitation."""
    x = _block(maker, maker.input((1, 3, size, size)), 32, 3, 2)
    for out, repeats in ((48, 1), (104, 3), (208, 6), (440, 6)):
        for number in range(repeats):
            channels, stride = maker.shape(x)[1], 1 if number else 2
            y = _block(maker, _block(maker, x, out), out, 3, stride, out // 8)
            y = maker.conv(excited(maker, y, channels // 4, gate="Sigmoid"), out)
            x = maker.activate(maker.add(y, x if number else maker.conv(x, out, stride=2)), "Relu")
    _classes(maker, x)


def ssd_lite(maker, size=320, classes=91):
    """SSDLite of MobileNetV2: boxes and classes of six feature maps."""
    middle, x = mobilenet_v2(maker, size, head=False)
    maps = [middle, x]
    for out in (512, 256, 256, 128):
        x = _block(maker, _depthwise(maker, _block(maker, x, out // 2, kind="Relu6"), 3, 2, "Relu6"), out, kind="Relu6")
        maps.append(x)
    for values in (4, classes):
        parts = []
        for x in maps:
            y = maker.conv(_depthwise(maker, x, 3, 1, "Relu6"), 6 * values)
            _, _, height, width = maker.shape(y)
            parts.append(maker.reshape(maker.transpose(y, 0, 2, 3, 1), 1, height * width * 6, values))
        maker.outputs.append(maker.concat(1, *parts))


def blazeface(maker, size=128):
    """BlazeFace's shapes: 5 × 5 depthwise blocks, shortcuts with padded channels, boxes of two maps."""
    x = _block(maker, maker.input((1, 3, size, size)), 24, 5, 2)
    for out, stride in (*((24, 1),) * 2, (48, 2), *((48, 1),) * 2, (96, 2), *((96, 1),) * 4, (96, 2), *((96, 1),) * 4):
        if stride == 2 and maker.shape(x)[1] == 96:
            fine = x
        y = maker.conv(_depthwise(maker, x, 5, stride, None), out)
        x = maker.pool(x, "max", 2, stride=2) if stride > 1 else x
        if more := out - maker.shape(x)[1]:
            x = maker.pad(x, (0, 0, 0, 0), (0, more, 0, 0))
        x = maker.activate(maker.add(x, y), "Relu")
    for values in (1, 16):
        parts = []
        for y, boxes in ((fine, 2), (x, 6)):
            y = maker.transpose(maker.conv(y, boxes * values), 0, 2, 3, 1)
            parts.append(maker.reshape(y, 1, maker.shape(y)[1] ** 2 * boxes, values))
        maker.outputs.append(maker.concat(1, *parts))


#: The size of a picture; channels, kernel and pool of each convolution; columns of the product that follows.
_MTCNN = {"P": ((120, 160), ((10, 3, 2), (16, 3, 0), (32, 3, 0)), 0),
          "R": ((24, 24), ((28, 3, 3), (48, 3, 3), (64, 2, 0)), 128),
          "O": ((48, 48), ((32, 3, 3), (64, 3, 3), (64, 3, 2), (128, 2, 0)), 256)}  # fmt: skip


def mtcnn(maker, which):
    """The network P, R or O of MTCNN."""
    size, layers, wide = _MTCNN[which]
    x = maker.input((1, 3, *size))
    for out, kernel, pooled in layers:
        x = _block(maker, x, out, kernel, kind="PRelu", pad=0)
        x = maker.pool(x, "max", pooled, stride=2, ceil=True) if pooled else x
    if wide:
        _, channels, height, width = maker.shape(x)
        x = maker.activate(maker.matrix(maker.reshape(x, 1, channels * height * width), wide), "PRelu")
    results = [maker.matrix(x, n) if wide else maker.conv(x, n) for n in (2, 4, 10)[: 3 if which == "O" else 2]]
    maker.outputs = [maker.other("Softmax", results[0], axis=1), *results[1:]]


def unet(maker, mode, size=128, classes=4):
    """U-Net of 16 to 128 channels; "transposed" or "linear" says how maps grow."""

    def twice(x, out):
        return _block(maker, _block(maker, x, out, 3), out, 3)

    x, skips = twice(maker.input((1, 3, size, size)), 16), []
    for out in (32, 64, 128):
        skips.append(x)
        x = twice(maker.pool(x, "max", 2, stride=2), out)
    for out in (64, 32, 16):
        x = maker.transposed(x, out, 2, stride=2) if mode == "transposed" else maker.enlarge(x, 2, mode)
        x = twice(maker.concat(1, skips.pop(), x), out)
    maker.conv(x, classes)


def lraspp(maker, size=256, out=21):
    """Segmentation by MobileNetV2 and LR-ASPP: a gate from the whole map, and linear interpolation."""
    fine, coarse = mobilenet_v2(maker, size, head=False)
    y = _block(maker, coarse, 128)
    gate = maker.activate(maker.conv(maker.pool(coarse, "sum", maker.shape(coarse)[2:]), 128), "Sigmoid")
    y = maker.enlarge(maker.mul(y, gate), 2, "linear")
    maker.add(maker.conv(y, out), maker.conv(fine, out))


def espcn(maker, size=(120, 160), factor=3):
    """ESPCN: a picture of three times the size, of one channel."""
    x = maker.input((1, 1, *size))
    for out, kernel in ((64, 5), (32, 3)):
        x = _block(maker, x, out, kernel, kind="Tanh")
    maker.to_depth(maker.conv(x, factor**2, 3), factor)


def pp_ocr(maker, size=320):
    """A detector of text like PP-OCR's: hard swish, squeeze-and-excitation, a pyramid, transposed convolutions."""
    x, maps = _block(maker, maker.input((1, 3, size, size)), 8, 3, 2, kind="HardSwish"), []
    for out, repeats, squeeze in ((16, 2, 0), (24, 2, 0), (56, 4, 1), (120, 3, 1)):
        for number in range(repeats):
            y = _block(maker, x, out * 3, kind="HardSwish")
            y = _depthwise(maker, y, 5 if squeeze else 3, 1 if number else 2, "HardSwish")
            y = maker.conv(excited(maker, y, out * 3 // 4) if squeeze else y, out)
            x = maker.add(y, x) if number else y
        maps.append(x)
    maps = [maker.conv(y, 96) for y in maps]
    for number in (2, 1, 0):
        maps[number] = maker.add(maps[number], maker.enlarge(maps[number + 1]))
    parts = [maker.conv(y, 24, 3) for y in maps]
    parts = [maker.enlarge(y, 1 << number) if number else y for number, y in enumerate(parts)]
    x = _block(maker, maker.concat(1, *reversed(parts)), 24, 3)
    x = maker.activate(maker.transposed(x, 24, 2, stride=2), "Relu")
    maker.activate(maker.transposed(x, 1, 2, stride=2), "Sigmoid")

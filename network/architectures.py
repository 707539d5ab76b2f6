"""The shapes of well-known networks, with random weights, to compile and to measure.

Each is built of integers, or by the ``maker`` that is given: models of floats by ``network.models.floats.FloatMaker``.
"""

from .drawn import NetworkMaker
from .transformers import convnext, encoder_layer, mobilevit

__all__ = ["ARCHITECTURES", "efficientnet", "excited", "mobilenet_v3", "resnet50", "yolov5n"]


def efficientnet(size=224, *, lite=True, maker=None):
    """EfficientNet-Lite0, or B0 with its SiLU and squeeze-and-excitation."""
    maker = maker or NetworkMaker(1)

    def block(x, out, kernel, stride, groups=1):
        return maker.activate(_same(maker, x, out, kernel, stride, groups), "Relu6" if lite else "Silu")

    x = block(maker.input((1, 3, size, size)), 32, 3, 2)
    for repeats, kernel, first, grow, into, out in (
        (1, 3, 1, 1, 32, 16), (2, 3, 2, 6, 16, 24), (2, 5, 2, 6, 24, 40), (3, 3, 2, 6, 40, 80), (3, 5, 1, 6, 80, 112),
        (4, 5, 2, 6, 112, 192), (1, 3, 1, 6, 192, 320),
    ):  # fmt: skip
        for number in range(repeats):
            channels, stride = (into, first) if number == 0 else (out, 1)
            y = block(x, channels * grow, 1, 1) if grow > 1 else x
            y = block(y, channels * grow, kernel, stride, channels * grow)
            if not lite:
                y = excited(maker, y, channels // 4, "Silu", "Sigmoid")
            y = _same(maker, y, out, 1, 1)
            x = maker.add(y, x) if number else y
    x = maker.pool(block(x, 1280, 1, 1), "sum", maker.tensors[x].shape[2:])
    maker.matrix(maker.reshape(x, 1, 1280), 1000)
    return maker


#: By size: kernel, expanded channels, channels, squeeze-and-excitation, HardSwish, stride; channels at the end.
_MOBILENETS = {
    "large": (((3, 16, 16, 0, 0, 1), (3, 64, 24, 0, 0, 2), (3, 72, 24, 0, 0, 1), (5, 72, 40, 1, 0, 2),
               (5, 120, 40, 1, 0, 1), (5, 120, 40, 1, 0, 1), (3, 240, 80, 0, 1, 2), (3, 200, 80, 0, 1, 1),
               (3, 184, 80, 0, 1, 1), (3, 184, 80, 0, 1, 1), (3, 480, 112, 1, 1, 1), (3, 672, 112, 1, 1, 1),
               (5, 672, 160, 1, 1, 2), (5, 960, 160, 1, 1, 1), (5, 960, 160, 1, 1, 1)), (960, 1280)),
    "small": (((3, 16, 16, 1, 0, 2), (3, 72, 24, 0, 0, 2), (3, 88, 24, 0, 0, 1), (5, 96, 40, 1, 1, 2),
               (5, 240, 40, 1, 1, 1), (5, 240, 40, 1, 1, 1), (5, 120, 48, 1, 1, 1), (5, 144, 48, 1, 1, 1),
               (5, 288, 96, 1, 1, 2), (5, 576, 96, 1, 1, 1), (5, 576, 96, 1, 1, 1)), (576, 1024)),
}  # fmt: skip


def mobilenet_v3(which="large", *, squeeze=True, size=224, maker=None):
    """MobileNetV3, with or without squeeze-and-excitation."""
    maker, (blocks, (wide, last)) = maker or NetworkMaker(3), _MOBILENETS[which]

    def block(x, out, kernel=1, stride=1, groups=1, swish=True):
        y = maker.conv(x, out, kernel, stride=stride, groups=groups)
        return maker.activate(y, "HardSwish" if swish else "Relu")

    x = block(maker.input((1, 3, size, size)), 16, 3, 2)
    for kernel, expanded, out, squeezed, swish, stride in blocks:
        channels = maker.tensors[x].shape[1]
        y = block(x, expanded, swish=swish) if expanded != channels else x
        y = block(y, expanded, kernel, stride, expanded, swish)
        if squeezed and squeeze:
            y = excited(maker, y, max(8, (expanded // 4 + 4) // 8 * 8))
        y = maker.conv(y, out)
        x = maker.add(y, x) if stride == 1 and channels == out else y
    x = block(x, wide)
    x = maker.pool(x, "sum", maker.tensors[x].shape[2:])
    x = maker.activate(maker.matrix(maker.reshape(x, 1, wide), last), "HardSwish")
    maker.matrix(x, 1000)
    return maker


def yolov5n(size=320, *, classes=80, maker=None):
    """YOLOv5n with SiLU, up to the three results that are decoded."""
    maker = maker or NetworkMaker(4)

    def block(x, out, kernel=1, stride=1, pad=None):
        return maker.activate(maker.conv(x, out, kernel, stride=stride, pad=pad), "Silu")

    def stage(x, out, repeats, add=True):
        y = block(x, out // 2)
        for _ in range(repeats):
            z = block(block(y, out // 2), out // 2, 3)
            y = maker.add(z, y) if add else z
        return block(maker.concat(1, y, block(x, out // 2)), out)

    x = block(maker.input((1, 3, size, size)), 16, 6, 2, 2)
    fine = stage(block(stage(block(x, 32, 3, 2), 32, 1), 64, 3, 2), 64, 2)
    middle = stage(block(fine, 128, 3, 2), 128, 3)
    y = block(stage(block(middle, 256, 3, 2), 256, 1), 128)
    pooled = [y]
    for _ in range(3):
        pooled.append(maker.pool(pooled[-1], "max", 5, pad=2))
    coarse = block(block(maker.concat(1, *pooled), 256), 128)
    x = block(stage(maker.concat(1, maker.enlarge(coarse), middle), 128, 1, add=False), 64)
    outputs = [stage(maker.concat(1, maker.enlarge(x), fine), 64, 1, add=False)]
    outputs.append(stage(maker.concat(1, block(outputs[0], 64, 3, 2), x), 128, 1, add=False))
    outputs.append(stage(maker.concat(1, block(outputs[1], 128, 3, 2), coarse), 256, 1, add=False))
    maker.outputs = [maker.conv(y, 3 * (5 + classes)) for y in outputs]
    return maker


def resnet50(size=224, *, maker=None):
    """The shapes of ResNet-50 for pictures of ``size``."""
    maker = maker or NetworkMaker(2)

    def block(x, out, kernel=1, stride=1):
        return maker.activate(maker.conv(x, out, kernel, stride=stride), "Relu")

    x = maker.pool(block(maker.input((1, 3, size, size)), 64, 7, 2), "max", 3, stride=2, pad=1)
    for stage, repeats in enumerate((3, 4, 6, 3)):
        deep = 64 << stage
        for number in range(repeats):
            stride = 2 if stage and not number else 1
            y = maker.conv(block(block(x, deep), deep, 3, stride), 4 * deep)
            x = maker.activate(maker.add(y, x if number else maker.conv(x, 4 * deep, stride=stride)), "Relu")
    x = maker.pool(x, "sum", maker.tensors[x].shape[2:])
    maker.matrix(maker.reshape(x, 1, 2048), 1000)
    return maker


#: By name: a function that makes the network.
ARCHITECTURES = {
    "EfficientNet-Lite0": efficientnet,
    "EfficientNet-B0": lambda: efficientnet(lite=False),
    "MobileNetV3-small": lambda: mobilenet_v3("small"),
    "MobileNetV3-small without excitation": lambda: mobilenet_v3("small", squeeze=False),
    "MobileNetV3-large": mobilenet_v3,
    "ResNet-50": resnet50,
    "YOLOv5n, 320": yolov5n,
    "BERT-base layer, 128 tokens": lambda: encoder_layer(128),
    "BERT-base layer, 384 tokens": lambda: encoder_layer(384),
    "ViT-B layer, 197 tokens": lambda: encoder_layer(197, first=True),
    "DeiT-S layer, 197 tokens": lambda: encoder_layer(197, 384, 6, first=True),
    "MobileViT-xxs": mobilevit,
    "ConvNeXt-atto": convnext,
}


def _same(maker, x, out, kernel, stride, groups=1):
    """A convolution with padding for ⌈size / stride⌉ points, less at the beginning."""
    height = maker.tensors[x].shape[2]
    around = max((-(-height // stride) - 1) * stride + kernel - height, 0)
    return maker.conv(x, out, kernel, stride=stride, groups=groups,
                      pad=(around // 2, around // 2, around - around // 2, around - around // 2))  # fmt: skip


def excited(maker, x, squeezed, middle="Relu", gate="HardSigmoid"):
    """Squeeze-and-excitation with a given number of channels, and a function, in the middle."""
    y = maker.pool(x, "sum", maker.tensors[x].shape[2:])
    y = maker.conv(maker.activate(maker.conv(y, squeezed), middle), maker.tensors[x].shape[1])
    return maker.mul(x, maker.activate(y, gate))

"""The convolutions of published networks: their shapes, each with the number of times that it occurs."""

from collections import Counter
from dataclasses import dataclass

__all__ = ["NETWORKS", "NetworkLayer"]


@dataclass(frozen=True)
class NetworkLayer:
    """A square convolution of a network, for one image.

    Attributes
    ----------
    size : int
        Height and width of X.
    channels, out_channels : int
    kernel, stride : int
    padding : tuple of int
        Before and after, for both rows and columns.
    depthwise : bool
    """

    size: int
    channels: int
    out_channels: int
    kernel: int = 1
    stride: int = 1
    padding: tuple[int, int] = (0, 0)
    depthwise: bool = False

    @property
    def out_size(self):
        """Height and width of Y."""
        return (self.size + sum(self.padding) - self.kernel) // self.stride + 1

    @property
    def name(self):
        """The name in a line of the table."""
        channels = self.channels if self.depthwise else f"{self.channels}>{self.out_channels}"
        kind = "dw " if self.depthwise else ""
        return f"{kind}{self.kernel}x{self.kernel}/{self.stride} {channels} {self.size}x{self.size}"


def _around(size, kernel, stride):
    """The same padding on both sides, which keeps the size at stride 1."""
    return kernel // 2, kernel // 2


def _same(size, kernel, stride):
    """TensorFlow's padding: the least that gives ⌈size / stride⌉; the larger half is after the last pixel."""
    total = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return total // 2, total - total // 2


def _resnet_50():
    """As first published: the stride is in the first 1 × 1 of a block."""
    yield NetworkLayer(224, 3, 64, 7, 2, (3, 3))
    channels, size = 64, 56
    for blocks, inner, stride in ((3, 64, 1), (4, 128, 2), (6, 256, 2), (3, 512, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            yield NetworkLayer(size, channels, inner, stride=step)
            if block == 0:
                yield NetworkLayer(size, channels, 4 * inner, stride=step)
            size //= step
            yield NetworkLayer(size, inner, inner, 3, padding=(1, 1))
            yield NetworkLayer(size, inner, 4 * inner)
            channels = 4 * inner


def _vgg_16():
    channels, size = 3, 224
    for layers, width in ((2, 64), (2, 128), (3, 256), (3, 512), (3, 512)):
        for _ in range(layers):
            yield NetworkLayer(size, channels, width, 3, padding=(1, 1))
            channels = width
        size //= 2


def _inverted(blocks, padding):
    """A first 3 × 3 layer, blocks of three convolutions with a depthwise one in the middle, and a last layer."""
    yield NetworkLayer(224, 3, 32, 3, 2, padding(224, 3, 2))
    channels, size = 32, 112
    for kernel, stride, wider, width, count in blocks:
        for block in range(count):
            step, inner = stride if block == 0 else 1, wider * channels
            if wider > 1:
                yield NetworkLayer(size, channels, inner)
            yield NetworkLayer(size, inner, inner, kernel, step, padding(size, kernel, step), depthwise=True)
            size = -(-size // step)
            yield NetworkLayer(size, inner, width)
            channels = width
    yield NetworkLayer(size, channels, 1280)


def _mobilenet_v2():
    return _inverted(
        ((3, 1, 1, 16, 1), (3, 2, 6, 24, 2), (3, 2, 6, 32, 3), (3, 2, 6, 64, 4), (3, 1, 6, 96, 3), (3, 2, 6, 160, 3),
         (3, 1, 6, 320, 1)), _around)  # fmt: skip


def _efficientnet_lite0():
    return _inverted(
        ((3, 1, 1, 16, 1), (3, 2, 6, 24, 2), (5, 2, 6, 40, 2), (3, 2, 6, 80, 3), (5, 1, 6, 112, 3), (5, 2, 6, 192, 4),
         (3, 1, 6, 320, 1)), _same)  # fmt: skip


#: By name: each layer with the number of times that it occurs, in the order of the network.
NETWORKS = {
    "ResNet-50": Counter(_resnet_50()),
    "VGG-16": Counter(_vgg_16()),
    "MobileNet-V2": Counter(_mobilenet_v2()),
    "EfficientNet-Lite0": Counter(_efficientnet_lite0()),
}

"""Networks that show which models run: shapes of well-known ones with random weights, quantised by ONNX Runtime.

``tilewright models NAME`` writes one, and ``tilewright models --table`` prints their expected cycles.
"""

from functools import partial
from typing import NamedTuple

from .. import architectures
from . import signals, vision

__all__ = ["NETWORKS", "Entry", "build"]


class Entry(NamedTuple):
    """A network."""

    #: Adds it to the maker that it is given; None if its weights come with a package.
    add: object
    #: What it is for, with the size of its input.
    about: str
    #: How it is quantised: the form, and whether activations are int8.
    form: str = "QDQ"
    signed: bool = False


def _of_integers(make, **options):
    return lambda maker: make(maker=maker, **options)


#: By name.
NETWORKS = {
    "mobilenet-v1": Entry(vision.mobilenet_v1, "classes, 224 × 224", "QOperator"),
    "mobilenet-v2": Entry(vision.mobilenet_v2, "classes, 224 × 224"),
    "mobilenet-v3-small": Entry(_of_integers(architectures.mobilenet_v3, which="small"), "classes, 224 × 224"),
    "mobilenet-v3-large": Entry(_of_integers(architectures.mobilenet_v3), "classes, 224 × 224"),
    "efficientnet-lite0": Entry(None, "classes, 224 × 224, trained weights", "QOperator"),
    "efficientnet-b0": Entry(_of_integers(architectures.efficientnet, lite=False), "classes, 224 × 224"),
    "squeezenet": Entry(vision.squeezenet, "classes, 224 × 224", "QOperator"),
    "shufflenet-v2": Entry(vision.shufflenet_v2, "classes, 224 × 224"),
    "ghostnet": Entry(vision.ghostnet, "classes, 224 × 224"),
    "regnet-y-400mf": Entry(vision.regnet_y, "classes, 224 × 224"),
    "resnet-18": Entry(vision.resnet18, "classes, 224 × 224", signed=True),
    "resnet-50": Entry(_of_integers(architectures.resnet50), "classes, 224 × 224"),
    "densenet-100": Entry(vision.densenet, "classes, 32 × 32"),
    "resnet-8": Entry(vision.resnet8, "classes, 32 × 32", "QOperator"),
    "wake-words": Entry(partial(vision.mobilenet_v1, size=(96, 96), width=0.25, classes=2), "persons, 96 × 96"),
    "yolov5n": Entry(_of_integers(architectures.yolov5n), "boxes, 320 × 320"),
    "ssd-lite": Entry(vision.ssd_lite, "boxes, 320 × 320, on MobileNetV2"),
    "blazeface": Entry(vision.blazeface, "faces, 128 × 128"),
    "mtcnn-p": Entry(partial(vision.mtcnn, which="P"), "faces, 120 × 160"),
    "mtcnn-r": Entry(partial(vision.mtcnn, which="R"), "faces, 24 × 24"),
    "mtcnn-o": Entry(partial(vision.mtcnn, which="O"), "faces, 48 × 48"),
    "pp-ocr": Entry(vision.pp_ocr, "text, 320 × 320"),
    "unet-transposed": Entry(partial(vision.unet, mode="transposed"), "masks, 128 × 128"),
    "unet-linear": Entry(partial(vision.unet, mode="linear"), "masks, 128 × 128"),
    "lr-aspp": Entry(vision.lraspp, "masks, 256 × 256, on MobileNetV2"),
    "espcn": Entry(vision.espcn, "three times as many pixels, 120 × 160"),
    "ds-cnn": Entry(signals.speech, "keywords, 49 × 10", "QOperator"),
    "yamnet": Entry(signals.yamnet, "sounds, 96 × 64", signed=True),
    "autoencoder": Entry(signals.anomalies, "anomalies of machines, 640"),
    "tcn": Entry(signals.tcn, "sensors, 256 × 16"),
    "lstm": Entry(signals.lstm, "keywords, 49 × 40; the host computes the LSTM"),
    "bert-tiny": Entry(signals.bert, "text, 128 words"),
    "vit-tiny": Entry(signals.vit, "classes, 224 × 224, two layers"),
}  # fmt: skip


def build(name, *, seed=0):
    """The quantised model, as a ``ModelProto``, and its inputs for a run, by name."""
    from .floats import FloatMaker  # names of the networks do not need ONNX
    from .quantiser import quantised

    entry, maker = NETWORKS[name], FloatMaker(seed)
    if not entry.add:
        from .efficientnet import build_quantised
        from .photographs import load_photograph, prepare

        return build_quantised(), {"image": prepare(load_photograph("coffee"))}
    entry.add(maker)
    return quantised(maker.model(), [maker.draw(1)], form=entry.form, signed=entry.signed), maker.draw(0)

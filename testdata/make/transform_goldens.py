#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes testdata/transforms and testdata/images with the real thing.

    python3 -m venv venv && venv/bin/pip install paddlepaddle==2.6.2 pillow==9.5.0
    venv/bin/python testdata/make/transform_goldens.py

goldens.npz holds two images, `rgb` and `grey`, and for each case below
`<case>.rgb` and `<case>.grey`, what paddle.vision.transforms makes of them with
its default image backend, 'pil'. Pillow is of PaddlePaddle 2.3's time; newer
ones resize columns before rows where that is less work. Random transforms are
given ranges of one value. The same cases, by the same names, are in
tests/data/test_transforms.cc.
"""
import pathlib
import random

import numpy as np
import paddle.vision.transforms as T
import paddle.vision.transforms.functional as F
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parent.parent


def smooth(shape, seed):
    """Random blobs with sharp spots, over the whole range of bytes."""
    rng = np.random.RandomState(seed)
    small = rng.randint(0, 256, (5, 6) + shape[2:]).astype(np.uint8)
    image = Image.fromarray(small).resize(shape[1::-1], Image.BICUBIC)
    pixels = np.array(image)
    spots = rng.rand(*shape[:2]) < 0.08
    pixels[spots] = rng.randint(0, 256, (spots.sum(),) + shape[2:])
    return pixels


RGB = smooth((23, 31, 3), 1)
GREY = smooth((17, 16), 2)
RAMP = np.arange(256, dtype=np.uint8).reshape(16, 16)

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def apply(function):
    """A functional call as a transform."""
    class Apply(T.BaseTransform):
        def _apply_image(self, image):
            return function(image)
    return Apply()


# name: (transforms, images they are for)
CASES = {}


def case(name, *transforms, on=("rgb", "grey")):
    CASES[name] = (T.Compose(list(transforms)), on)


for how in ["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"]:
    case(f"resize_down_{how}", T.Resize((9, 11), how))
    case(f"resize_up_{how}", T.Resize((40, 37), how))
case("resize_edge", T.Resize(12))
case("resize_wide", T.Resize((23, 12)))
case("center_crop", T.CenterCrop(10))
case("center_crop_pair", T.CenterCrop((13, 8)))
case("center_crop_larger", T.CenterCrop((30, 36)))
case("pad_1", T.Pad(2, fill=7), on=("grey",))
case("pad_2", T.Pad([1, 3]))
for mode in ["constant", "edge", "reflect", "symmetric"]:
    case(f"pad_{mode}", T.Pad([1, 2, 3, 4], padding_mode=mode))
case("pad_colour", T.Pad(2, fill=(10, 20, 30)), on=("rgb",))
case("pad_far", T.Pad([40, 30], padding_mode="reflect"))
case("random_crop", T.RandomCrop((27, 35), padding=2), on=("rgb",))
case("hflip", T.RandomHorizontalFlip(1.0))
case("vflip", T.RandomVerticalFlip(1.0))
case("no_flip", T.RandomHorizontalFlip(0.0), T.RandomVerticalFlip(0.0))
case("grayscale_1", T.Grayscale(1))
case("grayscale_3", T.Grayscale(3))
for factor in [0.0, 0.35, 1.0, 1.6]:
    case(f"brightness_{factor}", T.BrightnessTransform([factor, factor]))
    case(f"contrast_{factor}",
         apply(lambda image, f=factor: F.adjust_contrast(image, f)))
    case(f"saturation_{factor}", T.SaturationTransform([factor, factor]))
for shift in [-0.5, -0.2, 0.1, 0.43]:
    case(f"hue_{shift}", T.HueTransform([shift, shift]))
for how in ["nearest", "bilinear", "bicubic"]:
    case(f"rotate_30_{how}", T.RandomRotation([30, 30], how), on=("rgb",))
    case(f"rotate_-77_{how}_expand",
         T.RandomRotation([-77, -77], how, expand=True, fill=50), on=("rgb",))
    case(f"rotate_125_{how}_center",
         T.RandomRotation([125, 125], how, center=(3, 5)), on=("rgb",))
for angle in [0, 90, 180, 270]:
    case(f"rotate_{angle}", T.RandomRotation([angle, angle]), on=("rgb",))
    case(f"rotate_{angle}_expand",
         T.RandomRotation([angle, angle], expand=True), on=("rgb",))
case("resized_crop_whole",
     T.RandomResizedCrop((12, 14), scale=(1, 1), ratio=(31 / 23, 31 / 23)),
     on=("rgb",))
case("resized_crop_centre",
     T.RandomResizedCrop(12, scale=(4, 4), ratio=(0.5, 0.5)))
case("to_tensor", T.ToTensor())
case("to_tensor_hwc", T.ToTensor("HWC"))
case("to_tensor_normalize", T.ToTensor(), T.Normalize(MEAN, STD), on=("rgb",))
case("to_tensor_normalize_grey",
     T.ToTensor(), T.Normalize([0.1307], [0.3081]), on=("grey",))
case("normalize_grey", T.Normalize([127.5], [127.5]), on=("grey",))
case("normalize_grey_hwc",
     T.Normalize([127.5], [127.5], "HWC"), on=("grey",))
case("normalize_hwc", T.Normalize([123.675, 116.28, 103.53],
                                  [58.395, 57.12, 57.375], "HWC"), on=("rgb",))
case("normalize_to_rgb",
     T.Normalize([123.675, 116.28, 103.53], [58.395, 57.12, 57.375], "HWC",
                 True), on=("rgb",))
case("transpose", T.Transpose())
case("transpose_120", T.Transpose((1, 2, 0)))
case("transpose_normalize", T.Transpose(),
     T.Normalize([123.675, 116.28, 103.53], [58.395, 57.12, 57.375]),
     on=("rgb",))
case("imagenet", T.Resize(20), T.CenterCrop(16), T.ToTensor(),
     T.Normalize(MEAN, STD), on=("rgb",))


def make_goldens():
    images = {"rgb": RGB, "grey": GREY}
    arrays = dict(images)
    for name, (transform, on) in CASES.items():
        for which in on:
            random.seed(0)
            np.random.seed(0)
            out = transform(Image.fromarray(images[which]))
            if isinstance(out, Image.Image):
                out = np.array(out)
                if out.ndim == 2:
                    out = out[:, :, None]
            arrays[f"{name}.{which}"] = np.ascontiguousarray(out)
    ramp = Image.fromarray(RAMP)
    arrays["ramp"] = RAMP
    arrays["ramp_to_tensor"] = T.ToTensor()(ramp).numpy()
    arrays["ramp_normalize"] = T.Compose(
        [T.ToTensor(), T.Normalize([0.1307], [0.3081])])(ramp).numpy()
    (ROOT / "transforms").mkdir(parents=True, exist_ok=True)
    np.savez_compressed(ROOT / "transforms" / "goldens.npz", **arrays)


def make_images():
    folder = ROOT / "images"
    folder.mkdir(parents=True, exist_ok=True)
    rgb, grey = Image.fromarray(RGB), Image.fromarray(GREY)
    alpha = rgb.copy()
    alpha.putalpha(Image.fromarray(smooth((23, 31), 3)))
    files = {
        "rgb.png": (rgb, {}),
        "grey.png": (grey, {}),
        "rgba.png": (alpha, {}),
        "palette.png": (rgb.quantize(16), {}),
        "palette_transparent.png": (rgb.quantize(16), {"transparency": 3}),
        "one_bit.png": (grey.convert("1"), {}),
        "grey_alpha.png": (grey.convert("LA"), {}),
        "rgb_444.jpg": (rgb, {"quality": 90, "subsampling": 0}),
        "rgb_420.jpg": (rgb, {"quality": 75, "subsampling": 2}),
        "progressive.jpg": (rgb, {"quality": 80, "progressive": True}),
        "grey.jpg": (grey, {"quality": 85}),
        "cmyk.jpg": (rgb.convert("CMYK"), {"quality": 85}),
    }
    arrays = {}
    for name, (image, options) in files.items():
        image.save(folder / name, **options)
        again = Image.open(folder / name)
        if again.mode == "CMYK":
            continue
        arrays[f"{name}.rgb"] = np.array(again.convert("RGB"))
        arrays[f"{name}.grey"] = np.array(again.convert("RGB").convert("L"))
    np.savez_compressed(folder / "pixels.npz", **arrays)


make_goldens()
make_images()

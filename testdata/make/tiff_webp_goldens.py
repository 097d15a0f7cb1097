#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the TIFF and WebP files of testdata/images and tiff_webp.npz: what
Pillow 13.0.0 decodes them to. Kinds that Pillow does not write come from
libtiff's tiffcp.

    testdata/make/tiff_webp_goldens.py
"""
import pathlib
import struct
import subprocess
import tempfile

import numpy as np
from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "images"
HEIGHT, WIDTH = 7, 11
rng = np.random.default_rng(6)
RGB = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
ALPHA = rng.integers(1, 256, (HEIGHT, WIDTH, 1), dtype=np.uint8)
RGBA = np.concatenate([RGB, ALPHA], 2)
GREY = RGB[:, :, 0].copy()
SMOOTH = np.stack(np.meshgrid(np.arange(16) * 16, np.arange(24) * 10) + [
    np.full((24, 16), 90)], 2).astype(np.uint8)


def tiff(bits, photometric, pixels, tags=(), order="<", big=False):
    """One strip of samples as they are."""
    samples = len(bits)
    fields = [(256, 3, [WIDTH]), (257, 3, [HEIGHT]), (258, 3, bits),
              (259, 3, [1]), (262, 3, [photometric]), (273, 4, [0]),
              (277, 3, [samples]), (278, 3, [HEIGHT]), (279, 4, [len(pixels)])]
    fields = sorted(fields + list(tags))
    word, count = ("Q", "Q") if big else ("I", "H")
    size = struct.calcsize(order + "HH" + word + word)
    start = 16 if big else 8
    extra = start + struct.calcsize(order + count) + size * len(fields) + (8 if big else 4)
    values = b""
    entries = b""
    blobs = []
    for tag, kind, numbers in fields:
        if tag != 273:
            blobs.append(struct.pack(order + "HI"[kind == 4] * len(numbers), *numbers))
        else:
            blobs.append(None)
    outside = sum(len(b) for b in blobs if b and len(b) > struct.calcsize(order + word))
    for (tag, kind, numbers), blob in zip(fields, blobs):
        if blob is None:
            blob = struct.pack(order + "I", extra + outside)
        room = struct.calcsize(order + word)
        if len(blob) > room:
            at = extra + len(values)
            values += blob
            blob = struct.pack(order + word, at)
        entries += struct.pack(order + "HH" + word, tag, kind, len(numbers)) + blob.ljust(room, b"\0")
    mark = b"II" if order == "<" else b"MM"
    head = (mark + struct.pack(order + "HHHQ", 43, 8, 0, 16) if big
            else mark + struct.pack(order + "HI", 42, 8))
    return (head + struct.pack(order + count, len(fields)) + entries
            + struct.pack(order + word, 0) + values + pixels)


def run(*command):
    subprocess.run([str(c) for c in command], check=True)


def pillow_files():
    pictures = {
        "rgb.tif": (RGB, {}), "grey.tif": (GREY, {}), "rgba.tif": (RGBA, {}),
        "lzw.tif": (RGB, {"compression": "tiff_lzw"}),
        "deflate.tif": (RGB, {"compression": "tiff_adobe_deflate"}),
        "packbits.tiff": (GREY, {"compression": "packbits"}),
        "jpeg.tif": (SMOOTH, {"compression": "jpeg"}),
        "lossless.webp": (RGB, {"lossless": True}),
        "lossy.webp": (SMOOTH, {"quality": 80}),
        "alpha.webp": (RGBA, {"lossless": True, "exact": True}),
    }
    for name, (array, options) in pictures.items():
        Image.fromarray(array).save(FOLDER / name, **options)
    bits = Image.fromarray(GREY).convert("1")
    bits.save(FOLDER / "fax.tif", compression="group4")
    Image.fromarray(RGB).quantize(16).save(FOLDER / "palette.tif")
    for orientation in range(2, 9):
        Image.fromarray(RGB).save(FOLDER / f"turned{orientation}.tif",
                                  tiffinfo={274: orientation})
    frames = [Image.fromarray(RGBA), Image.fromarray(RGBA[::-1].copy())]
    frames[0].save(FOLDER / "animated.webp", save_all=True, lossless=True,
                   append_images=frames[1:], duration=50)


def own_files():
    four = np.packbits(np.unpackbits(
        (GREY >> 4).reshape(HEIGHT, WIDTH, 1), axis=2)[:, :, 4:].reshape(HEIGHT, -1), axis=1)
    two = np.packbits(np.unpackbits(
        (GREY >> 6).reshape(HEIGHT, WIDTH, 1), axis=2)[:, :, 6:].reshape(HEIGHT, -1), axis=1)
    deep = rng.integers(0, 65536, (HEIGHT, WIDTH, 3), dtype=np.uint16)
    files = {
        "white.tif": tiff([8], 0, GREY.tobytes()),
        "four_bit.tif": tiff([4], 1, four.tobytes()),
        "two_bit.tif": tiff([2], 0, two.tobytes()),
        "deep.tif": tiff([16] * 3, 2, deep.tobytes()),
        "deep_big_endian.tif": tiff([16] * 3, 2, deep.astype(">u2").tobytes(), order=">"),
        "big.tif": tiff([8] * 3, 2, RGB.tobytes(), big=True),
        "premultiplied.tif": tiff(
            [8] * 4, 2, np.concatenate([(RGB.astype(int) * ALPHA // 255).astype(np.uint8),
                                        ALPHA], 2).tobytes(), [(338, 3, [1])]),
    }
    for name, data in files.items():
        (FOLDER / name).write_bytes(data)
    with tempfile.TemporaryDirectory() as temp:
        large = np.kron(RGB, np.ones((3, 3, 1), np.uint8))
        Image.fromarray(large).save(f"{temp}/rgb.tif")
        run("tiffcp", "-t", "-w", 16, "-l", 16, "-c", "zip", f"{temp}/rgb.tif", FOLDER / "tiles.tif")
        run("tiffcp", "-p", "separate", "-c", "lzw", "-r", 3, FOLDER / "rgb.tif", FOLDER / "planes.tif")


def main():
    pillow_files()
    own_files()
    goldens = {}
    for path in sorted(FOLDER.glob("*.tif*")) + sorted(FOLDER.glob("*.webp")):
        with Image.open(path) as image:
            goldens[path.name + ".rgb"] = np.asarray(image.convert("RGB"))
            goldens[path.name + ".grey"] = np.asarray(image.convert("RGB").convert("L"))[..., None]
    np.savez_compressed(FOLDER / "tiff_webp.npz", **goldens)


if __name__ == "__main__":
    main()

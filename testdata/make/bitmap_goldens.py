#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the bitmaps of testdata/images and bitmaps.npz: what Pillow 13.0.0
decodes them to. Kinds that Pillow does not write are put together here.

    testdata/make/bitmap_goldens.py
"""
import pathlib
import struct

import numpy as np
from PIL import Image

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "images"
HEIGHT, WIDTH = 7, 11
rng = np.random.default_rng(5)
RGB = rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8)
GREY = RGB[:, :, 0].copy()
INDEX = rng.integers(0, 5, (HEIGHT, WIDTH), dtype=np.uint8)
PALETTE = rng.integers(0, 256, (16, 4), dtype=np.uint8)


def bmp(bits, compression, pixels, palette=b"", masks=b"", height=HEIGHT):
    start = 14 + 40 + len(masks) + len(palette)
    return (struct.pack("<2sIHHI", b"BM", start + len(pixels), 0, 0, start)
            + struct.pack("<IiiHHIIiiII", 40, WIDTH, height, 1, bits,
                          compression, len(pixels), 0, 0, len(palette) // 4, 0)
            + masks + palette + pixels)


def rows(values):
    """Rows bottom up, padded to 4 bytes."""
    out = b""
    for row in values[::-1]:
        row = row.tobytes()
        out += row + bytes(-len(row) % 4)
    return out


def rle8():
    out = b""
    for y, row in enumerate(INDEX[::-1]):
        if y == 2:  # as they are, with a byte of padding
            out += bytes([0, WIDTH]) + row.tobytes() + bytes(WIDTH % 2)
        elif y == 4:  # four pixels, a jump over the rest
            out += bytes([4, row[0]]) + b"\0\2\3\0" + bytes([2, row[9]])
        else:
            for value in row:
                out += bytes([1, value])
        out += b"\0\0"
    return out + b"\0\1"


def rle4():
    out = b""
    for y, row in enumerate(INDEX[::-1]):
        pair = row[0] << 4 | row[1]
        if y % 2:
            out += bytes([WIDTH, pair])
        else:
            padded = list(row) + [0]
            packed = bytes(a << 4 | b for a, b in zip(padded[::2], padded[1::2]))
            out += bytes([0, WIDTH]) + packed + bytes(len(packed) % 2)
        out += b"\0\0"
    return out + b"\0\1"


def pnm(kind, most, body):
    return f"P{kind}\n# a comment\n{WIDTH} {HEIGHT}\n".encode() + (
        f"{most}\n".encode() if most else b"") + body


def text(values):
    return " ".join(str(v) for v in values.reshape(-1)).encode() + b"\n"


def files():
    rgb, grey = Image.fromarray(RGB), Image.fromarray(GREY)
    saved = {"rgb.bmp": rgb, "grey.bmp": grey, "one_bit.bmp": grey.convert("1"),
             "palette.bmp": rgb.quantize(16), "rgb.ppm": rgb, "grey.pgm": grey,
             "bits.pbm": grey.convert("1")}
    for name, image in saved.items():
        image.save(FOLDER / name)
    colours = PALETTE.tobytes()
    nibbles = np.zeros((HEIGHT, (WIDTH + 1) // 2), np.uint8)
    nibbles += INDEX[:, ::2] << 4
    nibbles[:, :WIDTH // 2] |= INDEX[:, 1::2]
    sixteen = rng.integers(0, 1 << 16, (HEIGHT, WIDTH)).astype("<u2")
    four = np.dstack([RGB[:, :, ::-1], np.full((HEIGHT, WIDTH), 7, np.uint8)])
    made = {
        "four_bit.bmp": bmp(4, 0, rows(nibbles), colours),
        "rle8.bmp": bmp(8, 1, rle8(), colours),
        "rle4.bmp": bmp(4, 2, rle4(), colours),
        "rgb555.bmp": bmp(16, 0, rows(sixteen)),
        "rgb565.bmp": bmp(16, 3, rows(sixteen),
                          masks=struct.pack("<III", 0xf800, 0x7e0, 0x1f)),
        "rgb32.bmp": bmp(32, 0, rows(four)),
        "top_down.bmp": bmp(24, 0, rows(RGB[::-1, :, ::-1]), height=-HEIGHT),
        "os2.bmp": struct.pack("<2sIHHIIHHHH", b"BM", 0, 0, 0, 26, 12, WIDTH,
                               HEIGHT, 1, 24) + rows(RGB[:, :, ::-1]),
        "plain.pbm": pnm(1, 0, "".join(
            "".join(map(str, row)) + "\n" for row in INDEX % 2).encode()),
        "plain.pgm": pnm(2, 31, text(GREY % 32)),
        "plain.ppm": pnm(3, 255, text(RGB)),
        "seven.pgm": pnm(5, 7, (GREY % 8).tobytes()),
        "deep.ppm": pnm(6, 1000, (RGB.astype(">u2") * 3).tobytes()),
    }
    for name, content in made.items():
        (FOLDER / name).write_bytes(content)
    return sorted([*saved, *made])


arrays = {}
for name in files():
    image = Image.open(FOLDER / name).convert("RGB")
    arrays[f"{name}.rgb"] = np.array(image)
    arrays[f"{name}.grey"] = np.array(image.convert("L"))
np.savez_compressed(FOLDER / "bitmaps.npz", **arrays)

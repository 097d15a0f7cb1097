#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes pictures of handwritten digits on coloured ground, and masks that say of each pixel which digit it belongs to.

    make_data.py MNIST FOLDER TRAIN EVAL

MNIST is a folder with MNIST's files. FOLDER gets train/images, train/masks, eval/images and eval/masks with TRAIN and EVAL pairs of
PNG files of 64 x 64 pixels. Class 0 is the ground, 1 + digit a digit. Digits to judge by are those of MNIST's test set.
"""
import gzip
import os
import struct
import sys
import zlib

import numpy as np

SIDE = 64


def idx(path):
    with gzip.open(path) as file:
        data = file.read()
    shape = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def png(path, pixels):
    """Grey [H, W] or colour [H, W, 3]."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    height, width = pixels.shape[:2]
    rows = np.zeros((height, 1 + pixels[0].size), np.uint8)
    rows[:, 1:] = pixels.reshape(height, -1)
    with open(path, "wb") as file:
        file.write(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2 * (pixels.ndim == 3), 0, 0, 0)) +
                   chunk(b"IDAT", zlib.compress(rows.tobytes(), 9)) + chunk(b"IEND", b""))


def make(digits, labels, folder, count, seed):
    rng = np.random.RandomState(seed)
    for kind in ("images", "masks"):
        os.makedirs(f"{folder}/{kind}", exist_ok=True)
    for n in range(count):
        # The ground fades from one colour to another and is darker than the ink.
        fade = np.linspace(0, 1, SIDE)[:, None, None] * np.ones((1, SIDE, 1))
        image = rng.randint(0, 120, 3) * fade + rng.randint(0, 120, 3) * (1 - fade)
        mask = np.zeros((SIDE, SIDE), np.uint8)
        for corner in rng.permutation(4)[:rng.randint(1, 5)]:
            one = rng.randint(len(digits))
            y, x = corner // 2 * 32 + rng.randint(5), corner % 2 * 32 + rng.randint(5)
            ink = digits[one][:, :, None] / 255
            part = image[y:y + 28, x:x + 28]
            part[:] = part * (1 - ink) + rng.randint(150, 256, 3) * ink
            mask[y:y + 28, x:x + 28][digits[one] > 127] = 1 + labels[one]
        png(f"{folder}/images/{n:05}.png", image.astype(np.uint8))
        png(f"{folder}/masks/{n:05}.png", mask)


def main():
    mnist, folder, train, judge = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for name, kind, count, seed in (("train", "train", train, 1), ("eval", "t10k", judge, 2)):
        make(idx(f"{mnist}/{kind}-images-idx3-ubyte.gz"), idx(f"{mnist}/{kind}-labels-idx1-ubyte.gz"), f"{folder}/{name}", count, seed)


main()

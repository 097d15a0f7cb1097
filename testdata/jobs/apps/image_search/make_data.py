#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes small.bin.gz: drawn pictures of 10 classes in the form of CIFAR-10's binary files, for a first try.

    make_data.py FOLDER

A record is a byte with the class and 3072 of pixels, 32 x 32, first all red ones. The class is the shape (0 to 4) of a bright thing
on a dark ground, and 5 more for a dark thing on a bright ground.
"""
import gzip
import sys

import numpy as np

SIDE = 32


def shape(kind, y, x, radius):
    """Which pixels a shape covers, y and x being distances from its middle."""
    if kind == 0:
        return y * y + x * x <= radius * radius
    if kind == 1:
        return np.maximum(abs(y), abs(x)) <= radius * 0.8
    if kind == 2:
        return (y <= radius * 0.7) & (y >= 2 * abs(x) - radius)
    if kind == 3:
        return np.minimum(abs(y), abs(x)) * 3 + np.maximum(abs(y), abs(x)) <= radius * 1.1
    ring = y * y + x * x
    return (ring <= radius * radius) & (ring >= radius * radius * 0.3)


def main():
    rng = np.random.RandomState(1)
    rows = []
    for n in range(500):
        label = n % 10
        dark, bright = rng.randint(0, 90, 3), rng.randint(150, 256, 3)
        if label >= 5:
            dark, bright = bright, dark
        radius = rng.uniform(7, 12)
        y, x = np.mgrid[:SIDE, :SIDE] - rng.uniform(radius, SIDE - radius, 2)[:, None, None]
        covered = shape(label % 5, y, x, radius)
        picture = np.where(covered, bright[:, None, None], dark[:, None, None]).astype("uint8")
        rows.append(bytes([label]) + picture.tobytes())
    # No time and no name in the header: the same bytes every time.
    with open(sys.argv[1] + "/small.bin.gz", "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed:
        packed.write(b"".join(rows))


main()

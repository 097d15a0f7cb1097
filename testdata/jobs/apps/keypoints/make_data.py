#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes drawn faces and where their eyes, nose and corners of the mouth are.

    make_data.py FOLDER TRAIN EVAL

FOLDER gets train.npz and eval.npz: image [N, 48, 48, 1] uint8; label [N, 10] float32, x and y of left eye, right eye, nose, left and
right corner of the mouth as parts of the width, from -1 to 1.
"""
import sys

import numpy as np

SIDE = 48


def make(path, count, seed):
    rng = np.random.RandomState(seed)
    image, label = np.zeros((count, SIDE, SIDE, 1), np.uint8), np.zeros((count, 5, 2))
    y, x = (np.mgrid[:SIDE, :SIDE] + 0.5) / SIDE * 2 - 1
    for n in range(count):
        size, angle = rng.uniform(0.5, 0.75), rng.uniform(-0.4, 0.4)
        middle = rng.uniform(size * 0.9 - 1, 1 - size * 0.9, 2)
        # Coordinates in which the face is upright and of height 2.
        u = ((x - middle[0]) * np.cos(angle) + (y - middle[1]) * np.sin(angle)) / size
        v = ((y - middle[1]) * np.cos(angle) - (x - middle[0]) * np.sin(angle)) / size
        apart, eyes, nose = rng.uniform(0.28, 0.42), rng.uniform(-0.35, -0.2), rng.uniform(0.02, 0.2)
        mouth, wide, smile = rng.uniform(0.45, 0.6), rng.uniform(0.2, 0.38), rng.uniform(-0.15, 0.2)
        points = np.array([[-apart, eyes], [apart, eyes], [0, nose], [-wide, mouth], [wide, mouth]])
        ground, skin, dark = rng.randint(0, 256), rng.randint(120, 230), rng.randint(0, 70)
        face = np.full((SIDE, SIDE), ground, float)
        face[(u / 0.75) ** 2 + v ** 2 < 1] = skin
        for point in points[:2]:
            face[(u - point[0]) ** 2 + ((v - point[1]) * 1.5) ** 2 < 0.012] = dark
        face[(abs(u) < 0.05 + 0.1 * (v - nose + 0.3)) & (v < nose) & (v > nose - 0.25)] = skin * 0.7
        curve = mouth + smile * (1 - (u / wide) ** 2)
        face[(abs(u) < wide) & (abs(v - curve) < 0.05)] = dark
        image[n, :, :, 0] = face
        back = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
        label[n] = points @ back * size + middle
    np.savez_compressed(path, image=image, label=label.reshape(count, 10).round(4).astype("float32"))


make(sys.argv[1] + "/train.npz", int(sys.argv[2]), 1)
make(sys.argv[1] + "/eval.npz", int(sys.argv[3]), 2)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes train.npz and eval.npz: pictures of up to 3 rectangles of 3 classes, and their boxes.

    make_data.py FOLDER

image [N, 64, 64, 3] uint8; gt_box [N, 3, 4] float32 as parts of the picture (xmin, ymin, xmax, ymax) and gt_centre (centre, width,
height); gt_label [N, 3] int64. Boxes of zeros stand where a picture has fewer. The class is the colour: 0 reddish, 1 greenish, 2 bluish.
"""
import sys

import numpy as np

SIDE = 64


def make(path, count, seed):
    rng = np.random.RandomState(seed)
    image = np.zeros((count, SIDE, SIDE, 3), "uint8")
    box, label = np.zeros((count, 3, 4)), np.zeros((count, 3), "int64")
    for n in range(count):
        image[n] = rng.randint(0, 60, 3)
        kept = 0
        for _ in range(rng.randint(1, 4)):
            w, h = rng.randint(12, 33, 2)
            x, y = rng.randint(0, SIDE - w), rng.randint(0, SIDE - h)
            # A rectangle that covers another would hide what is to be found.
            if any(x < b[2] + 2 and b[0] < x + w + 2 and y < b[3] + 2 and b[1] < y + h + 2 for b in box[n, :kept] * SIDE):
                continue
            kind = rng.randint(3)
            colour = rng.randint(20, 90, 3)
            colour[kind] = rng.randint(170, 256)
            image[n, y:y + h, x:x + w] = colour
            box[n, kept], label[n, kept] = np.array([x, y, x + w, y + h]) / SIDE, kind
            kept += 1
    centre = np.concatenate([(box[..., :2] + box[..., 2:]) / 2, box[..., 2:] - box[..., :2]], 2)
    np.savez_compressed(path, image=image, gt_box=box.astype("float32"), gt_centre=centre.astype("float32"), gt_label=label)


make(sys.argv[1] + "/train.npz", 256, 1)
make(sys.argv[1] + "/eval.npz", 64, 2)

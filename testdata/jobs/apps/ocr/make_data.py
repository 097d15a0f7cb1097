#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes lines of 3 to 5 handwritten digits, which overlap or stand apart, and what they say.

    make_data.py MNIST FOLDER TRAIN EVAL

MNIST is a folder with MNIST's files. FOLDER gets train.npz and eval.npz: image [N, 28, 128, 1] uint8; label [N, 5] int64, behind its
end 0; label_length [N, 1] int64. Lines to judge by are made of MNIST's test set.
"""
import gzip
import struct
import sys

import numpy as np


def idx(path):
    with gzip.open(path) as file:
        data = file.read()
    shape = struct.unpack(f">{data[3]}I", data[4:4 + 4 * data[3]])
    return np.frombuffer(data, np.uint8, offset=4 + 4 * data[3]).reshape(shape)


def make(path, digits, labels, count, seed):
    rng = np.random.RandomState(seed)
    image = np.zeros((count, 28, 128, 1), np.uint8)
    label = np.zeros((count, 5), np.int64)
    length = rng.randint(3, 6, (count, 1))
    for n in range(count):
        x = rng.randint(0, 5)
        for k in range(length[n, 0]):
            one = rng.randint(len(digits))
            part = image[n, :, x:x + 28, 0]
            np.maximum(part, digits[one][:, :part.shape[1]], out=part)
            label[n, k] = labels[one]
            x += rng.randint(20, 25)
    np.savez_compressed(path, image=image, label=label, label_length=length)


def main():
    mnist, folder, train, judge = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    for name, kind, count, seed in (("train", "train", train, 1), ("eval", "t10k", judge, 2)):
        make(f"{folder}/{name}.npz", idx(f"{mnist}/{kind}-images-idx3-ubyte.gz"), idx(f"{mnist}/{kind}-labels-idx1-ubyte.gz"), count, seed)


main()

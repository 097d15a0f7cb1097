#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes clouds of points on the surfaces of bodies: 0 sphere, 1 box, 2 cylinder, 3 cone, 4 ring, 5 pyramid.

    make_data.py FOLDER TRAIN EVAL

FOLDER gets train.npz and eval.npz: points [N, 128, 3] float32, label [N, 1] int64. Bodies have different proportions, are turned round
the upright axis, and no point lies quite on the surface. Coordinates are multiples of 1/64, which packs well.
"""
import sys

import numpy as np

POINTS = 128


def surface(kind, rng):
    """Points of a body about as large as the sphere of radius 1, the third coordinate pointing up."""
    angle, high = rng.uniform(0, 2 * np.pi, POINTS), rng.uniform(-1, 1, POINTS)
    wide, tall = rng.uniform(0.5, 1), rng.uniform(0.6, 1)
    circle = np.stack([np.cos(angle), np.sin(angle)], 1)
    if kind == 0:
        return np.concatenate([circle * np.sqrt(1 - high ** 2)[:, None] * wide, high[:, None] * tall], 1)
    if kind == 1:
        p = rng.uniform(-1, 1, (POINTS, 3))
        p[np.arange(POINTS), rng.randint(0, 3, POINTS)] = rng.choice([-1, 1], POINTS)
        return p * [wide, wide * rng.uniform(0.6, 1), tall]
    # Of bodies with a base some points lie on it.
    base = rng.uniform(size=POINTS) < 0.25
    inside = np.sqrt(rng.uniform(size=POINTS))[:, None]
    if kind == 2:
        lid = base[:, None] * np.sign(high)[:, None] + ~base[:, None] * high[:, None]
        return np.concatenate([circle * np.where(base[:, None], inside, 1) * wide, lid * tall], 1)
    if kind == 3:
        return np.concatenate([circle * inside * wide, np.where(base[:, None], -1, 1 - 2 * inside) * tall], 1)
    if kind == 4:
        other, thick = rng.uniform(0, 2 * np.pi, POINTS), rng.uniform(0.15, 0.35)
        return np.concatenate([circle * (wide + thick * np.cos(other)[:, None]), thick * np.sin(other)[:, None]], 1)
    square = rng.uniform(-1, 1, (POINTS, 2))
    square = np.where(base[:, None], square, square / abs(square).max(1, keepdims=True) * inside)
    return np.concatenate([square * wide, np.where(base[:, None], -1, 1 - 2 * inside) * tall], 1)


def make(path, count, seed):
    rng = np.random.RandomState(seed)
    points, label = np.zeros((count, POINTS, 3)), np.zeros((count, 1), np.int64)
    for n in range(count):
        label[n] = n % 6
        turn = rng.uniform(0, 2 * np.pi)
        turned = np.array([[np.cos(turn), -np.sin(turn), 0], [np.sin(turn), np.cos(turn), 0], [0, 0, 1]])
        points[n] = surface(n % 6, rng) @ turned + rng.normal(0, 0.05, (POINTS, 3))
    np.savez_compressed(path, points=(np.round(points * 64) / 64).astype("float32"), label=label)


make(sys.argv[1] + "/train.npz", int(sys.argv[2]), 1)
make(sys.argv[1] + "/eval.npz", int(sys.argv[3]), 2)

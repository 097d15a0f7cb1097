#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes windows of a made-up measurement, one every five minutes for weeks, with and without anomalies.

    make_data.py FOLDER

The series has a daily course, slow drifts and noise, like the artificial ones of the Numenta Anomaly Benchmark. FOLDER gets train.npz:
window [N, 1, 288] float32, a day each from every hour on, without anomalies; and eval.npz, of other weeks, with label [N, 1] int64: 1
where a part of an hour or two is too high, too low, flat, or noisy.
"""
import sys

import numpy as np

DAY = 288


def series(rng, days):
    t = np.arange(days * DAY) / DAY
    course = np.exp(-((t % 1 - 0.55) / 0.17) ** 2) * 1.5 + 0.3 * np.sin(4 * np.pi * t)
    drift = np.convolve(rng.normal(0, 0.02, len(t)), np.ones(DAY) / 8, "same")
    return (course + drift + rng.normal(0, 0.07, len(t))) * rng.uniform(0.98, 1.02)


def rounded(windows):
    return (np.round(windows[:, None, :] * 64) / 64).astype("float32")


def main():
    rng = np.random.RandomState(1)
    normal = series(rng, 28)
    np.savez_compressed(sys.argv[1] + "/train.npz", window=rounded(np.stack([normal[i:i + DAY] for i in range(0, len(normal) - DAY, 12)])))
    other = series(rng, 14)
    windows = np.stack([other[i:i + DAY] for i in range(0, len(other) - DAY, 24)])
    label = (rng.uniform(size=(len(windows), 1)) < 0.4).astype(np.int64)
    for n in np.flatnonzero(label):
        length = rng.randint(12, 30)
        part = windows[n][rng.randint(0, DAY - length):][:length]
        kind = rng.randint(4)
        if kind < 2:
            part += (1 - 2 * kind) * rng.uniform(0.4, 0.8)
        elif kind == 2:
            part[:] = rng.uniform(-0.5, 1.5)
        else:
            part += rng.normal(0, 0.35, length)
    np.savez_compressed(sys.argv[1] + "/eval.npz", window=rounded(windows), label=label)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes testdata/friedman and testdata/words anew.

make_example_data.py MOBY_DICK.txt TESTDATA
"""
import csv
import math
import os
import random
import re
import sys


def friedman(rows, seed):
    """Friedman, "Multivariate adaptive regression splines", 1991, eq. 61."""
    draw = random.Random(seed)
    for _ in range(rows):
        x = [round(draw.random(), 4) for _ in range(10)]
        y = (10 * math.sin(math.pi * x[0] * x[1]) + 20 * (x[2] - 0.5)**2 +
             10 * x[3] + 5 * x[4] + draw.gauss(0, 1))
        yield [*x, round(y, 4)]


def words(path):
    """Words of 4 to 12 letters, one half of them written backwards."""
    with open(path, encoding="utf-8") as text:
        found = sorted(set(re.findall(r"\b[a-z]{4,12}\b", text.read())))
    draw = random.Random(1851)
    draw.shuffle(found)
    seen = set(found)
    for word in found:
        backwards = draw.random() < 0.5
        shown = word[::-1] if backwards else word
        if backwards and shown in seen:  # "live" and "evil"
            continue
        yield [*(ord(c) - 96 for c in shown),
               *[0] * (12 - len(shown)),
               int(backwards)]


def write(path, head, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "w", newline="", encoding="ascii") as out:
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(head)
        writer.writerows(rows)


def main():
    text, root = sys.argv[1:]
    head = [f"x{i}" for i in range(1, 11)] + ["y"]
    write(f"{root}/friedman/train.csv", head, friedman(1500, 1))
    write(f"{root}/friedman/eval.csv", head, friedman(500, 2))
    rows = list(words(text))
    head = [f"c{i}" for i in range(1, 13)] + ["backwards"]
    write(f"{root}/words/train.csv", head, rows[:4000])
    write(f"{root}/words/eval.csv", head, rows[4000:5000])


if __name__ == "__main__":
    main()

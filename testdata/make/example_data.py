#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes testdata/friedman, testdata/words and testdata/clicks anew.

example_data.py MOBY_DICK.txt TESTDATA
"""
import csv
import gzip
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


class Clicks:
    """A shop's visitors: whether user u clicks on item i at some hour.

    logit = -1 + a_u + b_i + 1.2 <p_u, q_i> + c_hour, so that the probability
    behind every answer is known.
    """

    USERS, ITEMS, FACTORS = 150, 200, 4

    def __init__(self, seed):
        self.draw = random.Random(seed)
        one = lambda size: self.draw.gauss(0, size)
        self.user = [(one(0.7), [one(1) for _ in range(self.FACTORS)])
                     for _ in range(self.USERS)]
        self.item = [(one(0.7), [one(1) for _ in range(self.FACTORS)])
                     for _ in range(self.ITEMS)]

    def rows(self, count):
        for _ in range(count):
            u = self.draw.randrange(self.USERS)
            i = self.draw.randrange(self.ITEMS)
            hour = self.draw.randrange(24)
            (a, p), (b, q) = self.user[u], self.item[i]
            logit = (a + b - 1 + 1.2 * sum(x * y for x, y in zip(p, q)) +
                     math.sin(math.pi * hour / 12))
            probability = 1 / (1 + math.exp(-logit))
            yield [u, self.USERS + i, self.USERS + self.ITEMS + hour,
                   int(self.draw.random() < probability),
                   round(probability, 4)]


def write(path, head, rows):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    opened = gzip.open if path.endswith(".gz") else open
    with opened(path, "wt", newline="", encoding="ascii") as out:
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
    clicks = Clicks(3)
    head = ["user", "item", "hour", "label", "probability"]
    write(f"{root}/clicks/train.csv.gz", head, clicks.rows(40000))
    write(f"{root}/clicks/eval.csv.gz", head, clicks.rows(5000))


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sums of numbers of up to three digits, none twice.

    make_data.py FOLDER TRAIN EVAL

FOLDER gets train.tsv.gz and eval.tsv.gz: lines "12+345", a tab, and " 357": filled up with blanks in front, so that questions have 7
characters and answers 4.
"""
import gzip
import sys

import numpy as np

rng = np.random.RandomState(1)
seen, lines = set(), []
folder, train, judge = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
while len(lines) < train + judge:
    pair = tuple(rng.randint(0, 10 ** rng.randint(1, 4)) for _ in range(2))
    # A sum whose other order is known is no new question.
    if pair in seen or pair[::-1] in seen:
        continue
    seen.add(pair)
    lines.append("{:>7}\t{:>4}\n".format("{}+{}".format(*pair), sum(pair)))
for name, part in (("train", lines[:train]), ("eval", lines[train:])):
    with open(f"{folder}/{name}.tsv.gz", "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed:
        packed.write("".join(part).encode())

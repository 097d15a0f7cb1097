#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes sums of all pairs of numbers below 100.

    make_data.py FOLDER EVAL

FOLDER gets train.tsv.gz and, with EVAL pairs of both orders, eval.tsv.gz: lines "12+34", a tab, and " 46": filled up with blanks in
front, so that questions have 5 characters and answers 3. A pair and its other order are in the same file.
"""
import gzip
import sys

import numpy as np

folder, judge = sys.argv[1], int(sys.argv[2])
pairs = [(a, b) for a in range(100) for b in range(a + 1)]
pairs = [pairs[k] for k in np.random.RandomState(1).permutation(len(pairs))]
for name, part in (("train", pairs[judge:]), ("eval", pairs[:judge])):
    lines = sorted({"{:>5}\t{:>3}\n".format(f"{x}+{y}", a + b) for a, b in part for x, y in ((a, b), (b, a))})
    with open(f"{folder}/{name}.tsv.gz", "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed:
        packed.write("".join(lines).encode())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns word vectors in the form of GloVe's or word2vec's text files into what a job reads.

    from_glove.py VECTORS FOLDER [WORDS]

VECTORS holds a word and its numbers a line, the most frequent words first; WORDS is how many are taken (default: all). FOLDER gets
words.txt, a word a line behind <pad> and <unk>, and vectors.npz with the table "vectors.weight" in the same order. <pad> has zeros,
<unk> the mean of all.
"""
import sys

import numpy as np

words, rows = [], []
with open(sys.argv[1], encoding="utf-8") as file:
    for line in file:
        parts = line.rstrip().split(" ")
        # word2vec's first line says how many there are.
        if len(parts) > 2:
            words.append(parts[0])
            rows.append(np.array(parts[1:], np.float32))
        if len(sys.argv) > 3 and len(words) == int(sys.argv[3]):
            break
table = np.stack([np.zeros_like(rows[0]), np.mean(rows, 0)] + rows)
np.savez_compressed(sys.argv[2] + "/vectors.npz", **{"vectors.weight": table})
with open(sys.argv[2] + "/words.txt", "w", encoding="utf-8") as out:
    out.write("".join(word + "\n" for word in ["<pad>", "<unk>"] + words))

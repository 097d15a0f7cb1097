#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes word vectors that were learned from many reviews without labels, and a few reviews with labels.

    make_data.py FOLDER

The reviews are made by ../text_classification/make_data.py, with other random numbers. FOLDER gets vectors.txt in the form of GloVe's
files (a word and its numbers a line) and train.tsv, 200 lines as there. The vectors are those of latent semantic analysis: which words
stand in the same reviews.
"""
import gzip
import os
import re
import subprocess
import sys
import tempfile

import numpy as np

SIZE, LABELLED = 4, 200


def main():
    other = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../text_classification/make_data.py")
    with tempfile.TemporaryDirectory() as folder:
        # The lines behind the 5000 that the other application has.
        subprocess.run([sys.executable, other, folder, "5000", str(40000 + LABELLED)], check=True)
        with gzip.open(folder + "/eval.tsv.gz", "rt") as file:
            lines = file.readlines()
    with open(sys.argv[1] + "/train.tsv", "w") as out:
        out.writelines(lines[:LABELLED])
    texts = [re.findall(r"\w+|[^\w\s]", line.split("\t")[1].lower()) for line in lines[LABELLED:]]
    words = sorted({word for text in texts for word in text})
    number = {word: n for n, word in enumerate(words)}
    counts = np.zeros((len(words), len(texts)))
    for column, text in enumerate(texts):
        for word in text:
            counts[number[word], column] += 1
    rarity = np.log(len(texts) / (counts > 0).sum(1, keepdims=True))
    weighted = np.log1p(counts) * rarity
    # The first direction is that of frequent words.
    weighted /= np.maximum(np.linalg.norm(weighted, axis=1, keepdims=True), 1e-9)
    values, vectors = np.linalg.eigh(weighted @ weighted.T)
    vectors = (vectors * values)[:, ::-1][:, 1:1 + SIZE]
    vectors /= vectors.std()
    with open(sys.argv[1] + "/vectors.txt", "w") as out:
        for word, vector in zip(words, vectors):
            out.write(" ".join([word] + [f"{value:.4f}" for value in vector]) + "\n")


main()

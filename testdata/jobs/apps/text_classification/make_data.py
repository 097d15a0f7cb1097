#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes made-up reviews of films, and which of them are good.

    make_data.py FOLDER TRAIN EVAL

FOLDER gets train.tsv.gz and eval.tsv.gz: lines of "good" or "bad", a tab, and 1 to 5 sentences. Each sentence praises or blames, with
"not" or "hardly" the other way round; the review says what most of its sentences say, the last one counting twice.
"""
import gzip
import sys

import numpy as np

PRAISE = ("great wonderful superb brilliant touching funny clever moving excellent charming gripping fresh elegant delightful "
          "convincing warm bold honest memorable witty").split()
BLAME = ("awful boring dull weak terrible clumsy silly tedious poor flat predictable lifeless confused shallow noisy cheap "
         "forgettable wooden slow dreadful").split()
THINGS = ("plot film story cast script music acting ending dialogue camera director hero villain pace beginning humour "
          "scenery cutting cartoon sequel").split()
STRONG = ["very", "really", "quite", "rather", "simply", "truly"]


def sentence(rng, mood):
    """A sentence, most often of the review's mood, and whether it praises."""
    good, turned = mood if rng.uniform() < 0.9 else 1 - mood, rng.uniform() < 0.3
    word = (PRAISE if good != turned else BLAME)[rng.randint(20)]
    thing = THINGS[rng.randint(20)]
    strong = STRONG[rng.randint(6)] + " " if rng.randint(2) else ""
    negation = ("not " if rng.randint(2) else "hardly ") if turned else ""
    verb = "was" if rng.randint(2) else "is"
    form = rng.randint(4)
    if form == 0:
        return f"the {thing} {verb} {negation}{strong}{word}", good
    if form == 1:
        return f"I {'found' if verb == 'was' else 'find'} the {thing} {negation}{strong}{word}", good
    if form == 2:
        return f"with a {thing} that {verb} {negation}{word} , who needs another {THINGS[rng.randint(20)]} ?", good
    return f"everybody told me that the {thing} {verb} {strong}{word} and they were {'wrong' if turned else 'right'}", good


def review(rng):
    while True:
        mood = rng.randint(2)
        parts = [sentence(rng, mood) for _ in range(rng.randint(1, 6))]
        votes = [2 * good - 1 for _, good in parts]
        total = sum(votes) + votes[-1]
        if total:
            text = " . ".join(text for text, _ in parts)
            return f"{'good' if total > 0 else 'bad'}\t{text[0].upper() + text[1:]} .\n"


rng = np.random.RandomState(1)
for name, count in (("train", int(sys.argv[2])), ("eval", int(sys.argv[3]))):
    with open(f"{sys.argv[1]}/{name}.tsv.gz", "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed:
        packed.write("".join(review(rng) for _ in range(count)).encode())

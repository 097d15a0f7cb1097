#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes English sentences of a small grammar and their German translations.

    make_data.py FOLDER TRAIN EVAL

FOLDER gets train.en.gz, train.de.gz, eval.en.gz and eval.de.gz; no sentence stands there twice. In German articles and adjectives
change with gender and case, and some verbs stand at the end.
"""
import gzip
import sys

import numpy as np

NOUNS = [("man", "mann", "m"), ("woman", "frau", "f"), ("child", "kind", "n"), ("dog", "hund", "m"), ("cat", "katze", "f"),
         ("horse", "pferd", "n"), ("friend", "freund", "m"), ("queen", "königin", "f"), ("girl", "mädchen", "n"), ("king", "könig", "m"),
         ("fish", "fisch", "m"), ("house", "haus", "n"), ("book", "buch", "n"), ("lamp", "lampe", "f"), ("table", "tisch", "m"),
         ("flower", "blume", "f"), ("ship", "schiff", "n"), ("letter", "brief", "m"), ("town", "stadt", "f"), ("picture", "bild", "n")]
ADJECTIVES = [("old", "alt"), ("young", "jung"), ("small", "klein"), ("big", "groß"), ("red", "rot"), ("beautiful", "schön"),
              ("new", "neu"), ("good", "gut"), ("white", "weiß"), ("quiet", "still")]
# English third person and infinitive, German third person and infinitive.
VERBS = [("sees", "see", "sieht", "sehen"), ("finds", "find", "findet", "finden"), ("paints", "paint", "malt", "malen"),
         ("buys", "buy", "kauft", "kaufen"), ("loves", "love", "liebt", "lieben"), ("seeks", "seek", "sucht", "suchen"),
         ("brings", "bring", "bringt", "bringen"), ("knows", "know", "kennt", "kennen"), ("hears", "hear", "hört", "hören"),
         ("draws", "draw", "zeichnet", "zeichnen")]
MODALS = [("can", "kann"), ("must", "muss"), ("will", "wird"), ("wants to", "will")]
TIMES = [("today", "heute"), ("tomorrow", "morgen"), ("often", "oft"), ("never", "nie")]
DEFINITE = {"m": ("der", "den"), "f": ("die", "die"), "n": ("das", "das")}
INDEFINITE = {"m": ("ein", "einen"), "f": ("eine", "eine"), "n": ("ein", "ein")}
ENDING = {"m": ("er", "en"), "f": ("e", "e"), "n": ("es", "es")}


def phrase(rng, case):
    """A noun with an article and perhaps an adjective; case is 0 for the subject, 1 for the object."""
    english, german, gender = NOUNS[rng.randint(len(NOUNS) if case else 10)]
    definite = rng.randint(2)
    words, translated = [], [(DEFINITE if definite else INDEFINITE)[gender][case]]
    if rng.randint(2):
        adjective = ADJECTIVES[rng.randint(len(ADJECTIVES))]
        words.append(adjective[0])
        ending = ENDING[gender][case] if not definite else "en" if case and gender == "m" else "e"
        translated.append(adjective[1] + ending)
    words.append(english)
    article = "the" if definite else "an" if words[0][0] in "aeiou" else "a"
    return [article] + words, translated + [german]


def sentence(rng):
    subject, thing = phrase(rng, 0), phrase(rng, 1)
    verb = VERBS[rng.randint(len(VERBS))]
    # A time at the beginning puts the German verb before the subject.
    time = TIMES[rng.randint(3)] if rng.randint(2) else None
    if rng.randint(2):
        modal = MODALS[rng.randint(len(MODALS))]
        english, first, last = [modal[0], verb[1]], [modal[1]], [verb[3]]
    else:
        english, first, last = [verb[0]], [verb[2]], []
    english = subject[0] + english + thing[0]
    if time:
        return " ".join([time[0]] + english + ["."]), " ".join([time[1]] + first + subject[1] + thing[1] + last + ["."])
    return " ".join(english + ["."]), " ".join(subject[1] + first + thing[1] + last + ["."])


def main():
    folder, train, judge = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
    rng, pairs = np.random.RandomState(1), {}
    while len(pairs) < train + judge:
        english, german = sentence(rng)
        pairs[english] = german
    pairs = list(pairs.items())
    for name, part in (("train", pairs[:train]), ("eval", pairs[train:])):
        for k, language in enumerate(("en", "de")):
            with open(f"{folder}/{name}.{language}.gz", "wb") as out, gzip.GzipFile("", "wb", 9, out, 0) as packed:
                packed.write("".join(pair[k] + "\n" for pair in part).encode())


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes ml-1m.zip: made-up films, people and ratings, laid out as MovieLens 1M.

    make_data.py FOLDER

Every film has some of six kinds, every person likes and dislikes kinds; the rating is 3.5, what film and person are like in general,
how well they fit, and chance, rounded to 1 to 5.
"""
import sys
import zipfile

import numpy as np

KINDS = ["Action", "Comedy", "Drama", "Horror", "Romance", "Thriller"]
PEOPLE, FILMS, RATINGS = 400, 250, 16000


def main():
    rng = np.random.RandomState(1)
    kinds = rng.uniform(size=(FILMS, 6)) < 0.3
    kinds[np.arange(FILMS), rng.randint(0, 6, FILMS)] = True
    taste = rng.normal(0, 0.8, (PEOPLE, 6))
    film_is, person_is = rng.normal(0, 0.4, FILMS), rng.normal(0, 0.3, PEOPLE)
    pairs = rng.permutation(PEOPLE * FILMS)[:RATINGS]
    person, film = np.sort(pairs) // FILMS, np.sort(pairs) % FILMS
    fit = (taste[person] * kinds[film]).sum(1) / kinds[film].sum(1)
    rating = np.clip(np.round(3.5 + film_is[film] + person_is[person] + fit + rng.normal(0, 0.7, RATINGS)), 1, 5).astype(int)
    movies = [f"{n + 1}::Film {n + 1} ({1950 + n % 50})::{'|'.join(np.array(KINDS)[kinds[n]])}\n" for n in range(FILMS)]
    ages = [1, 18, 25, 35, 45, 50, 56]
    users = [f"{n + 1}::{'FM'[rng.randint(2)]}::{ages[rng.randint(7)]}::{rng.randint(21)}::{rng.randint(10000, 99999)}\n" for n in range(PEOPLE)]
    ratings = [f"{a + 1}::{b + 1}::{r}::{978300000 + n}\n" for n, (a, b, r) in enumerate(zip(person, film, rating))]
    with zipfile.ZipFile(sys.argv[1] + "/ml-1m.zip", "w", zipfile.ZIP_DEFLATED) as out:
        for name, lines in (("movies", movies), ("ratings", ratings), ("users", users)):
            # The date stays the same, so the bytes do.
            out.writestr(zipfile.ZipInfo(f"ml-1m/{name}.dat"), "".join(lines).encode("latin-1"), zipfile.ZIP_DEFLATED, 9)


main()

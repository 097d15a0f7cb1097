#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""compare_states.py FOLDER: what pd-train made of a training of
testdata/fleet/train against PaddlePaddle's, without NumPy.
compare_states.py GOT.npz WANT.npz LIMIT: all arrays of WANT.

losses: |got - want| <= 2e-5 |want| + 1e-6. States: the tolerance that case.json
gives for each variable."""
import array
import ast
import json
import os
import struct
import sys
import zipfile

TYPES = {"f4": "f", "f8": "d", "i4": "i", "i8": "q", "b1": "b", "u1": "B", "i1": "b", "i2": "h"}


def numbers(data):
    """The elements of a .npy file, row-major."""
    assert data[:6] == b"\x93NUMPY"
    size = struct.unpack("<H" if data[6] == 1 else "<I", data[8:10] if data[6] == 1 else data[8:12])[0]
    begin = (10 if data[6] == 1 else 12)
    header = ast.literal_eval(data[begin:begin + size].decode())
    values = array.array(TYPES[header["descr"][1:]])
    values.frombytes(data[begin + size:])
    return [float(v) for v in values]


def arrays(path):
    with zipfile.ZipFile(path) as z:
        return {n[:-4]: numbers(z.read(n)) for n in z.namelist()}


def worst(got, want, tolerance):
    """The largest excess over tolerance(want), 0 when all are within."""
    if len(got) != len(want):
        return float("inf")
    return max([abs(g - w) - tolerance(w) for g, w in zip(got, want)] + [0.0])


def main(folder):
    with open(f"{folder}/case.json", encoding="utf-8") as f:
        case = json.load(f)
    bad, compared = [], 0
    for r, rank in enumerate(case["ranks"]):
        path = f"{folder}/losses{r}.json"
        if os.path.exists(path):
            with open(path, encoding="utf-8") as f:
                got = json.load(f)
            with open(f"{folder}/rank{r}/losses.npy", "rb") as f:
                want = numbers(f.read())
            excess = worst(got, want, lambda w: 2e-5 * abs(w) + 1e-6)
            compared += len(want)
            if excess > 0:
                bad.append(f"rank {r}: losses {got}, expected {want}")
        for form in ("pdparams", "pdopt"):
            want = arrays(f"{folder}/rank{r}/final.{form}.npz")
            got = arrays(f"{folder}/out{r}.{form}.npz")
            for name, values in want.items():
                limit = rank["final_atol"].get(name, 1e-6)
                if name not in got:
                    bad.append(f"rank {r}: '{name}' is missing")
                elif worst(got[name], values, lambda w, limit=limit: limit) > 0:
                    bad.append(f"rank {r}: '{name}' differs by more than {limit}")
                compared += len(values)
    for line in bad:
        print(line, file=sys.stderr)
    return 1 if bad or compared == 0 else 0


def compare(got, want, limit):
    """0 where each array of `want` is in `got` within `limit`."""
    got, want = arrays(got), arrays(want)
    bad = [n for n, values in want.items()
           if n not in got or worst(got[n], values, lambda _: limit) > 0]
    for name in bad:
        print(f"'{name}' is missing or differs by more than {limit}", file=sys.stderr)
    return 1 if bad or not want else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]) if len(sys.argv) == 2 else compare(*sys.argv[1:3], float(sys.argv[3])))

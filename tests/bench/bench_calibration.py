#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes an npz file with random images to calibrate a network with whose
answers do not matter: bench_calibration.py OUT NAME N,C,H,W. Needs nothing
beyond Python: an npz file is a zip of npy files."""
import array
import random
import struct
import sys
import zipfile


def npy(shape, values):
    header = "{'descr': '<f4', 'fortran_order': False, 'shape': (%s,), }" % ", ".join(map(str, shape))
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values.tobytes()


def main():
    out, name, shape = sys.argv[1], sys.argv[2], [int(n) for n in sys.argv[3].split(",")]
    count = 1
    for extent in shape:
        count *= extent
    numbers = random.Random(0)
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr(name + ".npy", npy(shape, array.array("f", (numbers.gauss(0, 1) for _ in range(count)))))


main()

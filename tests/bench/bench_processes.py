#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_processes.py BIN [WORKLOAD...]: records a second of a training in several
processes on this machine beside one process with as many threads, as a table.

    scripts/bench --processes [WORKLOAD...]

Each workload trains on random data: one process with N threads and no shards,
then N processes of one thread each with N shards, in turn, three times; the
median of each counts. "between" is the share of the time that rank 0 spends in
exchanging numbers and waiting for the others."""
import json
import os
import statistics
import subprocess
import sys
import tempfile
import zipfile
import array
import random
import struct

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
# Workload: fields (name, shape of a record, type, below), records, batch size.
WORKLOADS = {
    "resnet18_cifar": ([("image", (3, 32, 32), "f", None), ("label", (), "q", 10)], 512, 64),
    "transformer_small": ([("ids", (64,), "q", 8000), ("label", (64,), "q", 8000)], 512, 32),
}


def npy(values, shape):
    """The bytes of a .npy file."""
    kind = {"f": "<f4", "q": "<i8"}[values.typecode]
    head = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"
    head += " " * (63 - (10 + len(head)) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + values.tobytes()


def write_data(path, fields, records):
    rng = random.Random(1)
    with zipfile.ZipFile(path, "w") as z:
        for name, shape, kind, below in fields:
            count = records
            for extent in shape:
                count *= extent
            values = array.array(kind, ((rng.random() - 0.5 if below is None else rng.randrange(below))
                                        for _ in range(count)))
            z.writestr(name + ".npy", npy(values, (records,) + shape))


def run(tool, job, folder, options):
    """Records a second, and the share of the time between processes."""
    out = os.path.join(folder, "run")
    subprocess.run(["rm", "-rf", out], check=True)
    subprocess.run([tool, "-q", "-c", job, "--out", out] + options, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    return (summary["records"] / summary["seconds"],
            summary.get("exchange_seconds", 0) / summary["seconds"])


def main(arguments):
    tool = os.path.join(arguments[0], "pd-train")
    names = arguments[1:] or list(WORKLOADS)
    cores = len(os.sched_getaffinity(0))
    print("| workload | threads or processes | one process, records/s | several | ratio | between |")
    print("|---|---|---|---|---|---|")
    for name in names:
        fields, records, batch = WORKLOADS[name]
        job = f"{ROOT}/testdata/jobs/bench/{name}.pbtxt"
        with tempfile.TemporaryDirectory() as folder:
            data = os.path.join(folder, "data.npz")
            write_data(data, fields, records)
            common = ["-o", f"data.train.npz.path={data}", "-o", f"data.train.batch_size={batch}",
                      "-o", "train.epochs=3"]
            for n in [n for n in (2, 4) if n <= cores]:
                one, several = [], []
                for _ in range(3):
                    one.append(run(tool, job, folder, common + ["--threads", str(n)])[0])
                    several.append(run(tool, job, folder, common + [
                        "--processes", str(n), "--threads", "1", "-o", f"distributed.shards={n}"]))
                a = statistics.median(one)
                b, between = statistics.median(several)
                print(f"| {name} | {n} | {a:.1f} | {b:.1f} | {b / a:.2f} | {between:.0%} |", flush=True)


if __name__ == "__main__":
    if len(sys.argv) < 2 or any(w not in WORKLOADS for w in sys.argv[2:]):
        sys.exit(__doc__)
    main(sys.argv[1:])

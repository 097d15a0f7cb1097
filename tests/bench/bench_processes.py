#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_processes.py BIN [--link GBIT] [WORKLOAD...]: records a second of a training
in several processes on this machine beside one process with as many threads, as a
table.

    scripts/bench --processes [--link GBIT] [WORKLOAD...]

Each workload trains on random data: one process with N threads and no shards,
then N processes of one thread each with N shards, in turn, three times; the
median of each counts. "between" is the share of the time that rank 0 waits for
numbers of the others, "hidden" the share of their exchange that it does not wait
for, since it computes meanwhile.

With --link the processes run in a network namespace of their own whose loopback
carries GBIT Gbit/s for each of them, with a delay of 50 us where the kernel has
netem. That takes root."""
import contextlib
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
    """Records a second, and the shares of the time that are between processes and
    of the exchange that is hidden."""
    out = os.path.join(folder, "run")
    subprocess.run(["rm", "-rf", out], check=True)
    subprocess.run(tool + ["-q", "-c", job, "--out", out] + options, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(out, "summary.json"), encoding="utf-8") as f:
        summary = json.load(f)
    waited = summary.get("exchange_seconds", 0)
    exchange = summary.get("communication_seconds", 0)
    return (summary["records"] / summary["seconds"], waited / summary["seconds"],
            1 - waited / exchange if exchange > 0 else 0)


def predict(folder, job, options, gbit, processes):
    """Records a second that the simulator expects behind the link."""
    said = subprocess.run(
        [os.path.join(folder, "pd-profile"), "-q", "-c", job, "--format", "json", "--threads", "1", "--steps", "10",
         "--simulate", f"nodes={processes},link={gbit:g}Gb,latency=50us"] + options,
        check=True, stdout=subprocess.PIPE).stdout
    return json.loads(said)["predicted"][-1]["records_per_s"]


@contextlib.contextmanager
def link(gbit, processes):
    """The command that runs others behind such a link."""
    if gbit is None:
        yield []
        return
    name = f"pd_bench_{os.getpid()}"
    inside = ["ip", "netns", "exec", name]
    subprocess.run(["ip", "netns", "add", name], check=True)
    try:
        subprocess.run(inside + ["ip", "link", "set", "lo", "up"], check=True)
        rate = f"{gbit * processes:g}gbit"
        shape = inside + ["tc", "qdisc", "add", "dev", "lo", "root"]
        if subprocess.run(shape + ["netem", "delay", "50us", "rate", rate, "limit", "100000"],
                          stderr=subprocess.DEVNULL).returncode != 0:
            subprocess.run(shape + ["tbf", "rate", rate, "burst", "256kb", "limit", "100mb"], check=True)
            print("this kernel has no netem: the link has its rate and no delay", file=sys.stderr)
        yield inside
    finally:
        subprocess.run(["ip", "netns", "del", name], check=True)


def main(arguments):
    tool = [os.path.join(arguments[0], "pd-train")]
    gbit = None
    names = arguments[1:]
    if names[:1] == ["--link"]:
        gbit, names = float(names[1]), names[2:]
    names = names or list(WORKLOADS)
    cores = len(os.sched_getaffinity(0))
    print("| workload | threads or processes | one process, records/s | several | ratio | between | hidden |" +
          (" predicted |" if gbit else ""))
    print("|---|---|---|---|---|---|---|" + ("---|" if gbit else ""))
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
                    with link(gbit, n) as inside:
                        several.append(run(inside + tool, job, folder, common + [
                            "--processes", str(n), "--threads", "1", "-o", f"distributed.shards={n}"]))
                a = statistics.median(one)
                b, between, hidden = sorted(several)[len(several) // 2]
                row = f"| {name} | {n} | {a:.1f} | {b:.1f} | {b / a:.2f} | {between:.0%} | {hidden:.0%} |"
                if gbit:
                    shards = ["-o", f"distributed.shards={n}"]
                    row += f" {predict(arguments[0], job, common[:4] + shards, gbit, n):.1f} |"
                print(row, flush=True)


if __name__ == "__main__":
    ASKED = sys.argv[4:] if sys.argv[2:3] == ["--link"] else sys.argv[2:]
    if len(sys.argv) < 2 or any(w not in WORKLOADS for w in ASKED):
        sys.exit(__doc__)
    main(sys.argv[1:])

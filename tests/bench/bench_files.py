# SPDX-License-Identifier: Apache-2.0
"""Inspecting and converting files of 1 GB beside cp on the same disk. Standard library only. See scripts/bench.

16 tensors of 64 MB, in the page cache; medians of 5, and the peak memory that is not a mapped file.
"""
import os
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile

from bench_lib import fail, table, tool

ROUNDS = 5


def timed(made, *command):
    """Seconds and anonymous MB of a command that may write the file `made`."""
    seconds, anonymous = [], 0
    for _ in range(ROUNDS):
        if os.path.exists(made):
            os.remove(made)
        begin = time.monotonic()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status") as status:
                    anonymous = max([anonymous, *(int(line.split()[1]) for line in status if line.startswith("RssAnon"))])
            except OSError:
                pass
            time.sleep(0.002)
        seconds.append(time.monotonic() - begin)
        if process.returncode:
            fail(f"{' '.join(command)} exits {process.returncode}")
    return [f"{statistics.median(seconds):.2f}", f"{anonymous / 1024:.0f}"]


def write_npz(path):
    header = (b"\x93NUMPY\x01\x00\x76\x00" +
              b"{'descr': '<f4', 'fortran_order': False, 'shape': (4096, 4096), }".ljust(117) + b"\n")
    values = b"".join((i * 2654435761 % 2**23 | 0x3f800000).to_bytes(4, "little") for i in range(2**16))
    with zipfile.ZipFile(path, "w") as out:
        for i in range(16):
            out.writestr(f"layer_{i}.weight.npy", header + values * 2**8)


def measure(parent):
    """Rows of (what, seconds, MB)."""
    convert, rows = tool("pd-convert"), []
    with tempfile.TemporaryDirectory(prefix="pd-bench.", dir=parent) as folder:
        made = f"{folder}/out"
        write_npz(f"{folder}/w.npz")
        for form in ("pdparams", "safetensors"):
            subprocess.run([convert, "-q", f"{folder}/w.npz", f"{folder}/w.{form}"], check=True, stdout=subprocess.DEVNULL)
        os.remove(f"{folder}/w.npz")
        for form in ("pdparams", "safetensors"):
            inspect = convert, "-q", "--inspect", f"{folder}/w.{form}"
            rows.append([f"inspect .{form}", *timed(made, *inspect)])
            rows.append([f"inspect .{form} --no-stats", *timed(made, *inspect, "--no-stats")])
        rows.append(["cp", *timed(made, "cp", f"{folder}/w.pdparams", made)])
        # What pd-convert writes is synced before it is renamed.
        rows.append(["cp and sync", *timed(made, "sh", "-c", f"cp '{folder}/w.pdparams' '{made}' && sync '{made}'")])
        for old, new in (("pdparams", "safetensors"), ("pdparams", "pdparams"), ("pdparams", "pdiparams"),
                         ("pdparams", "npz"), ("safetensors", "pdparams")):
            rows.append([f".{old} to .{new}", *timed(made, convert, "-q", f"{folder}/w.{old}", made, "--to", new)])
    return rows


def markdown(rows):
    return table(["what, 1 GB", "seconds", "MB beyond the mapped file"], rows)


if __name__ == "__main__":
    print(markdown(measure(sys.argv[1] if len(sys.argv) > 1 else "/tmp")))

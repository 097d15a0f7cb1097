# SPDX-License-Identifier: Apache-2.0
"""Everything beside its peers, in pieces that are kept. Standard library only. See scripts/bench.

A piece is a file of --out: machine.json (with our versions), limit-tN.json and CASE-tN.json (what the peers' limit.py
and run_all.py write, for N threads), startup.json, loading.json, files.json, sizes.json, curves.json. What is there is
not measured again; --table makes one page of it.
"""
import argparse
import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
import time

import bench_curves
import bench_files
from bench_lib import BUILD, GOALS, RESULTS, ROOT, THREADS, digits, fail, machine, ours, select, table, tool

# (workload, mode, batch): seconds from the start of the process to its first step that are the goal.
STARTUP_GOALS = {("lenet_mnist", "train", 64): 0.25, ("mlp_mnist", "infer", 128): 0.1, ("resnet50_imagenet", "infer", 1): 0.3}
MEMORY_GOAL = 0.6
NOISE = 0.05  # above this share of the cores used by others, a number is noise
ROUNDS = 5


def with_threads(count):
    return f"{count} thread" + "s" * (count != 1)


def threads_wanted():
    words = os.environ.get("PD_BENCH_THREADS", str(THREADS)).split()
    if not words or not all(w.isdigit() and int(w) > 0 for w in words):
        fail(f"PD_BENCH_THREADS is '{' '.join(words)}'; expected numbers")
    return list(map(int, words))


# ---- measuring: each gives what its piece holds

def versions():
    text = subprocess.run([tool("pd-train"), "--version"], check=True, capture_output=True, text=True).stdout
    pairs = [line.split(None, 1) for line in text.splitlines()[1:]]
    return {p[0]: p[1] for p in pairs if len(p) == 2 and p[0] in ("build", "oneDNN", "Highway")}


def limit(folder, threads):
    done = subprocess.run([sys.executable, os.path.join(folder, "limit.py"), "--threads", str(threads)],
                          check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def beside_peers(folder, case, threads, peers):
    """The rows of run_all.py; `peers` are its peers, all for none."""
    flags = shlex.split(os.environ.get("PD_BENCH_FLAGS", ""))
    if peers:
        flags += ["--peers", *peers]
    with tempfile.TemporaryDirectory() as scratch:
        subprocess.run([sys.executable, os.path.join(folder, "run_all.py"), "--cases", ":".join(map(str, case)),
                        "--threads", str(threads), "--no-limit", "--out", f"{scratch}/out", *flags,
                        "--ours", shlex.quote(os.path.join(ROOT, "scripts/bench")) +
                        " {workload} {mode} {batch} {threads} {seconds}"],
                       check=True, env=dict(os.environ, BUILD_DIR=BUILD))
        with open(f"{scratch}/out.json") as f:
            return json.load(f)


def startup():
    rows = []
    for case in STARTUP_GOALS:
        lines = [ours(*case, THREADS, 0) for _ in range(ROUNDS)]
        if None in lines:
            fail("the start could not be measured")
        rows.append([*case, *(statistics.median(line[key] for line in lines) for key in ("first_step_s", "peak_rss_mb"))])
    return rows


def loading():
    """How long training waits for its batches, decoded, cropped and shuffled."""
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run([tool("pd-train"), "-q", "-c", os.path.join(ROOT, "testdata/jobs/lenet_mnist.pbtxt"),
                               "-o", "train.epochs=1", "-o", "data.eval=", "--out", f"{scratch}/run", "--format", "json"],
                              check=True, capture_output=True, text=True)
    run = json.loads(done.stdout)
    return [run["records"], run["seconds"], run["wait_seconds"]]


def sizes():
    """What is installed, stripped as a package would be."""
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for path in (os.path.join(BUILD, "lib/libpd.so"), *map(tool, ("pd-train", "pd-eval", "pd-export", "pd-convert"))):
            subprocess.run(["strip", "-o", f"{scratch}/stripped", os.path.realpath(path)], check=True)
            rows.append([os.path.basename(path), os.path.getsize(f"{scratch}/stripped")])
    return rows


# ---- keeping

class Kept:
    """The pieces in a folder."""

    def __init__(self, folder):
        self.folder = folder

    def read(self, name):
        try:
            with open(os.path.join(self.folder, name + ".json")) as f:
                return json.load(f)
        except FileNotFoundError:
            return None
        except ValueError as e:
            fail(f"{self.folder}/{name}.json is damaged ({e}); delete it")

    def get(self, name, make):
        """The piece; made first where there is none."""
        found = self.read(name)
        if found is None:
            print(f"bench: measuring {name}", file=sys.stderr, flush=True)
            found = make()
            path = os.path.join(self.folder, name + ".json")
            with open(path + ".part", "w") as f:
                json.dump(found, f, indent=1)
            os.rename(path + ".part", path)
        return found


def piece(case, threads):
    return "-".join(map(str, case)) + f"-t{threads}"


def rows_of(report):
    return report["cases"][0]["rows"] if report and report["cases"] else {}


def best_peer(rows):
    peers = {name: row["step_ms_median"] for name, row in rows.items() if name != "ours" and row.get("step_ms_median")}
    return min(peers, key=peers.get) if peers else None


PARTS = {"startup": startup, "loading": loading, "files": lambda: bench_files.measure("/tmp"), "sizes": sizes,
         "curves": lambda: bench_curves.measure(1)}


def measure(folder, names, kept):
    threads = threads_wanted()
    kept.get("machine", lambda: {**machine(), "versions": versions(), "date": time.strftime("%Y-%m-%d")})
    parts = [name for name in names if name in PARTS] if names else list(PARTS)
    named = [name for name in names if name not in PARTS]
    for case in select(named) if named or not names else []:
        first = kept.get(piece(case, threads[0]), lambda: beside_peers(folder, case, threads[0], []))
        best = best_peer(rows_of(first))
        for n in threads[1:]:
            kept.get(piece(case, n), lambda: beside_peers(folder, case, n, [best.replace(" ", ":")] if best else ["none"]))
    for n in threads:
        kept.get(f"limit-t{n}", lambda: limit(folder, n))
    for name in parts:
        kept.get(name, PARTS[name])
    kept.get("operations", lambda: operations(folder))


def operations(folder):
    """{workload: {mode: operations of a sample}}, as the peers count them."""
    sys.path.insert(0, folder)
    import workloads
    return {name: {mode: w.flops(mode) for mode in ("train", "infer")} for name, w in workloads.WORKLOADS.items()}


# ---- the page

class Page:
    def __init__(self, kept):
        self.kept = kept
        self.machine = kept.read("machine") or fail(f"{kept.folder} holds nothing that was measured")
        self.operations = kept.read("operations") or {}
        self.cases = []  # (case, threads, rows)
        for file in os.listdir(kept.folder):
            report = kept.read(file[:-5]) if file.endswith(".json") and "-t" in file else None
            if report and report.get("cases"):
                c = report["cases"][0]
                self.cases.append(((c["workload"], c["mode"], c["batch"]), report["threads"], rows_of(report), report))
        order = list(GOALS)
        self.cases.sort(key=lambda c: (-c[1], order.index(c[0]) if c[0] in order else len(order), c[0]))

    def of_peak(self, case, threads, row):
        top = (self.kept.read(f"limit-t{threads}") or {}).get("peak_f32_gflops")
        work = self.operations.get(case[0], {}).get(case[1])
        if not top or not work or not row or not row.get("step_ms_median"):
            return None
        return case[2] * work / row["step_ms_median"] / 1e6 / top

    def head(self):
        m, out = self.machine, ["# Measured beside its peers", "", "Written by `scripts/bench --peers`.", ""]
        out.append(f"Machine: {m['cpu']}, {m['cores']} cores, {m['vectors']}, {m['caches']}, {m['memory_gb']} GB, "
                   f"Linux {m['kernel']}; {m['date']}.")
        peers = sorted({f"{row['peer']} {row['version']}" for _, _, rows, _ in self.cases for row in rows.values()
                        if row.get("peer") and row.get("version") and row["peer"] != "pdkit"})
        out += ["", "Versions: " + ", ".join([f"{k} {v}" for k, v in m["versions"].items()] + peers) + "."]
        for threads in sorted({c[1] for c in self.cases}, reverse=True):
            found = self.kept.read(f"limit-t{threads}")
            if found:
                out += ["", f"Limit with {with_threads(threads)}: " +
                        ", ".join(f"{k} {v}" for k, v in found.items() if isinstance(v, (int, float))) + "."]
        return out

    def summary(self):
        rows = []
        for case, threads, found, _ in self.cases:
            own, name = found.get("ours", {}), best_peer(found)
            peer, goal = found.get(name, {}), GOALS.get(case)
            times = [own.get("step_ms_median"), peer.get("step_ms_median")]
            ratio = times[1] / times[0] if all(times) else None
            memory = [r["peak_rss_mb"] for n, r in found.items() if n != "ours" and r.get("peak_rss_mb")]
            share = own["peak_rss_mb"] / min(memory) if memory and own.get("peak_rss_mb") else None
            noisy = any((r.get("others_cpu") or 0) > NOISE for r in (own, peer))
            rows.append([*case, threads, digits(times[0]), name, digits(times[1]),
                         digits(ratio) + (" (noise)" if ratio and noisy else ""),
                         f"{goal} {'reached' if ratio >= goal else 'missed'}" if goal and ratio else goal,
                         *(digits(self.of_peak(case, threads, r), 2) for r in (own, peer)), digits(share, 2)])
        return ["## Summary", "", "Medians of the step. Ratio: how many times the best peer's speed ours is, and the goal "
                "for it. Of peak: the workload's operations by what the cores reached at most. Memory: our peak over that "
                f"of the peer that needs least; the goal is {MEMORY_GOAL}. Noise: others used more than {NOISE:.0%} of the "
                "cores.", "",
                table(["workload", "mode", "batch", "threads", "ours ms", "best peer", "its ms", "ratio", "goal",
                       "ours of peak", "peer's of peak", "memory"], rows)]

    def startup(self):
        found = self.kept.read("startup")
        if not found:
            return []
        rows = []
        for workload, mode, batch, seconds, rss in found:
            case, peers = (workload, mode, batch), {}
            for other, _, measured, _ in self.cases[::-1]:  # the most threads last
                if other == case:
                    peers |= {n: r["first_step_s"] for n, r in measured.items() if n != "ours" and r.get("first_step_s")}
            goal = STARTUP_GOALS.get(case)
            rows.append([*case, digits(seconds), f"{goal} {'reached' if seconds <= goal else 'missed'}" if goal else "",
                         digits(rss), ", ".join(f"{n} {digits(s)}" for n, s in sorted(peers.items(), key=lambda p: p[1]))])
        return ["", "## From the start of the process to the end of the first step", "",
                f"Medians of {ROUNDS} processes, files in the page cache.", "",
                table(["workload", "mode", "batch", "ours s", "goal", "peak MB", "peers s"], rows)]

    def details(self):
        out = ["", "## Every program", "", "Spread: the slowest round over the fastest, less 1. Others: the share of the "
               "cores that other processes used."]
        for case, threads, found, report in self.cases:
            own, rows = found.get("ours", {}), []
            for name, row in found.items():
                if "unsupported" in row:
                    rows.append([name, row["unsupported"].replace("|", "/").replace("\n", " ")[:100], *[""] * 8])
                    continue
                ratio = row["step_ms_median"] / own["step_ms_median"] if name != "ours" and "step_ms_median" in own else None
                rows.append([name, *(digits(row[k], 4) for k in ("step_ms_median", "step_ms_p90", "samples_per_s")),
                             digits(self.of_peak(case, threads, row), 2), digits(ratio),
                             *(digits(row.get(k)) for k in ("first_step_s", "peak_rss_mb", "spread", "others_cpu"))])
            out += ["", f"### {case[0]} {case[1]}, batch {case[2]}, {with_threads(threads)}", "",
                    f"Rounds: {report['rounds']} of {report['seconds']:g} s, {report['date']}.", "",
                    table(["program", "step ms", "p90", "samples/s", "of peak", "ours/peer", "first step s", "peak MB",
                           "spread", "others"], rows)]
        return out

    def rest(self):
        out, read = [], self.kept.read
        if read("curves"):
            out += ["", "## How the time grows", "", "![curves](curves.svg)", "",
                    "To linear: the growth of the time over the growth of the work; 1 is linear.", "",
                    bench_curves.markdown(read("curves")).rstrip()]
        if read("loading"):
            records, seconds, wait = read("loading")
            out += ["", "## Loading, one epoch of testdata/jobs/lenet_mnist.pbtxt", "",
                    table(["records/s", "seconds", "of them waiting for data"],
                          [[f"{records / seconds:.0f}", f"{seconds:.2f}", f"{wait:.3f} ({wait / seconds:.1%})"]])]
        if read("files"):
            out += ["", "## Files, medians of 5", "", bench_files.markdown(read("files"))]
        if read("sizes"):
            found = read("sizes")
            out += ["", "## Sizes", "", table(["file, stripped", "bytes"], [*found, ["together", sum(b for _, b in found)]])]
        return out

    def write(self, path):
        parts = [self.head(), [""], self.summary(), self.startup(), self.details(), self.rest()]
        with open(path, "w") as f:
            f.write("\n".join(line for part in parts for line in part) + "\n")
        curves = self.kept.read("curves")
        if curves:
            with open(os.path.join(os.path.dirname(os.path.abspath(path)), "curves.svg"), "w") as f:
                f.write(bench_curves.svg(curves))
        print(f"written: {path}", file=sys.stderr)


def main():
    p = argparse.ArgumentParser(prog="bench")
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument("--peers", metavar="DIR", help="measures what is not kept yet, and writes the page")
    what.add_argument("--table", metavar="OUT", help="writes the page of what is kept in OUT")
    p.add_argument("cases", nargs="*", metavar="CASE",
                   help="WORKLOAD[:MODE[:BATCH]], or " + ", ".join(PARTS) + "; default: all")
    p.add_argument("--out", default=os.path.join(BUILD, "bench"), help="where the pieces are kept")
    p.add_argument("--to", default=RESULTS, help="the page")
    args = p.parse_intermixed_args()
    kept = Kept(args.table or args.out)
    if args.peers:
        if not os.path.exists(os.path.join(args.peers, "run_all.py")):
            fail(f"no run_all.py in {args.peers}")
        os.makedirs(args.out, exist_ok=True)
        try:
            measure(os.path.abspath(args.peers), args.cases, kept)
        except subprocess.CalledProcessError as e:
            print(f"bench: error: {' '.join(map(str, e.cmd))}: exit {e.returncode}: {(e.stderr or '').strip()[-400:]}",
                  file=sys.stderr)
            sys.exit(3)
        except KeyboardInterrupt:
            sys.exit(130)
    Page(kept).write(args.to)


if __name__ == "__main__":
    main()

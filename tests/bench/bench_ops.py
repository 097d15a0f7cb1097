#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`scripts/bench --ops [NAME...]`: operators beside PyTorch's same functions, one thread each.

The table ops.txt (its head explains it) has each operator with three sizes: what fits a core's cache, what does not, odd
shapes. Two processes, bench_ops and bench_ops_torch.py, pinned to one CPU, have the same data and work in turns, a few
milliseconds each, --rounds times. Their time is the thread's own (CPU time), so that neighbours matter little; a
ratio is the median of the ratios of the rounds. `forward` runs the operator as a frozen inference program, `train` the
operator and its gradients. Sums of outputs and gradients are compared; a case where they differ is no result.

    scripts/bench --ops [--out FILE] [--rounds N] [--cpu N] [--mode forward|train] [--size SIZE] [--table FILE] [NAME...]
    scripts/bench --ops --page FILE --read JSON...

NAME is an operator's type or a name of the table; without names all are measured. TORCH_PYTHON is a Python with PyTorch
(and torchvision for RoIs and NMS). Prints a row a case and a summary; --out keeps the rows as JSON. The second form
writes what runs have kept as a page, OPS.md.
"""
import argparse
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile

import bench_lib

HERE = os.path.dirname(os.path.abspath(__file__))
SIZES = ["cache", "memory", "odd"]
FLOATS = ("float", "weight", "small", "positive", "unit", "apart", "definite", "boxes")
TURN = 3e6  # nanoseconds
# The memory of a step stays for the next, as peers are run elsewhere.
TUNING = {"MALLOC_MMAP_MAX_": "0", "MALLOC_TRIM_THRESHOLD_": "-1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def read_table(path):
    """The sections of ops.txt: {name: {key: [value of each size]}}."""
    table, section = {}, []
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        line = line.split(" #")[0].strip()
        if not line or line.startswith("#"):
            continue
        if line.startswith("["):
            section = []
            for word in line.strip("[]").split():
                name, _, alias = word.partition(":")
                if name in table:
                    bench_lib.fail(f"{path}:{number}: '{name}' is there twice")
                table[name] = {}
                section.append((name, alias or name))
            continue
        key, colon, value = line.partition(":")
        values = [v.strip() for v in value.split(" | ")]
        if not colon or not section or len(values) not in (1, 3):
            bench_lib.fail(f"{path}:{number}: expected 'key: value' or 'key: cache | memory | odd'")
        for name, alias in section:
            table[name][key] = [v.replace("{}", alias) for v in (values * 3)[:3]]
    return table


class Case:
    """One size of a section, as both sides want it."""

    def __init__(self, name, section, size):
        i = SIZES.index(size)
        self.name, self.size, self.type = name, size, name.split("/")[0]
        values = {key: value[i] for key, value in section.items()}
        self.torch = values.pop("torch")
        self.checked = values.pop("check", "") != "none"
        ins, _, outs = values.pop("op").partition("->")
        grad = values.pop("grad", None)
        self.data = {}
        for var, value in values.items():
            words = value.split()
            kind, shape = words if len(words) == 2 else (section[var][0].split()[0], words[0])
            self.data[var] = (kind, [] if shape == "-" else [int(n) for n in shape.split("x")])
        floats = [v for v, (kind, _) in self.data.items() if kind.split(":")[0] in FLOATS]
        self.grad = floats if grad is None else [] if grad == "none" else grad.split()
        words = [word.partition("=")[::2] for word in ins.split()]
        is_slot = lambda word: all(v in self.data for v in word[1].split(","))
        self.inputs = [w for w in words if is_slot(w)]
        self.attrs = [w for w in words if not is_slot(w)]
        self.outputs = [word.partition("=")[::2] for word in outs.split()] or [("Out", "out")]

    def lines(self, mode, dtypes, folder):
        yield f"case {self.type} {mode}"
        for what, pairs in (("in", self.inputs), ("attr", self.attrs), ("out", self.outputs)):
            for key, value in pairs:
                yield f"{what} {key} {value.replace(',', ' ')}"
        for var, (kind, extents) in self.data.items():
            shape = "x".join(map(str, extents)) or "-"
            yield f"data {var} {dtypes[var]} {shape} {'weight' if kind == 'weight' else 'feed'} {folder}/{var}"
        if mode == "train":
            yield "grad " + " ".join(self.grad)
        yield "end"


class Refused(Exception):
    """A side cannot do a case."""


class Side:
    def __init__(self, command, cpu):
        self.process = subprocess.Popen(["taskset", "-c", str(cpu), *command], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, env={**TUNING, **os.environ})

    def say(self, text):
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()

    def answer(self):
        line = self.process.stdout.readline()
        if not line:
            raise Refused("the process has ended")
        return line.strip()


class Ours(Side):
    def prepare(self, lines):
        for line in lines:
            self.say(line)
        sums, steps = [], []
        while (line := self.answer()) != "done":
            what, _, rest = line.partition(" ")
            if what == "error":
                raise Refused("ours: " + rest)
            if what == "sums":
                numbers = rest.split()[1:]
                sums.append(None if "-" in numbers else [float(n) for n in numbers])
            elif what == "step":
                steps.append(tuple(rest.split()))
        return sums, steps

    def run(self, count):
        self.say(f"run {count}")
        what, _, rest = self.answer().partition(" ")
        if what != "time":
            raise Refused("ours: " + rest)
        return int(rest)


class Torch(Side):
    def ask(self, request):
        self.say(json.dumps(request))
        answer = json.loads(self.answer())
        if isinstance(answer, dict) and "error" in answer:
            raise Refused("torch: " + answer["error"])
        return answer

    def run(self, count):
        return self.ask({"run": count})


def differences(ours, theirs):
    """How the results of the two sides differ, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} results, PyTorch has {len(theirs)}"
    for i, (a, b) in enumerate(zip(ours, theirs)):
        if a is None or b is None:
            continue
        for x, y in zip(a, b):
            if not abs(x - y) <= 1e-3 * (b[2] + 1e-3) and not (math.isnan(x) and math.isnan(y)):
                return f"result {i}: sums {x:.6g}, PyTorch's {y:.6g}"
    return None


def time_of(side, calls):
    side.run(1)  # the other's turn has emptied the caches
    return side.run(calls) / calls


def measure(case, mode, ours, torch, options):
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        dtypes = torch.ask({"make": case.data, "folder": folder})
        theirs = torch.ask({"torch": case.torch, "grad": case.grad, "train": mode == "train"})
        sums, steps = ours.prepare(case.lines(mode, dtypes, folder))
        if case.checked and (difference := differences(sums, theirs)):
            raise Refused(difference)
        sides = (ours, torch)
        calls = [max(1, int(TURN / max(1, side.run(1)))) for side in sides]
        calls = [max(1, int(TURN / max(1, time_of(side, min(n, 50))))) for side, n in zip(sides, calls)]
        rounds = [[time_of(side, n) for side, n in zip(sides, calls)] for _ in range(options.rounds)]
    made = {}
    for type_, implementation in steps:
        made.setdefault(f"{type_}={implementation}", None)
    return {"name": case.name, "size": case.size, "mode": mode,
            "ours_us": statistics.median(r[0] for r in rounds) / 1e3,
            "torch_us": statistics.median(r[1] for r in rounds) / 1e3,
            "ratio": statistics.median(r[0] / r[1] for r in rounds),
            "steps": list(made)}


def parse(argv):
    p = argparse.ArgumentParser(prog="scripts/bench --ops", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("names", nargs="*")
    p.add_argument("--out")
    p.add_argument("--page")
    p.add_argument("--read", nargs="+", default=[])
    p.add_argument("--rounds", type=int, default=7)
    p.add_argument("--cpu", type=int, default=min(os.sched_getaffinity(0)))
    p.add_argument("--mode", choices=["forward", "train"])
    p.add_argument("--size", choices=SIZES)
    p.add_argument("--table", default=os.path.join(HERE, "ops.txt"))
    return p.parse_args(argv)


def cases_of(options):
    table = read_table(options.table)
    for name in options.names:
        if not any(name in (key, key.split("/")[0]) for key in table):
            bench_lib.fail(f"'{name}' is not in {options.table}")
    for name, section in table.items():
        if options.names and name not in options.names and name.split("/")[0] not in options.names:
            continue
        for size in [options.size] if options.size else SIZES:
            case = Case(name, section, size)
            for mode in ["forward"] + ["train"] * bool(case.grad):
                if options.mode in (None, mode):
                    yield case, mode


def summary(rows):
    ratios = [r["ratio"] for r in rows]
    worst = max(rows, key=lambda r: r["ratio"])
    return (f"{len(rows)} cases: median {statistics.median(ratios):.2f}, "
            f"{sum(r > 1.1 for r in ratios)} above 1.1, {sum(r > 2 for r in ratios)} above 2, "
            f"worst {worst['ratio']:.2f} ({worst['name']} {worst['size']} {worst['mode']})")


PAGE = """# Operators beside PyTorch {version}

`scripts/bench --ops` ([README](README.md) has what was measured and tried): our time divided by that of PyTorch's same
function, in one thread, for what fits a core's cache, for what does not, and for odd shapes. Below 1 we are quicker.

{summary}

| operator | forward: cache | memory | odd | train: cache | memory | odd | forward is computed by |
|---|--:|--:|--:|--:|--:|--:|---|
"""


def write_page(path, kept):
    cells = {}
    for row in kept["rows"]:
        cells.setdefault(row["name"], {})[row["mode"], row["size"]] = row
    keys = [(mode, size) for mode in ("forward", "train") for size in SIZES]
    with open(path, "w", encoding="utf-8") as f:
        f.write(PAGE.format(version=kept["torch"], summary=summary(kept["rows"])))
        for name, row in sorted(cells.items()):
            ratios = [f"{row[key]['ratio']:.2f}" if key in row else "" for key in keys]
            steps = next((row[key]["steps"] for key in keys if key in row), [])
            # More than one step where a pass has put other ops in the operator's place.
            made = ", ".join(s.split("=")[1] if len(steps) == 1 else s.replace("=", " ") for s in steps)
            f.write(f"| {name} | {' | '.join(ratios)} | {made} |\n")


def read_kept(paths):
    kept = {"torch": "", "rows": [], "refused": []}
    for path in paths:
        with open(path, encoding="utf-8") as f:
            one = json.load(f)
        kept = {"torch": one["torch"], "rows": kept["rows"] + one["rows"], "refused": kept["refused"] + one["refused"]}
    return kept


def main():
    options = parse(sys.argv[1:])
    if options.page:
        write_page(options.page, read_kept(options.read))
        return
    python = os.environ.get("TORCH_PYTHON") or bench_lib.fail("--ops needs TORCH_PYTHON")
    program = os.path.join(bench_lib.BUILD, "tests/kernels/bench_ops")
    if not os.path.exists(program):
        bench_lib.fail(f"no {program}: build bench_ops first, or set BUILD_DIR")
    command = [python, os.path.join(HERE, "bench_ops_torch.py")]
    ours, torch = Ours([program], options.cpu), Torch(command, options.cpu)
    version = json.loads(torch.answer())
    rows, refused = [], []
    print(f"{'operator':38} {'size':7}{'mode':8}{'ours us':>11}{'torch us':>11}{'ratio':>7}  implementations")
    for case, mode in cases_of(options):
        try:
            row = measure(case, mode, ours, torch, options)
        except Refused as e:
            refused.append({"name": case.name, "size": case.size, "mode": mode, "why": str(e)})
            print(f"{case.name:38} {case.size:7}{mode:8} {e}", flush=True)
            if ours.process.poll() is not None or torch.process.poll() is not None:
                ours, torch = Ours([program], options.cpu), Torch(command, options.cpu)
                torch.answer()
            continue
        rows.append(row)
        print(f"{case.name:38} {case.size:7}{mode:8}{row['ours_us']:11.1f}{row['torch_us']:11.1f}{row['ratio']:7.2f}  "
              + " ".join(row["steps"]), flush=True)
    if rows:
        print(summary(rows))
    if options.out:
        with open(options.out, "w", encoding="utf-8") as f:
            json.dump({"torch": version, "rows": rows, "refused": refused}, f, indent=1)
    sys.exit(1 if refused else 0)


if __name__ == "__main__":
    main()

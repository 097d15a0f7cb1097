# SPDX-License-Identifier: Apache-2.0
"""Keeps how long our steps take, and measures again. Standard library only. See scripts/bench.

A case's time is the median over rounds, which take turns over the cases; its spread the middle rounds' slowest over
their fastest, less 1: of five rounds the second slowest over the second fastest.
"""
import argparse
import json
import statistics
import sys
import time

from bench_lib import THREADS, digits, fail, machine, ours, select, table

LEAST_NOISE = 0.05


def measure(cases, threads, seconds, rounds):
    """{WORKLOAD:MODE:BATCH: times in ms}; a case that failed has none."""
    times = {case: [] for case in cases}
    failed = set()
    for _ in range(rounds):
        for case in cases:
            line = None if case in failed else ours(*case, threads, seconds)
            if line is None:
                failed.add(case)
            else:
                times[case].append(line["step_ms_median"])
    return {":".join(map(str, case)): [] if case in failed else sorted(t) for case, t in times.items()}


def spread(times):
    cut = len(times) // 4
    middle = sorted(times)[cut:len(times) - cut]
    return middle[-1] / middle[0] - 1


def same_machine(old, new, anyway):
    odd = [key for key in ("cpu", "cores", "vectors") if old.get(key) != new[key]]
    for key in odd:
        print(f"bench: {key} was '{old.get(key)}' and is '{new[key]}'", file=sys.stderr)
    if odd and not anyway:
        fail("the baseline is another machine's, a comparison would mean nothing; --anyway compares")


def report(old, new):
    """The table, and whether nothing got slower."""
    rows, good = [], True
    for name, before in old.items():
        after = new[name]
        if not before or not after:
            good = good and bool(after)
            rows.append([name, *("fails" if not t else digits(statistics.median(t), 4) for t in (before, after)), "", "",
                         "fails" if not after else "runs again"])
            continue
        medians = [statistics.median(t) for t in (before, after)]
        noise = max(LEAST_NOISE, spread(before), spread(after))
        ratio = medians[1] / medians[0]
        verdict = "slower" if ratio > 1 + noise else "faster" if ratio < 1 / (1 + noise) else "as before"
        good = good and verdict != "slower"
        rows.append([name, *(digits(m, 4) for m in medians), f"{ratio:.3f}", f"{noise:.3f}", verdict])
    print(table(["case", "before, ms", "now, ms", "now/before", "noise", "verdict"], rows))
    return good


def compare(args):
    try:
        with open(args.compare) as f:
            base = json.load(f)
        old = {name: list(map(float, times)) for name, times in base["cases"].items()}
        threads, seconds, rounds = int(base["threads"]), float(base["seconds"]), int(base["rounds"])
        same_machine(base["machine"], machine(), args.anyway)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as e:
        fail(f"{args.compare} is not what --record writes: {e!r}")
    if args.cases:
        wanted = [":".join(map(str, case)) for case in select(args.cases)]
        old = {name: times for name, times in old.items() if name in wanted}
    if not old:
        fail(f"{args.compare} has none of these cases")
    new = measure(select(list(old)), threads, seconds, rounds)
    sys.exit(0 if report(old, new) else 1)


def main():
    p = argparse.ArgumentParser(prog="bench")
    what = p.add_mutually_exclusive_group(required=True)
    what.add_argument("--record", metavar="FILE", help="measures, and writes FILE")
    what.add_argument("--compare", metavar="FILE", help="measures in the same way, and compares with FILE")
    p.add_argument("cases", nargs="*", metavar="CASE", help="WORKLOAD[:MODE[:BATCH]]; default: all")
    p.add_argument("--threads", type=int, default=THREADS, help="of --record")
    p.add_argument("--seconds", type=float, default=1, help="of --record, for each round of a case")
    p.add_argument("--rounds", type=int, default=5, help="of --record")
    p.add_argument("--anyway", action="store_true", help="compares with another machine's numbers too")
    args = p.parse_intermixed_args()
    if args.compare:
        compare(args)
    cases = measure(select(args.cases), args.threads, args.seconds, args.rounds)
    with open(args.record, "w") as f:
        json.dump({"machine": machine(), "date": time.strftime("%Y-%m-%d %H:%M"), "threads": args.threads,
                   "seconds": args.seconds, "rounds": args.rounds, "cases": cases}, f, indent=1)
        f.write("\n")
    print(table(["case", "ms", "spread"], [[name, *((digits(statistics.median(t), 4), f"{spread(t):.3f}") if t
                                                    else ("fails", ""))] for name, t in cases.items()]))
    sys.exit(0 if all(cases.values()) else 1)


if __name__ == "__main__":
    main()

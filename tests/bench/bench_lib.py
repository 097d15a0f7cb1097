# SPDX-License-Identifier: Apache-2.0
"""What the parts of scripts/bench share. Standard library only."""
import json
import os
import platform
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("BUILD_DIR", os.path.join(ROOT, "build"))
RESULTS = os.path.join(ROOT, "tests/bench/RESULTS.md")
THREADS = len(os.sched_getaffinity(0))

# (workload, mode, batch): how many times the best peer's speed is the goal, None where there is none.
GOALS = {
    ("mlp_mnist", "train", 128): 1.3,
    ("lenet_mnist", "train", 64): 3,
    ("resnet18_cifar", "train", 64): 1.1,
    ("resnet50_imagenet", "train", 16): 1.2,
    ("mobilenetv2_imagenet", "train", 16): 1.3,
    ("bert_base_seq128", "train", 4): 1.2,
    ("transformer_small", "train", 32): 1.2,
    ("lstm_lm", "train", 20): 1.25,
    ("wide_deep", "train", 512): 2,
    ("mlp_mnist", "infer", 128): 1.1,
    ("lenet_mnist", "infer", 64): 1.1,
    ("resnet18_cifar", "infer", 64): 1.05,
    ("resnet50_imagenet", "infer", 1): 1.08,
    ("resnet50_imagenet", "infer", 16): None,
    ("mobilenetv2_imagenet", "infer", 1): 1.2,
    ("mobilenetv2_imagenet", "infer", 16): None,
    ("vgg16_imagenet", "infer", 1): 1.1,
    ("bert_base_seq128", "infer", 1): 1.1,
    ("transformer_small", "infer", 1): None,
    ("lstm_lm", "infer", 1): 1.1,
    ("wide_deep", "infer", 512): 1.1,
}


def fail(message):
    print(f"bench: error: {message} (see the head of scripts/bench)", file=sys.stderr)
    sys.exit(2)


def tool(name):
    """The path of a built tool."""
    path = os.path.join(BUILD, "bin", name)
    if not os.path.exists(path):
        fail(f"no {path}: build first, or set BUILD_DIR")
    return path


def job_path(workload):
    path = os.path.join(ROOT, "testdata/jobs/bench", workload + ".pbtxt")
    if not os.path.exists(path):
        fail(f"no job for workload '{workload}' in testdata/jobs/bench")
    return path


def select(names):
    """The cases that WORKLOAD[:MODE[:BATCH]] name; all of them for no names."""
    cases = []
    for name in names:
        parts = name.split(":")
        found = [c for c in GOALS if list(map(str, c))[:len(parts)] == parts]
        if not found and len(parts) == 3 and parts[1] in ("train", "infer") and parts[2].isdigit():
            job_path(parts[0])
            found = [(parts[0], parts[1], int(parts[2]))]
        if not found:
            fail(f"no case '{name}'; expected WORKLOAD[:MODE[:BATCH]]")
        cases += [c for c in found if c not in cases]
    return cases or list(GOALS)


def ours(workload, mode, batch, threads, seconds):
    """The JSON line of one run of ours; None, and a note, when it fails."""
    command = [os.path.join(ROOT, "scripts/bench"), workload, mode, batch, threads, seconds]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True,
                          env=dict(os.environ, BUILD_DIR=BUILD))
    if done.returncode:
        print(f"bench: {workload} {mode} {batch}: exit {done.returncode}: {done.stderr.strip()}", file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def first_line(path, key=""):
    """What follows the colon in the first line of a file that begins with `key`."""
    try:
        with open(path) as f:
            return next(line.partition(":")[2].strip() if key else line.strip() for line in f if line.startswith(key))
    except (OSError, StopIteration):
        return "unknown"


def machine():
    """What the numbers depend on."""
    flags = first_line("/proc/cpuinfo", "flags").split()
    caches = {}
    folder = "/sys/devices/system/cpu/cpu0/cache"
    for entry in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if not entry.startswith("index"):
            continue
        level, kind, size = (first_line(f"{folder}/{entry}/{name}") for name in ("level", "type", "size"))
        if kind != "Instruction":
            caches[f"L{level}"] = size
    memory = first_line("/proc/meminfo", "MemTotal").split()[0]
    return {"cpu": first_line("/proc/cpuinfo", "vendor_id") + ", " + first_line("/proc/cpuinfo", "model name"),
            "cores": THREADS, "caches": ", ".join(f"{k} {v}" for k, v in caches.items()) or "unknown",
            "vectors": "AVX-512" if "avx512f" in flags else "AVX2" if "avx2" in flags else "neither AVX2 nor AVX-512",
            "memory_gb": round(int(memory) / 2**20, 1) if memory.isdigit() else None, "kernel": platform.release()}


def table(header, rows):
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join("" if cell is None else str(cell) for cell in line) + " |" for line in lines)


def digits(value, count=3):
    """A number with as many digits as say something."""
    if value is None:
        return ""
    return f"{value:.{count}g}" if abs(value) < 10 ** count else f"{value:.0f}"

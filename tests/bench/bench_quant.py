#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/bench/QUANT.md: what pd-quant's methods do to models.

  bench_quant.py [--out FILE] NAME=MODEL,CALIBRATION,JOB... [--speed SECONDS WORKLOAD...]

Each MODEL is quantized with every algorithm on CALIBRATION (npz or job) and
judged on JOB's evaluation set: the metric, the size, the layer that lost most,
and whether ONNX Runtime, where ONNX_PYTHON has it, computes the ONNX form in
integers and gives the same first class as we do for the first 256 records of
CALIBRATION (npz). WORKLOADs (testdata/jobs/bench) are timed as `scripts/bench`
times them: float32 and 8 bits, with VNNI and with AVX2 alone, beside ONNX
Runtime's 8 bits, at batches 1 and 16, in rounds, on a machine that does nothing
else.
BUILD_DIR names the build folder, `build` otherwise.
"""
import argparse
import collections
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS = 3  # of all programs in turn
BIN = pathlib.Path(os.environ.get("BUILD_DIR", ROOT / "build")) / "bin"
VARIANTS = [("KL", []), ("hist", []), ("mse", []), ("emd", []), ("avg", []), ("abs_max", []),
            ("KL", ["--weights", "abs_max"]), ("KL", ["--equalize"]), ("KL", ["--round", "adaround"])]
# What ONNX Runtime makes of a model, and its time: JSON {ops, ms, classes}.
RUNTIME = """
import json, sys, tempfile, time, collections
import numpy as np, onnx, onnxruntime as ort
path, feed, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
o = ort.SessionOptions(); o.log_severity_level = 3; o.intra_op_num_threads = int(sys.argv[4])
o.optimized_model_filepath = tempfile.mktemp('.onnx')
s = ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])
ops = collections.Counter(n.op_type for n in onnx.load(o.optimized_model_filepath).graph.node)
z = np.load(feed); i = s.get_inputs()[0]; x = z[i.name] if i.name in z.files else z[z.files[0]]
answer = s.run(None, {i.name: x})[0]; times = []; end = time.time() + seconds
while time.time() < end:
    t = time.time(); s.run(None, {i.name: x}); times.append(time.time() - t)
print(json.dumps({'ops': ops, 'ms': 1000 * float(np.median(times)) if times else 0,
                  'classes': answer.reshape(len(x), -1).argmax(1).tolist()}))
"""


def run(*command, **environment):
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True,
                          env={**os.environ, **environment})
    if done.returncode:
        sys.exit("%s: %s" % (" ".join(map(str, command)), done.stderr[-500:]))
    return done.stdout


def quantize(model, calibration, out, *options):
    return json.loads(run(BIN / "pd-quant", "-q", "-m", model, "--calib", calibration, "-o", out,
                          "--format", "json", *options))


def runtime(model, feed, seconds=0, threads=1):
    return json.loads(run(os.environ["ONNX_PYTHON"], "-c", RUNTIME, model, feed, seconds, threads))


def head(npz, folder):
    """The first 256 records, and our classes for them of a model."""
    code = ("import sys, numpy as np; z = np.load(sys.argv[1]);"
            "np.savez(sys.argv[2], **{k: z[k][:256] for k in z.files})")
    run(os.environ["ONNX_PYTHON"], "-c", code, npz, folder / "head.npz")
    return folder / "head.npz"


def classes(model, feed, folder):
    run(BIN / "pd-eval", "-q", "-m", model, "--feed", feed, "--out", folder / "answers.npz")
    code = ("import sys, json, numpy as np; z = np.load(sys.argv[1]); a = z[z.files[0]];"
            "print(json.dumps(a.reshape(len(a), -1).argmax(1).tolist()))")
    return json.loads(run(os.environ["ONNX_PYTHON"], "-c", code, folder / "answers.npz"))


def accuracy(models, folder):
    with_runtime = "ONNX_PYTHON" in os.environ
    lines = ["| model | thresholds | metric before | after | points worse | parameters | least SQNR, dB |"
             " calibration, s | ONNX Runtime in float | same class |", "|---|---|--:|--:|--:|--:|--:|--:|---|--:|"]
    for spec in models:
        name, rest = spec.split("=", 1)
        model, calibration, job = rest.split(",")
        feed = head(calibration, folder) if with_runtime and calibration.endswith(".npz") else None
        for algorithm, options in VARIANTS:
            r = quantize(model, calibration, folder / "q", "--algo", algorithm, "--compare", job, *options)
            left, same = "", ""
            if feed:
                quantize(model, calibration, folder / "q.onnx", "--algo", algorithm, "--to", "onnx", *options)
                ort = runtime(folder / "q.onnx", feed)
                left = ", ".join(sorted({"Conv", "FusedConv", "Gemm", "MatMul"} & set(ort["ops"]))) or "nothing"
                ours = classes(folder / "q", feed, folder)
                same = "%.1f %%" % (100 * sum(a == b for a, b in zip(ours, ort["classes"])) / len(ours))
            m = r["metric"]
            lines.append("| %s | %s | %.4f | %.4f | %.2f | %.1f %% | %.1f | %.1f | %s | %s |" % (
                name, " ".join([algorithm] + [o.lstrip("-") for o in options]), m["before"], m["after"],
                m["drop_points"], 100 * r["parameter_bytes"] / r["parameter_bytes_before"],
                min(e["sqnr_db"] for e in r["errors"]), r["calibration_s"], left, same))
    return lines


def step(workload, mode, batch, threads, seconds, isa):
    line = run(ROOT / "scripts" / "bench", workload, mode, batch, threads, seconds, BUILD_DIR=str(BIN.parent),
               **({"ONEDNN_MAX_CPU_ISA": isa} if isa else {}))
    return json.loads(line.strip().splitlines()[-1])["step_ms_median"]


def runtime_step(workload, batch, threads, seconds, folder):
    job = next(p for p in (ROOT / "testdata/jobs/bench" / (workload + ".pbtxt"), pathlib.Path(workload)) if p.exists())
    text = job.read_text()
    at = text.index("input { name: ")
    name = text[at:].split('"')[1]
    shape = text[at:].split("[-1, ", 1)[1].split("]")[0]
    run(BIN / "pd-export", "-q", "-c", job, "--optimize", "-o", folder / "net")
    run(ROOT / "tests/bench/bench_calibration.py", folder / "feed.npz", name, "%d, %s" % (batch, shape))
    quantize(folder / "net", folder / "feed.npz", folder / "net.onnx", "--algo", "abs_max", "--to", "onnx")
    return runtime(folder / "net.onnx", folder / "feed.npz", seconds, threads)["ms"]


def speed(workloads, seconds, folder):
    threads = len(os.sched_getaffinity(0))
    lines = ["", "ms a batch on %d threads, medians of %d rounds; ratios are float32 over 8 bits of the same "
             "instructions, and ONNX Runtime's 8 bits over ours." % (threads, ROUNDS), "",
             "| network | batch | float32 | 8 bits | ratio | AVX2: float32 | 8 bits | ratio | ONNX Runtime, 8 bits |"
             " ratio |", "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|"]
    for workload in workloads:
        for batch in (1, 16):
            t = collections.defaultdict(list)
            for _ in range(ROUNDS):
                for isa in ("", "AVX2"):
                    for mode in ("infer", "int8"):
                        t[mode, isa].append(step(workload, mode, batch, threads, seconds, isa))
                if "ONNX_PYTHON" in os.environ:
                    t["other"].append(runtime_step(workload, batch, threads, seconds, folder))
            t = {what: statistics.median(times) for what, times in t.items()}
            other, ratio = "", ""
            if "other" in t:
                other, ratio = "%.2f" % t["other"], "%.2f" % (t["other"] / t["int8", ""])
            row = [workload, str(batch)]
            for isa in ("", "AVX2"):
                f, q = t["infer", isa], t["int8", isa]
                row += ["%.2f" % f, "%.2f" % q, "%.2f" % (f / q)]
            lines.append("| %s |" % " | ".join(row + [other, ratio]))
    return lines


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--out", default=ROOT / "tests/bench/QUANT.md", type=pathlib.Path)
    parser.add_argument("--speed", nargs="+", default=[], metavar="SECONDS WORKLOAD")
    parser.add_argument("models", nargs="*")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        lines = ["# pd-quant", "Made by `tests/bench/bench_quant.py`.", ""]
        if options.models:
            lines += accuracy(options.models, folder)
        if options.speed:
            lines += speed(options.speed[1:], float(options.speed[0]), folder)
    options.out.write_text("\n".join(lines) + "\n")


main()

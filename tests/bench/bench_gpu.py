#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`scripts/bench --gpu DIR`: our steps on a GPU beside PyTorch's, eager and compiled.

Each case runs as processes one after the other, ours and PyTorch's in turn, --rounds times; the median of their
medians counts. PyTorch's networks are those of DIR (a folder with models_torch.py and workloads.py), with what makes
them fast there: fused optimizers, channels last for images, autocast with a GradScaler for float16. TORCH_PYTHON is a
Python with PyTorch for CUDA. Prints a Markdown table: milliseconds, the ratio to the better build of PyTorch's, and
the peak of device memory.

    scripts/bench --gpu DIR [--out FILE] [--rounds N] [--seconds S] [--device gpu:N] [CASE...]

CASE is WORKLOAD[:MODE[:BATCH[:PRECISION]]]; PRECISION is float32, tf32, float16 or bfloat16 (mixed, O1), or
O2-float16. `--device cpu` runs both sides on the CPU, to try the script without a GPU.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

import bench_lib

# (workload, mode, batch, precision): how many times PyTorch's speed is the goal, None where there is none.
CASES = {
    ("resnet50_imagenet", "train", 128, "float16"): 1.1,
    ("resnet50_imagenet", "train", 128, "tf32"): 1.1,
    ("bert_base_seq128", "train", 32, "float16"): 1.1,
    ("resnet18_cifar", "train", 512, "tf32"): 1.1,
    ("lstm_lm", "train", 20, "tf32"): 2,
    ("lenet_mnist", "train", 64, "tf32"): 2,
    ("transformer_small", "train", 32, "tf32"): 1.1,
    ("resnet50_imagenet", "infer", 1, "tf32"): 1.1,
    ("bert_base_seq128", "infer", 1, "tf32"): 1.1,
    ("simplenet_amp", "train", 2048, "float32"): None,
    ("simplenet_amp", "train", 2048, "tf32"): None,
    ("simplenet_amp", "train", 2048, "float16"): None,
    ("simplenet_amp", "train", 2048, "bfloat16"): None,
    ("simplenet_amp", "train", 2048, "O2-float16"): None,
}
BUILDS = ("eager", "compile")


def ours(case, options):
    """The JSON line of our process."""
    workload, mode, batch, precision = case
    job = bench_lib.job_path(workload)
    half = precision.split("-")[-1] if precision.endswith("float16") else None
    mixed = ["--amp", "O2" if precision.startswith("O2") else "O1", "--amp-dtype", half] if half else []
    common = ["-q", "--device", options.device, "--bench", str(options.seconds)] + mixed
    flags = dict(os.environ, FLAGS_enable_cublas_tensor_op_math=str(int(precision == "tf32")))
    if mode == "train":
        command = [bench_lib.tool("pd-train"), "-c", job, "-o", f"data.train.batch_size={batch}"]
    else:
        model = os.path.join(options.kept, workload)
        if not os.path.exists(model + ".pdmodel"):
            subprocess.run([bench_lib.tool("pd-export"), "-q", "-c", job, "-o", model], check=True,
                           stdout=subprocess.DEVNULL)
        command = [bench_lib.tool("pd-eval"), "-m", model, "--batch", str(batch)]
    return last_line(subprocess.run(command + common, capture_output=True, text=True, env=flags))


def torch_s(case, build, options):
    """The JSON line of a process of PyTorch's: this file, as below."""
    python = os.environ.get("TORCH_PYTHON")
    if not python:
        return None
    spec = json.dumps({"case": case, "build": build, "device": options.device, "seconds": options.seconds})
    return last_line(subprocess.run([python, __file__, "--torch", spec, options.dir], capture_output=True, text=True))


def last_line(done):
    if done.returncode:
        print(done.stderr.strip(), file=sys.stderr)
        return None
    return json.loads(done.stdout.strip().splitlines()[-1])


def run_torch(spec, folder):
    """One workload with PyTorch; prints a JSON line of our --bench's keys."""
    import time

    import torch
    from torch import nn
    sys.path.insert(0, folder)
    import models_torch
    import workloads
    workload, mode, batch, precision = spec["case"]
    device = torch.device("cpu" if spec["device"] == "cpu" else spec["device"].replace("gpu", "cuda", 1))
    torch.manual_seed(2024)
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = precision == "tf32"
    torch.backends.cudnn.benchmark = True
    half = getattr(torch, precision.split("-")[-1]) if precision.endswith("float16") else None
    if workload == "simplenet_amp":
        net = nn.Sequential(*[nn.Linear(8192, 8192) for _ in range(9)])
        data = [([torch.rand(batch, 8192)], torch.rand(batch, 8192)) for _ in range(4)]
    else:
        net = models_torch.build(workload)
        data = [([torch.from_numpy(x) for x in inputs], torch.from_numpy(label))
                for inputs, label in workloads.batches(workload, batch)]
    last = any(x.dim() == 4 for x in data[0][0])
    form = {"memory_format": torch.channels_last} if last else {}
    net = net.to(device, **form)
    data = [([x.to(device, **(form if x.dim() == 4 else {})) for x in xs], y.to(device)) for xs, y in data]
    pure = precision.startswith("O2")
    if pure:
        net = net.to(half)
        data = [([x.to(half) if x.is_floating_point() else x for x in xs], y) for xs, y in data]

    def loss_of(output, label):
        if workload == "simplenet_amp":
            return nn.functional.mse_loss(output, label.to(output.dtype))
        return models_torch.loss(workload, output, label)

    def forward(xs, label):
        with torch.autocast(device.type, dtype=half, enabled=half is not None and not pure):
            output = net(*xs)
            return output if label is None else loss_of(output, label)

    net.train(mode == "train")
    parameters = list(net.parameters())
    if workload == "simplenet_amp":
        optimizer = torch.optim.SGD(parameters, lr=0.0001)
    else:
        optimizer = models_torch.optimizer(workload, parameters, True)
    scaler = torch.amp.GradScaler(device.type, enabled=half is torch.float16 and not pure)
    if spec["build"] == "compile":
        forward = torch.compile(forward, mode="reduce-overhead" if mode == "infer" else "default")

    def step(i):
        xs, label = data[i % len(data)]
        if mode == "infer":
            with torch.inference_mode():
                return float(forward(xs, None).flatten()[0])
        loss = forward(xs, label)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        if workload == "lstm_lm":
            nn.utils.clip_grad_norm_(parameters, 5.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        return loss

    wait = torch.cuda.synchronize if device.type == "cuda" else lambda: None
    first = float(step(0))
    end, i = time.perf_counter() + spec["seconds"] / 5, 1
    while i < 3 or time.perf_counter() < end:
        step(i)
        i += 1
    wait()
    # Groups of steps: nobody waits for a single one.
    times, end = [], time.perf_counter() + spec["seconds"]
    while len(times) < 3 or time.perf_counter() < end:
        begin = time.perf_counter()
        for _ in range(8):
            value = step(i)
            i += 1
        wait()
        times.append((time.perf_counter() - begin) / 8)
    peak = torch.cuda.max_memory_allocated() / 2**20 if device.type == "cuda" else 0
    print(json.dumps({"step_ms_median": statistics.median(times) * 1e3, "steps": 8 * len(times), "first_value": first,
                      "last_value": float(value), "peak_device_mb": peak, "version": torch.__version__}))


def select(names):
    chosen = []
    for name in names:
        parts = name.split(":")
        found = [c for c in CASES if list(map(str, c))[:len(parts)] == parts]
        if not found and len(parts) == 4 and parts[1] in ("train", "infer") and parts[2].isdigit():
            found = [(parts[0], parts[1], int(parts[2]), parts[3])]
        if not found:
            bench_lib.fail(f"no case '{name}'; expected WORKLOAD[:MODE[:BATCH[:PRECISION]]]")
        chosen += [c for c in found if c not in chosen]
    return chosen or list(CASES)


def median(lines, key):
    values = [line[key] for line in lines if line and key in line]
    return statistics.median(values) if values else None


def row(case, results):
    """A line of the table."""
    ms = {who: median(lines, "step_ms_median") for who, lines in results.items()}
    mb = {who: median(lines, "peak_device_mb") for who, lines in results.items()}
    best = min((ms[b] for b in BUILDS if ms[b]), default=None)
    ratio = f"{best / ms['ours']:.2f}" if best and ms["ours"] else ""
    goal = "" if CASES.get(case) is None else str(CASES[case])
    show = lambda x, form: "" if not x else format(x, form)
    cells = [*map(str, case), *(show(ms[w], ".2f") for w in ("ours", *BUILDS)), ratio, goal,
             *(show(mb[w], ".0f") for w in ("ours", *BUILDS))]
    return "| " + " | ".join(cells) + " |"


def main():
    parser = argparse.ArgumentParser(prog="bench --gpu", description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("dir")
    parser.add_argument("cases", nargs="*")
    parser.add_argument("--out")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--device", default="gpu:0")
    options = parser.parse_intermixed_args()
    options.kept = os.path.join(bench_lib.BUILD, "bench_gpu")
    os.makedirs(options.kept, exist_ok=True)
    lines = ["| workload | mode | batch | precision | ours ms | eager ms | compile ms | ratio | goal | ours MB | eager MB"
             " | compile MB |", "|---|---|--:|---|--:|--:|--:|--:|--:|--:|--:|--:|"]
    print("\n".join(lines), flush=True)
    failed = False
    for case in select(options.cases):
        results = {who: [] for who in ("ours", *BUILDS)}
        for _ in range(options.rounds):
            results["ours"].append(ours(case, options))
            for build in BUILDS:
                results[build].append(torch_s(case, build, options))
        failed |= not any(results["ours"])
        lines.append(row(case, results))
        print(lines[-1], flush=True)
    if options.out:
        with open(options.out, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n")
    return 1 if failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--torch"]:
        run_torch(json.loads(sys.argv[2]), sys.argv[3])
    else:
        sys.exit(main())

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""PyTorch's side of `scripts/bench --ops` (bench_ops.py): requests and answers are lines of JSON.

    {"make": {VAR: [KIND, EXTENTS]}, "folder": F}   makes the data of a case, and files of them: {VAR: DTYPE}
    {"torch": EXPRESSION, "grad": [VAR], "train": BOOL}
                                                    prepares it and runs it once: the sums of outputs and gradients
    {"run": N}                                      runs it N times: nanoseconds, as the thread computes
"""
import json
import sys
import time

import numpy
import torch
import torch.nn.functional as F

try:
    import torchvision.ops as vision
except ImportError:
    vision = None

NUMBERS = numpy.random.default_rng(7)


def made(kind, extents):
    """The data of a kind that the head of ops.txt describes."""
    kind, _, more = kind.partition(":")
    if kind in ("float", "weight"):
        return NUMBERS.standard_normal(extents, numpy.float32)
    if kind == "small":
        return NUMBERS.standard_normal(extents, numpy.float32) * numpy.float32(0.05)
    if kind in ("positive", "unit"):
        low, high = (0.5, 1.5) if kind == "positive" else (0.02, 0.98)
        return NUMBERS.uniform(low, high, extents).astype(numpy.float32)
    if kind == "apart":
        n = int(numpy.prod(extents))
        return (NUMBERS.permutation(n).astype(numpy.float32) / n * 8 - 4).reshape(extents)
    if kind in ("int64", "int32"):
        return NUMBERS.integers(int(more or 100), size=extents).astype(kind)
    if kind == "count":
        return NUMBERS.integers(1, int(more), size=extents, endpoint=True)
    if kind == "bool":
        return NUMBERS.integers(2, size=extents).astype(bool)
    if kind == "permuted":
        return NUMBERS.permutation(int(numpy.prod(extents))).astype("int64").reshape(extents)
    if kind == "definite":
        a = NUMBERS.standard_normal(extents, numpy.float32)
        n = extents[-1]
        return (a @ a.swapaxes(-1, -2) / n + numpy.eye(n)).astype(numpy.float32)
    if kind == "boxes":
        size = float(more)
        corner = NUMBERS.uniform(0, size * 0.7, (*extents[:-1], 2))
        side = NUMBERS.uniform(size * 0.05, size * 0.3, (*extents[:-1], 2))
        return numpy.concatenate([corner, corner + side], -1).astype(numpy.float32)
    if kind == "values":
        kind, *numbers = more.split(",")
        return numpy.array([float(n) for n in numbers]).astype(kind).reshape(extents)
    raise ValueError(f"no kind of data '{kind}'")


def pattern(n):
    return (torch.arange(n) * 7 % 13 - 6) / 8


def sums(tensor):
    if tensor.is_complex():
        return None
    flat = tensor.detach().reshape(-1).double()
    return [flat.sum().item(), (flat * pattern(flat.numel())).sum().item(), flat.abs().sum().item()]


class Case:
    def __init__(self):
        self.data, self.run = {}, None

    def make(self, kinds, folder):
        self.data, self.run = {}, None
        dtypes = {}
        for name, (kind, extents) in kinds.items():
            array = numpy.ascontiguousarray(made(kind, extents))
            array.tofile(f"{folder}/{name}")
            self.data[name] = torch.from_numpy(array)
            dtypes[name] = str(array.dtype)
        return dtypes

    def prepare(self, expression, wrt, train):
        names = {**self.data, "torch": torch, "F": F, "vision": vision}
        function = eval(f"lambda: {expression}", names)  # names of the table are globals of the function
        if not train:
            self.run = function
            with torch.inference_mode():
                outputs = function()
            return [sums(t) for t in (outputs if isinstance(outputs, (tuple, list)) else [outputs])]
        leaves = [self.data[name].requires_grad_() for name in wrt]
        outputs = function()
        outputs = list(outputs) if isinstance(outputs, (tuple, list)) else [outputs]
        ours = [i for i, t in enumerate(outputs) if t.requires_grad]
        cotangents = [pattern(outputs[i].numel()).reshape(outputs[i].shape) for i in ours]

        def run():
            y = function()
            y = y if isinstance(y, (tuple, list)) else [y]
            return y, torch.autograd.grad([y[i] for i in ours], leaves, cotangents)

        self.run = run
        outputs, gradients = run()
        return [sums(t) for t in (*outputs, *gradients)]

    def time(self, count, train):
        run = self.run
        with torch.inference_mode(not train):
            begin = time.thread_time_ns()
            for _ in range(count):
                run()
            return time.thread_time_ns() - begin


def main():
    torch.set_num_threads(1)
    case, train = Case(), False
    print(json.dumps(torch.__version__), flush=True)
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "make" in request:
                answer = case.make(request["make"], request["folder"])
            elif "torch" in request:
                train = request["train"]
                answer = case.prepare(request["torch"], request["grad"], train)
            else:
                answer = case.time(request["run"], train)
        except Exception as e:  # the driver says which case it was
            answer = {"error": f"{type(e).__name__}: {e}".splitlines()[0]}
        print(json.dumps(answer), flush=True)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PaddlePaddle's PostTrainingQuantization makes of LeNet.

  quant_goldens.py OUT_DIR

OUT_DIR gets lenet-thresholds.json, the threshold of each activation by
algorithm, and lenet-logits.npz, the answers of quantized models to the first 64
test pictures. Needs paddlepaddle 2.6.2. The network is testdata/deploy/lenet;
calibration is on the training pictures 0 to 511, 16 batches of 32.
"""
import gzip
import json
import pathlib
import sys
import tempfile

import numpy as np
import paddle
from paddle import static
from paddle.static.quantization import PostTrainingQuantization

ROOT = pathlib.Path(__file__).resolve().parent.parent
ALGORITHMS = ["KL", "hist", "mse", "avg", "abs_max", "min_max", "emd", "ptf"]
ANSWERED = ["KL", "mse"]


def pictures(name, count):
    data = gzip.open(ROOT / "mnist" / name).read()
    pixels = np.frombuffer(data, np.uint8, count * 784, 16)
    return pixels.reshape(count, 1, 28, 28).astype(np.float32) / 127.5 - 1


class Calibration(paddle.io.Dataset):
    x = pictures("train-images-idx3-ubyte.gz", 512)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        return (self.x[i],)


def quantize(executor, algorithm, onnx_format, folder):
    """The thresholds; the model goes to `folder`."""
    with static.scope_guard(static.Scope()):
        program, feeds, _ = static.load_inference_model(
            str(ROOT / "deploy" / "lenet"), executor)
        x = program.global_block().var(feeds[0])
        loader = paddle.io.DataLoader(
            Calibration(), feed_list=[x], batch_size=32, return_list=False,
            places=paddle.CPUPlace())
        ptq = PostTrainingQuantization(
            executor=executor, scope=static.global_scope(),
            model_dir=str(ROOT / "deploy"), model_filename="lenet.pdmodel",
            params_filename="lenet.pdiparams", data_loader=loader,
            batch_size=32, batch_nums=16, algo=algorithm,
            activation_quantize_type="moving_average_abs_max",
            onnx_format=onnx_format)
        ptq.quantize()
        if algorithm != "min_max":
            ptq.save_quantized_model(folder, "m.pdmodel", "m.pdiparams")
        if algorithm == "min_max":
            low, high = ptq._quantized_var_min, ptq._quantized_var_max
            return {n: [float(low[n]), float(high[n])] for n in sorted(low)
                    if not isinstance(low[n], list)}
        found = (ptq._quantized_var_threshold if algorithm in ("KL", "hist")
                 else ptq._quantized_threshold)
        return {n: float(t) for n, t in sorted(found.items())
                if not isinstance(t, list)}


def answers(executor, folder):
    with static.scope_guard(static.Scope()):
        program, feeds, fetches = static.load_inference_model(
            folder + "/m", executor)
        x = pictures("t10k-images-idx3-ubyte.gz", 64)
        return executor.run(program, feed={feeds[0]: x}, fetch_list=fetches)[0]


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    paddle.enable_static()
    executor = static.Executor(paddle.CPUPlace())
    thresholds, logits = {}, {}
    for algorithm in ALGORITHMS:
        with tempfile.TemporaryDirectory() as folder:
            thresholds[algorithm] = quantize(executor, algorithm, False, folder)
            if algorithm in ANSWERED:
                logits[algorithm] = answers(executor, folder)
        if algorithm in ANSWERED:
            with tempfile.TemporaryDirectory() as folder:
                quantize(executor, algorithm, True, folder)
                logits[algorithm + "_linear"] = answers(executor, folder)
    with open(out / "lenet-thresholds.json", "w") as file:
        json.dump(thresholds, file, indent=1)
        file.write("\n")
    np.savez_compressed(out / "lenet-logits.npz", **logits)


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what ONNX Runtime's integers make of a product of float rows.

  dynamic_goldens.py OUT_DIR

OUT_DIR gets dynamic.npz: rows x, weights w (int8) with a scale for each column,
the bytes u and zero points of DynamicQuantizeLinear, the sums of
MatMulInteger, and the product y. Each row is run alone, so that a row has a
scale of its own. Needs onnx and onnxruntime.
"""
import pathlib
import sys

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

ROWS, DEPTH, COLUMNS = 9, 75, 37


def model(w, scale):
    nodes = [
        helper.make_node("DynamicQuantizeLinear", ["x"], ["u", "s", "z"]),
        helper.make_node("MatMulInteger", ["u", "w", "z"], ["sums"]),
        helper.make_node("Cast", ["sums"], ["floats"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["s", "scale"], ["both"]),
        helper.make_node("Mul", ["floats", "both"], ["y"])]
    info = helper.make_tensor_value_info
    graph = helper.make_graph(
        nodes, "dynamic", [info("x", TensorProto.FLOAT, [1, DEPTH])],
        [info("u", TensorProto.UINT8, [1, DEPTH]),
         info("z", TensorProto.UINT8, []),
         info("sums", TensorProto.INT32, [1, COLUMNS]),
         info("y", TensorProto.FLOAT, [1, COLUMNS])],
        [onnx.numpy_helper.from_array(w, "w"),
         onnx.numpy_helper.from_array(scale, "scale")])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)])
    made.ir_version = 8
    return made.SerializeToString()


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    rng = np.random.default_rng(3)
    x = rng.normal(size=(ROWS, DEPTH)).astype(np.float32)
    x[1] = np.abs(x[1])           # nothing below zero
    x[2] = -np.abs(x[2])          # nothing above
    x[3] = 0
    x[4] = 0.5                    # one value
    x[5] *= np.float32(1e-30)
    x[6] *= np.float32(1e30)
    x[7, 0] = 100                 # one value far away
    w = rng.integers(-127, 128, (DEPTH, COLUMNS)).astype(np.int8)
    w[:, 0] = 127                 # sums as large as they come
    w[:, 1] = -127
    steps = rng.uniform(0.001, 0.1, COLUMNS).astype(np.float32)
    # As graphs stand: only our own arithmetic is asked for.
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = (
        onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    run = onnxruntime.InferenceSession(model(w, steps), options)
    got = [run.run(None, {"x": row[None]}) for row in x]
    # PaddlePaddle's scale is what 127 stands for.
    np.savez_compressed(
        out / "dynamic.npz", x=x, w=w, scale=steps * np.float32(127),
        u=np.concatenate([g[0] for g in got]),
        zero=np.array([int(g[1]) for g in got], np.int32),
        sums=np.concatenate([g[2] for g in got]),
        y=np.concatenate([g[3] for g in got]))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))

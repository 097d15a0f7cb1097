# SPDX-License-Identifier: Apache-2.0
"""Writes testdata/upgrade: models of PaddlePaddle 1.x, a folder of `__model__` and a file for each parameter, with
feeds and the answers of PaddlePaddle 2.6.2, which still runs these of the old operator types.

    python testdata/make/upgrade_models.py testdata/upgrade
"""
import os
import sys

import numpy as np
import paddle
from paddle import static


class Network:
    """A program of one block, op by op."""

    def __init__(self):
        self.program = static.Program()
        self.block = self.program.global_block()
        self.values, self.feeds = {}, {}
        self.random = np.random.RandomState(0)
        self.count = 0

    def feed(self, name, array):
        self.feeds[name] = array
        self.block.create_var(name=name, shape=[-1, *array.shape[1:]], dtype=str(array.dtype), need_check_feed=True,
                              is_data=True)
        return name

    def parameter(self, name, *shape):
        self.values[name] = self.random.uniform(-1, 1, shape).astype("float32")
        self.block.create_parameter(name=name, shape=shape, dtype="float32")
        return name

    def op(self, kind, inputs, outputs=("Out",), dtypes=("float32",), **attrs):
        self.count += 1
        names = [f"{kind}_{self.count}.{slot.lower()}" for slot in outputs]
        for name, dtype in zip(names, dtypes):
            self.block.create_var(name=name, dtype=dtype)
        self.block.append_op(type=kind, inputs={k: [v] for k, v in inputs.items()},
                             outputs={k: [v] for k, v in zip(outputs, names)}, attrs=attrs)
        return names[0] if len(names) == 1 else names

    def write(self, folder, fetches):
        scope, place = static.Scope(), paddle.CPUPlace()
        with static.scope_guard(scope):
            for name, value in self.values.items():
                scope.var(name).get_tensor().set(value, place)
            exe = static.Executor(place)
            answers = exe.run(self.program, feed=self.feeds, fetch_list=fetches)
            variables = [self.block.var(name) for name in self.feeds], [self.block.var(name) for name in fetches]
            os.makedirs(folder, exist_ok=True)
            static.io.save_vars(exe, folder, self.program, vars=[self.block.var(name) for name in self.values])
            model = static.io.normalize_program(self.program, *variables)
            model.desc._set_version(0)
            for op in model.global_block().ops:
                op._remove_attr("op_callstack")
            with open(f"{folder}/__model__", "wb") as f:
                f.write(model.desc.serialize_to_string())
            # The saved program has outputs of its own behind those that were fetched.
            outputs = [op.input("X")[0] for op in model.global_block().ops if op.type == "fetch"]
        np.savez(f"{folder}.feed.npz", **self.feeds)
        np.savez(f"{folder}.expect.npz", **dict(zip(outputs, answers)))


def classes():
    """Words to classes: the old lookups, products, shapes and ranks."""
    n = Network()
    words = n.feed("words", n.random.randint(0, 20, (3, 5, 1)).astype("int64"))
    table = n.parameter("emb_0.w_0", 20, 8)
    found = n.op("lookup_table", {"W": table, "Ids": words}, padding_idx=0)
    turned = n.op("transpose", {"X": found}, axis=[0, 2, 1])
    scores = n.op("matmul", {"X": found, "Y": turned}, alpha=0.5)
    mixed = n.op("matmul", {"X": scores, "Y": found})
    flat = n.op("reshape", {"X": mixed}, shape=[0, 40])
    weight = n.parameter("fc_0.w_0", 40, 4)
    bias = n.parameter("fc_0.b_0", 4)
    product = n.op("mul", {"X": flat, "Y": weight}, x_num_col_dims=1, y_num_col_dims=1)
    out = n.op("elementwise_add", {"X": product, "Y": bias}, axis=1)
    best, number = n.op("top_k", {"X": out}, ("Out", "Indices"), ("float32", "int64"), k=2)
    zeros = n.op("fill_zeros_like", {"X": best})
    more = n.op("expand", {"X": zeros}, expand_times=[1, 3])
    bad = n.op("isnan", {"X": out}, dtypes=("bool",))
    return n, [best, number, more, bad]


def pictures():
    """Pictures in other sizes: the old interpolations."""
    n = Network()
    image = n.feed("image", n.random.uniform(-1, 1, (2, 3, 6, 5)).astype("float32"))
    fetches = []
    for kind in ("nearest", "bilinear", "bicubic"):
        for attrs in ({"scale": 2.0, "align_corners": False, "align_mode": 0}, {"scale": 1.5, "align_corners": True},
                      {"out_h": 9, "out_w": 7, "align_corners": False, "align_mode": 1},
                      {"scale": 1.3, "align_corners": False, "align_mode": 1}):
            fetches.append(n.op(kind + "_interp", {"X": image}, interp_method=kind, data_layout="NCHW", **attrs))
    return n, fetches


def main():
    paddle.enable_static()
    for make in (classes, pictures):
        network, fetches = make()
        network.write(os.path.join(sys.argv[1], make.__name__), fetches)


if __name__ == "__main__":
    main()

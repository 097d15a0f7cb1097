#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PaddlePaddle's ImperativeQuantAware makes of a small network.

  qat_goldens.py OUT_DIR

OUT_DIR gets a CASE.npz for each set of options: the start (init:NAME), what
each step is fed (x, y), its loss, the state after the last (end:NAME), and the
network's answers to the last batch in evaluation (eval). Names are those of the
job testdata/quant/aware/network.pbtxt. Needs paddlepaddle 2.6.2.
"""
import pathlib
import sys

import numpy as np
import paddle
from paddle.quantization import ImperativeQuantAware

STEPS = 6
SEEDS = {"few_bits": 8}
CASES = {
    "channels": dict(weight_quantize_type="channel_wise_abs_max"),
    "whole": dict(weight_quantize_type="abs_max", moving_rate=0.5),
    "few_bits": dict(weight_quantize_type="channel_wise_abs_max",
                     weight_bits=4, activation_bits=5),
    "linear_only": dict(weight_quantize_type="abs_max",
                        quantizable_layer_type=["Linear"]),
}


class Network(paddle.nn.Layer):
    def __init__(self):
        super().__init__()
        self.conv1 = paddle.nn.Conv2D(2, 4, 3, padding=1)
        self.bn1 = paddle.nn.BatchNorm2D(4)
        self.relu1 = paddle.nn.ReLU()
        self.depthwise = paddle.nn.Conv2D(4, 4, 3, groups=4)
        self.up = paddle.nn.Conv2DTranspose(4, 3, 2, stride=2)
        self.pool = paddle.nn.MaxPool2D(2, 2)
        self.flatten = paddle.nn.Flatten()
        self.fc1 = paddle.nn.Linear(48, 7)
        self.act = paddle.nn.Tanh()
        self.fc2 = paddle.nn.Linear(7, 5)
        self.fc3 = paddle.nn.Linear(5, 3)
        self.fc2.skip_quant = True

    def forward(self, x):
        x = self.relu1(self.bn1(self.conv1(x)))
        x = self.pool(self.up(self.depthwise(x)))
        x = self.act(self.fc1(self.flatten(x)))
        return self.fc3(self.fc2(x))


def state(net):
    return {name.replace("._layer.", "."): value.numpy()
            for name, value in net.state_dict().items()}


def main(out):
    out.mkdir(parents=True, exist_ok=True)
    for case, options in CASES.items():
        # Of few bits another sum's last bit turns many values over: a start
        # where none lies at a border.
        seed = SEEDS.get(case, 7)
        paddle.seed(seed)
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(STEPS, 8, 2, 6, 6)).astype(np.float32)
        y = rng.integers(0, 3, (STEPS, 8, 1))
        net = Network()
        # Channels of zeros, as training leaves them behind sometimes.
        weight = net.conv1.weight.numpy()
        weight[3] = 0
        net.conv1.weight.set_value(weight)
        ImperativeQuantAware(**options).quantize(net)
        sgd = paddle.optimizer.Momentum(0.05, 0.9,
                                        parameters=net.parameters())
        arrays = {"x": x, "y": y}
        arrays.update({"init:" + k: v for k, v in state(net).items()})
        net.train()
        losses = []
        for step in range(STEPS):
            loss = paddle.nn.functional.cross_entropy(
                net(paddle.to_tensor(x[step])), paddle.to_tensor(y[step]))
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            losses.append(float(loss))
        net.eval()
        arrays["loss"] = np.array(losses, np.float64)
        arrays["eval"] = net(paddle.to_tensor(x[-1])).numpy()
        arrays.update({"end:" + k: v for k, v in state(net).items()})
        np.savez_compressed(out / f"{case}.npz", **arrays)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(pathlib.Path(sys.argv[1]))

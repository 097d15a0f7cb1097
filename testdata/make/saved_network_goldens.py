#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saved networks with new heads, as PaddlePaddle and PyTorch train them.

    saved_network_goldens.py testdata/saved_network

Made with PaddlePaddle 2.6.2, PyTorch 2.15.0 (CPU) and onnx 1.23.2. Writes a small
network of inverted residuals as MobileNetV2 has them, `mobile.pdmodel` of PaddlePaddle
and `mobile.onnx` of PyTorch (exported for one record, as users do), data, the
first values of a new head, and per peer what five steps of SGD make of it: with
the network frozen and in evaluation mode, and with everything learned.
"""
import os
import sys

import numpy as np

STEPS, BATCH, CLASSES, RATE = 5, 4, 3, 0.05
WIDTH = 6


def data(rng):
    return {"image": rng.standard_normal((STEPS * BATCH, 3, 12, 12)).astype(np.float32),
            "label": rng.integers(0, CLASSES, (STEPS * BATCH, 1)).astype(np.int64)}


def batches(arrays):
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        yield arrays["image"][part], arrays["label"][part]


def ask_paddle(folder, arrays, head, expected):
    import paddle
    from paddle import nn

    class Block(nn.Layer):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2D(WIDTH, 2 * WIDTH, 1, bias_attr=False), nn.BatchNorm2D(2 * WIDTH), nn.ReLU6(),
                nn.Conv2D(2 * WIDTH, 2 * WIDTH, 3, padding=1, groups=2 * WIDTH, bias_attr=False),
                nn.BatchNorm2D(2 * WIDTH), nn.ReLU6(),
                nn.Conv2D(2 * WIDTH, WIDTH, 1, bias_attr=False), nn.BatchNorm2D(WIDTH))

        def forward(self, x):
            return x + self.body(x)

    class Mobile(nn.Layer):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2D(3, WIDTH, 3, stride=2, padding=1, bias_attr=False), nn.BatchNorm2D(WIDTH), nn.ReLU6(),
                Block(), Block(), nn.AdaptiveAvgPool2D(1), nn.Flatten())
            self.classifier = nn.Sequential(nn.Dropout(0.2), nn.Linear(WIDTH, 10))

        def forward(self, x):
            return self.classifier(self.features(x))

    def train(frozen):
        net = Mobile()
        net.set_state_dict({k: paddle.to_tensor(v) for k, v in state.items()})
        new = nn.Linear(WIDTH, CLASSES)
        new.set_state_dict({k[5:]: paddle.to_tensor(v) for k, v in head.items()})
        if frozen:
            net.eval()
            for p in net.parameters():
                p.stop_gradient = True
        else:
            net.train()
        learned = list(new.parameters()) + ([] if frozen else list(net.features.parameters()))
        sgd = paddle.optimizer.SGD(RATE, parameters=[p for p in learned if not p.stop_gradient])
        losses = []
        for image, label in batches(arrays):
            loss = nn.functional.cross_entropy(new(net.features(paddle.to_tensor(image))), paddle.to_tensor(label))
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            losses.append(float(loss))
        kind = "frozen" if frozen else "full"
        expected[f"paddle/{kind}/losses"] = np.array(losses)
        for name, p in new.state_dict().items():
            expected[f"paddle/{kind}/head.{name}"] = p.numpy()
        for name, p in net.features.state_dict().items():
            expected[f"paddle/{kind}/trunk.{in_file['features.' + name]}"] = p.numpy()

    paddle.seed(3)
    net = Mobile()
    rng = np.random.default_rng(4)
    state = {}
    for name, p in net.state_dict().items():
        value = p.numpy()
        if name.endswith("_variance"):
            value = rng.uniform(0.5, 1.5, value.shape)
        elif value.ndim == 1:
            value = value + 0.2 * rng.standard_normal(value.shape)
        state[name] = value.astype(np.float32)
    net.set_state_dict({k: paddle.to_tensor(v) for k, v in state.items()})
    in_file = {name: p.name for name, p in net.state_dict().items()}
    net.eval()
    spec = paddle.static.InputSpec([None, 3, 12, 12], "float32", "x")
    paddle.jit.save(net, os.path.join(folder, "mobile"), input_spec=[spec])
    os.remove(os.path.join(folder, "mobile.pdiparams.info"))
    expected["paddle/cut"] = net.features(paddle.to_tensor(arrays["image"][:BATCH])).numpy()
    train(frozen=True)
    train(frozen=False)


def ask_torch(folder, arrays, head, expected):
    import torch
    from torch import nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(
                nn.Conv2d(WIDTH, 2 * WIDTH, 1, bias=False), nn.BatchNorm2d(2 * WIDTH), nn.ReLU6(),
                nn.Conv2d(2 * WIDTH, 2 * WIDTH, 3, padding=1, groups=2 * WIDTH, bias=False),
                nn.BatchNorm2d(2 * WIDTH), nn.ReLU6(),
                nn.Conv2d(2 * WIDTH, WIDTH, 1, bias=False), nn.BatchNorm2d(WIDTH))

        def forward(self, x):
            return x + self.body(x)

    class Mobile(nn.Module):
        def __init__(self):
            super().__init__()
            self.features = nn.Sequential(
                nn.Conv2d(3, WIDTH, 3, stride=2, padding=1, bias=False), nn.BatchNorm2d(WIDTH), nn.ReLU6(),
                Block(), Block(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.classifier = nn.Linear(WIDTH, 10)

        def forward(self, x):
            return self.classifier(self.features(x))

    torch.manual_seed(5)
    first = Mobile().state_dict()
    rng = np.random.default_rng(6)
    for name, value in first.items():
        if name.endswith("running_var"):
            first[name] = torch.tensor(rng.uniform(0.5, 1.5, value.shape).astype(np.float32))
        elif value.dim() == 1:
            first[name] = value + torch.tensor(0.2 * rng.standard_normal(value.shape).astype(np.float32))
    net = Mobile()
    net.load_state_dict(first)
    net.eval()
    torch.onnx.export(net, (torch.tensor(arrays["image"][:1]),), os.path.join(folder, "mobile.onnx"), dynamo=False,
                      opset_version=13, input_names=["x"], output_names=["scores"],
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    with torch.no_grad():
        expected["torch/cut"] = net.features(torch.tensor(arrays["image"][:BATCH])).numpy()
    for kind in ("frozen", "full"):
        net = Mobile()
        net.load_state_dict(first)
        new = nn.Linear(WIDTH, CLASSES)
        new.load_state_dict({"weight": torch.tensor(head["head.weight"].T.copy()),
                             "bias": torch.tensor(head["head.bias"])})
        net.train(kind == "full")
        learned = list(new.parameters()) + (list(net.features.parameters()) if kind == "full" else [])
        sgd = torch.optim.SGD(learned, lr=RATE)
        losses = []
        for image, label in batches(arrays):
            loss = nn.functional.cross_entropy(new(net.features(torch.tensor(image))), torch.tensor(label[:, 0]))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(float(loss.detach()))
        expected[f"torch/{kind}/losses"] = np.array(losses)
        expected[f"torch/{kind}/head.weight"] = new.weight.detach().numpy().T.copy()
        expected[f"torch/{kind}/head.bias"] = new.bias.detach().numpy()
        for name, value in net.features.state_dict().items():
            # PyTorch's running variance is unbiased, PaddlePaddle's is not.
            if name.endswith("num_batches_tracked") or (kind == "full" and name.endswith("running_var")):
                continue
            expected[f"torch/{kind}/trunk.features.{name}"] = value.detach().numpy()


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(1)
    arrays = data(rng)
    head = {"head.weight": rng.standard_normal((WIDTH, CLASSES)).astype(np.float32),
            "head.bias": rng.standard_normal(CLASSES).astype(np.float32)}
    expected = {}
    ask_paddle(folder, arrays, head, expected)
    ask_torch(folder, arrays, head, expected)
    np.savez(os.path.join(folder, "data.npz"), **arrays)
    np.savez(os.path.join(folder, "head.npz"), **head)
    np.savez(os.path.join(folder, "expected.npz"), **expected)


if __name__ == "__main__":
    main()

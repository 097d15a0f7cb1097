# SPDX-License-Identifier: Apache-2.0
"""Trainings with phases by PaddlePaddle 2.6.2: phase_goldens.py testdata/phases

A tiny generative adversarial network with batch normalization in its generator
and two Adams, in turn, over 20 steps. `shared`: both phases of a step have one
batch. `own`: the discriminator is trained twice, with a batch each, and the
generator on the second of them; what is left of an epoch is left out. Each
NAME.npz has the records (x, z, one, zero), the first values ("init/...") and
the last ones ("last/..."), and the losses [steps, phases], the mean over the
runs of a phase.
"""
import sys

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn

RECORDS, BATCH, STEPS = 40, 8, 20


class Generator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(2, 6)
        self.norm = nn.BatchNorm1D(6)
        self.fc2 = nn.Linear(6, 3)

    def forward(self, z):
        return self.fc2(F.relu(self.norm(self.fc1(z))))


class Discriminator(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1 = nn.Linear(3, 5)
        self.fc2 = nn.Linear(5, 1)

    def forward(self, x):
        return self.fc2(F.leaky_relu(self.fc1(x), 0.2))


def state(nets):
    return {
        f"{prefix}.{name}": value.numpy().copy()
        for prefix, net in nets.items()
        for name, value in net.state_dict().items()
    }


def train(case, folder):
    paddle.seed(7)
    rng = np.random.RandomState(3)
    data = {
        "x": rng.normal([1, -1, 0.5], [0.5, 0.2, 1], [RECORDS, 3]),
        "z": rng.normal(size=[RECORDS, 2]),
        "one": np.ones([RECORDS, 1]),
        "zero": np.zeros([RECORDS, 1]),
    }
    data = {name: value.astype("float32") for name, value in data.items()}
    g, d = Generator(), Discriminator()
    nets = {"g": g, "d": d}
    out = dict(data)
    out.update({"init/" + k: v for k, v in state(nets).items()})
    bce = F.binary_cross_entropy_with_logits
    d_rate = paddle.optimizer.lr.ExponentialDecay(0.01, 0.9)
    d_adam = paddle.optimizer.Adam(d_rate, 0.5, parameters=d.parameters())
    g_adam = paddle.optimizer.Adam(0.02, 0.5, parameters=g.parameters())
    batches = []
    for i in range(0, RECORDS, BATCH):
        batches.append([
            paddle.to_tensor(data[name][i:i + BATCH])
            for name in ("x", "z", "one", "zero")
        ])

    def train_d(batch):
        x, z, one, zero = batch
        fake = g(z).detach()
        loss = bce(d(x), one) + bce(d(fake), zero)
        d.clear_gradients()
        loss.backward()
        d_adam.step()
        return float(loss)

    def train_g(batch):
        _, z, one, _ = batch
        loss = bce(d(g(z)), one)
        g.clear_gradients()
        loss.backward()
        g_adam.step()
        return float(loss)

    losses = []
    for step in range(STEPS):
        if case == "shared":
            batch = batches[step % 5]
            losses.append([train_d(batch), train_g(batch)])
        else:
            first, second = batches[step % 2 * 2], batches[step % 2 * 2 + 1]
            d_loss = (train_d(first) + train_d(second)) / 2
            losses.append([d_loss, train_g(second)])
        d_rate.step()
    out["losses"] = np.array(losses)
    out.update({"last/" + k: v for k, v in state(nets).items()})
    np.savez(f"{folder}/{case}.npz", **out)


for case in ("shared", "own"):
    train(case, sys.argv[1])

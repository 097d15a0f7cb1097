#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains in PyTorch what jobs of testdata/jobs train, on the same data, in as
many steps, with the same optimizer and schedule. Prints one JSON line.

    prove_peers.py JOB TESTDATA [SEED [OUTPUTS]]

JOB is apps/NAME for an application (prove_apps.py, prove_texts.py and the others
that are imported). OUTPUTS is what pd-eval --out wrote of a run of the same job:
where numbers of pd-eval do not say how good it is, a line is printed about it, too.
"""
import csv
import gzip
import json
import math
import os
import sys
import time

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

import prove_acting
import prove_apps
import prove_boxes
import prove_start
import prove_texts

MODULES = [sys.modules[__name__], prove_apps, prove_boxes, prove_start, prove_texts, prove_acting]


class Residual(nn.Module):
    def __init__(self, before, channels, stride):
        super().__init__()
        conv = lambda i, s, k: nn.Conv2d(i, channels, k, s, k // 2, bias=False)
        self.conv1, self.bn1 = conv(before, stride, 3), nn.BatchNorm2d(channels)
        self.conv2, self.bn2 = conv(channels, 1, 3), nn.BatchNorm2d(channels)
        self.way_round = (nn.Sequential(conv(before, stride, 1), nn.BatchNorm2d(channels))
                          if stride > 1 else nn.Identity())

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return F.relu(self.bn2(self.conv2(y)) + self.way_round(x))


def resnet18():
    layers = [nn.Conv2d(3, 32, 3, padding=1, bias=False), nn.BatchNorm2d(32), nn.ReLU()]
    before = 32
    for channels, stride in ((32, 1), (32, 1), (64, 2), (64, 1), (128, 2), (128, 1),
                             (256, 2), (256, 1)):
        layers.append(Residual(before, channels, stride))
        before = channels
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))


def cifar(path):
    with gzip.open(path) as file:
        rows = np.frombuffer(file.read(), np.uint8).reshape(-1, 3073)
    return rows[:, 1:].reshape(-1, 3, 32, 32), torch.from_numpy(rows[:, 0].astype(np.int64))


def normalized(pictures):
    mean = torch.tensor([0.4914, 0.4822, 0.4465]).view(3, 1, 1)
    std = torch.tensor([0.247, 0.2435, 0.2616]).view(3, 1, 1)
    return (torch.from_numpy(np.ascontiguousarray(pictures)).float() / 255 - mean) / std


def cropped(pictures, draw):
    padded = np.pad(pictures, ((0, 0), (0, 0), (4, 4), (4, 4)))
    out = np.empty_like(pictures)
    for i in range(len(pictures)):
        y, x = draw.integers(0, 9, 2)
        one = padded[i, :, y:y + 32, x:x + 32]
        out[i] = one[:, :, ::-1] if draw.random() < 0.5 else one
    return out


def train_resnet18_cifar(data, draw):
    pictures, labels = cifar(f"{data}/cifar10/data_batch_1.bin.gz")
    test, answers = cifar(f"{data}/cifar10/test_batch_2k.bin.gz")
    net = resnet18()
    optimizer = torch.optim.SGD(net.parameters(), 0.05, 0.9, weight_decay=5e-4)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 390)
    for _ in range(5):
        net.train()
        order = draw.permutation(len(pictures))
        for batch in order[:len(order) // 128 * 128].reshape(-1, 128):
            x = normalized(cropped(pictures[batch], draw))
            loss = F.cross_entropy(net(x), labels[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    net.eval()
    with torch.no_grad():
        hits = sum(int((net(normalized(test[i:i + 250])).argmax(1) == answers[i:i + 250]).sum())
                   for i in range(0, len(test), 250))
    return {"acc": hits / len(test)}


train_cifar10 = train_resnet18_cifar


class CharModel(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.embedding = nn.Embedding(size, 64)
        self.lstm = nn.LSTM(64, 256, batch_first=True)
        self.fc = nn.Linear(256, size)

    def forward(self, x):
        return self.fc(self.lstm(self.embedding(x))[0])


def train_char_lm(data, draw):
    with gzip.open(f"{data}/text/moby-dick.txt.gz", "rt", encoding="utf-8") as file:
        text = file.read()
    known = {c: i for i, c in enumerate(sorted(set(text)))}
    ids = np.array([known[c] for c in text], np.int64)
    count = (len(ids) - 1) // 64
    x = torch.from_numpy(ids[:count * 64].reshape(count, 64))
    y = torch.from_numpy(ids[1:count * 64 + 1].reshape(count, 64))
    cut = 16900
    net = CharModel(96)
    optimizer = torch.optim.Adam(net.parameters(), 0.003)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 528)
    for _ in range(2):
        order = draw.permutation(cut)
        for batch in order[:cut // 64 * 64].reshape(-1, 64):
            loss = F.cross_entropy(net(x[batch]).flatten(0, 1), y[batch].flatten())
            optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(net.parameters(), 1)
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        total = sum(F.cross_entropy(net(x[i:i + 100]).flatten(0, 1), y[i:i + 100].flatten(),
                                    reduction="sum").item() for i in range(cut, count, 100))
    return {"bits_per_character": total / ((count - cut) * 64) / math.log(2)}


def fit(net, x, y, loss_of, optimizer, epochs, size, draw):
    for _ in range(epochs):
        order = draw.permutation(len(x))
        for i in range(0, len(order), size):
            batch = order[i:i + size]
            loss = loss_of(net(x[batch]), y[batch])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def train_uci_housing(data, draw):
    rows = np.loadtxt(f"{data}/housing/housing.data")
    x = rows[:, :13]
    x = (x - x.mean(0)) / (x.max(0) - x.min(0))
    x = torch.from_numpy(x).float()
    y = torch.from_numpy(rows[:, 13:]).float()
    net = nn.Sequential(nn.Linear(13, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.Adam(net.parameters(), 0.01, weight_decay=0.01)
    fit(net, x[:404], y[:404], F.mse_loss, optimizer, 100, 32, draw)
    with torch.no_grad():
        error = net(x[404:]) - y[404:]
    return {"mse": (error * error).mean().item(), "mae": error.abs().mean().item()}


class DeepFM(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Embedding(374, 1)
        self.vectors = nn.Embedding(374, 8)
        nn.init.normal_(self.vectors.weight, 0, 0.1)
        nn.init.normal_(self.first.weight, 0, 0.1)
        self.deep = nn.Sequential(nn.Linear(24, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(),
                                  nn.Linear(16, 1))

    def forward(self, ids):
        v = self.vectors(ids)
        pairs = 0.5 * (v.sum(1)**2 - (v * v).sum(1)).sum(1, keepdim=True)
        return self.first(ids).sum(1) + pairs + self.deep(v.flatten(1))


def area_under_curve(scores, labels):
    order = np.argsort(scores, kind="stable")
    ranks = np.empty(len(scores))
    ranks[order] = np.arange(1, len(scores) + 1)
    positive = labels.sum()
    return float((ranks[labels == 1].sum() - positive * (positive + 1) / 2) /
                 (positive * (len(labels) - positive)))


def clicks(path):
    with gzip.open(path, "rt") as file:
        rows = [[int(r[k]) for k in ("user", "item", "hour", "label")]
                for r in csv.DictReader(file)]
    rows = torch.tensor(rows)
    return rows[:, :3], rows[:, 3:].float()


def train_clicks_fm(data, draw):
    x, y = clicks(f"{data}/clicks/train.csv.gz")
    test, answers = clicks(f"{data}/clicks/eval.csv.gz")
    net = DeepFM()
    optimizer = torch.optim.Adam(net.parameters(), 0.003, weight_decay=3e-4)
    fit(net, x, y, F.binary_cross_entropy_with_logits, optimizer, 20, 256, draw)
    with torch.no_grad():
        logits = net(test)
    return {"loss": F.binary_cross_entropy_with_logits(logits, answers).item(),
            "auc": area_under_curve(logits.numpy()[:, 0], answers.numpy()[:, 0])}


def draw_as_paddle():
    """Has layers draw their first weights as PaddlePaddle's do: convolutions
    from a normal distribution of variance 2 / fan in, linear layers, transposed
    convolutions and embeddings as Glorot and Bengio; biases are 0."""
    def conv(layer):
        if layer.transposed:
            nn.init.xavier_uniform_(layer.weight)
        else:
            nn.init.normal_(layer.weight, 0, math.sqrt(2 / layer.weight[0].numel()))
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)

    def linear(layer):
        nn.init.xavier_uniform_(layer.weight)
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)
    nn.modules.conv._ConvNd.reset_parameters = conv
    nn.Linear.reset_parameters = linear
    nn.Embedding.reset_parameters = lambda layer: nn.init.xavier_uniform_(layer.weight)


def main():
    job, data = sys.argv[1:3]
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 0
    torch.manual_seed(seed)
    torch.set_num_threads(int(os.environ.get("OMP_NUM_THREADS", len(os.sched_getaffinity(0)))))
    name = os.path.basename(job)
    if job.startswith("apps/"):
        draw_as_paddle()
    find = lambda what: next((getattr(m, what) for m in MODULES if hasattr(m, what)), None)
    if len(sys.argv) > 4 and find("judge_" + name):
        print(json.dumps({"job": job, "program": "pdkit", "seed": seed, **find("judge_" + name)(data, sys.argv[4])}))
    if not find("train_" + name):
        sys.stderr.write(f"{job}: there is no peer for it\n")
        return
    start = time.time()
    results = find("train_" + name)(data, np.random.default_rng(seed))
    print(json.dumps({"job": job, "program": "torch " + torch.__version__, "seed": seed,
                      "seconds": round(time.time() - start, 1), **results}))


main()

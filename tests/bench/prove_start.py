# SPDX-License-Identifier: Apache-2.0
"""The chapters that PaddlePaddle's manual begins with, and its digits, in
PyTorch; see prove_apps.py.
"""
import copy
import csv
import io

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from prove_apps import accuracy, adam, learn, mnist, shuffled

# Six rides and their fares.


def fares(data):
    with open(f"{data}/jobs/apps/hello_paddle/fares.csv", encoding="ascii") as file:
        rows = torch.tensor([[float(r["distance"]), float(r["fare"])] for r in csv.DictReader(file)])
    return rows[:, :1], rows[:, 1:]


def line(x, y):
    """Of points on a line: what a step costs and what the beginning."""
    step = (y[-1] - y[0]) / (x[-1] - x[0])
    return {"weight": float(step[0]), "bias": float((y[0] - step * x[0])[0])}


def judge_hello_paddle(data, path):
    """Of the fares that pd-eval --out wrote."""
    with np.load(path) as file:
        return line(fares(data)[0], torch.from_numpy(file[file.files[0]]))


def train_hello_paddle(data, draw):
    x, y = fares(data)
    net = nn.Linear(1, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.001)
    learn([net], optimizer, lambda: [(x, y)], 5000, lambda x, y: F.mse_loss(net(x), y), cosine=False)
    with torch.no_grad():
        return {"loss": F.mse_loss(net(x), y).item(), **line(x, net(x))}


# A branch that a draw decides on; a matrix that two layers have.


def friedman(data, kind):
    rows = torch.from_numpy(np.loadtxt(f"{data}/friedman/{kind}.csv", np.float32, delimiter=",", skiprows=1))
    return (rows[:, :10] - 0.5) / 0.2887, rows[:, 10:]


def tied(data, draw):
    x, test = (mnist(data, kind)[0].flatten(1) for kind in ("train", "t10k"))
    weight = nn.Parameter(nn.init.xavier_uniform_(torch.empty(784, 32)))
    error = lambda x: F.mse_loss(x @ weight @ weight.T, x)
    optimizer = torch.optim.Adam([weight], 0.001)
    learn([], optimizer, shuffled(draw, 256, x), 5, error, cosine=False)
    # The best that such a network can do, whatever the steps.
    best = torch.linalg.eigh(x.T @ x)[1][:, -32:]
    with torch.no_grad():
        return {"shared_mse": error(test).item(), "principal_components_mse": F.mse_loss(test @ best @ best.T, test).item()}


def train_dynamic_graph(data, draw):
    (x, y), (test, answers) = (friedman(data, kind) for kind in ("train", "eval"))
    first, second, third = nn.Linear(10, 64), nn.Linear(64, 64), nn.Linear(64, 1)
    net = nn.ModuleList([first, second, third])

    def value(x, runs):
        hidden = F.relu(first(x))
        return third(F.relu(second(hidden)) if runs else hidden)
    optimizer = adam(net, 0.003)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 2820)
    for _ in range(60):
        for part, wanted in shuffled(draw, 32, x, y, drop_last=False)():
            loss = F.mse_loss(value(part, draw.random() >= 0.5), wanted)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        loss = F.mse_loss(value(test, True), answers).item()
    return {"loss": loss, **tied(data, draw)}


# Prices of homes.


def train_linear_regression(data, draw):
    rows = np.loadtxt(f"{data}/housing/housing.data")
    x = rows[:, :13]
    x = (x - x.mean(0)) / (x.max(0) - x.min(0))
    x, y = torch.from_numpy(x).float(), torch.from_numpy(rows[:, 13:]).float()
    net = nn.Linear(13, 1)
    optimizer = torch.optim.SGD(net.parameters(), 0.01)
    learn([net], optimizer, shuffled(draw, 20, x[:404], y[:404], drop_last=False), 200, lambda x, y: F.mse_loss(net(x), y), cosine=False)
    with_one = torch.cat([x, torch.ones(len(x), 1)], 1).double()
    best = torch.linalg.lstsq(with_one[:404], y[:404].double()).solution
    with torch.no_grad():
        error = net(x[404:]) - y[404:]
        least = F.mse_loss(with_one[404:] @ best, y[404:].double())
    return {"mse": (error * error).mean().item(), "mae": error.abs().mean().item(), "least_squares_mse": least.item()}


# Digits.


def train_high_level_api(data, draw):
    x, y = mnist(data, "train")
    test, answers = mnist(data, "t10k")
    net = nn.Sequential(nn.Flatten(), nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, 10))
    learn([net], adam(net, 0.001), shuffled(draw, 128, x, y, drop_last=False), 3, lambda x, y: F.cross_entropy(net(x), y), cosine=False)
    with torch.no_grad():
        return {"loss": F.cross_entropy(net(test), answers).item(), "acc": accuracy(net(test), answers)}


class LeNet:
    """lenet_mnist.pbtxt's training, which can be stopped and saved."""

    def __init__(self, data, draw):
        self.net = nn.Sequential(nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(),
                                 nn.MaxPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))
        self.optimizer = torch.optim.AdamW(self.net.parameters(), 0.003, (0.9, 0.99), weight_decay=0.2)
        rate = lambda step: step / 300 if step < 300 else (1 + np.cos(np.pi * (step - 300) / 4390)) / 2
        self.schedule = torch.optim.lr_scheduler.LambdaLR(self.optimizer, rate)
        self.data, self.draw = data, draw

    def look(self, x):
        return (x - 0.1307) / 0.3081

    def run(self, epochs):
        x, y = mnist(self.data, "train")
        x = F.pad(x, (1, 1, 1, 1))
        for _ in range(epochs):
            for part, wanted in shuffled(self.draw, 64, x, y, drop_last=False)():
                rows, columns = torch.from_numpy(self.draw.integers(0, 3, (2, len(part), 1))) + torch.arange(28)
                moved = part[torch.arange(len(part))[:, None, None], 0, rows[:, :, None], columns[:, None]][:, None]
                loss = F.cross_entropy(self.net(self.look(moved)), wanted)
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                self.schedule.step()

    def results(self):
        test, answers = mnist(self.data, "t10k")
        with torch.no_grad():
            scores = self.net(self.look(test))
            five = (scores.topk(5).indices == answers[:, None]).any(1).float().mean().item()
            return {"loss": F.cross_entropy(scores, answers).item(), "acc_top1": accuracy(scores, answers), "acc_top5": five}


def train_mnist(data, draw):
    training = LeNet(data, draw)
    training.run(5)
    return training.results()


def train_save_and_load(data, draw):
    """Three epochs, then two more of a training that begins with what the first
    saved; whether they end where five at a stretch do."""
    first = LeNet(data, draw)
    begin, order = copy.deepcopy(first.net.state_dict()), copy.deepcopy(draw)
    first.run(3)
    file = io.BytesIO()
    torch.save([first.net.state_dict(), first.optimizer.state_dict(), first.schedule.state_dict(), draw.bit_generator.state], file)
    file.seek(0)
    weights, moments, place, numbers = torch.load(file, weights_only=False)
    second = LeNet(data, np.random.default_rng())
    second.net.load_state_dict(weights)
    second.optimizer.load_state_dict(moments)
    second.schedule.load_state_dict(place)
    second.draw.bit_generator.state = numbers
    second.run(2)
    whole = LeNet(data, order)
    whole.net.load_state_dict(begin)
    whole.run(5)
    same = all(torch.equal(a, b) for a, b in zip(second.net.parameters(), whole.net.parameters()))
    return {**second.results(), "same_bits_as_whole": same}

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks in the shapes of PyTorch's zoos with random weights, saved by torch.jit.save: testdata/torch_script.

    torch_script_models.py OUT

Needs PyTorch (made with 2.15.0). For each NAME: NAME_trace.pt of torch.jit.trace or NAME_script.pt of torch.jit.script,
and NAME.npz with the arrays of the inputs and, as "out.0" and so on, what PyTorch answers.
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn
from torch_export_models import Cnn, Encoder, Gpt, Masked, Mobile, Recurrent, ResNet, Shuffle, UNet, randomised, tensors


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(1, 4, 5), nn.Conv2d(4, 6, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(54, 16), nn.Linear(16, 10)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(torch.tanh(self.conv2(x)), 2)
        x = x.view(x.size(0), -1)
        return F.softmax(self.fc2(F.relu(self.fc1(x))), dim=1)


class Inverted(nn.Module):
    """MobileNet's block with relu6 and a shortcut where it fits."""

    def __init__(self, cin, cout, stride):
        super().__init__()
        self.shortcut = stride == 1 and cin == cout
        self.body = nn.Sequential(
            nn.Conv2d(cin, 2 * cin, 1, bias=False), nn.BatchNorm2d(2 * cin), nn.ReLU6(inplace=True),
            nn.Conv2d(2 * cin, 2 * cin, 3, stride, 1, groups=2 * cin, bias=False), nn.BatchNorm2d(2 * cin),
            nn.ReLU6(inplace=True), nn.Conv2d(2 * cin, cout, 1, bias=False), nn.BatchNorm2d(cout))

    def forward(self, x):
        if self.shortcut:
            return x + self.body(x)
        return self.body(x)


class Mobile2(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 6, 3, 2, 1), nn.Hardswish())
        self.blocks = nn.Sequential(Inverted(6, 6, 1), Inverted(6, 8, 2))
        self.head = nn.Sequential(nn.Dropout(0.2), nn.Linear(8, 5))

    def forward(self, x):
        x = self.blocks(self.stem(x))
        return self.head(F.adaptive_avg_pool2d(x, (1, 1)).flatten(1))


class TextCnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(30, 8, padding_idx=0)
        self.convs = nn.ModuleList([nn.Conv1d(8, 4, k) for k in (2, 3, 4)])
        self.head = nn.Linear(12, 3)

    def forward(self, ids):
        x = self.words(ids).transpose(1, 2)
        parts = []
        for conv in self.convs:
            parts.append(F.relu(conv(x)).max(dim=2)[0])
        return F.log_softmax(self.head(torch.cat(parts, 1)), dim=-1)


class Rounds(nn.Module):
    """Loops, branches and helpers that only scripts have."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(6, 6)
        self.rounds = 3

    def step(self, x, scale: float):
        return x + scale * torch.tanh(self.cell(x))

    def forward(self, x):
        outs = []
        for i in range(self.rounds):
            if i % 2 == 0:
                x = self.step(x, 1.0 / (i + 1))
            else:
                x = self.step(x, 0.5)
            outs.append(x)
        n, width = x.shape
        assert width == 6
        return torch.stack(outs, 1).reshape(n, -1, width // 2), {"last": outs[-1]}["last"]


class SmallUNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down, self.middle = nn.Conv2d(2, 6, 3, padding=1), nn.Conv2d(6, 8, 3, 2, 1)
        self.norm, self.last = nn.GroupNorm(2, 8), nn.Conv2d(14, 2, 1)
        self.up = nn.Upsample(scale_factor=2.0, mode="nearest")

    def forward(self, x):
        a = F.leaky_relu(self.down(x), 0.2)
        b = F.gelu(self.norm(self.middle(a)))
        return F.interpolate(self.last(torch.cat([self.up(b), a], 1)), size=[9, 7], mode="bilinear", align_corners=False)


def write(folder, name, net, inputs, forms=("trace", "script")):
    net = randomised(net)
    answers = tensors(net(*inputs))
    for form in forms:
        script = torch.jit.trace(net, inputs, check_trace=False) if form == "trace" else torch.jit.script(net)
        torch.jit.save(script, os.path.join(folder, f"{name}_{form}.pt"))
        names = [v.debugName().split(".")[0] for v in list(script.graph.inputs())[1:]]
    arrays = dict(zip(names, inputs))
    arrays.update({f"out.{i}": t for i, t in enumerate(answers)})
    np.savez_compressed(os.path.join(folder, name + ".npz"), **{n: t.detach().numpy() for n, t in arrays.items()})
    print(name, {n: tuple(t.shape) for n, t in arrays.items()})


if __name__ == "__main__":
    torch.manual_seed(7)
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    write(out, "lenet", LeNet(), (torch.randn(2, 1, 16, 16),))
    write(out, "resnet", ResNet(), (torch.randn(2, 3, 17, 17),), forms=("trace",))
    write(out, "cnn", Cnn(), (torch.randn(2, 3, 20, 18),), forms=("script",))
    write(out, "mobile2", Mobile2(), (torch.randn(2, 3, 15, 15),))
    write(out, "squeeze", Mobile(), (torch.randn(1, 3, 15, 15),))
    write(out, "shuffle", Shuffle(), (torch.randn(2, 8, 9, 9),), forms=("trace",))
    write(out, "encoder", Encoder(), (torch.randn(2, 3, 16, 16),), forms=("trace",))
    write(out, "gpt", Gpt(), (torch.randint(0, 30, (2, 9)),), forms=("trace",))
    write(out, "masked", Masked(), (torch.tensor([[3, 5, 0, 0], [1, 2, 9, 19]]),))
    write(out, "recurrent", Recurrent(), (torch.randn(3, 7, 6),))
    write(out, "unet", UNet(), (torch.randn(1, 2, 10, 12),), forms=("trace",))
    write(out, "small_unet", SmallUNet(), (torch.randn(2, 2, 8, 6),))
    write(out, "text_cnn", TextCnn(), (torch.randint(0, 30, (2, 11)),))
    write(out, "rounds", Rounds(), (torch.randn(2, 6),), forms=("script",))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks in the shapes of PyTorch's zoos with random weights, saved by torch.export.save: testdata/torch_export.

    torch_export_models.py OUT [old]

Needs PyTorch (made with 2.15.0; by "old", with 2.2.2 and 2.5.1, whose archives are others: NAME_torch2_2.pt2). For each NAME: NAME.pt2, and NAME.npz with the arrays of the inputs and, as "out.VALUE",
what PyTorch answers. NAME_core is the same network after run_decompositions().
"""
import os
import sys

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 8, 3, padding=1, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True), nn.MaxPool2d(2),
            nn.Conv2d(8, 12, 3, stride=2, padding=1, groups=2), nn.ReLU6(), nn.AvgPool2d(3, 2, 1, ceil_mode=True))
        self.pool = nn.AdaptiveAvgPool2d((3, 2))
        self.classifier = nn.Sequential(nn.Dropout(), nn.Linear(72, 20), nn.ReLU(inplace=True), nn.Linear(20, 10))

    def forward(self, x):
        return F.log_softmax(self.classifier(torch.flatten(self.pool(self.features(x)), 1)), dim=1)


class Block(nn.Module):
    def __init__(self, cin, cout, stride):
        super().__init__()
        self.a = nn.Sequential(nn.Conv2d(cin, cout, 3, stride, 1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
                               nn.Conv2d(cout, cout, 3, 1, 1, bias=False), nn.BatchNorm2d(cout))
        self.b = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))
        self.relu = nn.ReLU(inplace=True)

    def forward(self, x):
        out = self.a(x)
        out += self.b(x)
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 8, 7, 2, 3, bias=False), nn.BatchNorm2d(8), nn.ReLU(inplace=True),
                                  nn.MaxPool2d(3, 2, 1))
        self.layers = nn.Sequential(Block(8, 8, 1), Block(8, 16, 2))
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(16, 10)

    def forward(self, x):
        return self.fc(torch.flatten(self.pool(self.layers(self.stem(x))), 1))


class Mobile(nn.Module):
    def __init__(self):
        super().__init__()
        self.expand = nn.Sequential(nn.Conv2d(3, 12, 1), nn.BatchNorm2d(12), nn.Hardswish())
        self.depth = nn.Sequential(nn.Conv2d(12, 12, 5, 2, 2, groups=12), nn.BatchNorm2d(12), nn.SiLU())
        self.down, self.up = nn.Conv2d(12, 4, 1), nn.Conv2d(4, 12, 1)
        self.prelu, self.last = nn.PReLU(12), nn.Conv2d(12, 6, 1)

    def forward(self, x):
        x = self.depth(self.expand(x))
        gate = F.hardsigmoid(self.up(F.leaky_relu(self.down(F.adaptive_avg_pool2d(x, 1)), 0.1)))
        return self.last(self.prelu(x * gate)).mean([2, 3])


class Shuffle(nn.Module):
    def __init__(self):
        super().__init__()
        self.branch = nn.Sequential(nn.Conv2d(4, 4, 3, padding=1, groups=4), nn.BatchNorm2d(4), nn.Conv2d(4, 4, 1))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        x = torch.cat((a, self.branch(b)), dim=1)
        n, c, h, w = x.size()
        x = x.view(n, 2, c // 2, h, w).transpose(1, 2).contiguous().view(n, -1, h, w)
        parts = torch.split(x, [3, 5], dim=1)
        return parts[0].amax((2, 3)), F.max_pool2d(parts[1], 3, 2, 1, 2)


class Encoder(nn.Module):
    """A vision transformer of two layers."""

    def __init__(self):
        super().__init__()
        self.patch = nn.Conv2d(3, 16, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 16))
        self.position = nn.Parameter(torch.randn(1, 17, 16))
        layer = nn.TransformerEncoderLayer(16, 4, 32, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 5)

    def forward(self, x):
        x = self.patch(x).flatten(2).permute(0, 2, 1)
        x = torch.cat((self.token.expand(x.shape[0], -1, -1), x), 1) + self.position
        return self.head(self.norm(self.layers(x))[:, 0])


class Gpt(nn.Module):
    """A decoder with tied embeddings, a causal mask and fused heads."""

    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(30, 16), nn.Embedding(12, 16)
        self.norm1, self.qkv, self.proj = nn.LayerNorm(16), nn.Linear(16, 48), nn.Linear(16, 16)
        self.norm2, self.fc, self.out = nn.LayerNorm(16), nn.Linear(16, 64), nn.Linear(64, 16)
        self.norm = nn.LayerNorm(16, elementwise_affine=False)
        self.head = nn.Linear(16, 30, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, ids):
        n, t = ids.shape
        x = self.wte(ids) + self.wpe(torch.arange(t))
        q, k, v = self.qkv(self.norm1(x)).split(16, dim=2)
        q, k, v = (y.view(n, t, 4, 4).transpose(1, 2) for y in (q, k, v))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).contiguous().view(n, t, 16))
        x = x + self.out(F.gelu(self.fc(self.norm2(x)), approximate="tanh"))
        return self.head(self.norm(x))


class Masked(nn.Module):
    """Attention by hand, with padding."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 12, padding_idx=0)
        self.q, self.k, self.v = nn.Linear(12, 12), nn.Linear(12, 12), nn.Linear(12, 12, bias=False)

    def forward(self, ids):
        x = self.words(ids)
        scores = torch.matmul(self.q(x), self.k(x).transpose(-1, -2)) / 12**0.5
        scores = scores.masked_fill((ids == 0).unsqueeze(1), -1e9)
        x = torch.matmul(torch.softmax(scores, -1), self.v(x))
        keep = (ids != 0).unsqueeze(-1).to(torch.float32)
        return (x * keep).sum(1) / keep.sum(1).clamp(min=1)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(6, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.gru, self.rnn = nn.GRU(10, 4), nn.RNN(4, 3, bias=False)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        y, g = self.gru(y.transpose(0, 1))
        y, _ = self.rnn(y)
        return y, h, c, g


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1 = nn.Sequential(nn.Conv2d(2, 8, 3, padding=1), nn.GroupNorm(2, 8), nn.SiLU())
        self.down2 = nn.Sequential(nn.Conv2d(8, 12, 3, 2, 1), nn.InstanceNorm2d(12, affine=True), nn.ELU(0.8))
        self.up = nn.ConvTranspose2d(12, 8, 3, 2, 1, output_padding=1)
        self.last, self.shuffle = nn.Conv2d(16, 8, 3, padding=1, padding_mode="reflect"), nn.PixelShuffle(2)

    def forward(self, x):
        a = self.down1(x)
        x = self.up(self.down2(a))
        x = self.shuffle(self.last(torch.cat([x, a], 1)))
        small = F.interpolate(x, size=(9, 7), mode="bilinear", align_corners=False)
        big = F.interpolate(x, scale_factor=2, mode="nearest")
        return torch.sigmoid(small), F.interpolate(big, size=(11, 13), mode="bilinear", align_corners=True)


class Heads(nn.Module):
    """What detectors do with their maps."""

    def forward(self, scores, boxes):
        best, label = scores.max(dim=2)
        top, place = best.topk(4, dim=1)
        boxes = torch.gather(boxes, 1, place.unsqueeze(-1).expand(-1, -1, 4))
        x0, y0, x1, y1 = boxes.unbind(-1)
        area = (x1 - x0).clamp(min=0) * (y1 - y0).clamp(min=0)
        return (top, torch.stack([x0 + x1, y0 + y1], -1) / 2, torch.where(area > 1, area, -area),
                label.gather(1, place), scores.argmax(-1), torch.cumsum(best, 1))


class Elementwise(nn.Module):
    def forward(self, x, y):
        a = torch.exp(-x.abs()) + torch.log(y.abs() + 1) - 2 * x
        b = torch.sqrt(y * y + 0.5) * torch.rsqrt(x**2 + 1) + torch.pow(y.abs(), 1.5)
        c = torch.maximum(x, y) / (1 + torch.minimum(x, y).pow(2)) + 1 - x
        d = F.softplus(x, beta=2) + F.mish(y) + F.selu(x) + F.logsigmoid(y) + torch.erf(x) + F.hardtanh(y, -0.5, 0.7)
        e = torch.where((x > 0) & ~(y < 0.2), torch.sin(x), torch.cos(y)) + torch.tanh(x).floor() + y.sign()
        f = x.var(dim=1, keepdim=True) + y.std(dim=(0, 1), unbiased=False) + torch.linalg.vector_norm(x, dim=1, keepdim=True)
        return a, b, c, d, e, f, torch.einsum("bi,bj->ij", x, y), x.sum(), y.mean(0, keepdim=True)


class Shapes(nn.Module):
    def forward(self, x):
        y = torch.roll(x, shifts=(1, -2), dims=(1, 2))[:, 1:, ::2]
        z = F.pad(x, (1, 2, 0, 1), value=0.5).repeat(1, 2, 1)
        tri = torch.tril(torch.ones(4, 6)) + torch.zeros(6) + torch.full((4, 1), 2.0)
        return (y.flip(2), z, x.select(1, -1).squeeze(0), x.unsqueeze(1).expand(-1, 3, -1, -1), tri * x,
                torch.index_select(x, 2, torch.tensor([5, 0, 0])), x.unflatten(2, (2, 3)).permute(0, 3, 1, 2),
                torch.bmm(x, x.transpose(1, 2)), x.triu(1))


class Assign(nn.Module):
    """Parts of tensors are written, which only decompositions say without memory that is shared."""

    def forward(self, x):
        mask = torch.zeros(2, 6, 4)
        mask[:, 1:3] = 1
        mask[:, -1] = 2
        y = x.clone()
        y[0, :, 1] = torch.fmod(x[0, :, 0], 0.6)
        return y * mask, F.cosine_similarity(x, y + 1, dim=-1), torch.clamp(x, min=y, max=mask)


def randomised(net):
    for module in net.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.normal_(module.running_mean, 0, 0.3)
            nn.init.uniform_(module.running_var, 0.5, 2)
            nn.init.uniform_(module.weight, 0.5, 1.5)
            nn.init.normal_(module.bias, 0, 0.2)
    return net.eval()


def tensors(value):
    if isinstance(value, torch.Tensor):
        return [value]
    return [t for item in value for t in tensors(item)]


def write(folder, name, net, inputs, core=False, **options):
    net = randomised(net)
    program = torch.export.export(net, inputs, **options)
    for suffix in ("_core",) if core == "only" else ("", "_core") if core else ("",):
        if suffix:
            program = program.run_decompositions()
        base = os.path.join(folder, name + suffix)
        torch.export.save(program, base + ".pt2")
        signature = program.graph_signature
        arrays = dict(zip(signature.user_inputs, inputs))
        arrays.update({"out." + n: t for n, t in zip(signature.user_outputs, tensors(net(*inputs)))})
        np.savez_compressed(base + ".npz", **{n: t.detach().numpy() for n, t in arrays.items()})
        print(name + suffix, {n: tuple(t.shape) for n, t in arrays.items()})


if __name__ == "__main__":
    torch.manual_seed(5)
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    if sys.argv[2:] == ["old"]:
        version = "_torch" + "_".join(torch.__version__.split(".")[:2])
        write(out, "cnn" + version, Cnn(), (torch.randn(3, 3, 20, 18),))
        write(out, "masked" + version, Masked(), (torch.tensor([[3, 5, 0, 0], [1, 2, 9, 19]]),))
        if version != "_torch2_2":  # there it has an attention for GPUs
            write(out, "gpt" + version, Gpt(), (torch.randint(0, 30, (2, 9)),))
        write(out, "shuffle" + version, Shuffle(), (torch.randn(2, 8, 9, 9),))
        sys.exit()
    batch = torch.export.Dim("batch", min=1, max=64)
    write(out, "cnn", Cnn(), (torch.randn(3, 3, 20, 18),), core=True, dynamic_shapes=({0: batch},))
    write(out, "resnet", ResNet(), (torch.randn(2, 3, 33, 33),), core=True)
    write(out, "mobile", Mobile(), (torch.randn(1, 3, 15, 15),), core=True)
    write(out, "shuffle", Shuffle(), (torch.randn(2, 8, 9, 9),))
    write(out, "encoder", Encoder(), (torch.randn(2, 3, 16, 16),), core=True)
    write(out, "gpt", Gpt(), (torch.randint(0, 30, (2, 9)),), core=True)
    write(out, "masked", Masked(), (torch.tensor([[3, 5, 0, 0], [1, 2, 9, 19]]),))
    write(out, "recurrent", Recurrent(), (torch.randn(3, 7, 6),))
    write(out, "unet", UNet(), (torch.randn(1, 2, 10, 12),))
    write(out, "heads", Heads(), (torch.rand(2, 9, 5), torch.randn(2, 9, 4)))
    write(out, "elementwise", Elementwise(), (torch.randn(4, 5), torch.randn(4, 5)))
    write(out, "shapes", Shapes(), (torch.randn(1, 4, 6),))
    write(out, "assign", Assign(), (torch.randn(2, 6, 4),), core="only")

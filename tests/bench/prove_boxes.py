# SPDX-License-Identifier: Apache-2.0
"""testdata/jobs/apps/detection/yolov3.pbtxt in PyTorch: the network, the loss, the
choice of boxes and their average precision; see prove_apps.py.
"""
import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from prove_apps import adam, arrays, shuffled

SIDE, CLASSES = 64, 3
ANCHORS = torch.tensor([[14.0, 14], [28, 28], [20, 28], [28, 20]])
# Pixels of a cell, and which anchors it has.
SCALES = ((16, [2, 3]), (8, [0, 1]))


def conv(before, channels, stride=1):
    return nn.Sequential(nn.Conv2d(before, channels, 3, stride, 1, bias=False), nn.BatchNorm2d(channels), nn.LeakyReLU())


class Yolo(nn.Module):
    def __init__(self):
        super().__init__()
        outs = 2 * (5 + CLASSES)
        self.map8 = nn.Sequential(conv(3, 16, 2), conv(16, 32, 2), conv(32, 64), conv(64, 64, 2))
        self.map16 = nn.Sequential(conv(64, 96, 2), conv(96, 96))
        self.both, self.out16, self.out8 = conv(160, 64), nn.Conv2d(96, outs, 1), nn.Conv2d(64, outs, 1)

    def forward(self, x):
        x = self.map8(x)
        y = self.map16(x)
        z = self.both(torch.cat([F.interpolate(y, scale_factor=2), x], 1))
        # [N, anchors, 5 + classes, H, W] of both scales.
        return [out.unflatten(1, (2, 5 + CLASSES)) for out in (self.out16(y), self.out8(z))]


def predicted(out, pixels, mask):
    """Centres and extents [N, anchors, 4, H, W] as parts of the picture."""
    side = out.shape[-1]
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    centre = (out[:, :, :2].sigmoid() + torch.stack([columns, rows])) / side
    return torch.cat([centre, out[:, :, 2:4].exp() * ANCHORS[mask].view(1, -1, 2, 1, 1) / (side * pixels)], 2)


def corners(boxes):
    return torch.cat([boxes[..., :2] - boxes[..., 2:] / 2, boxes[..., :2] + boxes[..., 2:] / 2], -1)


def overlap(a, b):
    """Of boxes [..., 4] by corners."""
    sides = (torch.minimum(a[..., 2:], b[..., 2:]) - torch.maximum(a[..., :2], b[..., :2])).clamp(min=0)
    area = lambda x: (x[..., 2:] - x[..., :2]).prod(-1)
    common = sides.prod(-1)
    return common / (area(a) + area(b) - common)


def loss_of_scale(out, pixels, mask, boxes, kinds):
    """One number for each picture. boxes [N, B, 4]: centres and extents."""
    side, cross = out.shape[-1], lambda x, y: F.binary_cross_entropy_with_logits(x, y, reduction="none")
    real = boxes[..., 2] > 0
    # Each true box belongs to the anchor of all that is most like it in extent.
    extent = boxes[..., None, 2:] * SIDE
    common = torch.minimum(extent, ANCHORS).prod(-1)
    best = (common / (extent.prod(-1) + ANCHORS.prod(-1) - common)).argmax(-1)
    with torch.no_grad():
        found = corners(predicted(out, pixels, mask).movedim(2, -1))
        near = overlap(found[..., None, :], corners(boxes)[:, None, None, None])
        wanted = torch.where((near * real[:, None, None, None]).amax(-1) > 0.7, -1.0, 0.0)
    losses = []
    for n in range(len(out)):
        total = 0
        for b in torch.nonzero(real[n] & torch.isin(best[n], torch.tensor(mask)))[:, 0]:
            m, (x, y, w, h) = mask.index(int(best[n, b])), boxes[n, b]
            column, row = int(x * side), int(y * side)
            one = out[n, m, :, row, column]
            place = torch.stack([x * side - column, y * side - row])
            size = torch.log(boxes[n, b, 2:] * SIDE / ANCHORS[best[n, b]])
            total += (2 - w * h) * (cross(one[:2], place).sum() + (one[2:4] - size).abs().sum())
            labels = torch.full((CLASSES,), 1 / 40)
            labels[kinds[n, b]] = 1 - 1 / 40
            total += cross(one[5:], labels).sum()
            wanted[n, m, row, column] = 1
        thing = cross(out[n, :, 4], wanted[n].clamp(min=0))
        losses.append(total + (thing * (wanted[n] >= 0)).sum())
    return torch.stack(losses)


def chosen(boxes, scores):
    """Class, score and box of what is left of boxes [M, 4] with scores [M,
    classes] where the best of several that overlap counts."""
    rows = []
    for k in range(CLASSES):
        order = scores[:, k].argsort(descending=True)[:100]
        live = [int(i) for i in order if scores[i, k] > 0.05]
        while live:
            best = live.pop(0)
            rows.append((k, float(scores[best, k]), boxes[best].clamp(0, 1)))
            live = [i for i in live if overlap(boxes[i], boxes[best]) <= 0.45]
    return sorted(rows, key=lambda row: -row[1])[:20]


def average_precision(found, truths):
    """Pascal VOC's of 2007, from 11 recalls. found: picture, score and box;
    truths: a picture's boxes."""
    count, seen, hits = sum(len(t) for t in truths), set(), []
    for n, _, box in sorted(found, key=lambda one: -one[1]):
        near = [float(overlap(box, t)) for t in truths[n]]
        best = int(np.argmax(near)) if near else -1
        hits.append(best >= 0 and near[best] > 0.5 and (n, best) not in seen)
        if hits[-1]:
            seen.add((n, best))
    right = np.cumsum(hits)
    precision, recall = right / np.arange(1, len(hits) + 1), right / count
    return np.mean([max(precision[recall >= k / 10], default=0) for k in range(11)])


def train_detection(data, draw):
    read = lambda kind: arrays(f"{data}/jobs/apps/detection/{kind}.npz", "image", "gt_centre", "gt_label")
    (x, boxes, kinds), (test, answers, classes) = read("train"), read("eval")
    look = lambda x: x.permute(0, 3, 1, 2).float() / 127.5 - 1
    net = Yolo()
    optimizer = adam(net, 0.003)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 640)
    for _ in range(40):
        for part, b, k in shuffled(draw, 16, x, boxes, kinds)():
            loss = sum(loss_of_scale(out, *scale, b, k).mean() for out, scale in zip(net(look(part)), SCALES))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            schedule.step()
    net.eval()
    found = [[] for _ in range(CLASSES)]
    with torch.no_grad():
        outs = net(look(test))
        all_boxes = torch.cat([corners(predicted(out, *scale).movedim(2, -1)).flatten(1, 3) for out, scale in zip(outs, SCALES)], 1)
        thing = torch.cat([out[:, :, 4].sigmoid().flatten(1) for out in outs], 1)
        kind = torch.cat([out[:, :, 5:].sigmoid().movedim(2, -1).flatten(1, 3) for out in outs], 1)
    scores = torch.where(thing < 0.05, 0.0, thing)[..., None] * kind
    for n in range(len(test)):
        for k, score, box in chosen(all_boxes[n], scores[n]):
            found[k].append((n, score, box))
    truths = lambda k: [corners(b)[(b[:, 2] > 0) & (c == k)] for b, c in zip(answers, classes)]
    return {"map": float(np.mean([average_precision(found[k], truths(k)) for k in range(CLASSES)]))}

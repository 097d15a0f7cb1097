#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes testdata/metrics/coco.json: detections, true boxes, and their average precision by the rules of COCO.

    testdata/make/coco_goldens.py FILE

The figures are computed here, by the text of COCO's evaluation and pycocotools' COCOeval, with whole arrays of NumPy: one
matrix of precisions [overlaps, recalls, classes]. A case is written as by metric_goldens.py. Needs NumPy.
"""
import json
import sys

import numpy as np

OVERLAPS = np.linspace(0.5, 0.95, 10)
RECALLS = np.linspace(0, 1, 101)


def overlaps(found, truth, crowd):
    low = np.maximum(found[:, None, :2], truth[None, :, :2])
    high = np.minimum(found[:, None, 2:], truth[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(2)
    area = (found[:, 2:] - found[:, :2]).prod(1)[:, None]
    other = (truth[:, 2:] - truth[:, :2]).prod(1)[None]
    return common / np.where(crowd[None], area, area + other - common)


def one_image(scores, found, truth, crowd, most):
    """Scores, best first; [overlaps, detections] right and left out; how many are to be found."""
    order = np.argsort(-scores, kind="mergesort")[:most]
    scores, found = scores[order], found[order]
    order = np.argsort(crowd, kind="mergesort")
    truth, crowd = truth[order], crowd[order]
    iou = overlaps(found, truth, crowd)
    right, left_out = np.zeros((2, len(OVERLAPS), len(found)), bool)
    for t, least in enumerate(OVERLAPS):
        free = np.ones(len(truth), bool)
        for d in range(len(found)):
            # The best free box; crowds, which are never used up, where there is none.
            for wanted in (free & ~crowd, crowd):
                fit = np.where(wanted & (iou[d] >= min(least, 1 - 1e-10)))[0]
                if len(fit):
                    best = fit[::-1][iou[d][fit[::-1]].argmax()]  # the last of equals
                    free[best] = False
                    right[t, d], left_out[t, d] = not crowd[best], crowd[best]
                    break
    return scores, right, left_out, int((~crowd).sum())


def coco(images, most):
    precision, recall = [], []
    for label in sorted({int(c) for image in images for c in image["labels"]}):
        parts = []
        for image in images:
            own, said = image["labels"] == label, image["classes"] == label
            parts.append(one_image(image["scores"][said], image["found"][said], image["truth"][own], image["crowd"][own], most))
        wanted = sum(p[3] for p in parts)
        if wanted == 0:
            continue
        order = np.argsort(-np.concatenate([p[0] for p in parts]), kind="mergesort")
        right = np.concatenate([p[1] for p in parts], 1)[:, order]
        wrong = ~right & ~np.concatenate([p[2] for p in parts], 1)[:, order]
        tp, fp = right.cumsum(1).astype(float), wrong.cumsum(1).astype(float)
        found = tp / wanted
        each = tp / np.maximum(tp + fp, np.spacing(1))
        best = np.maximum.accumulate(each[:, ::-1], 1)[:, ::-1]
        rows = np.zeros((len(OVERLAPS), len(RECALLS)))
        for t in range(len(OVERLAPS)):
            at = np.searchsorted(found[t], RECALLS, side="left")
            rows[t, at < found.shape[1]] = best[t, at[at < found.shape[1]]]
        precision.append(rows)
        recall.append(found[:, -1] if found.shape[1] else np.zeros(len(OVERLAPS)))
    precision = np.array(precision)
    return {"": precision.mean(), "_50": precision[:, 0].mean(), "_75": precision[:, 5].mean(), "_recall": np.mean(recall)}


def tensor(a):
    a = np.asarray(a)
    data = [round(float(v), 6) if a.dtype.kind == "f" else int(v) for v in a.ravel()]
    return {"dtype": str(a.dtype), "shape": list(a.shape), "data": data}


def make(rng, count, classes, crowds):
    """Images whose detections are the true boxes, moved, and others."""
    images = []
    for _ in range(count):
        n = rng.randint(0, 6)
        low = rng.uniform(0, 60, (n, 2))
        truth = np.concatenate([low, low + rng.uniform(8, 40, (n, 2))], 1).round(2).astype("float32").astype("float64")
        labels = rng.randint(0, classes, n)
        crowd = rng.rand(n) < crowds
        moved = np.concatenate([truth + rng.normal(0, 2.5, truth.shape), truth + rng.normal(0, 1, truth.shape)])
        low = rng.uniform(0, 70, (4, 2))
        found = np.concatenate([moved, np.concatenate([low, low + rng.uniform(5, 30, (4, 2))], 1)]).round(2)
        said = np.concatenate([labels, np.where(rng.rand(n) < 0.8, labels, rng.randint(0, classes, n)), rng.randint(0, classes, 4)])
        images.append(dict(truth=truth, labels=labels, crowd=crowd, found=found.astype("float32").astype("float64"), classes=said,
                           scores=rng.permutation(1000)[:len(found)] / 1000))
    return images


def batch(images):
    most = max(1, max(len(i["truth"]) for i in images))
    box, label, crowd = np.zeros((len(images), most, 4)), np.zeros((len(images), most), "int64"), np.zeros((len(images), most), "int64")
    for k, i in enumerate(images):
        n = len(i["truth"])
        box[k, :n], label[k, :n], crowd[k, :n] = i["truth"], i["labels"], i["crowd"]
    rows = np.concatenate([np.concatenate([i["classes"][:, None], i["scores"][:, None], i["found"]], 1) for i in images])
    return {"input": tensor(rows.astype("float32")), "input_length": tensor(np.array([len(i["found"]) for i in images], "int32")),
            "box": tensor(box.astype("float32")), "label": tensor(label), "difficult": tensor(crowd)}


def case(name, seed, count, classes, crowds, most=100):
    rng = np.random.RandomState(seed)
    images = make(rng, count, classes, crowds)
    for image in images:
        # A score that two detections share would make their order count.
        image["scores"] = np.round(image["scores"] + rng.uniform(0, 0.0009, len(image["scores"])), 6)
        image["scores"] = image["scores"].astype("float32").astype("float64")
    expected = coco(images, most)
    return {"name": name, "from": "coco_goldens.py",
            "metric": f'mean_average_precision {{ ap_type: coco is_bbox_normalized: false difficult: "crowd" max_detections: {most} }}',
            "batches": [batch(images[:count // 2]), batch(images[count // 2:])], "expected": {k: float(v) for k, v in expected.items()}}


if __name__ == "__main__":
    cases = [case("coco", 1, 12, 3, 0), case("coco_crowds", 2, 12, 2, 0.4), case("coco_one_class", 3, 6, 1, 0.2),
             case("coco_few", 4, 10, 2, 0.1, most=3), case("coco_many_classes", 5, 8, 7, 0.2)]
    with open(sys.argv[1], "w") as out:
        json.dump(cases, out, indent=None, separators=(",", ":"))
        out.write("\n")
    for c in cases:
        print(c["name"], c["expected"])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes testdata/metrics/goldens.json: inputs of metrics, and what paddlepaddle 2.6.2, scikit-learn and sacreBLEU say of
them.

    testdata/make/metric_goldens.py FILE

A case is {"name", "from", "metric": text of the job's message, "batches": [{slot: {"dtype", "shape", "data"}}], "expected":
{suffix of the result: value}}. Needs paddlepaddle 2.6.2, scikit-learn and sacrebleu.
"""
import json
import sys

import numpy as np
import paddle
import sacrebleu
from paddle.nn import functional as F
from sklearn import metrics as sk

rng = np.random.RandomState(7)
cases = []


def tensor(a):
    a = np.asarray(a)
    data = [round(float(v), 6) if a.dtype.kind == "f" else int(v) for v in a.ravel()]
    return {"dtype": str(a.dtype), "shape": list(a.shape), "data": data}


def add(name, origin, metric, expected, **slots):
    """Slots are arrays whose records are cut into two batches."""
    n = len(next(iter(slots.values())))
    cut = n // 2
    batches = [{k: tensor(v[a:b]) for k, v in slots.items()} for a, b in ((0, cut), (cut, n)) if b > a]
    cases.append({"name": name, "from": origin, "metric": metric, "batches": batches,
                  "expected": {k: float(v) for k, v in expected.items()}})


def scores(*shape):
    return np.round(rng.randn(*shape), 3).astype("float32")


def paddle_metric(metric, *args):
    metric.update(*args)
    return metric.accumulate()


def run_op(op_type, inputs, outputs, attrs):
    """One op of a static program; inputs are (array, lengths of its sequences or None)."""
    paddle.enable_static()
    main = paddle.static.Program()
    with paddle.static.program_guard(main):
        block, feed, slots = main.global_block(), {}, {}
        for slot, (array, lengths) in inputs.items():
            block.create_var(name=slot, shape=array.shape, dtype=str(array.dtype), lod_level=int(lengths is not None),
                             is_data=True)
            slots[slot] = [slot]
            feed[slot] = array if lengths is None else paddle.base.create_lod_tensor(array, [lengths],
                                                                                     paddle.CPUPlace())
        for slot, dtype in outputs.items():
            block.create_var(name="out_" + slot, dtype=dtype, persistable=True)
        block.append_op(type=op_type, inputs=slots, outputs={s: ["out_" + s] for s in outputs}, attrs=attrs)
    exe = paddle.static.Executor(paddle.CPUPlace())
    got = exe.run(main, feed=feed, fetch_list=["out_" + s for s in outputs], return_numpy=False)
    paddle.disable_static()
    return {s: np.asarray(g) for s, g in zip(outputs, got)}


def classes():
    x, y = scores(11, 7), rng.randint(0, 7, (11, 1)).astype("int64")
    for topk in ((1,), (1, 3), (5,)):
        m = paddle.metric.Accuracy(topk=topk)
        m.update(m.compute(paddle.to_tensor(x), paddle.to_tensor(y)))
        names = m.name() if isinstance(m.name(), list) else [m.name()]
        values = np.atleast_1d(m.accumulate())
        add(f"accuracy_{topk[-1]}", "paddle.metric.Accuracy", f"accuracy {{ topk: {list(topk)} }}",
            {n.replace("acc", ""): v for n, v in zip(names, values)}, input=x, label=y)
    one_hot = np.eye(7, dtype="float32")[y[:, 0]][:, None, :].repeat(2, 1)
    x2 = scores(11, 2, 7)
    m = paddle.metric.Accuracy()
    m.update(m.compute(paddle.to_tensor(x2), paddle.to_tensor(one_hot)))
    add("accuracy_one_hot", "paddle.metric.Accuracy", "accuracy {}", {"": m.accumulate()}, input=x2, label=one_hot)
    for kind, fn in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
        for average in ("macro", "micro", "weighted"):
            add(f"{kind}_{average}", "sklearn.metrics", f"{kind} {{ average: {average} }}",
                {"": fn(y[:, 0], x.argmax(1), average=average, zero_division=0)}, input=x, label=y)
        two, yy = scores(9, 2), rng.randint(0, 2, 9).astype("int64")
        add(f"{kind}_two", "sklearn.metrics", f"{kind} {{}}", {"": fn(yy, two.argmax(1), zero_division=0)}, input=two,
            label=yy)


def probabilities():
    p = np.round(rng.rand(40, 1), 2).astype("float32")
    p[3] = p[9] = 0.5
    y = (rng.rand(40, 1) < p).astype("int64")
    y[3], y[9] = 1, 0
    add("precision", "paddle.metric.Precision", "precision {}", {"": paddle_metric(paddle.metric.Precision(), p, y)},
        input=p, label=y)
    add("recall", "paddle.metric.Recall", "recall {}", {"": paddle_metric(paddle.metric.Recall(), p, y)}, input=p, label=y)
    add("f1", "sklearn.metrics", "f1 {}", {"": sk.f1_score(y[:, 0], p[:, 0] >= 0.5)}, input=p, label=y.astype("float32"))
    both = np.concatenate([1 - p, p], 1).astype("float32")
    for n in (4095, 9):
        add(f"auc_{n}", "paddle.metric.Auc", f"auc {{ num_thresholds: {n} }}",
            {"": paddle_metric(paddle.metric.Auc(num_thresholds=n), both, y)}, input=both, label=y)
    add("auc_one", "sklearn.metrics.roc_auc_score", "auc {}", {"": sk.roc_auc_score(y[:, 0], p[:, 0])}, input=p, label=y)
    add("auc_pr", "sklearn.metrics.average_precision_score", "auc { curve: PR }",
        {"": sk.average_precision_score(y[:, 0], p[:, 0])}, input=both, label=y)
    add("auc_one_class", "paddle.metric.Auc", "auc {}",
        {"": paddle_metric(paddle.metric.Auc(), both, np.ones_like(y))}, input=both, label=np.ones_like(y))


def regression():
    x, y = scores(6, 3, 2), scores(6, 3, 2)
    a, b = x.astype("float64").ravel(), y.astype("float64").ravel()
    for kind, value in (("mae", sk.mean_absolute_error(b, a)), ("mse", sk.mean_squared_error(b, a)),
                        ("rmse", sk.mean_squared_error(b, a) ** 0.5), ("r2", sk.r2_score(b, a))):
        add(kind, "sklearn.metrics", f"{kind} {{}}", {"": value}, input=x, label=y)


def tokens():
    x = scores(4, 5, 6)
    y = rng.randint(0, 6, (4, 5)).astype("int64")
    lengths = np.array([5, 2, 0, 3], "int64")
    counted = y.copy()
    for n, length in enumerate(lengths):
        counted[n, length:] = -100
    counted[0, 1] = y[0, 1] = -100
    loss = F.cross_entropy(paddle.to_tensor(x.astype("float64")), paddle.to_tensor(counted[..., None]), reduction="sum")
    mean = float(loss) / (counted != -100).sum()
    add("perplexity", "paddle.nn.functional.cross_entropy", "perplexity {}", {"": np.exp(mean)}, input=x, label=y,
        length=lengths)
    add("bits", "paddle.nn.functional.cross_entropy", "bits_per_character { ignore_index: -100 }",
        {"": mean / np.log(2)}, input=x, label=y, length=lengths)
    flat = scores(9, 6)
    labels = rng.randint(0, 6, (9, 1)).astype("int64")
    loss = F.cross_entropy(paddle.to_tensor(flat.astype("float64")), paddle.to_tensor(labels))
    add("perplexity_flat", "paddle.nn.functional.cross_entropy", "perplexity {}", {"": np.exp(float(loss))}, input=flat,
        label=labels)


def padded(sequences, pad):
    width = max(len(s) for s in sequences)
    return np.array([list(s) + [pad] * (width - len(s)) for s in sequences], "int64")


def bleu():
    words = lambda s: " ".join(f"w{t}" for t in s)
    references = [rng.randint(2, 8, n) for n in (9, 7, 12, 5)]
    others = [rng.randint(2, 8, n) for n in (8, 10, 11, 6)]
    found = []
    for r in references:
        f = list(r)
        f[len(f) // 2] = 9
        found.append(f[: len(f) - 1])
    few = [f[:2] + [9, 9] + f[3:4] for f in found]

    def corpus(hyp, refs, **kwargs):
        return sacrebleu.corpus_bleu([words(h) for h in hyp], [[words(r) for r in ref] for ref in refs], tokenize="none",
                                     force=True, **kwargs).score / 100
    ends = lambda s: [list(x) + [1] for x in s]
    plain = dict(input=padded(ends(found), 0), label=padded(ends(references), 0))
    add("bleu", "sacrebleu.corpus_bleu", "bleu { end_id: 1 }", {"": corpus(found, [references], smooth_method="none")},
        **plain)
    beams = np.stack([plain["input"], plain["input"] * 0 + 3], 2)
    add("bleu_beams", "sacrebleu.corpus_bleu", "bleu { end_id: 1 }",
        {"": corpus(found, [references], smooth_method="none")}, input=beams, label=plain["label"])
    width = max(len(r) for r in references + others)
    two = np.zeros((4, 2, width), "int64")
    lengths = np.zeros((4, 2), "int64")
    for n in range(4):
        for k, r in enumerate((references[n], others[n])):
            two[n, k, : len(r)] = r
            lengths[n, k] = len(r)
    add("bleu_two_references", "sacrebleu.corpus_bleu", "bleu {}",
        {"": corpus(found, [references, others], smooth_method="none")}, input=padded(found, 0), label=two,
        input_length=np.array([len(f) for f in found], "int64"), length=lengths)
    for method in ("none", "floor", "add-k", "exp"):
        add(f"bleu_{method}", "sacrebleu.corpus_bleu", f"bleu {{ end_id: 1 smooth_method: {method.replace('-', '_')} }}",
            {"": corpus(few, [references], smooth_method=method)}, input=padded(ends(few), 0), label=plain["label"])


def distances(found, wanted, normalized, found_length, wanted_length):
    both = F.loss.edit_distance(*map(paddle.to_tensor, (found, wanted)), normalized=normalized,
                                input_length=paddle.to_tensor(found_length), label_length=paddle.to_tensor(wanted_length))
    # The number of sequences comes along, in front or behind.
    return next(d.numpy().astype("float64") for d in both if d.shape == [len(wanted), 1])


def edits():
    hyp, ref = rng.randint(0, 5, (5, 7)).astype("int64"), rng.randint(0, 5, (5, 6)).astype("int64")
    hl, rl = np.array([7, 3, 0, 5, 6], "int64"), np.array([6, 2, 4, 5, 1], "int64")
    for normalized in (True, False):
        d = distances(hyp, ref, normalized, hl, rl)
        add(f"edit_distance_{normalized}", "paddle.nn.functional.edit_distance",
            f"edit_distance {{ normalized: {str(normalized).lower()} }}",
            {"": d.mean(), "_instance_error": (d > 0).mean()}, input=hyp, label=ref, input_length=hl, length=rl)
    add("cer", "paddle.nn.functional.edit_distance", "cer {}", {"": d.sum() / rl.sum()}, input=hyp, label=ref,
        input_length=hl, length=rl)
    logits = scores(5, 9, 4)
    greedy = run_op("ctc_align", {"Input": (logits.argmax(2).astype("int32"), None),
                                  "InputLength": (np.full((5, 1), 9, "int32"), None)},
                    {"Output": "int32", "OutputLength": "int32"}, {"merge_repeated": True, "blank": 3, "padding_value": 0})
    decoded, dl = greedy["Output"].astype("int64"), greedy["OutputLength"].ravel().astype("int64")
    d = distances(decoded, ref % 3, False, dl, rl)
    add("cer_ctc", "ctc_align and edit_distance of paddlepaddle", "cer { ctc_blank: 3 }",
        {"": d.sum() / rl.sum()}, input=logits, label=ref % 3, length=rl)


def chunks():
    for scheme, positions in (("IOB", 2), ("IOE", 2), ("IOBES", 4), ("plain", 1)):
        lengths = np.array([9, 4, 12, 7], "int64")
        tags = 3 * positions + 1
        label = rng.randint(0, tags, (4, 12)).astype("int64")
        found = np.where(rng.rand(4, 12) < 0.7, label, rng.randint(0, tags, (4, 12))).astype("int64")
        got = run_op("chunk_eval", {"Inference": (found, None), "Label": (label, None), "SeqLength": (lengths, None)},
                     {"Precision": "float32", "Recall": "float32", "F1-Score": "float32", "NumInferChunks": "int64",
                      "NumLabelChunks": "int64", "NumCorrectChunks": "int64"},
                     {"chunk_scheme": scheme, "num_chunk_types": 3, "excluded_chunk_types": [1]})
        n = {k: int(got[f"Num{k}Chunks"].ravel()[0]) for k in ("Infer", "Label", "Correct")}
        p, r = n["Correct"] / n["Infer"], n["Correct"] / n["Label"]
        add(f"chunk_{scheme}", "chunk_eval of paddlepaddle",
            f"chunk_f1 {{ chunk_scheme: {scheme} num_chunk_types: 3 excluded_chunk_types: 1 }}",
            {"": 2 * p * r / (p + r), "_precision": p, "_recall": r}, input=found, label=label, length=lengths)


def iou():
    label = rng.randint(0, 4, (3, 4, 5)).astype("int64")
    found = np.where(rng.rand(3, 4, 5) < 0.5, label, rng.randint(0, 4, (3, 4, 5))).astype("int64")
    each = [sk.jaccard_score((label == c).ravel(), (found == c).ravel()) for c in range(4)]
    add("mean_iou", "sklearn.metrics.jaccard_score", "mean_iou { num_classes: 6 }", {"": np.mean(each)}, input=found,
        label=label)
    logits = scores(3, 4, 4, 5)
    ignored = label.copy()
    ignored[:, 0] = 255
    keep = ignored != 255
    best = logits.argmax(1)
    each = [sk.jaccard_score(ignored[keep] == c, best[keep] == c) for c in range(4)]
    add("mean_iou_scores", "sklearn.metrics.jaccard_score",
        "mean_iou { ignore_index: 255 num_classes: 4 per_class: true }",
        {"": np.mean(each), **{f"_{c}": v for c, v in enumerate(each)}}, input=logits, label=ignored)


def boxes(n):
    corner = rng.rand(n, 2) * 0.7
    return np.round(np.concatenate([corner, corner + 0.05 + rng.rand(n, 2) * 0.25], 1), 4)


def detections():
    truths, found = [3, 1, 4, 2], [4, 2, 5, 0]
    gt = np.zeros((4, 4, 4), "float32")
    label = np.full((4, 4), -1, "int64")
    hard = np.zeros((4, 4), "int64")
    dense = np.full((4, 5, 6), -1, "float32")
    rows, labels = [], []
    for n in range(4):
        gt[n, : truths[n]] = boxes(truths[n])
        label[n, : truths[n]] = rng.randint(1, 3, truths[n])
        hard[n, : truths[n]] = rng.rand(truths[n]) < 0.3
        for i in range(truths[n]):
            labels.append([label[n, i], hard[n, i], *gt[n, i]])
        for i in range(found[n]):
            of = rng.randint(0, truths[n])
            box = np.round(gt[n, of] + rng.randn(4) * 0.02, 4) if rng.rand() < 0.8 else boxes(1)[0]
            row = [label[n, of] if rng.rand() < 0.9 else 3 - label[n, of], round(rng.rand(), 3), *box]
            dense[n, i] = row
            rows.append(row)
    rows, labels = np.array(rows, "float32"), np.array(labels, "float32")
    for kind in ("integral", "11point"):
        for difficult in (True, False):
            got = run_op("detection_map", {"DetectRes": (rows, found), "Label": (labels, truths)},
                         {"MAP": "float32", "AccumPosCount": "int32", "AccumTruePos": "float32",
                          "AccumFalsePos": "float32"},
                         {"class_num": 3, "overlap_threshold": 0.5, "evaluate_difficult": difficult, "ap_type": kind,
                          "background_label": 0})
            name = kind.replace("11point", "eleven_point")
            text = f"mean_average_precision {{ ap_type: {name} evaluate_difficult: {str(difficult).lower()} }}"
            add(f"map_{name}_{difficult}", "detection_map of paddlepaddle", text, {"": got["MAP"].ravel()[0]},
                input=dense, label=label, box=gt, difficult=hard)


for make in (classes, probabilities, regression, tokens, bleu, edits, chunks, iou, detections):
    make()
with open(sys.argv[1], "w", encoding="utf-8") as f:
    f.write("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
print(len(cases), "cases")

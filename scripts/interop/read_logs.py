# SPDX-License-Identifier: Apache-2.0
"""Reads a run's log files with TensorBoard and VisualDL (see check_logs).

    read_logs.py RUN PREDICTIONS.npz LABELS.gz TONES_RUN TONES.npz
"""
import glob
import gzip
import io
import json
import os
import sys
import wave

import numpy as np

run, predictions, labels, tones_run, tones = sys.argv[1:]
passed = failed = 0


def check(what, good):
    global passed, failed
    passed, failed = passed + bool(good), failed + (not good)
    print("ok    " if good else "FAILED", what)


# What log.jsonl holds, by tag and step.
scalars = {}
for line in open(run + "/log.jsonl"):
    line = json.loads(line)
    for tag, value in (("train/loss", line.get("loss")), ("train/lr", line.get("lr"))):
        if value is not None:
            scalars.setdefault(tag, []).append((line["step"], value))
    for name, value in line.get("eval", {}).items():
        if name != "records":
            scalars.setdefault("eval/" + name, []).append((line["step"], value))

# VisualDL's counts at its thresholds.
scores = np.load(predictions)["output_0"].astype(np.float32)
scores = np.exp(scores - scores.max(1, keepdims=True))
scores /= scores.sum(1, keepdims=True)
truth = np.eye(10)[np.frombuffer(gzip.open(labels).read()[8:], np.uint8)]


def counts(score, right, n=127):
    bucket = np.floor(score * (n - 1)).astype(int)
    at_least = [np.cumsum(np.bincount(bucket, weights=w, minlength=n)[::-1])[::-1] for w in (right, 1 - right)]
    tp, fp = at_least
    return tp, fp, fp[0] - fp, tp[0] - tp


curves = {str(c): counts(scores[:, c], truth[:, c]) for c in range(10)}
curves["all"] = counts(scores.ravel(), truth.ravel())


def near(a, b):
    return np.allclose(a, b, rtol=1e-6, atol=1e-6)


def visualdl():
    from PIL import Image
    from visualdl import LogReader
    from visualdl.reader.graph_reader import GraphReader
    files = glob.glob(run + "/vdlrecords.*.log")
    check("visualdl: one file", len(files) == 1)
    check("visualdl: graph", GraphReader(run).graphs().get(os.path.realpath(run)) == "vdlgraph.pdmodel")
    reader = LogReader(file_path=files[0])
    tags = reader.get_tags()
    for tag, points in scalars.items():
        got = [(r.id, r.value) for r in reader.get_data("scalar", tag)]
        check("visualdl: " + tag, [s for s, _ in got] == [s for s, _ in points] and near([v for _, v in got], [v for _, v in points]))
    for name, (tp, fp, tn, fn) in curves.items():
        pr = reader.get_data("pr_curve", "pr/" + name)[-1].pr_curve
        roc = reader.get_data("roc_curve", "roc/" + name)[-1].roc_curve
        check("visualdl: curves of " + name,
              all(np.array_equal(a, b) for a, b in ((tp, pr.TP), (fp, pr.FP), (tn, pr.TN), (fn, pr.FN)))
              and near(tp / np.maximum(1e-7, tp + fp), pr.precision) and near(tp / tp[0], pr.recall)
              and near(tp / tp[0], roc.tpr) and near(fp / fp[0], roc.fpr))
    histogram = reader.get_data("histogram", "weights/conv1.weight")
    check("visualdl: histograms", [r.id for r in histogram] == [40, 80, 120]
          and sum(histogram[0].histogram.hist) == 54 and len(histogram[0].histogram.bin_edges) == 31)
    image = reader.get_data("image", "samples/0")[0].image.encoded_image_string
    check("visualdl: images", Image.open(io.BytesIO(image)).size == (30, 30))
    hparam = reader.get_data("hyper_parameters", "hparam")
    values = {i.name: i.float_value for i in hparam[0].hparam.hparamInfos}
    check("visualdl: hyper-parameters", len(hparam) == 1 and values["optimizer.adamw.learning_rate"] == 0.003)
    check("visualdl: text", len(tags["text"]) == 1)


def tensorboard():
    from tensorboard.backend.event_processing import event_accumulator
    from tensorboard.plugins.hparams import plugin_data_pb2
    from tensorboard.util import tensor_util
    files = glob.glob(run + "/events.out.tfevents.*")
    check("tensorboard: one file", len(files) == 1)
    log = event_accumulator.EventAccumulator(run, size_guidance={k: 0 for k in ("scalars", "histograms", "images", "tensors")})
    log.Reload()
    for tag, points in scalars.items():
        got = [(e.step, e.value) for e in log.Scalars(tag)]
        check("tensorboard: " + tag, [s for s, _ in got] == [s for s, _ in points] and near([v for _, v in got], [v for _, v in points]))
    for name, (tp, fp, tn, fn) in curves.items():
        got = tensor_util.make_ndarray(log.Tensors("pr/" + name)[-1].tensor_proto)
        want = np.stack([tp, fp, tn, fn, tp / np.maximum(1e-7, tp + fp), tp / tp[0]])
        check("tensorboard: curve of " + name, near(got, want))
    histogram = log.Histograms("gradients/fc3.weight")
    check("tensorboard: histograms", [e.step for e in histogram] == [40, 80, 120] and histogram[0].histogram_value.num == 840)
    check("tensorboard: images", log.Images("samples/0")[0].width == 30)
    nodes = {node.name: node for node in log.Graph().node}
    check("tensorboard: graph", "conv1/conv2d" in nodes and all(i.split(":")[0] in nodes for n in nodes.values() for i in n.input))
    start = plugin_data_pb2.HParamsPluginData.FromString(
        log.summary_metadata["_hparams_/session_start_info"].plugin_data.content)
    check("tensorboard: hyper-parameters", start.session_start_info.hparams["optimizer.adamw.learning_rate"].number_value == 0.003)


def audio():
    from tensorboard.backend.event_processing import event_accumulator
    from visualdl import LogReader
    want = (32767.0 * np.load(tones)["x"].astype(np.float64)).astype(np.int16)
    reader = LogReader(file_path=glob.glob(tones_run + "/vdlrecords.*.log")[0])
    log = event_accumulator.EventAccumulator(tones_run, size_guidance={"audio": 0})
    log.Reload()
    for record in (0, 1):
        tag = f"samples/{record}/audio"
        theirs = reader.get_data("audio", tag)[-1].audio
        event = log.Audio(tag)[-1]
        check("visualdl: audio", (theirs.sample_rate, theirs.num_channels, theirs.length_frames) == (8000, 1, 4000))
        check("tensorboard: audio", (event.sample_rate, event.length_frames, event.content_type) == (8000, 4000, "audio/wav"))
        for name, data in (("visualdl", theirs.encoded_audio_string), ("tensorboard", event.encoded_audio_string)):
            file = wave.open(io.BytesIO(data))
            heard = np.frombuffer(file.readframes(file.getnframes()), "<i2")
            check(name + ": what is heard", file.getparams()[:4] == (1, 2, 8000, 4000) and np.array_equal(heard, want[record]))


visualdl()
tensorboard()
audio()
print(f"{passed} passed, {failed} failed")
sys.exit(failed > 0)

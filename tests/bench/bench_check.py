# SPDX-License-Identifier: Apache-2.0
"""One step of each workload in PaddlePaddle and in ours, compared. Run by PADDLE_PYTHON.

  bench_check.py DIR [WORKLOAD...]

DIR holds models_paddle.py (networks, losses, optimizers) and workloads.py (data). Both sides begin with the same
weights, drawn here, and do one training step on one batch, and answer one. Ours goes through the commands:
pd-train --init-from, and pd-export --optimize with pd-eval --feed. Dropout is off on both sides. Compared are

  loss      of the step, relative
  answer    of the evaluation form: the largest difference over the largest answer
  gradient  as the optimizer's first moment keeps it (Momentum's velocity, Adam's moment1, Adagrad's moment; for SGD
            the change itself): the worst tensor's distance from float64's, in Euclid's norm, relative
  update    of weights and statistics: likewise. The first steps of Adam and Adagrad are the learning rate times the
            gradient's sign, which rounding turns where the gradient is nil, so there it is the share of a tensor's
            elements that are off by more than 1 % of the learning rate
  pull      what the step added to the weights along themselves, a multiple of them: what decay does, to ten digits

Gradients are judged beside what float32 makes of them in PaddlePaddle: rounding moves values across the kinks of
ReLU, and a deep network multiplies what comes of it (2 % in ResNet-50). So a third run, PaddlePaddle in float64, says
the truth, and ours may be ten times as far from it as PaddlePaddle's float32 is. A tensor whose gradient is more than
10 % rounding there is judged by nobody: the bias of an attention's keys, of what goes into a batch norm.
"""
import gc
import json
import os
import pickle
import re
import subprocess
import sys
import tempfile
import warnings

os.environ.setdefault("GLOG_minloglevel", "2")
warnings.filterwarnings("ignore")
import numpy as np
import paddle
import paddle.nn.functional as F

from bench_lib import fail, job_path, table, tool

LIMITS = {"loss": 1e-5, "answer": 1e-4, "gradient": 1e-3, "update": 1e-3, "pull": 1e-8}
TIMES = 10    # ours may be so many times as far from float64 as PaddlePaddle's float32 is
NOISE = 0.1   # farther than this from float64, a gradient is rounding
MOMENTS = ("velocity", "moment1", "moment")

# What turns dropout off in our jobs.
NO_DROPOUT = {
    "bert_base_seq128": ["model.layer[dropout_0].dropout.p=0", "model.layer[dropout_1].dropout.p=0",
                         "model.layer[encoder].transformer_encoder.encoder_layer.dropout=0"],
    "mobilenetv2_imagenet": ["model.layer[0].block.set=dropout=0"],
}

# Their names of parameters in ours, where a job cannot call them so.
ENCODER = [(r"\.out\.", ".self_attn.out_proj."), (r"\.up\.", ".linear1."), (r"\.down\.", ".linear2.")]
RENAME = {
    "bert_base_seq128": ENCODER + [
        (r"^word\.", "words.word_embeddings."), (r"^position\.", "words.position_embeddings."),
        (r"^token_type\.", "token_types."), (r"^layers\.", "encoder.layers.")],
    "transformer_small": ENCODER + [
        (r"^token\.", "embeddings.word_embeddings."), (r"^position\.", "embeddings.position_embeddings."),
        (r"^layers\.", "decoder.layers."), (r"^norm\.", "decoder.norm.")],
}


def our_arrays(workload, arrays):
    """Their arrays by parameter as ours: by our names, what is one of q, k and v as three."""
    out = {}
    for name, array in arrays.items():
        for pattern, ours in RENAME.get(workload, []):
            name = re.sub(pattern, ours, name)
        if ".qkv." in name:
            for part, piece in zip("qkv", np.split(array, 3, -1)):
                out[name.replace(".qkv.", f".self_attn.{part}_proj.")] = piece
        else:
            out[name] = array
    return out


def draw(net, inputs):
    """Biases and scales that are not all alike; batch norms with the statistics of a batch."""
    random = np.random.RandomState(7)
    for p in net.parameters():
        if len(p.shape) == 1:
            p.set_value(p.numpy() + (0.1 * random.standard_normal(p.shape)).astype("float32"))
    norms = [m for m in net.sublayers() if isinstance(m, paddle.nn.BatchNorm2D)]
    kept = [m._momentum for m in norms]
    for m in norms:
        m._momentum = 0.0
    net.train()
    with paddle.no_grad():
        net(*map(paddle.to_tensor, inputs))
    for m, momentum in zip(norms, kept):
        m._momentum = momentum


class Theirs:
    """The workload in PaddlePaddle: weights before and after a step, loss, moments, and an answer."""

    def __init__(self, workload, models, workloads, dtype, weights=None):
        """`weights`: the state_dict to begin with; drawn where there is none."""
        self.workload = workload
        paddle.set_default_dtype(dtype)
        paddle.seed(2024)
        net = models.build(workload)
        self.trained = bool(workloads.WORKLOADS[workload].optimizer)
        sizes = workloads.WORKLOADS[workload].batch
        (self.inputs, self.label), (other, _) = workloads.batches(workload, sizes["train"], 2)
        if weights is None:
            draw(net, other)
        else:
            net.set_state_dict({name: array.astype(dtype) for name, array in weights.items()})
        self.state = {name: p.numpy().copy() for name, p in net.state_dict().items()}
        self.before = self.weights(net)
        self.feed = [x[:sizes["infer"]] for x in self.inputs]  # the size that is measured
        net.eval()
        with paddle.no_grad():
            self.answer = net(*self.tensors(self.feed, dtype)).numpy()
        if self.trained:
            self.step(net, models, dtype)

    @staticmethod
    def tensors(arrays, dtype):
        return [paddle.to_tensor(x.astype(dtype) if x.dtype == np.float32 else x) for x in arrays]

    def weights(self, net):
        named = dict(net.named_parameters())  # the statistics of batch norms among them
        return our_arrays(self.workload, {name: p.numpy().copy() for name, p in named.items()})

    def step(self, net, models, dtype):
        net.train()
        optimizer = models.optimizer(self.workload, net.parameters())
        *inputs, label = self.tensors([*self.inputs, self.label], dtype)
        loss = models.loss(self.workload, net(*inputs), label)
        loss.backward()
        optimizer.step()
        self.loss, self.rate, self.after = float(loss), optimizer.get_lr(), self.weights(net)
        self.sign_like = isinstance(optimizer, (paddle.optimizer.Adam, paddle.optimizer.AdamW, paddle.optimizer.Adagrad))
        state = optimizer.state_dict()
        self.moments = our_arrays(self.workload, {
            name: state[f"{p.name}_{moment}_0"].numpy()
            for name, p in net.named_parameters() for moment in MOMENTS if f"{p.name}_{moment}_0" in state})


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        fail(f"{' '.join(command)}: exit {done.returncode}: {done.stderr.strip()}")


class Ours:
    """The same by the commands."""

    def __init__(self, workload, theirs, folder):
        job = job_path(workload)
        with open(job) as f:
            names = re.findall(r'^  input \{ name: "(\w+)"', f.read(), re.M)
        weights = os.path.join(folder, "weights.pdparams")
        with open(weights, "wb") as f:
            pickle.dump(theirs.before, f, 2)
        np.savez(os.path.join(folder, "feed.npz"), **dict(zip(names, theirs.feed)))
        run(tool("pd-export"), "-q", "-c", job, "-m", weights, "--optimize", "-o", f"{folder}/net")
        run(tool("pd-eval"), "-q", "-m", f"{folder}/net", "--feed", f"{folder}/feed.npz", "--out", f"{folder}/out.npz")
        self.answer, = np.load(f"{folder}/out.npz").values()
        if theirs.trained:
            self.step(job, weights, dict(zip(names, theirs.inputs), label=theirs.label), folder,
                      NO_DROPOUT.get(workload, []))

    def step(self, job, weights, records, folder, overrides):
        np.savez(os.path.join(folder, "train.npz"), **records)
        overrides = [f"data.train.npz.path={folder}/train.npz", f"data.train.batch_size={len(records['label'])}",
                     *overrides]
        run(tool("pd-train"), "-q", "-c", job, "--init-from", weights, "--steps", "1", "--out", f"{folder}/run",
            *[word for o in overrides for word in ("-o", o)])
        with open(f"{folder}/run/log.jsonl") as f:
            self.loss = json.loads(f.readline())["train"]["loss"]
        checkpoint = f"{folder}/run/checkpoints/step-1/model."
        self.after = paddle.load(checkpoint + "pdparams", return_numpy=True)
        self.after.pop("StructuredToParameterName@@", None)
        state = paddle.load(checkpoint + "pdopt", return_numpy=True)
        self.after |= {name: array for name, array in state.items() if name.endswith(("._mean", "._variance"))}
        self.moments = {name: state[f"{name}_{moment}_0"]
                        for name in self.after for moment in MOMENTS if f"{name}_{moment}_0" in state}


def relative(ours, theirs):
    """The largest difference over the largest value."""
    return float(np.abs(ours - theirs).max() / np.abs(theirs).max()) if ours.shape == theirs.shape else np.inf


def distance(found, truth):
    return float(np.linalg.norm((found - truth).ravel()) / max(np.linalg.norm(truth.ravel()), 1e-300))


def gradients(side, truth):
    """{name: distance from float64} of a side's gradients."""
    if truth.moments:
        return {name: distance(side.moments[name], array) for name, array in truth.moments.items()}
    return {name: distance(side.after[name] - before, truth.after[name] - before)
            for name, before in truth.before.items()}


def updates(side, truth):
    """The same of what the step changed."""
    out = {}
    for name, before in truth.before.items():
        found, want = side.after[name] - before, truth.after[name] - before
        if truth.sign_like and name in truth.moments:
            out[name] = float((np.abs(found - want) > 0.01 * truth.rate).mean())
        else:
            out[name] = distance(found, want)
    return out


def pull(side, weights):
    """What a step added to the matrices along themselves."""
    along = square = 0.0
    for name, before in weights.items():
        if before.ndim > 1:
            before = before.astype("float64")
            along += ((side.after[name] - before) * before).sum()
            square += (before * before).sum()
    return along / square


def compare(ours, theirs, truth):
    """{name of LIMITS: (ours, what is allowed, text)}."""
    def plain(name, value):
        return value, LIMITS[name], f"{value:.1e}"

    found = {"answer": plain("answer", relative(ours.answer, theirs.answer))}
    if not truth.trained:
        return found
    found["loss"] = plain("loss", abs(ours.loss / theirs.loss - 1))
    for name in set(truth.after) ^ set(ours.after):
        return found | {"update": (np.inf, 0, name + " on one side only")}
    found["pull"] = plain("pull", abs(pull(ours, theirs.before) - pull(theirs, theirs.before)))
    noise = {name for name, far in gradients(theirs, truth).items() if far > NOISE}
    for kind, measure in (("gradient", gradients), ("update", updates)):
        own, peer = measure(ours, truth), measure(theirs, truth)
        judged = [name for name in own if name not in noise and not peer[name] > NOISE]
        worst = max(judged, key=lambda name: np.nan_to_num(own[name], nan=np.inf))
        scale = max(peer[name] for name in judged)
        found[kind] = own[worst], max(LIMITS[kind], TIMES * scale), f"{own[worst]:.1e} ({scale:.1e}) {worst}"
    return found


def main(folder, *names):
    sys.path.insert(0, folder)
    import models_paddle
    import workloads
    F.dropout = lambda x, *_, **__: x
    paddle.set_device("cpu")
    rows, good = [], True
    for workload in names or workloads.WORKLOADS:
        if workload not in workloads.WORKLOADS:
            fail(f"no workload '{workload}' in {folder}")
        theirs = Theirs(workload, models_paddle, workloads, "float32")
        truth = Theirs(workload, models_paddle, workloads, "float64", theirs.state)
        with tempfile.TemporaryDirectory() as scratch:
            ours = Ours(workload, theirs, scratch)
        found = compare(ours, theirs, truth)
        off = [name for name, (value, allowed, _) in found.items() if not value <= allowed]
        good = good and not off
        losses = [f"{side.loss:.7g}" if truth.trained else "" for side in (ours, theirs)]
        rows.append([workload, *losses, *(found[name][2] if name in found else "" for name in LIMITS),
                     ", ".join(off) + " off" if off else "same"])
        print(f"{workload}: {rows[-1][-1]}", file=sys.stderr, flush=True)
        del theirs, truth, ours
        gc.collect()
    print(table(["one step", "loss, ours", "PaddlePaddle's", "off by", "answer", "gradient, ours (PaddlePaddle's)",
                 "update, ours (PaddlePaddle's)", "pull", "verdict"], rows))
    sys.exit(0 if good else 1)


if __name__ == "__main__":
    main(*sys.argv[1:])

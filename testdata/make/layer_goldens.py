#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes layer cases: a job's layers, and what PaddlePaddle's layers answer.

  layer_goldens.py [OUT_DIR] [FILTER...]   a zip for each family
  layer_goldens.py --list                  runs nothing, prints the names
  layer_goldens.py --names [OUT_DIR]       writes names.txt alone: what
                                                PaddlePaddle calls parameters

Needs paddlepaddle 2.6. OUT_DIR is testdata/layers when not given; a FILTER
(with OUT_DIR before it) is the beginning of "family/case"; families are written
whole or not at all, so that a filter of cases is for trying. testdata/layers has
a README on what the zips hold.

testdata/make/layer_cases/FAMILY.py holds a family: CASES[case] is a row

  (job, python, inputs[, options])

job     what the layer's message says, `relu {}`; it becomes the layer 'l'. Or a
        whole list of lines `layer { ... }`.
python  an expression that gives the same as a paddle.nn.Layer or a function;
        it is called with the inputs in their order. With a list of lines its
        attributes have the names of the job's layers.
inputs  name -> values, see op_cases.py.
options outputs: which of the job's results are meant, in the order in which
        python gives them, `["l", "l:mask"]`; by: the inputs to differentiate
        by, where that is not every one of floats; train=False: the layer is
        random in training, so evaluation only; state: a function that changes
        the (random) values of parameters; rtol, atol; job: lines behind the
        model; loss: the result is the job's loss, not its output.
A row that PaddlePaddle refuses is reported, and the exit status is 1.
"""
import importlib
import inspect
import io
import json
import os
import sys
import zipfile
import zlib

import numpy as np
import paddle
import paddle.nn.functional as F
from paddle import nn, static
from paddle.vision import ops

HERE = os.path.dirname(os.path.abspath(__file__))

class Sized(nn.Layer):
    """A transposed convolution that is called with its output's size."""

    def __init__(self, layer, size):
        super().__init__()
        self.size = size
        self.weight, self.bias, self.layer = layer.weight, layer.bias, [layer]

    def forward(self, x):
        return self.layer[0](x, output_size=self.size)


NAMES = dict(paddle=paddle, nn=nn, F=F, np=np, ops=ops, ParamAttr=paddle.ParamAttr, I=nn.initializer, Sized=Sized)
# What a startup program's op says of first values.
INITIAL = ("shape", "value", "mean", "std", "min", "max")
TYPES = {"float32", "float64", "int32", "int64"}


def call(python):
    return eval(python, dict(NAMES)) if isinstance(python, str) else python()


def flat(outputs):
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [o for one in outputs for o in (flat(one) if isinstance(one, (list, tuple)) else [one]) if o is not None]


class Net(nn.Layer):
    """Puts a layer where its parameters are called 'l.weight'."""

    def __init__(self, layer):
        super().__init__()
        self.l = layer

    def forward(self, *inputs):
        return self.l(*inputs)


def network(job, python):
    made = call(python)
    return made if "layer {" in job or not isinstance(made, nn.Layer) else Net(made)


def state_of(net):
    """Each parameter once; a recurrent layer's have two names, the first is its own."""
    once = {}
    for name, variable in net.state_dict().items() if isinstance(net, nn.Layer) else ():
        once.setdefault(variable.name, (name, variable))
    return dict(once.values())


def job_of(job, inputs, feed, outputs, more):
    lines = ["model {"]
    for name, array in feed.items():
        unknown = inputs[name].unknown or (0,)
        shape = ", ".join("-1" if d in unknown else str(n) for d, n in enumerate(array.shape))
        dtype = "" if array.dtype == np.float32 else f" dtype: {array.dtype}"
        lines.append(f'  input {{ name: "{name}" shape: [{shape}]{dtype} }}')
    if "layer {" in job:
        lines += ["  " + line.strip() for line in job.strip().splitlines()]
    else:
        reads = "" if len(feed) == 1 else "input: [" + ", ".join(f'"{name}"' for name in feed) + "] "
        lines.append(f'  layer {{ name: "l" {reads}{job} }}')
    lines += [f'  output: "{output}"' for output in outputs] + ["}"]
    return "\n".join(lines + ([more] if more else [])) + "\n"


def initial_values(job, python):
    """Parameter -> the op that PaddlePaddle's startup program fills it with."""
    paddle.enable_static()
    try:
        startup = static.Program()
        with static.program_guard(static.Program(), startup), paddle.utils.unique_name.guard():
            state = state_of(network(job, python))
        made_by = {o.output("Out")[0]: o for o in startup.global_block().ops if "Out" in o.output_names}
        found = {}
        for name, variable in state.items():
            o = made_by.get(variable.name)
            if o is not None and o.type in ("fill_constant", "gaussian_random", "uniform_random", "truncated_gaussian_random"):
                found[name] = dict(op=o.type, **{key: o.attr(key) for key in INITIAL if o.has_attr(key)})
        return found
    finally:
        paddle.disable_static()


def set_state(net, state):
    for name, variable in state_of(net).items():
        variable.set_value(state[name])


def run(net, feed, by):
    """Outputs, tensors of the inputs."""
    given = {}
    for name, array in feed.items():
        given[name] = paddle.to_tensor(array)
        given[name].stop_gradient = name not in by
    return flat(net(*given.values())), given


def gradients(net, outputs, given, by, rng, values):
    """Adds cotangents "ct/INDEX" and gradients "grad/NAME" to `values`."""
    targets = [k for k, o in enumerate(outputs) if not o.stop_gradient and o.dtype in (paddle.float32, paddle.float64)]
    wrt = {name: given[name] for name in by}
    wrt.update({name: p for name, p in state_of(net).items() if not p.stop_gradient})
    if not targets or not wrt:
        return
    for k in targets:
        values[f"ct/{k}"] = np.asarray(rng.uniform(-1, 1, outputs[k].shape)).astype(outputs[k].numpy().dtype)
    total = paddle.grad([outputs[k] for k in targets], list(wrt.values()),
                        [paddle.to_tensor(values[f"ct/{k}"]) for k in targets], allow_unused=True)
    for name, gradient in zip(wrt, total):
        if gradient is not None:
            values[f"grad/{name}"] = gradient.numpy()


def make(name, job, python, inputs, outputs=("l",), by=None, train=True, state=None, loss=False, init=True, rtol=1e-5, atol=1e-5, more=None):
    """The files of one case: name -> bytes."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    feed = {key: value.make(rng) for key, value in inputs.items()}
    for key, array in feed.items():
        if str(array.dtype) not in TYPES:
            raise ValueError(f"input '{key}' is {array.dtype}")
    by = [k for k, a in feed.items() if a.dtype.kind == "f"] if by is None else by.split()
    paddle.seed(1)
    net = network(job, python)
    values = {"in/" + key: array for key, array in feed.items()}
    start = {}
    for key, variable in state_of(net).items():
        lowest = 0.2 if "variance" in key else -1
        start[key] = np.asarray(rng.uniform(lowest, 1, variable.shape)).astype(variable.numpy().dtype)
    if state is not None:
        state(start)
    values.update({"state/" + key: array for key, array in start.items()})
    case = dict(outputs=list(outputs), loss=loss, rtol=rtol, atol=atol, init=initial_values(job, python) if init else {},
                made_by=python if isinstance(python, str) else inspect.getsource(python))
    for mode in ("train", "eval") if train else ("eval",):
        if isinstance(net, nn.Layer):
            set_state(net, start)
            net.train() if mode == "train" else net.eval()
        made, given = run(net, feed, by)
        if len(made) != len(outputs):
            raise ValueError(f"{len(made)} results; {len(outputs)} are named")
        values.update({f"{mode}/{k}": o.numpy() for k, o in enumerate(made)})
        if mode == "train":
            after = {key: v.numpy() for key, v in state_of(net).items()}
            values.update({"after/" + key: a for key, a in after.items() if not np.array_equal(a, start[key])})
            gradients(net, made, given, by, rng, values)
    out = io.BytesIO()
    np.savez(out, **values)  # the zip around it compresses
    return {"job.pbtxt": job_of(job, inputs, feed, outputs, more), "case.json": json.dumps(case, indent=1), "values.npz": out.getvalue()}


def families():
    sys.path[:0] = [HERE, os.path.join(HERE, "layer_cases")]
    names = sorted(f[:-3] for f in os.listdir(os.path.join(HERE, "layer_cases")) if f.endswith(".py"))
    return {name: importlib.import_module(f"layer_cases.{name}").CASES for name in names}


# Tables whose classes make their layers in another order than the job, or with others' help.
NAMED_OTHERWISE = ("op/", "zoo_recommend/", "norm/sync_batch_norm", "reparameterize/weight_norm_whole")


def paddle_names(folder):
    """A line for each parameter that a layer of paddle.nn makes: case, name in the state_dict, PaddlePaddle's own name."""
    lines = []
    for family, rows in families().items():
        for case, row in rows.items():
            if f"{family}/{case}".startswith(NAMED_OTHERWISE):
                continue
            with paddle.utils.unique_name.guard():
                state = state_of(network(row[0], row[1]))
            for name, variable in state.items():
                # Classes of the tables, and tensors that belong to no layer, have names of their own.
                if not variable.name.startswith(("eager_tmp_", "predictions_", "cross_", "own_", "layer_0")):
                    lines.append(f"{family}/{case} {name} {variable.name}\n")
    with open(os.path.join(folder, "names.txt"), "w") as out:
        out.writelines(lines)


def write(path, cases):
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for case, files in cases.items():
            for name, data in files.items():
                archive.writestr(zipfile.ZipInfo(f"{case}/{name}", (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)


def main(arguments):
    if arguments == ["--list"]:
        print("\n".join(f"{family}/{case}" for family, rows in families().items() for case in rows))
        return 0
    names = arguments[:1] == ["--names"]
    arguments = arguments[names:]
    folder = arguments[0] if arguments else os.path.join(os.path.dirname(HERE), "layers")
    os.makedirs(folder, exist_ok=True)
    if names:
        paddle_names(folder)
        return 0
    refused, count = [], 0
    for family, rows in families().items():
        cases = {}
        for case, row in rows.items():
            name = f"{family}/{case}"
            if arguments[1:] and not any(name.startswith(f) for f in arguments[1:]):
                continue
            try:
                cases[case] = make(name, *row[:3], **(row[3] if len(row) > 3 else {}))
            except Exception as error:
                lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                refused.append(f"{name}: " + next((l for l in lines if "Error: " in l), lines[-1] if lines else repr(error)))
        if cases:
            write(os.path.join(folder, family + ".zip"), cases)
        count += len(cases)
    print("\n".join(refused + [f"{count} cases, {len(refused)} refused"]))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Saved networks with branches, loops and parameters of 16 bits under new heads.

    saved_flow_goldens.py testdata/saved_network

Made with PaddlePaddle 2.6.2, PyTorch 2.15.0 (CPU) and onnx 1.23.2, after
saved_network_goldens.py, whose data and head it takes. Writes networks whose code
branches and loops as values say: `branch.pdmodel` and `loop.pdmodel` as
`paddle.jit.save` makes them of Python's `if` and `while`, `flow.onnx` with If and
Loop of PyTorch's; `bf16.pdmodel`, whose parameters PaddlePaddle's mixed precision
has cast to bfloat16, and `fp16.onnx` of PyTorch's half(); and in flow_expected.npz
what five steps of SGD make of each, those of 16 bits with the rounded parameters in
float32. A comparison that decides a step keeps a distance of 1e-3.
"""
import os
import sys

import numpy as np

STEPS, BATCH, CLASSES, RATE, WIDTH = 5, 4, 3, 0.05, 6
MARGIN = 1e-3
KINDS = ("frozen", "full")


def batches(arrays):
    for step in range(STEPS):
        part = slice(step * BATCH, (step + 1) * BATCH)
        yield arrays["image"][part], arrays["label"][part]


class Decisions:
    """Notes how often a condition held, and that it was no close call."""

    def __init__(self):
        self.taken = []

    def add(self, value, bound):
        assert abs(float(value) - bound) > MARGIN, (float(value), bound)
        self.taken.append(float(value) > bound)


def ask_paddle(folder, arrays, head, expected):
    import paddle
    from paddle import nn
    decisions = Decisions()

    class Stem(nn.Layer):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2D(3, WIDTH, 3, stride=3, bias_attr=False), nn.BatchNorm2D(WIDTH),
                                      nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten())

        def forward(self, x):
            return self.body(x)

    class Branch(nn.Layer):
        def __init__(self):
            super().__init__()
            self.stem = Stem()
            self.a, self.b = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)
            self.norm = nn.BatchNorm1D(WIDTH)

        def forward(self, x):
            h = self.stem(x)
            if paddle.mean(x) > 0.0:
                h = self.norm(self.a(h))
            else:
                h = paddle.tanh(self.b(h)) * 2.0
            return h

        def note(self, x):
            decisions.add(paddle.mean(x), 0.0)

    class Loop(nn.Layer):
        def __init__(self):
            super().__init__()
            self.stem = Stem()
            self.step = nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            h = self.stem(x)
            left = paddle.max(x)
            while left > 0.0:
                h = 0.7 * paddle.tanh(self.step(h)) + 0.1 * h
                left = left - 0.9
            return h

        def note(self, x):
            left = float(paddle.max(x))
            while left > 0.0:
                decisions.add(left, 0.0)
                left -= 0.9
            decisions.add(left, 0.0)

    def first_values(net, rng):
        state = {}
        for name, p in net.state_dict().items():
            value = p.numpy()
            if name.endswith("_variance"):
                value = rng.uniform(0.5, 1.5, value.shape)
            elif value.ndim == 1:
                value = value + 0.2 * rng.standard_normal(value.shape)
            state[name] = value.astype(np.float32)
        return state

    def train(make, state, in_file, name, kind):
        net = make()
        net.set_state_dict({k: paddle.to_tensor(v) for k, v in state.items()})
        new = nn.Linear(WIDTH, CLASSES)
        new.set_state_dict({k[5:]: paddle.to_tensor(v) for k, v in head.items()})
        net.train() if kind == "full" else net.eval()
        learned = list(new.parameters()) + (list(net.parameters()) if kind == "full" else [])
        sgd = paddle.optimizer.SGD(RATE, parameters=learned)
        losses = []
        for image, label in batches(arrays):
            x = paddle.to_tensor(image)
            if hasattr(net, "note"):
                net.note(x)
            loss = nn.functional.cross_entropy(new(net(x)), paddle.to_tensor(label))
            loss.backward()
            sgd.step()
            sgd.clear_grad()
            losses.append(float(loss))
        expected[f"{name}/{kind}/losses"] = np.array(losses)
        for key, p in new.state_dict().items():
            expected[f"{name}/{kind}/head.{key}"] = p.numpy()
        for key, p in net.state_dict().items():
            expected[f"{name}/{kind}/trunk.{in_file[key]}"] = p.numpy()

    spec = [paddle.static.InputSpec([None, 3, 12, 12], "float32", "x")]
    for seed, (name, make) in enumerate((("branch", Branch), ("loop", Loop))):
        paddle.seed(7 + seed)
        decisions.taken.clear()
        net = make()
        state = first_values(net, np.random.default_rng(seed))
        net.set_state_dict({k: paddle.to_tensor(v) for k, v in state.items()})
        in_file = {key: p.name for key, p in net.state_dict().items()}
        net.eval()
        paddle.jit.save(net, os.path.join(folder, name), input_spec=spec)
        strip(folder, name)
        expected[f"{name}/cut"] = make_eval(net, arrays)
        for kind in KINDS:
            train(make, state, in_file, name, kind)
        print(name, decisions.taken[:len(decisions.taken) // 2])
        assert len(set(decisions.taken)) == 2
    ask_growing(folder, expected)
    # Parameters of bfloat16.
    paddle.seed(11)
    net = nn.Sequential(Stem(), nn.Linear(WIDTH, WIDTH), nn.Tanh())
    state = first_values(net, np.random.default_rng(5))
    net.set_state_dict({k: paddle.to_tensor(v) for k, v in state.items()})
    in_file = {key: p.name for key, p in net.state_dict().items()}
    net.eval()
    paddle.jit.save(net, os.path.join(folder, "bf16"), input_spec=spec)
    state = cast_to_bfloat16(folder, state, in_file)
    net.set_state_dict({k: paddle.to_tensor(v) for k, v in state.items()})
    expected["bf16/cut"] = make_eval(net, arrays)
    for kind in KINDS:
        train(lambda: nn.Sequential(Stem(), nn.Linear(WIDTH, WIDTH), nn.Tanh()), state, in_file, "bf16", kind)


def ask_growing(folder, expected):
    """A loop that overwrites the network's input, makes a variable longer and fills an array."""
    import paddle
    paddle.enable_static()
    program = paddle.static.Program()
    with paddle.static.program_guard(program, paddle.static.Program()):
        x = paddle.static.data("x", [-1, 2], "float32")
        seen = paddle.tensor.array_write(x, paddle.full([1], 0, "int64"))

        def body(a, b, i):
            paddle.tensor.array_write(a * 3.0, i, seen)
            return [a * 2.0, paddle.concat([b, b], 1), i + 1]

        loop = paddle.static.nn.while_loop(lambda a, b, i: paddle.max(a) < 100.0, body,
                                           [x, paddle.assign(x), paddle.full([1], 1, "int64")])
        last = paddle.tensor.array_read(seen, loop[2] - 1)
        total = paddle.sum(loop[1], axis=1, keepdim=True)
        exe = paddle.static.Executor(paddle.CPUPlace())
        prefix = os.path.join(folder, "growing")
        paddle.static.save_inference_model(prefix, [x], [loop[0], total, last], exe)
        saved, _, fetches = paddle.static.load_inference_model(prefix, exe)
        feed = {"x": np.array([[1, 2], [3, 7]], np.float32)}
        expected["growing/x"] = feed["x"]
        answers = exe.run(saved, feed=feed, fetch_list=fetches)
        expected.update(zip(("growing/loop", "growing/total", "growing/last"), answers))
    paddle.disable_static()
    strip(folder, "growing")


def make_eval(net, arrays):
    import paddle
    return net(paddle.to_tensor(arrays["image"][:BATCH])).numpy()


def strip(folder, name):
    """Leaves out where in Python an operator was made."""
    from paddle.base import core
    path = os.path.join(folder, name)
    with open(path + ".pdmodel", "rb") as file:
        program = core.ProgramDesc(file.read())
    for i in range(program.num_blocks()):
        for k in range(program.block(i).op_size()):
            program.block(i).op(k).remove_attr("op_callstack")
    with open(path + ".pdmodel", "wb") as file:
        file.write(program.serialize_to_string())
    if os.path.exists(path + ".pdiparams.info"):
        os.remove(path + ".pdiparams.info")


def bfloat16(values):
    """The bits of the nearest bfloat16 numbers."""
    bits = values.view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def cast_to_bfloat16(folder, state, in_file):
    """Rewrites bf16.pdmodel as mixed precision for CPUs does; gives the rounded values."""
    import paddle
    from paddle.static.amp.bf16 import amp_utils
    paddle.enable_static()
    exe = paddle.static.Executor(paddle.CPUPlace())
    scope = paddle.static.Scope()
    prefix = os.path.join(folder, "bf16")
    bf16 = paddle.base.core.VarDesc.VarType.BF16
    with paddle.static.scope_guard(scope):
        program, feeds, fetches = paddle.static.load_inference_model(prefix, exe)
        amp_utils.cast_model_to_bf16(program, use_bf16_guard=False)
        cast = {v.name for v in program.list_vars()
                if v.name not in ("feed", "fetch") and v.persistable and v.dtype == bf16}
        for name in cast:  # a loaded program has no parameters that PaddlePaddle would cast
            tensor = scope.find_var(name).get_tensor()
            tensor.set(bfloat16(np.array(tensor)), paddle.CPUPlace())
        inputs = [program.global_block().var(name) for name in feeds]
        paddle.static.save_inference_model(prefix, inputs, fetches, exe, program=program)
    paddle.disable_static()
    strip(folder, "bf16")
    rounded = {}
    for key, value in state.items():
        if in_file[key] in cast:
            value = (bfloat16(value).astype(np.uint32) << 16).view(np.float32)
        rounded[key] = value
    print("bf16:", sorted(cast))
    assert cast
    return rounded


def ask_torch(folder, arrays, head, expected):
    import torch
    from torch import nn
    decisions = Decisions()

    class Flow(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, WIDTH, 3, stride=3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
            self.step, self.other = nn.Linear(WIDTH, WIDTH), nn.Linear(WIDTH, WIDTH)

        def forward(self, x):
            h = self.body(x)
            left = x.max()
            while bool(left > 0.0):
                h = 0.7 * torch.tanh(self.step(h)) + 0.1 * h
                left = left - 0.9
            if bool(x.mean() > 0.0):
                h = self.other(h)
            else:
                h = torch.sigmoid(h) * 2.0
            return h

        def note(self, x):
            decisions.add(x.mean(), 0.0)

    class Plain(nn.Module):
        def __init__(self):
            super().__init__()
            self.body = nn.Sequential(nn.Conv2d(3, WIDTH, 3, stride=3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                                      nn.Linear(WIDTH, WIDTH), nn.Tanh())

        def forward(self, x):
            return self.body(x)

    def train(make, first, name, kind):
        net = make()
        net.load_state_dict(first)
        new = nn.Linear(WIDTH, CLASSES)
        new.load_state_dict({"weight": torch.tensor(head["head.weight"].T.copy()),
                             "bias": torch.tensor(head["head.bias"])})
        learned = list(new.parameters()) + (list(net.parameters()) if kind == "full" else [])
        sgd = torch.optim.SGD(learned, lr=RATE)
        losses = []
        for image, label in batches(arrays):
            x = torch.tensor(image)
            if hasattr(net, "note"):
                net.note(x)
            loss = nn.functional.cross_entropy(new(net(x)), torch.tensor(label[:, 0]))
            sgd.zero_grad()
            loss.backward()
            sgd.step()
            losses.append(float(loss.detach()))
        expected[f"{name}/{kind}/losses"] = np.array(losses)
        expected[f"{name}/{kind}/head.weight"] = new.weight.detach().numpy().T.copy()
        expected[f"{name}/{kind}/head.bias"] = new.bias.detach().numpy()
        for key, value in net.state_dict().items():
            expected[f"{name}/{kind}/trunk.{key}"] = value.detach().numpy()

    torch.manual_seed(5)
    image = torch.tensor(arrays["image"][:BATCH])
    axes = {"x": {0: "n"}}
    flow = Flow()
    torch.onnx.export(torch.jit.script(flow), (image,), os.path.join(folder, "flow.onnx"), dynamo=False,
                      opset_version=13, input_names=["x"], output_names=["h"], dynamic_axes=axes,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    with torch.no_grad():
        expected["flow/cut"] = flow(image).numpy()
    for kind in KINDS:
        train(Flow, flow.state_dict(), "flow", kind)
    assert len(set(decisions.taken)) == 2
    half = Plain().half()
    torch.onnx.export(half, (image.half(),), os.path.join(folder, "fp16.onnx"), dynamo=False, opset_version=13,
                      input_names=["x"], output_names=["h"], dynamic_axes=axes,
                      training=torch.onnx.TrainingMode.PRESERVE, do_constant_folding=False)
    first = {key: value.float() for key, value in half.state_dict().items()}
    net = Plain()
    net.load_state_dict(first)
    with torch.no_grad():
        expected["fp16/cut"] = net(image).numpy()
    for kind in KINDS:
        train(Plain, first, "fp16", kind)


def main():
    folder, peers = sys.argv[1], sys.argv[2:] or ["paddle", "torch"]
    arrays = dict(np.load(os.path.join(folder, "data.npz")))
    head = dict(np.load(os.path.join(folder, "head.npz")))
    path = os.path.join(folder, "flow_expected.npz")
    expected = dict(np.load(path)) if os.path.exists(path) else {}
    for peer in peers:
        {"paddle": ask_paddle, "torch": ask_torch}[peer](folder, arrays, head, expected)
    np.savez(path, **expected)


if __name__ == "__main__":
    main()

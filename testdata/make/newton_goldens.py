#!/usr/bin/env python3
"""Writes testdata/optim/newton.npz and dgc.npz.

  newton_goldens.py OUT_DIR

newton.npz: what PaddlePaddle 2.6.2's LBFGS and minimize_bfgs do with a small
regression, full batch: "x", "y", the initial parameters "0".."3" (weight and
bias of two layers); per case the loss before each step ("case/loss") and the
parameters after each ("case/0".. [steps, ...]).

dgc.npz: deep gradient compression in float64, by the formula of PaddlePaddle's
dgc and dgc_momentum for one trainer (which they refuse): per case "w" and "v"
after the last step.
"""
import os
import sys

import numpy as np
import paddle

STEPS = 4


def tensors(arrays):
    return [paddle.to_tensor(a, stop_gradient=False) for a in arrays]


def loss_of(params, x, y):
    w1, b1, w2, b2 = params
    out = paddle.tanh(x @ w1 + b1) @ w2 + b2
    return paddle.nn.functional.mse_loss(out, y)


def run_lbfgs(start, x, y, **args):
    params = tensors(start)
    optimizer = paddle.incubate.optimizer.LBFGS(parameters=params, **args)
    losses, after = [], []

    def closure():
        for p in params:
            p.clear_grad()
        loss = loss_of(params, x, y)
        loss.backward()
        return loss

    for _ in range(STEPS):
        losses.append(float(optimizer.step(closure)))
        after.append([p.numpy().copy() for p in params])
    return losses, after


def run_bfgs(start, x, y, **args):
    shapes = [a.shape for a in start]
    sizes = [a.size for a in start]
    split = lambda flat: [
        part.reshape(shape) for part, shape in zip(
            paddle.split(flat, sizes), shapes)]
    objective = lambda flat: loss_of(split(flat), x, y)
    flat = paddle.to_tensor(np.concatenate([a.ravel() for a in start]))
    losses, after = [], []
    for _ in range(STEPS):
        losses.append(float(objective(flat)))
        flat = paddle.incubate.optimizer.functional.minimize_bfgs(
            objective, flat, **args)[2]
        after.append([p.numpy().copy() for p in split(flat)])
    return losses, after


def write_newton(path):
    random = np.random.RandomState(3)
    x = random.uniform(-2, 2, (24, 3)).astype("float32")
    y = (np.sin(x[:, :1]) + 0.5 * x[:, 1:2] * x[:, 2:3]).astype("float32")
    start = [random.uniform(-1, 1, shape).astype("float32")
             for shape in ((3, 4), (4,), (4, 1), (1,))]
    arrays = {"x": x, "y": y}
    arrays.update((str(i), a) for i, a in enumerate(start))
    xt, yt = paddle.to_tensor(x), paddle.to_tensor(y)
    cases = {
        "wolfe": (run_lbfgs, dict(line_search_fn="strong_wolfe", max_iter=3)),
        "wolfe_far": (run_lbfgs, dict(line_search_fn="strong_wolfe",
                                      max_iter=3, learning_rate=8.0,
                                      history_size=2)),
        "fixed": (run_lbfgs, dict(learning_rate=0.5, max_iter=3,
                                  history_size=2)),
        "bfgs": (run_bfgs, dict(max_iters=3)),
        "bfgs_far": (run_bfgs, dict(max_iters=3, initial_step_length=4.0)),
    }
    for case, (run, args) in cases.items():
        losses, after = run(start, xt, yt, **args)
        print(case, losses)
        arrays[case + "/loss"] = np.array(losses, "float32")
        for i in range(len(start)):
            arrays["%s/%d" % (case, i)] = np.stack([p[i] for p in after])
    np.savez(path, **arrays)


def run_dgc(momentum=0.9, begin=2, steps=3, sparsity=(0.75, 0.9375, 0.99),
            nesterov=False, clip=None, decay=None, rate=0.1):
    i = np.arange(16384, dtype="float64")
    p = np.cos(0.1 * i).astype("float32").astype("float64")
    u, v = np.zeros_like(p), np.zeros_like(p)
    for step in range(7):
        g = np.sin(12.9898 * i + 78.233 * (step + 1)).astype(
            "float32").astype("float64")
        if clip is not None and step >= begin:
            g *= clip / max(clip, np.sqrt((g * g).sum()))
        if decay is not None:
            kind, coeff = decay
            g = g + coeff * (np.sign(p) if kind == 1 else p)
        if step < begin:
            u = momentum * u + g
            p = p - rate * (g + momentum * u if nesterov else u)
            continue
        part = 1 - np.float32(
            sparsity[min(len(sparsity) - 1,
                         (step - begin) * len(sparsity) // steps)])
        if nesterov:
            u = momentum * (u + g)
            v = v + u + g
        else:
            u = momentum * u + g
            v = v + u
        chosen = np.argsort(-np.abs(v), kind="stable")[:int(p.size * part)]
        sparse = np.zeros_like(p)
        sparse[chosen] = v[chosen]
        u[chosen] = v[chosen] = 0
        p = p - rate * sparse
    return p.astype("float32"), v.astype("float32")


def write_dgc(path):
    arrays = {}
    for case, args in (("plain", {}),
                       ("nesterov_l2", dict(nesterov=True, decay=(2, 0.05))),
                       ("clip_l1", dict(clip=3.0, decay=(1, 0.02)))):
        arrays[case + "/w"], arrays[case + "/v"] = run_dgc(**args)
    np.savez(path, **arrays)


if __name__ == "__main__":
    write_newton(os.path.join(sys.argv[1], "newton.npz"))
    write_dgc(os.path.join(sys.argv[1], "dgc.npz"))

#!/usr/bin/env python3
"""Writes testdata/optim: what PaddlePaddle's optimizers and schedules answer.

  optim_goldens.py OUT_DIR

Needs paddlepaddle 2.x. lr_schedules.txt has one line per schedule: its name in
tests/optim/test_lr_schedule.cc, then the learning rates of steps 0, 1, 2, ...
optimizers.npz has, per case, the gradients of every step ("case/w@GRAD",
[steps, ...]) and the parameters and accumulators after the last one
("case/w"); optimizers.txt has the op types that the case appends, in order.
"""
import os
import sys

import numpy as np
import paddle
from paddle.optimizer import lr

SCHEDULES = {
    "noam": lambda: lr.NoamDecay(64, 10, 0.5),
    "exponential": lambda: lr.ExponentialDecay(0.5, 0.9),
    "natural_exp": lambda: lr.NaturalExpDecay(0.5, 0.1),
    "inverse_time": lambda: lr.InverseTimeDecay(0.5, 0.1),
    "polynomial": lambda: lr.PolynomialDecay(0.5, 10, 0.01, 2.0),
    "polynomial_cycle":
        lambda: lr.PolynomialDecay(0.5, 10, 0.01, 1.5, cycle=True),
    "piecewise": lambda: lr.PiecewiseDecay([3, 6, 20], [0.1, 0.2, 0.3, 0.4]),
    "cosine": lambda: lr.CosineAnnealingDecay(0.5, 10, 0.02),
    "step": lambda: lr.StepDecay(0.5, 4, 0.8),
    "multi_step": lambda: lr.MultiStepDecay(0.5, [2, 4, 15], 0.8),
    "warmup_constant": lambda: lr.LinearWarmup(0.5, 8, 0.01, 0.4),
    "warmup_cosine": lambda: lr.LinearWarmup(
        lr.CosineAnnealingDecay(0.5, 12), 5, 0.0, 0.5),
    "one_cycle": lambda: lr.OneCycleLR(1.0, 30),
    "one_cycle_linear": lambda: lr.OneCycleLR(
        0.8, 30, 10.0, 0.001, 0.4, "linear", three_phase=True),
    "linear": lambda: lr.LinearLR(0.5, 12, 0.25, 0.75),
    "linear_default": lambda: lr.LinearLR(0.5, 40),
    "warm_restarts": lambda: lr.CosineAnnealingWarmRestarts(0.5, 7, 1, 0.02),
    "warm_restarts_longer":
        lambda: lr.CosineAnnealingWarmRestarts(0.5, 3, 2),
    "cyclic": lambda: lr.CyclicLR(0.1, 0.9, 4, 6),
    "cyclic_triangular2": lambda: lr.CyclicLR(0.1, 0.9, 3, None, "triangular2"),
    "lambda": lambda: lr.LambdaDecay(0.5, lambda t: 0.95**t),
    "multiplicative": lambda: lr.MultiplicativeDecay(
        0.5, lambda t: 0.9 if t % 3 == 0 else 1 - 1 / (t + 10)),
    "warmup_lambda": lambda: lr.LinearWarmup(
        lr.LambdaDecay(0.5, lambda t: 1 / (1 + t / 4)), 5, 0.0, 0.5),
    "cyclic_exp_range":
        lambda: lr.CyclicLR(0.1, 0.9, 4, 2, "exp_range", exp_gamma=0.95),
}
# Metrics for ReduceOnPlateau; the rates after each follow.
METRICS = [5, 4, 4.1, 4.2, 4.3, 4.05, 3.9, 3.95, 3.96, 3.97, 3.98, 3.99, 4, 4]

DECAY_L2 = paddle.regularizer.L2Decay(0.1)
DECAY_L1 = paddle.regularizer.L1Decay(0.05)
OPTIMIZERS = {
    "sgd": lambda: paddle.optimizer.SGD(0.1),
    "sgd_l1_value": lambda: paddle.optimizer.SGD(
        0.1, weight_decay=DECAY_L1,
        grad_clip=paddle.nn.ClipGradByValue(0.4, -0.3)),
    "momentum": lambda: paddle.optimizer.Momentum(0.1, 0.8),
    "momentum_nesterov_l2": lambda: paddle.optimizer.Momentum(
        0.1, 0.8, use_nesterov=True, weight_decay=DECAY_L2),
    "momentum_l1": lambda: paddle.optimizer.Momentum(
        0.1, 0.8, weight_decay=DECAY_L1),
    "adam": lambda: paddle.optimizer.Adam(0.1),
    "adam_l2_global_norm": lambda: paddle.optimizer.Adam(
        0.1, 0.8, 0.95, 1e-6, weight_decay=DECAY_L2,
        grad_clip=paddle.nn.ClipGradByGlobalNorm(0.7)),
    "adam_norm": lambda: paddle.optimizer.Adam(
        0.1, grad_clip=paddle.nn.ClipGradByNorm(0.5)),
    "adamw": lambda: paddle.optimizer.AdamW(0.1, weight_decay=0.2),
    "adamw_some": lambda: paddle.optimizer.AdamW(
        0.1, weight_decay=0.2,
        apply_decay_param_fun=lambda name: name == "w"),
    "adamax": lambda: paddle.optimizer.Adamax(0.1, 0.8, 0.95, 1e-6),
    "adamax_l2": lambda: paddle.optimizer.Adamax(0.1, weight_decay=DECAY_L2),
    "adagrad": lambda: paddle.optimizer.Adagrad(
        0.1, initial_accumulator_value=0.3),
    "adagrad_l1_norm": lambda: paddle.optimizer.Adagrad(
        0.1, 1e-3, weight_decay=DECAY_L1,
        grad_clip=paddle.nn.ClipGradByNorm(0.5)),
    "adadelta": lambda: paddle.optimizer.Adadelta(0.1, 1e-4, 0.8),
    "rmsprop": lambda: paddle.optimizer.RMSProp(0.1),
    "rmsprop_centered_momentum": lambda: paddle.optimizer.RMSProp(
        0.1, 0.8, 1e-4, 0.7, centered=True),
    "lamb": lambda: paddle.optimizer.Lamb(0.1, 0.2, 0.8, 0.95, 1e-5),
    "lamb_some": lambda: paddle.optimizer.Lamb(
        0.1, 0.2, exclude_from_weight_decay_fn=lambda p: p.name == "b",
        grad_clip=paddle.nn.ClipGradByGlobalNorm(0.7)),
    "lars": lambda: paddle.incubate.optimizer.LarsMomentumOptimizer(
        0.1, 0.8, lars_coeff=0.5, lars_weight_decay=0.2, epsilon=1e-3),
    "lars_some": lambda: paddle.incubate.optimizer.LarsMomentumOptimizer(
        0.1, 0.8, lars_coeff=0.5, lars_weight_decay=0.2,
        exclude_from_weight_decay=["b"]),
}


def write_schedules(path):
    with open(path, "w") as f:
        for name, make in SCHEDULES.items():
            schedule = make()
            rates = []
            for _ in range(30):
                rates.append(schedule())
                schedule.step()
            f.write(" ".join([name] + [repr(float(r)) for r in rates]) + "\n")
        for name, args in (("plateau", {}),
                           ("plateau_max", dict(mode="max", cooldown=2)),
                           ("plateau_abs", dict(threshold_mode="abs"))):
            args = dict(dict(patience=1, factor=0.5, threshold=0.01), **args)
            schedule = lr.ReduceOnPlateau(0.5, **args)
            rates = []
            for metric in METRICS:
                schedule.step(metric)
                rates.append(schedule())
            f.write(" ".join([name] + [repr(float(r)) for r in rates]) + "\n")


def run_optimizer(make, steps=4):
    """The ops, the gradients of all steps, the variables at the end."""
    paddle.enable_static()
    main, startup = paddle.static.Program(), paddle.static.Program()
    random = np.random.RandomState(7)
    with paddle.static.program_guard(main, startup):
        with paddle.utils.unique_name.guard():
            pairs = []
            for name, shape, rate in (("w", [3, 4], 1.0), ("b", [4], 0.5)):
                start = np.linspace(-1, 1, int(np.prod(shape)))
                param = paddle.static.create_parameter(
                    shape, "float32", name=name, attr=paddle.ParamAttr(
                        name=name, learning_rate=rate,
                        initializer=paddle.nn.initializer.Assign(
                            start.reshape(shape).astype("float32"))))
                grad = paddle.static.data(name + "@GRAD", shape)
                pairs.append((param, grad))
            before = len(main.global_block().ops)
            make().apply_gradients(pairs)
    ops = [op.type for op in main.global_block().ops[before:]]
    exe = paddle.static.Executor()
    scope = paddle.static.Scope()
    grads = {p.name: random.uniform(-1, 1, [steps] + list(p.shape)).astype(
        "float32") for p, _ in pairs}
    arrays = {name + "@GRAD": grad for name, grad in grads.items()}
    with paddle.static.scope_guard(scope):
        exe.run(startup)
        for i in range(steps):
            exe.run(main, feed={n + "@GRAD": g[i] for n, g in grads.items()})
        for var in main.list_vars():
            if var.persistable and scope.find_var(var.name) is not None:
                arrays[var.name] = np.array(
                    scope.find_var(var.name).get_tensor())
    return ops, arrays


def main(out):
    os.makedirs(out, exist_ok=True)
    write_schedules(os.path.join(out, "lr_schedules.txt"))
    arrays = {}
    with open(os.path.join(out, "optimizers.txt"), "w") as f:
        for case, make in OPTIMIZERS.items():
            ops, values = run_optimizer(make)
            f.write(" ".join([case] + ops) + "\n")
            for name, value in values.items():
                arrays[case + "/" + name] = value
    np.savez(os.path.join(out, "optimizers.npz"), **arrays)


if __name__ == "__main__":
    main(sys.argv[1])

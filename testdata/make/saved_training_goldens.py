#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training program that PaddlePaddle saved, and what its training comes to.

    saved_training_goldens.py testdata/saved_training

Made with PaddlePaddle 2.6.2 (CPU, one thread). Writes the main and startup programs of a
small LeNet with batch normalization, Adam and a learning rate that operators of the
program let decay, its first values, data, a job, and in expected.npz the losses and
learning rates of 20 steps over fixed batches and what the test form of the program
gives on the evaluation set in the end. The tolerance is measured: 40 times the
effect of 2 ulp of noise in the first values.
"""
import os
import sys

import numpy as np
import paddle

EPOCHS, RECORDS, BATCH, EVAL, CLASSES = 2, 80, 8, 36, 5

JOB = """# A training program that PaddlePaddle saved, trained with the data of a job.
program {{
  main: "main.pdmodel"
  startup: "startup.pdmodel"
  loss: "{loss}"
  fetch: "{logits}"
  feed {{ name: "img" field: "image" }}
  feed {{ name: "lbl" field: "label" }}
}}
# PaddlePaddle's first values, in place of the startup program's random ones.
init {{ from: "init.pdparams" }}
metric {{ accuracy {{}} }}
data {{
  train {{ npz {{ path: "train.npz" }} batch_size: {batch} }}
  eval {{ npz {{ path: "eval.npz" }} batch_size: 16 }}
}}
train {{ epochs: {epochs} log {{ every_steps: 1 }} }}
"""


def data(rng, records, centres):
    label = rng.integers(0, CLASSES, (records, 1)).astype(np.int64)
    image = centres[label[:, 0]] + rng.standard_normal((records, 1, 12, 12))
    return {"image": image.astype(np.float32), "label": label}


def network():
    import paddle.static as static
    img = static.data("img", [-1, 1, 12, 12], "float32")
    lbl = static.data("lbl", [-1, 1], "int64")
    x = static.nn.conv2d(img, 4, 3, bias_attr=False)  # Adam makes noise of a bias in front of a norm
    x = static.nn.batch_norm(x, act="relu")
    x = paddle.nn.functional.max_pool2d(x, 2, 2)
    x = static.nn.fc(x, 16, activation="relu")
    logits = static.nn.fc(x, CLASSES)
    return logits, paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, lbl))


def plain(program):
    for block in program.blocks:
        for op in block.ops:
            if op.has_attr("op_callstack"):
                op._remove_attr("op_callstack")
    return program.desc.serialize_to_string()


def main(folder):
    import paddle.static as static
    paddle.enable_static()
    paddle.seed(3)
    main_program, startup = static.Program(), static.Program()
    with static.program_guard(main_program, startup):
        logits, loss = network()
        test = main_program.clone(for_test=True)
        rate = paddle.optimizer.lr.exponential_decay(0.01, decay_steps=4, decay_rate=0.8)
        adam = paddle.optimizer.Adam()
        # Its constructor takes no variable as the rate.
        adam._learning_rate_map[main_program] = rate
        adam.minimize(loss)
    rate_name = next(op.input("LearningRate")[0] for op in main_program.global_block().ops if op.type == "adam")
    exe = static.Executor(paddle.CPUPlace())
    scope = static.Scope()
    rng = np.random.default_rng(11)
    centres = rng.standard_normal((CLASSES, 1, 12, 12))
    train, held = data(rng, RECORDS, centres), data(rng, EVAL, centres)
    parameters = [p.name for p in main_program.all_parameters()]

    def values():
        return {name: np.array(scope.find_var(name).get_tensor()) for name in parameters}

    def run(first):
        exe.run(startup)
        for name, value in first.items():
            scope.find_var(name).get_tensor().set(value, paddle.CPUPlace())
        losses, rates = [], []
        for _ in range(EPOCHS):
            for at in range(0, RECORDS, BATCH):
                part = slice(at, at + BATCH)
                got = exe.run(main_program, feed={"img": train["image"][part], "lbl": train["label"][part]},
                              fetch_list=[loss.name, rate_name])
                losses.append(got[0].item())
                rates.append(got[1].item())
        answers, test_loss = exe.run(test, feed={"img": held["image"], "lbl": held["label"]},
                                     fetch_list=[logits.name, loss.name])
        return {"losses": np.array(losses), "rates": np.array(rates), "answers": answers,
                "eval_loss": np.array(test_loss.item()),
                "eval_acc": np.array(float((answers.argmax(1) == held["label"][:, 0]).mean()))}

    with static.scope_guard(scope):
        exe.run(startup)
        first = values()
        expected = run(first)
        for name, value in values().items():
            expected["final/" + name] = value
        noise = {"losses": 0.0, "answers": 0.0, "final": 0.0}
        for _ in range(8):
            signs = {k: rng.choice([-2, 2], v.shape) for k, v in first.items()}
            other = run({k: (v + signs[k] * np.spacing(np.abs(v))).astype(v.dtype) for k, v in first.items()})
            for key in ("losses", "answers"):
                noise[key] = max(noise[key], np.abs(other[key] - expected[key]).max())
            for name, value in values().items():
                noise["final"] = max(noise["final"], np.abs(value - expected["final/" + name]).max())
    for key, value in noise.items():
        expected["tolerance/" + key] = np.array(40 * value)
        print(key, 40 * value)
    os.makedirs(folder, exist_ok=True)
    for name, program in (("main", main_program), ("startup", startup)):
        with open(os.path.join(folder, name + ".pdmodel"), "wb") as file:
            file.write(plain(program))
    paddle.save(first, os.path.join(folder, "init.pdparams"), protocol=2)
    np.savez_compressed(os.path.join(folder, "train.npz"), **train)
    np.savez_compressed(os.path.join(folder, "eval.npz"), **held)
    np.savez(os.path.join(folder, "expected.npz"), **expected)
    with open(os.path.join(folder, "job.pbtxt"), "w") as file:
        file.write(JOB.format(loss=loss.name, logits=logits.name, batch=BATCH, epochs=EPOCHS))
    print(expected["losses"], expected["rates"], expected["eval_loss"], expected["eval_acc"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

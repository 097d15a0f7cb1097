#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A training program that is fed sequences, and what its training comes to.

    saved_sequence_goldens.py testdata/saved_sequences

Made with PaddlePaddle 2.6.2 (CPU, one thread). Writes the main and startup programs of a
text classifier over two inputs of LoD level 1 (ids of words, and two numbers for each of
them), with a convolution over the sequence and Adam; its first values, records of
different lengths as JSON lines, a job, and in expected.npz the losses of 20 steps over
fixed batches, the final parameters, and what the test form gives on the evaluation set.
"""
import json
import os
import sys

import numpy as np
import paddle

EPOCHS, RECORDS, BATCH, EVAL, CLASSES, WORDS = 2, 80, 8, 20, 3, 12

JOB = """# A training program that is fed sequences, with records of different lengths.
program {{
  main: "main.pdmodel"
  startup: "startup.pdmodel"
  loss: "{loss}"
  fetch: "{logits}"
}}
# PaddlePaddle's first values, in place of the startup program's random ones.
init {{ from: "init.pdparams" }}
metric {{ accuracy {{}} }}
data {{
  train {{
    jsonl {{
      path: "train.jsonl"
      field {{ name: "words" dtype: int64 }}
      field {{ name: "marks" shape: [-1, 2] }}
      field {{ name: "label" dtype: int64 }}
    }}
    batch_size: {batch}
  }}
  eval {{
    jsonl {{
      path: "eval.jsonl"
      field {{ name: "words" dtype: int64 }}
      field {{ name: "marks" shape: [-1, 2] }}
      field {{ name: "label" dtype: int64 }}
    }}
    batch_size: 6
  }}
}}
train {{ epochs: {epochs} log {{ every_steps: 1 }} }}
"""


def data(rng, records):
    lines = []
    for _ in range(records):
        length, label = int(rng.integers(1, 10)), int(rng.integers(0, CLASSES))
        words = (rng.integers(0, WORDS // 2, length) + 2 * label) % WORDS
        marks = np.round(rng.standard_normal((length, 2)), 3)
        lines.append({"words": words.tolist(), "marks": marks.tolist(), "label": label})
    return lines


def network():
    import paddle.static as static
    words = static.data("words", [-1], "int64", lod_level=1)
    marks = static.data("marks", [-1, 2], "float32", lod_level=1)
    label = static.data("label", [-1, 1], "int64")
    x = static.nn.embedding(words, [WORDS, 6])
    x = static.nn.sequence_lod.sequence_conv(x, 8, 3, act="tanh")
    y = static.nn.sequence_lod.sequence_pool(static.nn.fc(marks, 4, activation="tanh"), "max")
    x = paddle.concat([static.nn.sequence_lod.sequence_pool(x, "average"), y], 1)
    logits = static.nn.fc(x, CLASSES)
    return logits, paddle.mean(paddle.nn.functional.softmax_with_cross_entropy(logits, label))


def feed(lines):
    def pack(name, dtype, shape):
        rows = np.concatenate([np.array(line[name], dtype).reshape(shape) for line in lines])
        lengths = [[len(line[name]) for line in lines]]
        return paddle.base.create_lod_tensor(rows, lengths, paddle.CPUPlace())

    return {"words": pack("words", np.int64, -1), "marks": pack("marks", np.float32, (-1, 2)),
            "label": np.array([[line["label"]] for line in lines], np.int64)}


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
        paddle.optimizer.Adam(0.02).minimize(loss)
    exe = static.Executor(paddle.CPUPlace())
    scope = static.Scope()
    rng = np.random.default_rng(11)
    train, held = data(rng, RECORDS), data(rng, EVAL)
    parameters = [p.name for p in main_program.all_parameters()]

    def values():
        return {name: np.array(scope.find_var(name).get_tensor()) for name in parameters}

    with static.scope_guard(scope):
        exe.run(startup)
        first = values()
        losses = []
        for _ in range(EPOCHS):
            for at in range(0, RECORDS, BATCH):
                losses.append(exe.run(main_program, feed=feed(train[at:at + BATCH]), fetch_list=[loss])[0].item())
        answers, test_loss = exe.run(test, feed=feed(held), fetch_list=[logits.name, loss.name])
        label = np.array([line["label"] for line in held])
        expected = {"losses": np.array(losses), "answers": answers, "eval_loss": np.array(test_loss.item()),
                    "eval_acc": np.array(float((answers.argmax(1) == label).mean()))}
        for name, value in values().items():
            expected["final/" + name] = value
    os.makedirs(folder, exist_ok=True)
    for name, program in (("main", main_program), ("startup", startup)):
        with open(os.path.join(folder, name + ".pdmodel"), "wb") as file:
            file.write(plain(program))
    paddle.save(first, os.path.join(folder, "init.pdparams"), protocol=2)
    for name, lines in (("train", train), ("eval", held)):
        with open(os.path.join(folder, name + ".jsonl"), "w") as file:
            file.writelines(json.dumps(line) + "\n" for line in lines)
    np.savez(os.path.join(folder, "expected.npz"), **expected)
    with open(os.path.join(folder, "job.pbtxt"), "w") as file:
        file.write(JOB.format(loss=loss.name, logits=logits.name, batch=BATCH, epochs=EPOCHS))
    print(expected["losses"], expected["eval_loss"], expected["eval_acc"])


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes operator cases: programs, feeds, and what PaddlePaddle answers.

  op_goldens.py OUT.zip [FILTER...]   every case in one zip
  op_goldens.py OUT_DIR [FILTER...]   a zip for each family
  op_goldens.py --list                runs nothing, prints the names

Needs paddlepaddle 2.6 and Pillow. A FILTER is part of "family/case". The layout is that of
testdata/ops (its README has it), so the test takes the result at once:

  PD_OP_GOLDENS=OUT_DIR test_goldens

CASES in op_cases.py is the table. A row is an expression, or a function
where one expression is too short; its inputs; and the inputs to differentiate
by, where that is not "every input of floats"; last, tolerances and `answer`,
another expression that says the same, for ops that PaddlePaddle has no CPU
kernel for: its answer is the case's. The answers' tolerance follows the
narrowest type fed. A row that PaddlePaddle refuses is reported, and the
exit status is 1.
"""
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
from paddle import static
from paddle.base.layer_helper import LayerHelper
from paddle.static import nn as S

from op_cases import CASES


def op(type, inputs, outputs="Out", dtype=None, every=False, **attrs):
    """One operator by name. `outputs` are slots; the first one is returned, or all.
    `dtype` is theirs; `attr_dtype` is an attribute of that name."""
    helper = LayerHelper(type)
    if "attr_dtype" in attrs:
        attrs["dtype"] = attrs.pop("attr_dtype")
    first = next(iter(inputs.values()), None)
    first = first[0] if isinstance(first, list) else first
    made = {slot: helper.create_variable_for_type_inference(dtype or first.dtype)
            for slot in outputs.split()}
    if type in KERNELS:
        helper.append_op(type=type, inputs=inputs, outputs=made, attrs=attrs)
    else:  # PaddlePaddle's inference of shapes asks for a kernel
        desc = helper.main_program.current_block().desc.append_op()
        desc.set_type(type)
        for slot, given in inputs.items():
            desc.set_input(slot, [v.name for v in (given if isinstance(given, list) else [given])])
        for slot, variable in made.items():
            desc.set_output(slot, [variable.name])
        for name, value in attrs.items():
            desc._set_attr(name, value)
    return list(made.values()) if every else made[outputs.split()[0]]


KERNELS = paddle.base.core._get_all_register_op_kernels("all")
NAMES = dict(paddle=paddle, static=static, F=F, S=S, np=np, op=op, LayerHelper=LayerHelper)


def source_of(body):
    return body if isinstance(body, str) else inspect.getsource(body).strip()


def call(body, variables):
    if isinstance(body, str):
        return eval(body, {**NAMES, **variables})
    body.__globals__.update(NAMES)
    return body(**variables)


def flat(outputs):
    outputs = outputs if isinstance(outputs, (list, tuple)) else [outputs]
    return [o for one in outputs for o in (flat(one) if isinstance(one, (list, tuple)) else [one]) if o is not None]


def is_float(array):
    return array.dtype.kind in "fc"


def tolerance(feed):
    kinds = {a.dtype for a in feed.values() if is_float(a)}
    if np.dtype("float16") in kinds:
        return 2e-3, 1e-3
    if kinds & {np.dtype("float32"), np.dtype("complex64")}:
        return 1e-5, 1e-6
    return (1e-9, 1e-10) if kinds else (0, 0)


def lod_tensor(array, lengths):
    return paddle.base.create_lod_tensor(array, lengths, paddle.CPUPlace()) if lengths else array


def run(program, feed, lods, fetches):
    executor = static.Executor(paddle.CPUPlace())
    given = {name: lod_tensor(array, lods.get(name)) for name, array in feed.items()}
    with static.scope_guard(static.Scope()):
        got = executor.run(program, feed=given, fetch_list=fetches, return_numpy=False)
    return [np.array(t) for t in got], [t.recursive_sequence_lengths() for t in got]


def op_types(program):
    block = program.global_block().desc
    return [block.op(k).type() for k in range(block.op_size())]


def saved(program):
    """Its bytes, without the Python call stack of each op."""
    for block in program.blocks:
        for k in range(block.desc.op_size()):
            block.desc.op(k).remove_attr("op_callstack")
    return program.desc.serialize_to_string()


def save_npz(arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)  # the zip around it compresses
    return out.getvalue()


def declare(inputs, feed, lods, by):
    """The variables of a program's inputs."""
    variables = {}
    for key, array in feed.items():
        unknown = inputs[key].unknown or ((0,) if key in lods else ())
        shape = [-1 if d in unknown else n for d, n in enumerate(array.shape)]
        variables[key] = static.data(key, shape, str(array.dtype), len(lods.get(key, [])))
        variables[key].stop_gradient = key not in by
    return variables


def make_by_answer(name, body, answer, inputs, by=None, rtol=None, atol=None):
    """The same for an op that PaddlePaddle computes on other devices: what it
    answers to `answer`, which says the same in other ops. The program has no
    gradient ops; the gradient is `answer`'s."""
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    feed = {key: value.make(rng) for key, value in inputs.items()}
    lods = {key: value.lod for key, value in inputs.items() if value.lod}
    by = [k for k, a in feed.items() if is_float(a)] if by is None else by.split()
    program, other = static.Program(), static.Program()
    case = dict(made_by=source_of(body), answered_by=source_of(answer))
    case["rtol"], case["atol"] = tolerance(feed)
    case["rtol"] = case["rtol"] if rtol is None else rtol
    case["atol"] = case["atol"] if atol is None else atol
    fed = dict(feed)
    with static.program_guard(program, static.Program()), paddle.utils.unique_name.guard():
        names = [o.name for o in flat(call(body, declare(inputs, feed, lods, by)))]
        case["ops"] = op_types(program)
    with static.program_guard(other, static.Program()), paddle.utils.unique_name.guard():
        variables = declare(inputs, feed, lods, by)
        outputs = flat(call(answer, variables))
        answers, levels = run(other, feed, lods, outputs)
        assert len(outputs) == len(names), "as many answers as outputs"
        targets = [k for k, o in enumerate(outputs) if by and not o.stop_gradient and is_float(answers[k])]
        grads = {}
        if targets:
            cotangents = []
            for k in targets:
                key = names[k] + "@CT"
                cotangents.append(static.data(key, answers[k].shape, outputs[k].dtype))
                fed[key] = np.asarray(rng.uniform(-1, 1, answers[k].shape)).astype(answers[k].dtype)
            found = static.gradients([outputs[k] for k in targets], [variables[k] for k in by], cotangents)
            grads = {key: g for key, g in zip(by, found) if g is not None}
            case["grad_ops"] = []
            case["grad"] = dict(targets={names[k]: names[k] + "@CT" for k in targets},
                                inputs=list(grads), grads={key: key + "@GRAD" for key in grads})
        answers, levels = run(other, fed, lods, outputs + list(grads.values()))
    with static.program_guard(program, static.Program()):
        for key in set(fed) - set(feed):
            static.data(key, fed[key].shape, str(fed[key].dtype))
    named = names + [key + "@GRAD" for key in grads]
    files = {"program.pdmodel": saved(program), "case.json": json.dumps(case, indent=1),
             "feed.npz": save_npz(fed), "expect.npz": save_npz(dict(zip(named, answers)))}
    if targets:
        files["forward.pdmodel"] = files["program.pdmodel"]
    if lods:
        files["feed.lod.json"] = json.dumps(lods)
    return files


def make(name, body, inputs, by=None, rtol=None, atol=None, answer=None):
    """The files of one case: name -> bytes."""
    if answer is not None:
        return make_by_answer(name, body, answer, inputs, by, rtol, atol)
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    feed = {key: value.make(rng) for key, value in inputs.items()}
    lods = {key: value.lod for key, value in inputs.items() if value.lod}
    by = [k for k, a in feed.items() if is_float(a)] if by is None else by.split()
    paddle.seed(1)
    program = static.Program()
    with static.program_guard(program, static.Program()), paddle.utils.unique_name.guard():
        variables = declare(inputs, feed, lods, by)
        outputs = flat(call(body, variables))
        forward = saved(program)
        case = dict(ops=op_types(program), made_by=source_of(body))
        case["rtol"], case["atol"] = tolerance(feed)
        case["rtol"] = case["rtol"] if rtol is None else rtol
        case["atol"] = case["atol"] if atol is None else atol
        answers, levels = run(program, feed, lods, outputs)
        targets = [k for k, o in enumerate(outputs) if by and not o.stop_gradient and is_float(answers[k])]
        if targets:
            cotangents = []
            for k in targets:
                key = outputs[k].name + "@CT"
                # Some shapes are inferred wrongly: the answer's counts.
                shape = [n if n == m else -1 for n, m in zip(outputs[k].shape, answers[k].shape)]
                outputs[k].desc.set_shape(shape)
                cotangents.append(static.data(key, shape, outputs[k].dtype, len(levels[k])))
                feed[key] = np.asarray(rng.uniform(-1, 1, answers[k].shape)).astype(answers[k].dtype)
                if levels[k]:
                    lods[key] = levels[k]
            grads = static.gradients([outputs[k] for k in targets], [variables[k] for k in by], cotangents)
            grads = {key: g for key, g in zip(by, grads) if g is not None}
            case["grad_ops"] = op_types(program)[len(case["ops"]):]
            case["grad"] = dict(targets={outputs[k].name: outputs[k].name + "@CT" for k in targets},
                                inputs=list(grads), grads={key: g.name for key, g in grads.items()})
            outputs += grads.values()
            answers, levels = run(program, feed, lods, outputs)
    files = {"program.pdmodel": saved(program), "case.json": json.dumps(case, indent=1),
             "feed.npz": save_npz(feed), "expect.npz": save_npz({o.name: a for o, a in zip(outputs, answers)})}
    if targets:
        files["forward.pdmodel"] = forward
    if lods:
        files["feed.lod.json"] = json.dumps(lods)
    return files


def main(arguments):
    chosen = [(family, case, row) for family, rows in CASES.items() for case, row in rows.items()
              if not arguments[1:] or any(f in f"{family}/{case}" for f in arguments[1:])]
    if not arguments or arguments[0] == "--list":
        print("\n".join(f"{family}/{case}" for family, case, _ in chosen))
        return 0 if arguments else 2
    paddle.enable_static()
    one = arguments[0].endswith(".zip")
    if not one:
        os.makedirs(arguments[0], exist_ok=True)
    refused, zips = [], {}
    for family, case, row in chosen:
        try:
            files = make(f"{family}/{case}", *row[:3], **(row[3] if len(row) > 3 else {}))
        except Exception as error:
            lines = [line.strip() for line in str(error).splitlines()]
            refused.append(f"{family}/{case}: " + next((l for l in lines if "Error: " in l), lines[-1] if lines else repr(error)))
            continue
        path = arguments[0] if one else os.path.join(arguments[0], family + ".zip")
        if path not in zips:
            zips[path] = zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED)
        for name, data in files.items():
            entry = zipfile.ZipInfo((f"{family}_{case}" if one else case) + "/" + name, (1980, 1, 1, 0, 0, 0))
            zips[path].writestr(entry, data, zipfile.ZIP_DEFLATED, 9)
    for archive in zips.values():
        archive.close()
    print("\n".join(refused + [f"{len(chosen) - len(refused)} cases, {len(refused)} refused"]))
    return 1 if refused else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases of the operators on sparse tensors, and what PaddlePaddle answers.

  sparse_goldens.py OUT_DIR [FILTER...]   a zip for each operator type
  sparse_goldens.py OUT.zip [FILTER...]   every case in one zip
  sparse_goldens.py --list                runs nothing, prints the names

Needs paddlepaddle 2.6. A FILTER is part of "family/case"; the layout and the
table's rows are those of op_goldens.py. Sparse variables are neither fed nor
fetched: a case feeds `values` and `indices`, makes the sparse tensor of them,
and reads `out.values`, `out.indices` and `out.dense` of the result.

PaddlePaddle's executor of programs has no gradients of these operators and no
variables of compressed rows (CSR). Its dynamic mode has both, so the same calls
run there for cases with CSR tensors and for every gradient; case.json says so
in `answered_by`, and the programs hold no gradient operators. Where both modes
run, their answers must agree. A row's `dynamic` leaves a program out that the
executor refuses or answers wrongly; `answer` is that of op_goldens.py, in dense
operators. The cotangent of a COO result belongs to `out.values`, that of a CSR
result to `out.dense`.
"""
import json
import sys
import zlib

import numpy as np
import paddle
from paddle import _C_ops, static
from paddle.base import core
from paddle.base.framework import OpProtoHolder, convert_np_dtype_to_dtype_
from paddle.base.proto import framework_pb2
from paddle.utils import unique_name

import op_goldens
from op_cases import A, d, f, i, i32
from op_goldens import call, declare, flat, is_float, op_types, save_npz, saved, source_of, tolerance

DYNAMIC = "the same calls in dynamic mode"
AttrType, VarType = core.AttrType, core.VarDesc.VarType


# ---- what the rows' expressions call, in both modes ------------------------------
class Notes:
    """What the calls of one case leave for `make`."""

    def __init__(self, infers=True):
        self.infers = infers   # static: PaddlePaddle infers shapes, which asks for a kernel
        self.formats = {}      # static: the sparse variables, "coo" or "csr"
        self.uninferred = set()
        self.readings = {}     # static: readings of values and of all -> the sparse variable
        self.leaves = {}       # dynamic: fed values -> the sparse tensor made of them
        self.whole = {}        # dynamic: id of a dense reading -> the CSR tensor
        self.targets = []      # dynamic: the readings that get a cotangent


notes = Notes()


def format_of(tensor):
    if paddle.in_dynamic_mode():
        return "csr" if tensor.is_sparse_csr() else "coo" if tensor.is_sparse_coo() else "dense"
    return notes.formats.get(tensor.name, "dense")


def run_now(type, inputs, attrs):
    """The operator in dynamic mode: its outputs."""
    if type == "indices":
        return [inputs[0].indices()]
    function = getattr(_C_ops, "sparse_" + type, None)
    if function is None:  # it writes into its inputs
        function = getattr(_C_ops, f"sparse_{type}_")
        inputs = [v.clone() if format_of(v) == "dense" else v for v in inputs]
    out = function(*inputs, *attrs.values())
    return list(out) if isinstance(out, (list, tuple)) else [out]


def append(type, inputs, outputs, attrs):
    """The operator in static mode."""
    block = static.default_main_program().current_block()
    formats = {format_of(v) for v in [*inputs.values(), *outputs.values()]}
    if notes.infers and "csr" not in formats:  # PaddlePaddle cannot know that a variable is CSR
        block.append_op(type=type, inputs=inputs, outputs=outputs, attrs=attrs)
        return
    desc = block.desc.append_op()
    desc.set_type(type)
    for slot, variable in inputs.items():
        desc.set_input(slot, [variable.name])
    for slot, variable in outputs.items():
        desc.set_output(slot, [variable.name])
        notes.uninferred.add(variable.name)
    for attr in OpProtoHolder.instance().get_op_proto(type).attrs:
        if attr.name in attrs:
            setters = {AttrType.LONG: desc._set_int64_attr, AttrType.LONGS: desc._set_int64s_attr}
            setters.get(attr.type, desc._set_attr)(attr.name, attrs[attr.name])
    desc.check_attrs()  # adds the others


def sp(type, *inputs, to=None, name="out", every=False, **attrs):
    """The operator sparse_`type`. `inputs` come in its order, `None` for absent ones; `attrs` are all of its
    attributes, `None` for its own default. `to` is the result's format, without it that of the first input.
    `every`: all outputs instead of the first."""
    proto = OpProtoHolder.instance().get_op_proto("sparse_" + type)
    slots = [slot.name for slot in proto.inputs if not slot.name.endswith(("Tensor", "TensorList"))]
    attrs = {a.name: attrs[a.name] for a in proto.attrs if a.name in attrs}
    if paddle.in_dynamic_mode():
        made = run_now(type, inputs, attrs)
        return made if every else made[0]
    made = {}
    block = static.default_main_program().current_block()
    for slot in proto.outputs:
        format = (to or format_of(inputs[0])) if slot.name == "out" else "csr" if slot.name == "softmax" else "dense"
        own = name if slot.name == "out" else slot.name
        made[slot.name] = block.create_var(
            name=unique_name.generate(own) if own in block.vars else own, dtype=inputs[0].dtype,
            type=VarType.LOD_TENSOR if format == "dense" else VarType.SPARSE_COO)
        if format != "dense":
            notes.formats[made[slot.name].name] = format
    append("sparse_" + type, {slot: v for slot, v in zip(slots, inputs) if v is not None}, made,
           {key: int(v) if isinstance(v, VarType) else v for key, v in attrs.items() if v is not None})
    return list(made.values()) if every else made["out"]


def base_name(values):
    return "x" if values.name == "values" else values.name.rsplit("_", 1)[0]


def leaf(values, tensor):
    """In dynamic mode, differentiate by the sparse tensor: the conversion to CSR has no gradient, and that of
    sparse_coo_tensor loses values that the other gradients leave out."""
    if not values.stop_gradient:
        assert values.name not in notes.leaves, "made twice"
        tensor.stop_gradient = False
        notes.leaves[values.name] = tensor
    return tensor


def coo(values, indices, shape):
    """A COO tensor: a column of `indices` for each of `values`."""
    if not paddle.in_dynamic_mode():
        return sp("sparse_coo_tensor", values, indices, to="coo", name=base_name(values), shape=shape)
    if not values.is_leaf:
        return sp("sparse_coo_tensor", values, indices, shape=shape)
    return leaf(values, sp("sparse_coo_tensor", values.detach(), indices, shape=shape))


def csr(values, indices, shape):
    """A CSR tensor of the same."""
    if not paddle.in_dynamic_mode():
        made = sp("to_sparse_csr", coo(values, indices, shape), to="csr", name=base_name(values) + ".csr")
        made.desc.set_shape(shape)
        return made
    return leaf(values, sp("to_sparse_csr", sp("sparse_coo_tensor", values.detach(), indices, shape=shape)))


def read(tensor, name="out"):
    """The dense readings of a sparse tensor."""
    format = format_of(tensor)
    values = sp("values", tensor, to="dense", name=name + ".values")
    dense = sp("to_dense", tensor, to="dense", name=name + ".dense")
    if paddle.in_dynamic_mode():
        notes.targets.append(id(dense if format == "csr" else values))
        if format == "csr":
            notes.whole[id(dense)] = tensor
    else:
        notes.readings.update({values.name: tensor, dense.name: tensor})
    return [values, dense] if format == "csr" else [
        values, sp("indices", tensor, to="dense", name=name + ".indices"), dense]


op_goldens.NAMES.update(sp=sp, coo=coo, csr=csr, read=read)


# ---- one case ----------------------------------------------------------------------
def with_formats(data, formats):
    """A program's bytes, with its CSR variables declared as such: Python cannot name their type."""
    program = framework_pb2.ProgramDesc.FromString(data)
    for variable in program.blocks[0].vars:
        if formats.get(variable.name) == "csr":
            variable.type.sparse_csr.CopyFrom(variable.type.sparse_coo)
            variable.type.ClearField("sparse_coo")
            variable.type.type = framework_pb2.VarType.SPARSE_CSR
    return program.SerializeToString()


def places(tensor):
    """Where a sparse tensor's elements lie in the dense one."""
    if format_of(tensor) == "coo":
        return tuple(tensor.indices().numpy())
    counts = np.diff(tensor.crows().numpy().reshape(-1, tensor.shape[-2] + 1), axis=1).ravel()
    rows = np.repeat(np.arange(counts.size), counts)
    return (*np.unravel_index(rows, tensor.shape[:-1]), tensor.cols().numpy())


def at_elements(array, like):
    """A CSR tensor of the elements of `array` that `like` has."""
    taken = paddle.to_tensor(array[places(like)])
    return paddle.sparse.sparse_csr_tensor(like.crows(), like.cols(), taken, like.shape)


def values_of(gradient, leaf):
    """A sparse tensor's gradient in the order of its values; zero where the gradient has no element."""
    if format_of(gradient) == "dense":
        return gradient.numpy()[places(leaf)]
    at, own, values = np.array(places(gradient)), np.array(places(leaf)), gradient.values().numpy()
    if at.shape == own.shape and (at == own).all():
        return values
    dense = np.zeros([*leaf.shape[:len(own)], *values.shape[1:]], values.dtype)
    np.add.at(dense, tuple(at), values)
    return dense[tuple(own)]


def answer_dynamically(body, feed, by, rng):
    """The answers, the cotangents by output, and the gradients by input."""
    global notes
    notes = Notes()
    paddle.disable_static()
    try:
        variables = {}
        for key, array in feed.items():
            variables[key] = paddle.to_tensor(array, stop_gradient=key not in by)
            variables[key].name = key
        outputs = flat(call(body, variables))
        answers = [o.numpy() for o in outputs]
        cotangents = {k: np.asarray(rng.uniform(-1, 1, a.shape)).astype(a.dtype) for k, a in enumerate(answers)
                      if by and is_float(a) and (id(outputs[k]) in notes.targets if notes.targets
                                                 else not outputs[k].stop_gradient)}
        if not cotangents:
            return answers, {}, {}
        tensors = [notes.whole.get(id(outputs[k]), outputs[k]) for k in cotangents]
        paddle.autograd.backward(tensors, [
            at_elements(array, tensor) if format_of(tensor) == "csr" else paddle.to_tensor(array)
            for array, tensor in zip(cotangents.values(), tensors)])
        grads = {key: notes.leaves.get(key, variables[key]).grad for key in by}
        return answers, cotangents, {
            key: values_of(g, notes.leaves[key]) if key in notes.leaves else g.numpy()
            for key, g in grads.items() if g is not None}
    finally:
        paddle.enable_static()


def describe(variable, array):
    """Sets the shape and type of a variable where they were not inferred, as they are in `array`."""
    variable.desc.set_shape(array.shape)
    variable.desc.set_dtype(convert_np_dtype_to_dtype_(array.dtype))


def describe_all(outputs, answers):
    for variable, array in zip(outputs, answers):
        tensor = notes.readings.get(variable.name)
        # The inference for sparse_values reads a second extent even where there is none.
        if variable.name in notes.uninferred or (tensor is not None and len(tensor.shape) < 2):
            describe(variable, array)
        if tensor is not None and tensor.name in notes.uninferred and variable.name.endswith(".dense"):
            describe(tensor, array)


def make(name, body, inputs, by=None, rtol=None, atol=None, dynamic=False, answer=None):
    """The files of one case: name -> bytes."""
    global notes
    rng = np.random.RandomState(zlib.crc32(name.encode()))
    feed = {key: value.make(rng) for key, value in inputs.items()}
    by = [k for k, a in feed.items() if is_float(a)] if by is None else by.split()
    program, kept = static.Program(), Notes(infers=not dynamic and answer is None)
    notes = kept
    with static.program_guard(program, static.Program()), unique_name.guard():
        outputs = flat(call(body, declare(inputs, feed, {}, by)))
    names = [o.name for o in outputs]
    case = dict(ops=op_types(program), made_by=source_of(body))
    case["rtol"], case["atol"] = (own if own is not None else usual
                                  for own, usual in zip((rtol, atol), tolerance(feed)))
    executed = not kept.uninferred
    answers, cotangents, grads = answer_dynamically(answer or body, feed, by, rng) \
        if by or not executed else (None, {}, {})
    if grads or not executed:
        case["answered_by"] = source_of(answer) if answer else DYNAMIC
    if executed:
        dynamically, (answers, _) = answers, op_goldens.run(program, feed, {}, outputs)
        for one, other in zip(answers, dynamically or []):
            np.testing.assert_allclose(one, other, case["rtol"], case["atol"], err_msg="the two modes disagree")
            assert one.dtype == other.dtype, "the two modes disagree"
    notes = kept
    describe_all(outputs, answers)
    fed, expected = dict(feed), dict(zip(names, answers))
    assert len(expected) == len(answers) == len(names), "as many answers as outputs"
    if grads:
        with static.program_guard(program, static.Program()):
            for k, array in cotangents.items():
                static.data(names[k] + "@CT", array.shape, str(array.dtype))
                fed[names[k] + "@CT"] = array
        case["grad_ops"] = []
        case["grad"] = dict(targets={names[k]: names[k] + "@CT" for k in cotangents}, inputs=list(grads),
                            grads={key: key + "@GRAD" for key in grads})
        expected.update({key + "@GRAD": array for key, array in grads.items()})
    data = with_formats(saved(program), kept.formats)
    files = {"program.pdmodel": data, "case.json": json.dumps(case, indent=1), "feed.npz": save_npz(fed),
             "expect.npz": save_npz(expected)}
    if grads:
        files["forward.pdmodel"] = data
    return files


# ---- the table ---------------------------------------------------------------------
CASES = {}
ONLY_DYNAMIC = dict(dynamic=True)


def family(name, rows):
    CASES.setdefault("sparse_" + name, {}).update(rows)


AT_34 = A([[0, 0, 1, 2, 2], [1, 3, 2, 0, 3]])                   # of [3, 4]
AT_34_INT32 = A([[0, 0, 1, 2, 2], [1, 3, 2, 0, 3]], "int32")
OTHER_34 = A([[0, 1, 1, 2], [1, 0, 2, 1]])                      # two of them are among those above
TWICE = A([[2, 0, 2, 1, 0], [1, 3, 1, 0, 3]])                   # of [3, 4]: out of order, two places twice
EMPTY_ROWS = A([[0, 0, 0, 2], [0, 1, 3, 2]])                    # of [4, 4]: rows 1 and 3 are empty
AT_4 = A([[0, 2, 3]])                                           # of [4, ...]
BATCH = A([[0, 0, 0, 1, 1], [0, 0, 2, 1, 1], [1, 3, 0, 0, 2]])  # of [2, 3, 4]
VOXELS = A([[0, 0, 0, 0], [0, 1, 1, 2], [1, 0, 3, 2], [0, 2, 1, 1]])  # of [1, 3, 4, 3, ...]
TWO_IMAGES = A([[0, 0, 1, 1], [0, 1, 1, 2], [1, 0, 3, 2], [0, 2, 1, 1]])

COO, CSR = "coo(values, indices, [3, 4])", "csr(values, indices, [3, 4])"
COO_3D, CSR_BATCH = "coo(values, indices, [2, 3, 4])", "csr(values, indices, [2, 3, 4])"
HYBRID = "coo(values, indices, [3, 4, 2])"
CSR_EMPTY, COO_EMPTY = "csr(values, indices, [4, 4])", "coo(values, indices, [4, 4])"


def of_one(name, rows):
    """Operators of one sparse tensor. A row: the tensor, attributes, values, indices, and what a row ends with."""
    family(name, {key: (f"read(sp({', '.join([repr(name), tensor] + ([attrs] if attrs else []))}))",
                        dict(values=values, indices=indices), *rest)
                  for key, (tensor, attrs, values, indices, *rest) in rows.items()})


# ---- of each value -------------------------------------------------------------------
def unary(name, attrs="", lo=-.9, hi=.9):
    of_one(name, {
        "coo": (COO, attrs, f(5, lo=lo, hi=hi), AT_34),
        "coo_hybrid_f64": ("coo(values, indices, [4, 2])", attrs, d(3, 2, lo=lo, hi=hi), AT_4),
        "csr": (CSR, attrs, f(5, lo=lo, hi=hi), AT_34),
        "csr_batch_f64": (CSR_BATCH, attrs, d(5, lo=lo, hi=hi), BATCH),
    })


for name in "abs asin asinh atan atanh expm1 log1p relu sin sinh square tan tanh".split():
    unary(name)
unary("sqrt", lo=.2, hi=2)
unary("relu6", lo=-8, hi=8)
unary("leaky_relu", "alpha=.2")
unary("pow", "factor=3.", lo=-2, hi=2)
unary("divide_scalar", "scalar=4.")
unary("scale", "scale=2.5, bias=0., bias_after_scale=True")
of_one("scale", {
    "coo_bias": (COO, "scale=2., bias=1., bias_after_scale=True", f(5), AT_34),
    "csr_bias_before": (CSR, "scale=2., bias=1., bias_after_scale=False", d(5), AT_34),
})
of_one("pow", {"coo_square_root": (COO, "factor=.5", d(5, lo=.2, hi=3), AT_34)})
of_one("relu", {
    "coo_zeros": (COO, "", A([0, -1, 0, 2, 3], "float32"), AT_34, ""),
    "coo_twice": (COO, "", f(5), TWICE),
})
family("relu", {"chain": (f"[x := {COO}] and read(sp('relu', sp('add', x, sp('sin', x, name='sine'), name='sum')))",
                          dict(values=f(5), indices=AT_34))})
for name, lo, hi in ("acos", -.9, .9), ("acosh", 1.2, 3):  # the types are declared, but have no kernel anywhere
    family(name, {
        "coo": (f"read(sp('{name}', {COO}))", dict(values=f(5, lo=lo, hi=hi), indices=AT_34), None,
                dict(answer=f"read(coo(paddle.{name}(values), indices, [3, 4]))")),
        "csr_f64": (f"read(sp('{name}', {CSR}))", dict(values=d(5, lo=lo, hi=hi), indices=AT_34), "",
                    dict(answer=f"read(csr(paddle.{name}(values), indices, [3, 4]))")),
    })
STRANGE = A([1, np.nan, np.inf, 0, -np.nan], "float32")
of_one("isnan", {
    "coo": (COO, "", STRANGE, AT_34, "", ONLY_DYNAMIC),  # its indices have no kernel for bool
    "coo_int64": (COO, "", i(5), AT_34, "", ONLY_DYNAMIC),
    "csr": (CSR, "", STRANGE, AT_34, ""),
})
family("isnan", {"coo_values": (f"sp('values', sp('isnan', {COO}), to='dense', name='out.values')",
                                dict(values=STRANGE, indices=AT_34), "")})
of_one("full_like", {  # the executor refuses the attribute `dtype`
    "coo": (COO, "value=1.5, dtype=paddle.float32", f(5), AT_34, "", ONLY_DYNAMIC),
    "coo_as_f64": (COO, "value=2., dtype=paddle.float64", f(5), AT_34, "", ONLY_DYNAMIC),
    "coo_hybrid_int64": (HYBRID, "value=2.7, dtype=paddle.int64", i(5, 2), AT_34, "", ONLY_DYNAMIC),
    "csr": (CSR, "value=-1.25, dtype=paddle.float32", f(5), AT_34, ""),
})
of_one("cast", {
    "coo": (COO, "index_dtype=paddle.int32, value_dtype=paddle.float64", f(5), AT_34, None, ONLY_DYNAMIC),
    "coo_hybrid_f32": (HYBRID, "index_dtype=paddle.int64, value_dtype=paddle.float32", d(5, 2), AT_34, None,
                       dict(ONLY_DYNAMIC, rtol=1e-6, atol=1e-7)),
    "coo_to_int32": (COO, "index_dtype=paddle.int64, value_dtype=paddle.int32", f(5, lo=-5, hi=5), AT_34, "",
                     ONLY_DYNAMIC),
    "csr": (CSR, "index_dtype=paddle.int32, value_dtype=paddle.float64", f(5), AT_34),
    "csr_f32": (CSR, "index_dtype=paddle.int64, value_dtype=paddle.float32", d(5), AT_34, None,
                dict(rtol=1e-6, atol=1e-7)),
})


# ---- of two tensors -------------------------------------------------------------------
def pair(make, kind, first, second, by=None, shape="[3, 4]", dims=(), lo=-1, **more):
    """A row but for the operator's name."""
    size = [len(at.make(None)[0]) for at in (first, second)]
    return (f"read(sp(%r, {kind}(x_values, x_indices, {shape}), {kind}(y_values, y_indices, {shape})))",
            dict(x_values=make(size[0], *dims, lo=lo, hi=3), x_indices=first,
                 y_values=make(size[1], *dims, lo=1, hi=3), y_indices=second), by, more)


for name in "add subtract multiply divide".split():
    # Elsewhere it writes past the end of an array, or divides by zero.
    by = None if name in ("add", "multiply") else ""
    rows = {
        "coo_same": pair(f, "coo", AT_34, AT_34),
        "coo_other_f64": pair(d, "coo", AT_34, OTHER_34, by),
        "coo_hybrid": pair(f, "coo", AT_4, A([[1, 2]]), by, "[4, 2]", (2,)),
        "csr_same_f64": pair(d, "csr", AT_34, AT_34),
        "csr_other": pair(f, "csr", AT_34, OTHER_34, by),
    }
    if name != "divide":
        rows["coo_int64"] = pair(i, "coo", AT_34, OTHER_34, lo=-9)
        rows["coo_empty"] = pair(f, "coo", AT_34, A(np.zeros((2, 0))), by)
    family(name, {key: (row[0] % name, *row[1:]) for key, row in rows.items()})
family("add", {"coo_bias": ("read(sp('add', coo(values, indices, [3, 4]), y))",
                            dict(values=f(3, 4), indices=A([[0, 1, 2]]), y=f(4)))})

# ---- products: none has a kernel for CPUs -----------------------------------------------
DENSE = "sp('to_dense', coo(values, indices, %s), to='dense')"


def product(body, answer, inputs, by=None):
    return body, inputs, by, dict(answer=answer)


for kind in "coo", "csr":
    made = f"{kind}(values, indices, %s)"
    family("mv", {
        kind: product(f"sp('mv', {made % [3, 4]}, y, to='dense')", f"paddle.mv({DENSE % [3, 4]}, y)",
                      dict(values=f(5), indices=AT_34, y=f(4))),
        kind + "_empty_rows_f64": product(
            f"sp('mv', {made % [4, 4]}, y, to='dense')", f"paddle.mv({DENSE % [4, 4]}, y)",
            dict(values=d(4), indices=EMPTY_ROWS, y=d(4))),
    })
    family("matmul", {
        kind + "_dense": product(
            f"sp('matmul', {made % [3, 4]}, y, to='dense')", f"paddle.matmul({DENSE % [3, 4]}, y)",
            dict(values=f(5), indices=AT_34, y=f(4, 2))),
        kind + "_dense_empty_rows_f64": product(
            f"sp('matmul', {made % [4, 4]}, y, to='dense')", f"paddle.matmul({DENSE % [4, 4]}, y)",
            dict(values=d(4), indices=EMPTY_ROWS, y=d(4, 3))),
        f"{kind}_{kind}": product(
            f"sp('to_dense', sp('matmul', {made % [3, 4]}, {kind}(y_values, y_indices, [4, 3])), to='dense', "
            "name='out.dense')",
            f"paddle.matmul({DENSE % [3, 4]}, sp('to_dense', coo(y_values, y_indices, [4, 3]), to='dense'))",
            dict(values=f(5), indices=AT_34, y_values=f(3), y_indices=A([[0, 1, 3], [1, 0, 2]])), ""),
    })
    family("addmm", {
        kind: product(
            f"sp('addmm', x, {made % [3, 4]}, y, to='dense', beta=.5, alpha=2.)",
            f"paddle.addmm(x, {DENSE % [3, 4]}, y, beta=.5, alpha=2.)",
            dict(x=f(3, 2), values=f(5), indices=AT_34, y=f(4, 2))),
        kind + "_empty_rows_f64": product(
            f"sp('addmm', x, {made % [4, 4]}, y, to='dense', beta=1., alpha=1.)",
            f"paddle.addmm(x, {DENSE % [4, 4]}, y)",
            dict(x=d(4, 2), values=d(4), indices=EMPTY_ROWS, y=d(4, 2))),
    })
family("matmul", {"csr_batch_dense": product(
    f"sp('matmul', {CSR_BATCH}, y, to='dense')", f"paddle.matmul({DENSE % [2, 3, 4]}, y)",
    dict(values=f(5), indices=BATCH, y=f(2, 4, 2)))})
MASKED = "sp('to_dense', sp('masked_matmul', x, y, csr(values, indices, %s), to='csr'), to='dense', name='out.dense')"
WHERE = "paddle.matmul(x, y) * paddle.cast(%s != 0, x.dtype)"
family("masked_matmul", {
    "csr": product(MASKED % [3, 4], WHERE % DENSE % [3, 4],
                   dict(x=f(3, 5), y=f(5, 4), values=f(5, lo=1, hi=2), indices=AT_34), "x y"),
    "csr_empty_rows_f64": product(MASKED % [4, 4], WHERE % DENSE % [4, 4],
                                  dict(x=d(4, 2), y=d(2, 4), values=d(4, lo=1, hi=2), indices=EMPTY_ROWS), "x y"),
    "csr_batch": product(MASKED % [2, 3, 4], WHERE % DENSE % [2, 3, 4],
                         dict(x=f(2, 3, 5), y=f(2, 5, 4), values=f(5, lo=1, hi=2), indices=BATCH), "x y"),
})
family("fused_attention", {"csr": product(
    "sp('fused_attention', q, k, v, csr(values, indices, [2, 3, 3]), None, None, to='dense')",
    "paddle.matmul(F.softmax(paddle.matmul(q, k, transpose_y=True) / 2. + paddle.log("
    "paddle.reshape(sp('to_dense', coo(values, indices, [2, 3, 3]), to='dense'), [1, 2, 3, 3]))), v)",
    dict(q=f(1, 2, 3, 4), k=f(1, 2, 3, 4), v=f(1, 2, 3, 4), values=A(np.ones(9), "float32"),
         indices=A([[0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 0, 1, 2, 0, 1, 1, 2, 2], [0, 1, 2, 0, 1, 0, 2, 1, 2]])),
    "q k v")})

# ---- shapes ------------------------------------------------------------------------------
of_one("transpose", {
    "coo": (COO, "perm=[1, 0]", f(5), AT_34),
    "coo_3d_f64": (COO_3D, "perm=[2, 0, 1]", d(5), BATCH),
    "coo_int32": (COO, "perm=[1, 0]", i32(5), AT_34),
    "csr": (CSR, "perm=[1, 0]", f(5), AT_34),
    "csr_batch_rows": (CSR_BATCH, "perm=[0, 2, 1]", f(5), BATCH),
    "csr_batch_f64": (CSR_BATCH, "perm=[2, 0, 1]", d(5), BATCH),
})
of_one("reshape", {
    "coo": (COO, "shape=[2, 6]", f(5), AT_34),
    "coo_unknown_f64": (COO_3D, "shape=[4, -1]", d(5), BATCH),
    "coo_kept": (COO_3D, "shape=[0, 2, -1, 2]", f(5), BATCH),
    "coo_hybrid": (HYBRID, "shape=[2, 6, 2]", f(5, 2), AT_34),
    "csr": (CSR, "shape=[2, 6]", f(5), AT_34),
    "csr_batch": (CSR_BATCH, "shape=[2, 4, 3]", f(5), BATCH),
})
of_one("slice", {
    "coo": (COO, "axes=[0, 1], starts=[1, 0], ends=[3, -1]", f(5), AT_34),
    "coo_3d_f64": (COO_3D, "axes=[1, 2], starts=[-3, 1], ends=[2, 100]", d(5), BATCH),
    "coo_empty": (COO, "axes=[0], starts=[1], ends=[2]", f(4), A([[0, 0, 2, 2], [1, 3, 0, 3]]), ""),
    "csr": (CSR, "axes=[0, 1], starts=[1, 0], ends=[3, -1]", f(5), AT_34),
    "csr_batch": (CSR_BATCH, "axes=[0, 1, 2], starts=[0, 0, 0], ends=[1, 3, 2]", d(5), BATCH),
})
of_one("sum", {
    "coo_all": (COO, "axis=[], dtype=None, keepdim=False", f(5), AT_34),
    "coo_all_keep_f64": (COO_3D, "axis=[], dtype=None, keepdim=True", d(5), BATCH),
    "coo_first": (COO, "axis=[0], dtype=None, keepdim=False", f(5), AT_34),
    "coo_last_keep_f64": (COO, "axis=[-1], dtype=None, keepdim=True", d(5), AT_34),
    "coo_middle": (COO_3D, "axis=[1], dtype=None, keepdim=False", f(5), BATCH),
    "coo_hybrid_sparse": (HYBRID, "axis=[1], dtype=None, keepdim=False", f(5, 2), AT_34),
    "coo_hybrid_dense": (HYBRID, "axis=[2], dtype=None, keepdim=False", f(5, 2), AT_34),
    "coo_hybrid_dense_keep": (HYBRID, "axis=[-1], dtype=None, keepdim=True", f(5, 2), AT_34),
    "coo_one_sparse": ("coo(values, indices, [4, 2])", "axis=[0], dtype=None, keepdim=False", f(3, 2), AT_4),
    "coo_twice": (COO, "axis=[1], dtype=None, keepdim=False", f(5), TWICE),
    "coo_as_f64": (COO, "axis=[1], dtype=paddle.float64, keepdim=False", f(5), AT_34, None, ONLY_DYNAMIC),
    "coo_int64": (COO, "axis=[0], dtype=None, keepdim=False", i(5), AT_34),
    "csr_all": (CSR, "axis=[], dtype=None, keepdim=False", f(5), AT_34),
    "csr_all_keep": (CSR_BATCH, "axis=[], dtype=None, keepdim=True", f(5), BATCH),
    "csr_rows": (CSR, "axis=[-1], dtype=None, keepdim=False", f(5), AT_34, ""),  # its gradient is wrong
    "csr_rows_keep_f64": (CSR_EMPTY, "axis=[-1], dtype=None, keepdim=True", d(4), EMPTY_ROWS, ""),
    "csr_batch_rows_keep": (CSR_BATCH, "axis=[-1], dtype=None, keepdim=True", f(5), BATCH),
})
of_one("softmax", {
    "coo": (COO, "axis=-1", f(5), AT_34),
    "coo_first": (COO, "axis=0", f(5), AT_34),
    "coo_middle_f64": (COO_3D, "axis=1", d(6), A([[0, 0, 0, 0, 1, 1], [0, 0, 2, 2, 0, 1], [1, 3, 0, 1, 2, 2]])),
    "coo_hybrid_f64": (HYBRID, "axis=1", d(5, 2), AT_34),
    "coo_hybrid_dense": (HYBRID, "axis=2", f(5, 2), AT_34),
    "coo_zeros": (COO, "axis=-1", A([0, 1, 0, 2, 0], "float32"), AT_34),
    "csr": (CSR, "axis=-1", f(5), AT_34),
    "csr_empty_rows_f64": (CSR_EMPTY, "axis=-1", d(4), EMPTY_ROWS),
    "csr_batch": (CSR_BATCH, "axis=-1", f(5), BATCH),
})

# ---- formats -------------------------------------------------------------------------------
of_one("coalesce", {
    "twice": (COO, "", f(5), TWICE, ""),
    "hybrid_f64": ("coo(values, indices, [4, 2])", "", d(4, 2), A([[3, 1, 3, 0]]), ""),
    "ordered": (COO, "", f(5), AT_34, ""),
    "int64": (COO, "", i(5), TWICE, ""),
    "sum_of_zero": (COO, "", A([1, 2, -1, 0, 3], "float32"), TWICE, ""),
})


def one(name, tensor, values, indices, by=None, slot=None):
    return (f"sp('{name}', {tensor}, to='dense', name='out.{slot or name}')", dict(values=values, indices=indices), by)


family("to_dense", {
    "coo": one("to_dense", COO, f(5), AT_34, slot="dense"),
    "coo_hybrid_f64": one("to_dense", HYBRID, d(5, 2), AT_34, slot="dense"),
    "coo_twice": one("to_dense", COO, f(5), TWICE, slot="dense", by=""),
    "coo_int32": one("to_dense", COO, i32(5), AT_34_INT32, slot="dense"),
    "csr": (f"read({CSR})[1]", dict(values=f(5), indices=AT_34)),
    "csr_batch_f64": (f"read({CSR_BATCH})[1]", dict(values=d(5), indices=BATCH)),
})
family("values", {
    "coo": one("values", COO, f(5), AT_34),
    "coo_twice": one("values", COO, f(5), TWICE),
    "coo_hybrid_f64": one("values", HYBRID, d(5, 2), AT_34),
    "csr": one("values", CSR, f(5), AT_34, ""),
    "csr_batch_int64": one("values", CSR_BATCH, i(5), BATCH, ""),
})
ZEROS = A([[0, 1.5, 0, -2], [0, 0, 0, 0], [3, 0, -0., .5]], "float32")
ZEROS_3D = A([[[0, 1.5], [0, -2]], [[0, 0], [3, 0]], [[0, 0], [0, 0]]], "float64")
family("indices", {
    "coo": one("indices", COO, f(5), AT_34, ""),
    "coo_twice": one("indices", COO, f(5), TWICE, ""),
    "coo_int32": one("indices", COO, f(5), AT_34_INT32, ""),
    "of_dense": ("sp('indices', sp('to_sparse_coo', x, to='coo', sparse_dim=2), to='dense', name='out.indices')",
                 dict(x=ZEROS), ""),
})
for key, row in {
        "plain": (COO, f(5), AT_34),
        "twice": (COO, f(5), TWICE, ""),
        "hybrid_f64": (HYBRID, d(5, 2), AT_34),
        "int32_indices": (COO, f(5), AT_34_INT32),
        "int64_values": (COO, i(5), AT_34),
        "empty": (COO, f(0), A(np.zeros((2, 0))), "")}.items():
    family("sparse_coo_tensor", {key: (f"read({row[0]})", dict(values=row[1], indices=row[2]), *row[3:])})


def to_sparse(name, **attrs):
    to = "coo" if name == "to_sparse_coo" else "csr"
    written = "".join(f", {key}={value}" for key, value in attrs.items())
    return f"read(sp('{name}', %s, to='{to}'{written}))"


family("to_sparse_coo", {
    "dense": (to_sparse("to_sparse_coo", sparse_dim=2) % "x", dict(x=ZEROS)),
    "dense_rows": (to_sparse("to_sparse_coo", sparse_dim=1) % "x", dict(x=ZEROS)),
    "dense_3d_f64": (to_sparse("to_sparse_coo", sparse_dim=3) % "x", dict(x=ZEROS_3D)),
    "dense_hybrid_f64": (to_sparse("to_sparse_coo", sparse_dim=2) % "x", dict(x=ZEROS_3D)),
    "csr": (to_sparse("to_sparse_coo", sparse_dim=2) % CSR, dict(values=f(5), indices=AT_34)),
    "csr_batch": (to_sparse("to_sparse_coo", sparse_dim=3) % CSR_BATCH, dict(values=f(5), indices=BATCH)),
})
family("to_sparse_csr", {
    "dense": (to_sparse("to_sparse_csr") % "x", dict(x=ZEROS), ""),
    "dense_3d_f64": (to_sparse("to_sparse_csr") % "x", dict(x=ZEROS_3D), ""),
    "coo": (f"read({CSR})", dict(values=f(5), indices=AT_34)),
    "coo_empty_rows_f64": (f"read({CSR_EMPTY})", dict(values=d(4), indices=EMPTY_ROWS)),
    "coo_batch": (f"read({CSR_BATCH})", dict(values=f(5), indices=BATCH)),
})

# ---- networks of voxels ----------------------------------------------------------------------
CONV = ("read(sp('conv3d', coo(values, indices, [%s, 3, 4, 3, 2]), kernel, to='coo', paddings=%s, dilations=%s, "
        "strides=%s, groups=1, subm=%s, key='%s'))")
family("conv3d", {
    "plain": (CONV % (1, [0, 0, 0], [1, 1, 1], [1, 1, 1], False, ""),
              dict(values=f(4, 2), kernel=f(2, 2, 2, 2, 3), indices=VOXELS)),
    "padded_f64": (CONV % (1, [1, 1, 1], [1, 1, 1], [2, 2, 2], False, ""),
                   dict(values=d(4, 2), kernel=d(3, 3, 3, 2, 2), indices=VOXELS)),
    "dilated": (CONV % (1, [1, 1, 1], [2, 1, 2], [1, 2, 1], False, ""),
                dict(values=f(4, 2), kernel=f(2, 3, 2, 2, 2), indices=VOXELS)),
    "two_images": (CONV % (2, [0, 0, 0], [1, 1, 1], [1, 1, 1], False, ""),
                   dict(values=f(4, 2), kernel=f(2, 2, 2, 2, 3), indices=TWO_IMAGES)),
    "submanifold": (CONV % (1, [0, 0, 0], [1, 1, 1], [1, 1, 1], True, ""),
                    dict(values=f(4, 2), kernel=f(3, 3, 3, 2, 3), indices=VOXELS)),
    "submanifold_key_f64": (CONV % (1, [1, 1, 1], [1, 1, 1], [1, 1, 1], True, "voxels"),
                            dict(values=d(4, 2), kernel=d(3, 3, 3, 2, 3), indices=VOXELS)),
})
POOL = ("read(sp('maxpool', coo(values, indices, [%s, 3, 4, 3, 2]), kernel_sizes=%s, paddings=%s, dilations=[1, 1, 1], "
        "strides=%s))")
family("maxpool", {
    "plain": (POOL % (1, [2, 2, 2], [0, 0, 0], [1, 1, 1]), dict(values=f(4, 2), indices=VOXELS)),
    "negative": (POOL % (1, [3, 3, 3], [0, 0, 0], [1, 1, 1]), dict(values=f(4, 2, lo=-2, hi=-1), indices=VOXELS)),
    "padded_f64": (POOL % (1, [3, 3, 3], [1, 1, 1], [2, 2, 2]), dict(values=d(4, 2), indices=VOXELS)),
    "two_images": (POOL % (2, [2, 2, 2], [0, 0, 0], [1, 2, 1]), dict(values=f(4, 2), indices=TWO_IMAGES)),
})


def norm(name, test, given, trainable, read="read(made[0]) + made[1:3]"):
    return (f"[made := sp('{name}', coo(values, indices, [1, 3, 4, 3, 2]), mean, variance, scale, bias, every=True, "
            f"is_test={test}, momentum=.9, epsilon=1e-5, data_layout='NHWC', use_global_stats={given}, "
            f"trainable_statistics={trainable})] and {read}")


for name in "batch_norm", "sync_batch_norm":
    def row(make, test, given, trainable, by, read="read(made[0]) + made[1:3]"):
        more = dict(answer=norm("batch_norm", test, given, trainable, read)) if name[0] == "s" else ONLY_DYNAMIC
        return (norm(name, test, given, trainable, read),
                dict(values=make(4, 2), mean=make(2), variance=make(2, lo=.5, hi=2), scale=make(2), bias=make(2),
                     indices=VOXELS), by, more)
    family(name, {
        "train": row(f, False, False, True, "values scale bias"),
        "train_all_f64": row(d, False, False, False, "values scale bias", "read(made[0]) + made[1:5]"),
        "given": row(f, False, True, False, "values scale bias", "read(made[0])"),
        "test": row(f, True, True, False, "", "read(made[0])"),
    })

# ---- not of sparse tensors: rows of a dense one ------------------------------------------------
MOMENTUM = ("op('sparse_momentum', {'Param': param, 'Grad': grad, 'Velocity': velocity, 'Index': index, "
            "'LearningRate': rate}, 'ParamOut VelocityOut', every=True, mu=.9, %s)")
rows = dict(param=f(5, 3), grad=f(3, 3), velocity=f(5, 3), index=A([0, 3, 2]), rate=A([.1], "float32"))
family("momentum", {
    "plain": (MOMENTUM % "axis=0", rows, ""),
    "twice": (MOMENTUM % "axis=0", dict(rows, index=A([1, 4, 1])), ""),
    "nesterov": (MOMENTUM % "axis=0, use_nesterov=True", rows, ""),
    "decay": (MOMENTUM % "axis=0, regularization_method='l2_decay', regularization_coeff=.1", rows, ""),
    "rescaled": (MOMENTUM % "axis=0, rescale_grad=.5", rows, ""),
    "columns_f64": (MOMENTUM % "axis=1", dict(param=d(2, 5), grad=d(2, 3), velocity=d(2, 5),
                                              index=A([1, 4, 0], "int32"), rate=A([.1], "float64")), ""),
})


if __name__ == "__main__":
    op_goldens.CASES, op_goldens.make = CASES, make  # main() reads them
    sys.exit(op_goldens.main(sys.argv[1:]))

# SPDX-License-Identifier: Apache-2.0
"""The table of testdata/make/op_goldens.py: CASES[family][case] is a row.

(expression or function, inputs[, inputs to differentiate by[, tolerances]])
"""
import os

import numpy as np
from PIL import Image


class In:
    """One input: how to make it, its sequences, its extents unknown before."""

    def __init__(self, make, lod=None, unknown=()):
        self.make, self.lod, self.unknown = make, lod, unknown


def of(dtype, lo, hi):
    """Uniform numbers of a type, by shape."""
    def inputs(*shape, lo=lo, hi=hi, lod=None, unknown=()):
        def make(rng):
            if dtype.startswith("complex"):
                both = rng.uniform(lo, hi, (2,) + shape)
                return np.asarray(both[0] + 1j * both[1]).astype(dtype)
            return np.asarray(rng.uniform(lo, hi, shape)).astype(dtype)
        return In(make, lod, unknown)
    return inputs


f, d, h = of("float32", -1, 1), of("float64", -1, 1), of("float16", -1, 1)
c64, c128 = of("complex64", -1, 1), of("complex128", -1, 1)
i, i32, i16 = of("int64", -9, 10), of("int32", -9, 10), of("int16", -9, 10)
i8, u8, b = of("int8", -9, 10), of("uint8", 0, 10), of("bool", 0, 1.99)


def A(values, dtype="int64"):
    return In(lambda rng: np.array(values, dtype))


# PaddlePaddle computes some factors in float32 whatever the type.
FLOAT_FACTOR = dict(rtol=1e-6, atol=1e-7)


def apart(*shape, dtype="float32"):
    """Values with no ties, in random order."""
    n = int(np.prod(shape))
    return In(lambda rng: ((rng.permutation(n) - n / 2.3) / 4).reshape(shape).astype(dtype))


CASES = {}


def family(name, rows=None):
    return CASES.setdefault(name, rows if rows is not None else {})


# ---- elementwise -----------------------------------------------------------
def row_of(name, axis=-1):
    return f"op('elementwise_{name}', {{'X': x, 'Y': y}}, axis={axis})"


for name in "add sub mul div max min pow".split():
    positive = dict(lo=.5, hi=2) if name in ("div", "pow") else {}
    # The gradient of these refuses another axis.
    by = "" if name in ("max", "min", "pow") else None
    family("elementwise_" + name, {
        "axis_middle": (row_of(name, 1), dict(x=f(2, 3, 4, 5, **positive), y=f(3, 4, **positive)), by),
        "axis_0": (row_of(name, 0), dict(x=f(3, 4, **positive), y=f(3, **positive)), by),
        "axis_trailing_one": (row_of(name, 0), dict(x=f(3, 4, **positive), y=f(3, 1, **positive))),
        "both_ways_f64": (row_of(name), dict(x=d(3, 1, 4, **positive), y=d(2, 1, **positive))),
        "x_smaller": (row_of(name), dict(x=f(4, **positive), y=f(2, 3, 4, **positive))),
        "zero_rank": (row_of(name), dict(x=f(**positive), y=f(**positive))),
        "zero_rank_y": (row_of(name), dict(x=d(2, 3, **positive), y=d(**positive))),
        "zero_rank_x": (row_of(name), dict(x=f(**positive), y=f(2, 3, **positive))),
        "ones": (row_of(name), dict(x=f(1, 1, **positive), y=f(2, 1, 1, **positive))),
        "int64": (row_of(name), dict(x=i(3, 4), y=i(4, lo=1, hi=5))),
        "int32": (row_of(name), dict(x=i32(3, 1), y=i32(2, 1, 4, lo=1, hi=5))),
        "unknown": (row_of(name), dict(x=f(2, 3, **positive, unknown=(0,)), y=f(3, **positive))),
    })
family("elementwise_add", {}).update({
    "complex": ("paddle.add(x, y)", dict(x=c64(2, 3), y=c64(3))),
    "int16": (row_of("add"), dict(x=i16(2, 3), y=i16(3))),
    "bool_as_numbers": ("paddle.add(paddle.cast(x, 'int32'), paddle.cast(y, 'int32'))", dict(x=b(5), y=b(5))),
    "same_twice": ("paddle.add(x, x)", dict(x=f(3))),
    "with_python_number": ("[x + 2, 2 - x, x * 3., 1 / x, x // 2, x ** 2]", dict(x=f(3, lo=1, hi=2)), ""),
    "int_with_python_number": ("[x + 2, 2 - x, x * 3, x // 2, x % 4]", dict(x=i(7))),
})
family("elementwise_mul", {}).update({
    "complex": ("paddle.multiply(x, y)", dict(x=c128(2, 3), y=c128(2, 1))),
    "bool": ("paddle.multiply(x, y)", dict(x=b(4), y=b(4))),
    "square": ("x * x * x", dict(x=d(3))),
})
family("integer_division", {
    "floor_divide_int64": ("paddle.floor_divide(x, y)", dict(x=A([7, -7, 7, -7, 0]), y=A([2, 2, -2, -2, 3]))),
    "floor_divide_int32": ("paddle.floor_divide(x, y)", dict(x=i32(2, 4), y=i32(1, lo=2, hi=4))),
    "mod_int64": ("paddle.mod(x, y)", dict(x=A([7, -7, 7, -7, 0]), y=A([3, 3, -3, -3, 3]))),
    "mod_f32": ("paddle.mod(x, y)", dict(x=f(2, 5, lo=-9, hi=9), y=A([2, -2, 1.5, -.75, 4], "float32")), ""),
    "mod_f64": ("paddle.mod(x, y)", dict(x=d(2, 5, lo=-9, hi=9), y=A([2, -2, 1.5, -.75, 4], "float64")), ""),
    "divide_int32": ("paddle.divide(x, y)", dict(x=A([7, -7, 7, -7], "int32"), y=A([2, 2, -2, -2], "int32"))),
})
family("elementwise_special", {
    "max_ties": ("paddle.maximum(x, y)", dict(x=A([1, 2, 3, 0], "float32"), y=A([1, 3, 2, 0], "float32"))),
    "min_ties": ("paddle.minimum(x, y)", dict(x=A([1, 2, 3, 0], "float64"), y=A([1, 3, 2, 0], "float64"))),
    "max_nan": ("[paddle.maximum(x, y), paddle.minimum(x, y)]",
                dict(x=A([1, np.nan, np.inf, -np.inf], "float32"), y=A([np.nan, 1, 0, 0], "float32")), ""),
    "fmax_nan": ("[paddle.fmax(x, y), paddle.fmin(x, y)]",
                 dict(x=A([1, np.nan, np.inf, -np.inf], "float32"), y=A([np.nan, 1, 0, 0], "float32")), ""),
    "fmax_grad_broadcast": ("paddle.fmax(x, y)", dict(x=d(2, 3), y=d(3))),
    "div_by_zero": ("paddle.divide(x, y)", dict(x=A([1, -1, 0], "float32"), y=A([0, 0, 0], "float32")), ""),
    "pow_negative_base": ("paddle.pow(x, y)", dict(x=A([-2, -2, -2, 0], "float32"), y=A([2, 3, .5, 0], "float32")), ""),
    "pow_int": ("paddle.pow(x, 3)", dict(x=i(4))),
    "pow_number_f64": ("paddle.pow(x, 2.5)", dict(x=d(4, lo=.2, hi=2))),
    "atan2_f64": ("paddle.atan2(x, y)", dict(x=d(2, 3), y=d(2, 3))),
})

# ---- comparisons and logic -------------------------------------------------
for name in "equal not_equal less_than less_equal greater_than greater_equal".split():
    family("compare", {}).update({
        name + "_int": ("paddle.%s(x, y)" % name, dict(x=i(3, 4, lo=0, hi=3), y=i(4, lo=0, hi=3))),
        name + "_f64_both_ways": ("paddle.%s(x, y)" % name, dict(x=d(3, 1), y=d(2, 1, 4)), ""),
        name + "_zero_rank": ("paddle.%s(x, y)" % name, dict(x=f(), y=f(3)), ""),
        name + "_nan": ("paddle.%s(x, x)" % name, dict(x=A([1, np.nan, np.inf], "float32")), ""),
    })
family("compare", {}).update({
    "equal_bool": ("paddle.equal(x, y)", dict(x=b(6), y=b(6))),
    "less_than_int32": ("paddle.less_than(x, y)", dict(x=i32(5), y=i32(2, 5))),
    "equal_empty": ("paddle.equal(x, y)", dict(x=f(0, 3), y=f(0, 3)), ""),
})
for name in "and or xor".split():
    family("logic", {}).update({
        name + "_broadcast": ("paddle.logical_%s(x, y)" % name, dict(x=b(3, 1), y=b(4))),
        name + "_ints": ("paddle.logical_%s(x, y)" % name, dict(x=i(5, lo=0, hi=2), y=i(5, lo=0, hi=2))),
        name + "_floats": ("paddle.logical_%s(x, y)" % name, dict(x=A([0, .5, -1], "float32"), y=A([0, 0, 2], "float32")), ""),
        "bits_%s_uint8" % name: ("paddle.bitwise_%s(x, y)" % name, dict(x=u8(2, 3), y=u8(3))),
        "bits_%s_int64" % name: ("paddle.bitwise_%s(x, y)" % name, dict(x=i(2, 3), y=i(2, 1))),
        "bits_%s_bool" % name: ("paddle.bitwise_%s(x, y)" % name, dict(x=b(4), y=b(4))),
    })
family("logic", {}).update({
    "not_int8": ("[paddle.bitwise_not(x), paddle.logical_not(x)]", dict(x=i8(5))),
    "not_zero_rank": ("paddle.logical_not(x)", dict(x=b())),
})

# ---- reductions ------------------------------------------------------------
for name in "sum mean max min prod logsumexp amax amin".split():
    family("reduce_" + name, {
        "last_keep_f64": ("paddle.%s(x, -1, keepdim=True)" % name, dict(x=d(2, 3, 4))),
        "outer_and_last": ("paddle.%s(x, [0, -1])" % name, dict(x=f(2, 3, 4))),
        "unordered": ("paddle.%s(x, [2, 0])" % name, dict(x=f(2, 3, 4, 2))),
        "middle": ("paddle.%s(x, 1)" % name, dict(x=f(2, 3, 4))),
        "all_keep": ("paddle.%s(x, keepdim=True)" % name, dict(x=f(2, 3))),
        "all_axes_named": ("paddle.%s(x, [0, 1])" % name, dict(x=d(2, 3))),
        "zero_rank": ("paddle.%s(x)" % name, dict(x=f())),
        "one_element": ("paddle.%s(x, 0)" % name, dict(x=f(1))),
        "unknown": ("paddle.%s(x, 1)" % name, dict(x=f(2, 3, 4, unknown=(0, 2)))),
    })
for name in "sum max min prod".split():
    family("reduce_" + name, {}).update({
        "int64": ("paddle.%s(x, -2)" % name, dict(x=i(3, 4))),
        "int32": ("paddle.%s(x, [0, 1], keepdim=True)" % name, dict(x=i32(3, 2, 2))),
    })
family("reduce_sum", {}).update({
    "bool": ("paddle.sum(x, 1)", dict(x=b(3, 4))),
    "as_f64": ("paddle.sum(x, 1, dtype='float64')", dict(x=f(3, 4))),
    "int_as_float": ("paddle.sum(x, dtype='float32')", dict(x=i32(3, 4))),
    "empty_list": ("paddle.sum(x, [])", dict(x=f(2, 3))),
    "reduce_all": ("op('reduce_sum', {'X': x}, dim=[0], reduce_all=True, keep_dim=True)", dict(x=f(2, 3))),
    "complex": ("paddle.sum(x, 0)", dict(x=c64(3, 2))),
})
family("reduce_max", {}).update({"ties": ("[paddle.max(x, 1), paddle.min(x, 1)]", dict(x=A([[1, 2, 2], [0, 0, 0]], "float32")))})
family("reduce_amax", {}).update({"ties": ("[paddle.amax(x, 1), paddle.amin(x, 1)]", dict(x=A([[1, 2, 2], [0, 0, 1]], "float32")))})
family("reduce_prod", {}).update({"zeros": ("paddle.prod(x, 1)", dict(x=A([[1, 2, 3], [0, 2, 3], [0, 0, 4]], "float32")), "")})
for name in "all any".split():
    family("reduce_logic", {}).update({
        name: ("paddle.%s(x)" % name, dict(x=b(2, 3))),
        name + "_axes": ("paddle.%s(x, [0, -1], keepdim=True)" % name, dict(x=b(2, 3, 2))),
        name + "_zero_rank": ("paddle.%s(x)" % name, dict(x=b())),
    })
family("statistics", {
    "var": ("[paddle.var(x, 1), paddle.std(x, [0, 1], unbiased=False, keepdim=True)]", dict(x=d(3, 4))),
    "median": ("[paddle.median(x, 1), paddle.median(x)]", dict(x=apart(3, 5)), ""),
    "mean_op": ("op('mean', {'X': x})", dict(x=d(3, 4))),
    "numel": ("[paddle.numel(x), paddle.shape(x)]", dict(x=f(3, 0, 2)), ""),
    "count_nonzero": ("paddle.count_nonzero(x, [0], keepdim=True)", dict(x=i(3, 4, lo=0, hi=2))),
})
for p in ("0", "1", "2", "3.5", "float('inf')", "-float('inf')"):
    key = {"float('inf')": "inf", "-float('inf')": "minus_inf"}.get(p, p.replace(".", "_"))
    family("norm", {}).update({
        "p%s" % key: ("paddle.norm(x, p=%s, axis=1)" % p, dict(x=apart(2, 4, dtype="float64")), "x" if p != "0" else "", FLOAT_FACTOR),
        "p%s_keep" % key: ("paddle.norm(x, p=%s, axis=-2, keepdim=True)" % p, dict(x=apart(2, 3, 2)), "x" if p != "0" else ""),
    })
family("norm", {}).update({
    "whole": ("paddle.norm(x)", dict(x=f(2, 3))),
    "frobenius_axes": ("paddle.norm(x, 'fro', [0, 2])", dict(x=d(2, 3, 2))),
    "normalize": ("F.normalize(x, p=3, axis=0)", dict(x=f(3, 4, lo=.2))),
    "clip_by_norm": ("op('clip_by_norm', {'X': x}, max_norm=.5)", dict(x=f(3, 4)), ""),
    "cosine_similarity": ("F.cosine_similarity(x, y, axis=-1)", dict(x=f(2, 3, 4), y=f(3, 4))),
})

# ---- products --------------------------------------------------------------
product = "paddle.matmul(x, y%s)"
family("matmul_v2", {
    "vectors": (product % "", dict(x=f(4), y=f(4))),
    "vector_matrix": (product % "", dict(x=f(4), y=f(4, 3))),
    "matrix_vector": (product % "", dict(x=d(3, 4), y=d(4))),
    "vector_batch": (product % "", dict(x=f(4), y=f(2, 4, 3))),
    "batch_vector": (product % "", dict(x=f(2, 3, 4), y=f(4))),
    "vector_batch_transposed": (product % ", transpose_y=True", dict(x=f(4), y=f(2, 3, 4))),
    "batch_vector_transposed": (product % ", transpose_x=True", dict(x=f(2, 4, 3), y=f(4))),
    "vectors_transposed": (product % ", True, True", dict(x=f(4), y=f(4))),
    "both_transposed": (product % ", True, True", dict(x=d(2, 4, 3), y=d(2, 5, 4))),
    "broadcast": (product % "", dict(x=f(2, 1, 3, 4), y=f(2, 5, 4, 2))),
    "broadcast_transposed": (product % ", True, True", dict(x=f(1, 2, 4, 3), y=f(3, 1, 5, 4))),
    "matrix_batch": (product % "", dict(x=f(3, 4), y=f(2, 2, 4, 2))),
    "batch_matrix": (product % ", transpose_y=True", dict(x=f(2, 2, 3, 4), y=f(5, 4))),
    "ones": (product % "", dict(x=f(1, 1), y=f(1, 1))),
    "complex": (product % "", dict(x=c64(2, 3), y=c64(3, 2))),
    "unknown": (product % "", dict(x=f(2, 3, 4, unknown=(0, 1)), y=f(4, 2))),
})
family("products", {
    "mul_columns": ("op('mul', {'X': x, 'Y': y}, x_num_col_dims=2, y_num_col_dims=1)", dict(x=d(2, 3, 4), y=d(4, 2))),
    "mul_folded": ("op('mul', {'X': x, 'Y': y}, x_num_col_dims=1, y_num_col_dims=2)", dict(x=f(3, 2, 2), y=f(2, 2, 3))),
    "matmul_alpha": ("op('matmul', {'X': x, 'Y': y}, transpose_X=True, transpose_Y=False, alpha=-.5)", dict(x=f(4, 2), y=f(4, 3))),
    "bmm_f64": ("paddle.bmm(x, y)", dict(x=d(2, 3, 4), y=d(2, 4, 1))),
    "dot": ("[paddle.dot(x, y), paddle.dot(u, v)]", dict(x=d(4), y=d(4), u=d(2, 3), v=d(2, 3))),
    "mv": ("paddle.mv(x, y)", dict(x=d(3, 4), y=d(4))),
    "addmm": ("paddle.addmm(z, x, y, beta=.5, alpha=-2.)", dict(z=f(1, 3), x=f(2, 4), y=f(4, 3))),
    "outer_inner": ("[paddle.outer(x, y), paddle.inner(u, v)]", dict(x=f(3), y=f(2), u=f(2, 3), v=f(4, 3))),
    "kron": ("paddle.kron(x, y)", dict(x=f(2, 2), y=f(3, 1))),
    "einsum": ("paddle.einsum('bij,bkj->bik', x, y)", dict(x=f(2, 3, 4), y=f(2, 5, 4))),
    "einsum_diagonal": ("paddle.einsum('ij,j->', x, y)", dict(x=d(3, 4), y=d(4))),
    "linear": ("F.linear(x, w, v)", dict(x=f(2, 3, 4), w=f(4, 5), v=f(5))),
    "linear_f64_no_bias": ("F.linear(x, w)", dict(x=d(4), w=d(4, 5))),
})

# ---- convolutions ----------------------------------------------------------
conv = "F.conv2d(x, w%s)"
tight = dict(rtol=1e-4, atol=1e-5)
family("conv2d", {
    "f64": (conv % ", stride=2, padding=1", dict(x=d(2, 3, 7, 6), w=d(4, 3, 3, 3))),
    "uneven_pads": (conv % ", padding=[1, 2, 0, 1]", dict(x=f(1, 2, 5, 6), w=f(3, 2, 3, 2)), None, tight),
    "pads_by_axis": (conv % ", padding=[[0, 0], [0, 0], [2, 1], [0, 3]]", dict(x=f(1, 2, 5, 6), w=f(3, 2, 3, 2)), None, tight),
    "same_strided": (conv % ", padding='SAME', stride=2", dict(x=f(2, 2, 7, 8), w=f(3, 2, 3, 4)), None, tight),
    "same_ignores_dilation": (conv % ", padding='SAME', dilation=2", dict(x=f(1, 2, 7, 8), w=f(3, 2, 3, 3)), None, tight),
    "valid": (conv % ", padding='VALID', stride=[2, 1]", dict(x=f(1, 2, 7, 5), w=f(3, 2, 2, 3)), None, tight),
    "dilated": (conv % ", dilation=[2, 3], padding=2", dict(x=f(1, 2, 9, 9), w=f(2, 2, 3, 3)), None, tight),
    "groups": (conv % ", groups=2, padding=1", dict(x=f(2, 4, 5, 5), w=f(6, 2, 3, 3)), None, tight),
    "nhwc": (conv % ", padding=[1, 0], stride=2, data_format='NHWC'", dict(x=f(2, 6, 5, 3), w=f(4, 3, 3, 2)), None, tight),
    "nhwc_groups_f64": (conv % ", groups=3, data_format='NHWC'", dict(x=d(1, 4, 5, 3), w=d(6, 1, 3, 3))),
    "pointwise": (conv % "", dict(x=f(2, 3, 4, 4), w=f(5, 3, 1, 1)), None, tight),
    "bias": ("F.conv2d(x, w, v, padding=1)", dict(x=f(2, 3, 4, 4), w=f(5, 3, 3, 3), v=f(5)), None, tight),
    "kernel_is_image": (conv % "", dict(x=f(2, 3, 3, 4), w=f(2, 3, 3, 4)), None, tight),
    "stride_beyond_kernel": (conv % ", stride=3", dict(x=f(1, 1, 8, 7), w=f(1, 1, 2, 1)), None, tight),
    "unknown_extents": (conv % ", padding=1", dict(x=f(2, 3, 5, 4, unknown=(0, 2, 3)), w=f(2, 3, 3, 3)), None, tight),
    "depthwise": (conv % ", groups=3, padding=1", dict(x=f(2, 3, 5, 5), w=f(3, 1, 3, 3)), None, tight),
    "depthwise_twofold": (conv % ", groups=3, stride=2", dict(x=f(2, 3, 5, 6), w=f(6, 1, 3, 2)), None, tight),
    "depthwise_f64_dilated": (conv % ", groups=2, dilation=2, padding=2", dict(x=d(1, 2, 6, 6), w=d(2, 1, 3, 3))),
})
# What is only run: passes make one op of it.
family("conv_chain", {
    "bias": ("F.conv2d(x, w, v, padding=1)", dict(x=f(2, 4, 5, 6), w=f(8, 4, 3, 3), v=f(8)), "", tight),
    "bias_relu": ("F.relu(F.conv2d(x, w, v, stride=2))", dict(x=f(2, 4, 7, 6), w=f(8, 4, 3, 2), v=f(8)), "", tight),
    "bias_relu6": ("F.relu6(F.conv2d(x, w, v, padding=1) * 4)", dict(x=f(2, 4, 5, 6), w=f(8, 4, 3, 3), v=f(8)), "", tight),
    "shortcut": ("F.relu(F.conv2d(x, w, v, padding=1) + r)", dict(x=f(2, 4, 5, 6), w=f(8, 4, 3, 3), v=f(8), r=f(2, 8, 5, 6)), "", tight),
    "shortcut_nhwc": ("F.relu(r + F.conv2d(x, w, v, padding=[1, 0], data_format='NHWC'))",
                      dict(x=f(2, 5, 6, 4), w=f(8, 4, 3, 1), v=f(8), r=f(2, 5, 6, 8)), "", tight),
    "groups_relu6": ("F.relu6(F.conv2d(x, w, v, groups=2, padding=1))", dict(x=f(2, 4, 5, 6), w=f(8, 2, 3, 3), v=f(8)), "", tight),
    "depthwise_relu": ("F.relu(F.conv2d(x, w, v, groups=4, padding=1))", dict(x=f(2, 4, 5, 6), w=f(4, 1, 3, 3), v=f(4)), "", tight),
})
family("conv_nd", {
    "conv1d": ("F.conv1d(x, w, v, stride=2, padding=[1, 2], dilation=2)", dict(x=f(2, 3, 9), w=f(4, 3, 3), v=f(4)), None, tight),
    "conv1d_nlc": ("F.conv1d(x, w, data_format='NLC', padding='SAME')", dict(x=f(2, 9, 3), w=f(4, 3, 4)), None, tight),
    "conv3d_groups": ("F.conv3d(x, w, groups=2, padding=[1, 0, 1])", dict(x=d(1, 4, 3, 4, 3), w=d(2, 2, 2, 3, 2))),
    "conv3d_same": ("F.conv3d(x, w, padding='SAME', stride=2)", dict(x=f(1, 2, 4, 5, 3), w=f(3, 2, 3, 2, 3)), None, tight),
    "conv3d_ndhwc": ("F.conv3d(x, w, data_format='NDHWC')", dict(x=f(1, 3, 4, 3, 2), w=f(3, 2, 2, 2, 2)), None, tight),
})
back = "F.conv2d_transpose(x, w%s)"
family("conv_transpose", {
    "strided_f64": (back % ", stride=2, padding=1", dict(x=d(2, 3, 4, 3), w=d(3, 2, 3, 3))),
    "output_padding": (back % ", stride=3, output_padding=[2, 1]", dict(x=f(1, 2, 3, 3), w=f(2, 2, 2, 3)), None, tight),
    "output_size": (back % ", stride=2, output_size=[8, 7]", dict(x=f(1, 2, 3, 3), w=f(2, 2, 3, 3)), None, tight),
    "groups": (back % ", groups=2", dict(x=f(1, 4, 3, 3), w=f(4, 3, 2, 2)), None, tight),
    "dilated": (back % ", dilation=2, padding=[1, 0]", dict(x=f(1, 2, 4, 4), w=f(2, 3, 3, 2)), None, tight),
    "nhwc": (back % ", stride=2, data_format='NHWC'", dict(x=f(1, 3, 4, 2), w=f(2, 3, 3, 3)), None, tight),
    "same": (back % ", stride=2, padding='SAME'", dict(x=f(1, 2, 4, 4), w=f(2, 3, 3, 3)), None, tight),
    "uneven_pads": (back % ", padding=[1, 0, 2, 1]", dict(x=f(1, 2, 4, 4), w=f(2, 3, 3, 3)), None, tight),
    "depthwise": (back % ", groups=3, stride=2", dict(x=f(2, 3, 3, 4), w=f(3, 1, 3, 3)), None, tight),
    "one_d": ("F.conv1d_transpose(x, w, stride=2, output_padding=1)", dict(x=f(2, 3, 5), w=f(3, 2, 3)), None, tight),
    "three_d": ("F.conv3d_transpose(x, w, stride=2, padding=1)", dict(x=f(1, 2, 3, 2, 3), w=f(2, 2, 3, 3, 2)), None, tight),
})

# ---- pooling ---------------------------------------------------------------
for name in "max avg".split():
    pool = "F.%s_pool2d(x, %%s)" % name
    family("pool2d", {}).update({
        name + "_f64": (pool % "3, 2, 1", dict(x=d(2, 2, 7, 6)), None, FLOAT_FACTOR),
        name + "_ceil": (pool % "3, 2, 1, ceil_mode=True", dict(x=f(1, 2, 6, 8))),
        name + "_ceil_no_pad": (pool % "2, 2, ceil_mode=True", dict(x=f(1, 2, 5, 7))),
        name + "_rectangle": (pool % "[2, 3], [1, 2], [0, 1]", dict(x=f(1, 2, 6, 8))),
        name + "_uneven_pads": (pool % "3, 2, [1, 0, 0, 1]", dict(x=f(1, 2, 6, 7))),
        name + "_same": (pool % "3, 2, 'SAME'", dict(x=f(1, 2, 6, 7))),
        name + "_valid": (pool % "3, 2, 'VALID'", dict(x=f(1, 2, 6, 7))),
        name + "_overlap": (pool % "3, 1, 1", dict(x=f(1, 1, 4, 4))),
        name + "_nhwc": (pool % "2, 2, 1, data_format='NHWC'", dict(x=f(2, 5, 4, 3))),
        name + "_negative": (pool % "3, 3, 1", dict(x=f(1, 1, 5, 5, lo=-9, hi=-8))),
        name + "_adaptive": ("F.adaptive_%s_pool2d(x, [3, 2])" % name, dict(x=f(2, 2, 7, 5))),
        name + "_adaptive_larger": ("F.adaptive_%s_pool2d(x, 5)" % name, dict(x=d(1, 2, 3, 4)), None, FLOAT_FACTOR),
        name + "_adaptive_keep": ("F.adaptive_%s_pool2d(x, [None, 2])" % name, dict(x=f(1, 2, 3, 4))),
        name + "_global": ("op('pool2d', {'X': x}, pooling_type='%s', ksize=[1, 1], global_pooling=True)" % name, dict(x=f(2, 3, 4, 5))),
    })
family("pool2d", {}).update({
    "avg_inclusive": ("F.avg_pool2d(x, 3, 2, 1, exclusive=False)", dict(x=f(1, 2, 7, 6))),
    "avg_inclusive_ceil": ("F.avg_pool2d(x, 3, 2, 1, ceil_mode=True, exclusive=False)", dict(x=f(1, 2, 6, 8))),
    "avg_divisor": ("F.avg_pool2d(x, 2, 2, divisor_override=3)", dict(x=f(1, 2, 4, 4))),
    "max_mask": ("F.max_pool2d(x, 3, 2, 1, return_mask=True)", dict(x=apart(1, 2, 5, 6))),
    "max_adaptive_mask": ("F.adaptive_max_pool2d(x, 3, return_mask=True)", dict(x=apart(1, 2, 5, 6))),
    "unpool": ("F.max_unpool2d(*F.max_pool2d(x, 2, 2, return_mask=True), 2, 2)", dict(x=apart(1, 2, 4, 6))),
    "one_d": ("[F.max_pool1d(x, 3, 2, 1), F.avg_pool1d(x, 2, 2), F.adaptive_avg_pool1d(x, 3)]", dict(x=f(2, 2, 7))),
    "three_d": ("[F.max_pool3d(x, 2, 2, 1), F.avg_pool3d(x, 3, 2, 1, ceil_mode=True)]", dict(x=f(1, 2, 4, 5, 4))),
    "three_d_adaptive": ("F.adaptive_avg_pool3d(x, [2, 3, 1])", dict(x=d(1, 2, 4, 5, 4)), None, FLOAT_FACTOR),
    "three_d_ndhwc": ("F.avg_pool3d(x, 2, 2, data_format='NDHWC')", dict(x=f(1, 4, 2, 4, 3))),
    "ties": ("F.max_pool2d(x, 2, 1)", dict(x=A([[[[1, 1, 1], [1, 1, 1], [1, 1, 1]]]], "float32"))),
})

# ---- normalisation ---------------------------------------------------------
norm = dict(rtol=1e-3, atol=1e-4)
bn = "[F.batch_norm(x, m, v, w, s%s), m, v]"


def stats(make, n):
    return dict(m=make(n), v=make(n, lo=.5, hi=2), w=make(n), s=make(n))


family("batch_norm", {
    "train_f64": (bn % ", training=True, momentum=.7", dict(x=d(4, 3, 2, 2), **stats(d, 3)), "x w s", dict(rtol=1e-6, atol=1e-7)),
    "train_rank2": (bn % ", training=True", dict(x=f(6, 3), **stats(f, 3)), "x w s", norm),
    "train_rank3_nlc": (bn % ", training=True, data_format='NLC'", dict(x=f(3, 4, 2), **stats(f, 2)), "x w s", norm),
    "train_nhwc": (bn % ", training=True, data_format='NHWC', epsilon=1e-3", dict(x=f(2, 3, 4, 5), **stats(f, 5)), "x w s", norm),
    "train_rank5": (bn % ", training=True", dict(x=f(2, 3, 2, 3, 2), **stats(f, 3)), "x w s", norm),
    "frozen_f64": (bn % ", training=False", dict(x=d(4, 3, 2, 2), **stats(d, 3)), "x w s", dict(rtol=1e-6, atol=1e-7)),
    "global_in_training": (bn % ", training=True, use_global_stats=True", dict(x=f(4, 3, 2), **stats(f, 3)), "x w s", norm),
    "x_only": (bn % ", training=True", dict(x=f(4, 3, 2), **stats(f, 3)), "x", norm),
    "weights_only": (bn % ", training=True", dict(x=f(4, 3, 2), **stats(f, 3)), "w s", norm),
})
family("layer_norm", {
    "f64_two_axes": ("F.layer_norm(x, [3, 4], w, s)", dict(x=d(2, 3, 4), w=d(12), s=d(12)), None, dict(rtol=1e-7, atol=1e-8)),
    "bare": ("F.layer_norm(x, 4)", dict(x=f(2, 3, 4)), None, norm),
    "no_bias": ("F.layer_norm(x, 4, w)", dict(x=f(2, 3, 4), w=f(4)), None, norm),
    "no_scale": ("F.layer_norm(x, 4, None, s, epsilon=1e-3)", dict(x=f(2, 3, 4), s=f(4)), None, norm),
    "first_axis": ("op('layer_norm', {'X': x, 'Scale': w, 'Bias': s}, 'Y Mean Variance', begin_norm_axis=2, epsilon=1e-4)",
                   dict(x=f(2, 3, 2, 2), w=f(4), s=f(4)), None, norm),
    "wide": ("F.layer_norm(x, 33, w, s)", dict(x=f(3, 33), w=f(33), s=f(33)), None, norm),
    "scale_only_grad": ("F.layer_norm(x, 4, w, s)", dict(x=f(2, 4), w=f(4), s=f(4)), "w s", norm),
})
family("other_norms", {
    "instance": ("F.instance_norm(x, weight=w, bias=s)", dict(x=f(2, 3, 4, 3), w=f(3), s=f(3)), None, norm),
    "instance_bare_rank3": ("F.instance_norm(x)", dict(x=f(2, 3, 5)), None, norm),
    "instance_f64": ("F.instance_norm(x, weight=w, bias=s)", dict(x=d(2, 3, 2, 2, 2), w=d(3), s=d(3)), None, dict(rtol=1e-6, atol=1e-7)),
    "group": ("op('group_norm', {'X': x, 'Scale': w, 'Bias': s}, 'Y Mean Variance', groups=2, epsilon=1e-5)",
              dict(x=f(2, 4, 3, 3), w=f(4), s=f(4)), None, norm),
    "group_nhwc": ("op('group_norm', {'X': x, 'Scale': w, 'Bias': s}, 'Y Mean Variance', groups=3, epsilon=1e-3, data_layout='NHWC')",
                   dict(x=f(2, 3, 2, 6), w=f(6), s=f(6)), None, norm),
    "group_f64_bare": ("op('group_norm', {'X': x}, 'Y Mean Variance', groups=1, epsilon=1e-5)", dict(x=d(2, 4, 5)), "", dict(rtol=1e-6, atol=1e-7)),
    "lrn": ("F.local_response_norm(x, 3, alpha=.1, beta=.6, k=2.)", dict(x=f(2, 5, 3, 2))),
})

# ---- softmax and losses ----------------------------------------------------
for name in "softmax log_softmax".split():
    family("softmax", {}).update({
        name + "_f64_first": ("F.%s(x, 0)" % name, dict(x=d(3, 4))),
        name + "_middle": ("F.%s(x, -2)" % name, dict(x=f(2, 3, 4))),
        name + "_large": ("F.%s(x, -1)" % name, dict(x=f(2, 5, lo=-80, hi=80))),
        name + "_one": ("F.%s(x, -1)" % name, dict(x=f(3, 1))),
        name + "_zero_rank": ("F.%s(x)" % name, dict(x=f())),
        name + "_as_f64": ("F.%s(x, dtype='float64')" % name, dict(x=f(2, 3))),
        name + "_unknown": ("F.%s(x, 1)" % name, dict(x=f(2, 3, 4, unknown=(0, 1)))),
    })
ce = "F.cross_entropy(x, y%s)"
family("cross_entropy", {
    "f64": (ce % "", dict(x=d(4, 3), y=i(4, lo=0, hi=3))),
    "column_labels": (ce % ", reduction='none'", dict(x=f(4, 3), y=i(4, 1, lo=0, hi=3))),
    "int32_labels": (ce % ", reduction='sum'", dict(x=f(4, 3), y=i32(4, lo=0, hi=3))),
    "ignore": (ce % ", ignore_index=1", dict(x=f(6, 3), y=A([0, 1, 2, 1, 0, 2]))),
    "ignore_minus_100": (ce % "", dict(x=f(4, 3), y=A([0, -100, 2, -100]))),
    "weights": (ce % ", w", dict(x=f(4, 3), y=i(4, lo=0, hi=3), w=f(3, lo=.2, hi=2)), "x"),
    "weights_none_ignored": (ce % ", w, 2, 'none'", dict(x=f(5, 3), y=A([0, 2, 1, 2, 0]), w=f(3, lo=.2, hi=2)), "x"),
    "soft": (ce % ", soft_label=True", dict(x=f(4, 3), y=f(4, 3, lo=.1, hi=.9)), "x"),
    "soft_f64_axis1": (ce % ", soft_label=True, axis=1, reduction='none'", dict(x=d(2, 3, 4), y=d(2, 3, 4, lo=.1, hi=.9)), "x"),
    "axis1_image": (ce % ", axis=1, ignore_index=2", dict(x=f(2, 3, 2, 3), y=i(2, 2, 3, lo=0, hi=3))),
    "smoothing": (ce % ", label_smoothing=.2", dict(x=f(4, 3), y=i(4, lo=0, hi=3))),
    "probabilities": (ce % ", use_softmax=False", dict(x=f(4, 3, lo=.1, hi=.9), y=i(4, lo=0, hi=3))),
    "probabilities_soft": (ce % ", use_softmax=False, soft_label=True", dict(x=f(4, 3, lo=.1, hi=.9), y=f(4, 3, lo=.1, hi=.9)), "x"),
    "with_softmax": ("F.softmax_with_cross_entropy(x, y, return_softmax=True)", dict(x=f(4, 3), y=i(4, 1, lo=0, hi=3))),
    "large": (ce % ", reduction='none'", dict(x=f(4, 3, lo=-90, hi=90), y=i(4, lo=0, hi=3)), None, dict(rtol=1e-5, atol=1e-5)),
    "unknown": (ce % "", dict(x=f(4, 3, unknown=(0,)), y=In(lambda rng: rng.randint(0, 3, 4), unknown=(0,)))),
    "legacy": ("op('cross_entropy', {'X': x, 'Label': y}, 'Y', ignore_index=1)", dict(x=f(4, 3, lo=.1, hi=.9), y=A([[0], [1], [2], [1]]))),
    "legacy_soft": ("op('cross_entropy', {'X': x, 'Label': y}, 'Y', soft_label=True)", dict(x=d(4, 3, lo=.1, hi=.9), y=d(4, 3, lo=.1, hi=.9)), "x"),
})
for reduction in "none mean sum".split():
    end = ", reduction='%s')" % reduction
    pair = dict(x=f(3, 4, lo=.1, hi=.9), y=f(3, 4, lo=.1, hi=.9))
    family("losses", {}).update({
        "nll_" + reduction: ("F.nll_loss(x, y, w, ignore_index=2" + end, dict(x=f(5, 3), y=i(5, lo=0, hi=3), w=f(3, lo=.2, hi=1)), "x"),
        "nll_image_" + reduction: ("F.nll_loss(x, y" + end, dict(x=d(2, 3, 2, 2), y=i(2, 2, 2, lo=0, hi=3))),
        "mse_" + reduction: ("F.mse_loss(x, y" + end, pair),
        "l1_" + reduction: ("F.l1_loss(x, y" + end, dict(x=d(3, 4), y=d(3, 4))),
        "smooth_l1_" + reduction: ("F.smooth_l1_loss(x, y, delta=.4" + end, pair, "x"),
        "kl_" + reduction: ("F.kl_div(x, y" + end, dict(x=f(3, 4), y=f(3, 4, lo=0, hi=.9)), "x"),
        "bce_" + reduction: ("F.binary_cross_entropy(x, y, w" + end, dict(**pair, w=f(4, lo=.2, hi=1)), "x"),
        "bce_logits_" + reduction: ("F.binary_cross_entropy_with_logits(x, y, w, pos_weight=p" + end,
                                    dict(x=f(3, 4, lo=-9, hi=9), y=f(3, 4, lo=0, hi=1), w=f(4, lo=.2, hi=1), p=f(4, lo=.5, hi=3)), "x"),
        "margin_" + reduction: ("F.margin_ranking_loss(x, y, z, .1" + end, dict(x=f(5), y=f(5), z=A([1, -1, 1, -1, 1], "float32")), "x y"),
    })
family("losses", {}).update({
    "kl_batchmean": ("F.kl_div(x, y, 'batchmean')", dict(x=d(3, 4), y=d(3, 4, lo=.1, hi=.9)), "x"),
    "sigmoid_ce_ignore": ("op('sigmoid_cross_entropy_with_logits', {'X': x, 'Label': y}, ignore_index=-1, normalize=True)",
                          dict(x=f(3, 3, lo=-9, hi=9), y=A([[0, 1, -1], [1, 1, 0], [-1, 0, 1]], "float32")), "x"),
    "square_error": ("F.square_error_cost(x, y)", dict(x=d(3, 1), y=d(3, 1))),
    "log_loss": ("F.log_loss(x, y, 1e-3)", dict(x=f(4, 1, lo=.1, hi=.9), y=f(4, 1, lo=0, hi=1)), "x"),
    "huber": ("op('huber_loss', {'X': x, 'Y': y}, 'Out Residual', delta=.5)", dict(x=f(4, 1), y=f(4, 1)), "x"),
    "label_smooth": ("F.label_smooth(x, epsilon=.2)", dict(x=A(np.eye(3), "float32")), ""),
    "triplet": ("F.triplet_margin_loss(x, y, z)", dict(x=f(3, 4), y=f(3, 4), z=f(3, 4)), None, dict(rtol=1e-4, atol=1e-5)),
    "ctc": ("F.ctc_loss(x, y, n, m, 0, 'none')", dict(x=f(5, 2, 4), y=A([[1, 2], [3, 1]], "int32"), n=A([5, 4]), m=A([2, 1])), "x", dict(rtol=1e-4, atol=1e-5)),
})

# ---- embeddings ------------------------------------------------------------
family("embedding", {
    "f64_repeats": ("F.embedding(x, w)", dict(x=A([[0, 3], [3, 3]]), w=d(4, 3))),
    "int32_ids": ("F.embedding(x, w)", dict(x=A([2, 0], "int32"), w=f(4, 3))),
    "padding": ("F.embedding(x, w, padding_idx=1)", dict(x=A([[0, 1], [1, 3]]), w=f(4, 3))),
    "padding_from_end": ("F.embedding(x, w, padding_idx=-1)", dict(x=A([[0, 3], [1, 3]]), w=f(4, 3))),
    "zero_rank_id": ("F.embedding(x, w)", dict(x=A(2), w=f(4, 3))),
    "id_column": ("F.embedding(x, w)", dict(x=A([[[1], [2]]]), w=f(4, 3))),
    "no_ids": ("F.embedding(x, w)", dict(x=In(lambda rng: np.zeros((0, 2), "int64")), w=f(4, 3)), ""),
    "one_hot": ("F.one_hot(x, 5)", dict(x=i(2, 3, lo=0, hi=5))),
    "one_hot_zero_rank": ("F.one_hot(x, 3)", dict(x=A(1, "int32"))),
})

# ---- moving data -----------------------------------------------------------
family("concat", {
    "negative_f64": ("paddle.concat([x, y, x], -2)", dict(x=d(2, 3), y=d(1, 3))),
    "empty_part": ("paddle.concat([x, y], 0)", dict(x=f(0, 3), y=f(2, 3)), ""),
    "single": ("paddle.concat([x], 1)", dict(x=f(2, 3))),
    "bool": ("paddle.concat([x, y], 0)", dict(x=b(2), y=b(3))),
    "int32": ("paddle.concat([x, y], 1)", dict(x=i32(2, 1), y=i32(2, 2))),
    "axis_fed": ("op('concat', {'X': [x, y], 'AxisTensor': a}, axis=0)", dict(x=f(2, 1), y=f(2, 2), a=A([1], "int32"))),
    "unknown": ("paddle.concat([x, y], 1)", dict(x=f(2, 1, unknown=(1,)), y=f(2, 2))),
    "stack_negative": ("paddle.stack([x, y], -1)", dict(x=d(2, 3), y=d(2, 3))),
    "stack_zero_rank": ("paddle.stack([x, y])", dict(x=f(), y=f())),
    "stack_int": ("paddle.stack([x, x], 1)", dict(x=i(2, 3))),
})
family("split", {
    "rest": ("paddle.split(x, [1, -1, 2], axis=-1)", dict(x=f(2, 6))),
    "number_f64": ("paddle.split(x, 3, axis=0)", dict(x=d(6, 2))),
    "one_used": ("paddle.split(x, [2, 1], 0)[1]", dict(x=f(3, 2))),
    "int": ("paddle.split(x, 2, 1)", dict(x=i(2, 4))),
    "bool": ("paddle.split(x, 2, 1)", dict(x=b(2, 4))),
    "unbind": ("paddle.unbind(x, -1)", dict(x=f(2, 3))),
    "unstack": ("paddle.unstack(x, 1)", dict(x=d(2, 3, 2))),
    "chunk": ("paddle.chunk(x, 2, -2)", dict(x=f(4, 3))),
    "unknown": ("paddle.split(x, 2, 1)", dict(x=f(3, 4, unknown=(0,)))),
})
family("slice", {
    "negative": ("x[-3:-1, :2]", dict(x=d(4, 3))),
    "beyond": ("paddle.slice(x, [0, 1], [-9, 1], [9, 99])", dict(x=f(3, 4))),
    "index": ("x[1]", dict(x=f(3, 4))),
    "index_to_zero_rank": ("x[-1]", dict(x=f(3))),
    "two_indices": ("x[1, -1]", dict(x=d(3, 4))),
    "ellipsis": ("x[..., 0]", dict(x=f(2, 3, 2))),
    "new_axis": ("x[:, None, 1:]", dict(x=f(2, 3))),
    "step": ("x[::2, 1::3]", dict(x=f(5, 7))),
    "backward_step": ("x[::-1, 5:1:-2]", dict(x=d(3, 7))),
    "empty": ("x[2:2]", dict(x=f(4, 3)), ""),
    "int32": ("x[1:3]", dict(x=i32(4))),
    "bool": ("x[:, 1:]", dict(x=b(2, 3))),
    "fed_bounds": ("paddle.slice(x, [0], [s], [e])", dict(x=f(5, 2), s=A([1]), e=A([4]))),
    "strided_op": ("paddle.strided_slice(x, [0, 1], [3, -1], [0, -5], [-1, -2])", dict(x=f(4, 5))),
    "unknown": ("x[1:, :-1]", dict(x=f(3, 4, unknown=(0, 1)))),
    "by_list": ("x[[2, 0, 2]]", dict(x=f(3, 4))),
    "by_mask": ("x[m]", dict(x=f(4, 2), m=A([True, False, True, False], "bool"))),
})
family("gather", {
    "f64": ("paddle.gather(x, k)", dict(x=d(4, 3), k=A([3, 0, 3]))),
    "axis1_forward": ("paddle.gather(x, k, axis=1)", dict(x=f(2, 4), k=A([3, 1], "int32")), ""),
    "zero_rank_index": ("paddle.gather(x, k)", dict(x=f(4, 3), k=A(2))),
    "no_index": ("paddle.gather(x, k)", dict(x=f(4, 3), k=In(lambda rng: np.zeros(0, "int64"))), ""),
    "int": ("paddle.gather(x, k)", dict(x=i(4, 2), k=A([1, 1]))),
    "uint8": ("paddle.gather(x, k)", dict(x=u8(4, 2), k=A([1, 3]))),
    "nd": ("paddle.gather_nd(x, k)", dict(x=f(3, 4, 2), k=A([[0, 1], [2, 3], [0, 1]]))),
    "nd_full_f64": ("paddle.gather_nd(x, k)", dict(x=d(3, 4), k=A([[[0, 1]], [[2, 3]]]))),
    "nd_int32": ("paddle.gather_nd(x, k)", dict(x=f(3, 4), k=A([1], "int32"))),
    "index_select": ("paddle.index_select(x, k, axis=-1)", dict(x=d(3, 4), k=A([2, 0, 2]))),
    "index_sample": ("paddle.index_sample(x, k)", dict(x=f(2, 4), k=A([[0, 0, 3], [2, 1, 2]]))),
    "take_along": ("paddle.take_along_axis(x, k, -1)", dict(x=d(2, 4), k=A([[0, 3], [2, 2]]))),
    "take_along_broadcast": ("paddle.take_along_axis(x, k, 0)", dict(x=f(3, 4), k=A([[2, 0, 1, 1]]))),
    "masked_select": ("paddle.masked_select(x, m)", dict(x=d(2, 3), m=A([[1, 0, 1], [0, 0, 1]], "bool"))),
    "masked_select_none": ("paddle.masked_select(x, m)", dict(x=f(2, 3), m=A([[0] * 3] * 2, "bool")), ""),
    "nonzero": ("paddle.nonzero(x)", dict(x=A([[0, 3, 0], [2, 0, 1]]))),
    "nonzero_none": ("paddle.nonzero(x)", dict(x=A([0, 0], "float32")), ""),
})
family("scatter", {
    "overwrite": ("paddle.scatter(x, k, u)", dict(x=d(4, 2), k=A([3, 1]), u=d(2, 2))),
    "add_repeats": ("paddle.scatter(x, k, u, overwrite=False)", dict(x=f(4, 2), k=A([1, 1, 0]), u=f(3, 2))),
    "int32_rank1": ("paddle.scatter(x, k, u)", dict(x=f(5), k=A([0, 4], "int32"), u=f(2))),
    "int_data": ("paddle.scatter(x, k, u)", dict(x=i(4, 2), k=A([2]), u=i(1, 2))),
    "nd_add": ("paddle.scatter_nd_add(x, k, u)", dict(x=d(3, 4), k=A([[0, 1], [0, 1], [2, 3]]), u=d(3))),
    "nd_add_rows": ("paddle.scatter_nd_add(x, k, u)", dict(x=f(3, 4), k=A([[1], [1]]), u=f(2, 4))),
    "nd": ("paddle.scatter_nd(k, u, [3, 4])", dict(k=A([[2], [0]]), u=f(2, 4))),
    "put_assign": ("paddle.put_along_axis(x, k, u, 1)", dict(x=f(2, 4), k=A([[0], [3]]), u=f(2, 1))),
    "put_add": ("paddle.put_along_axis(x, k, u, 0, 'add')", dict(x=d(3, 2), k=A([[0, 1], [0, 1]]), u=d(2, 2)), ""),
    "index_add": ("paddle.index_add(x, k, 1, u)", dict(x=f(2, 4), k=A([3, 3], "int32"), u=f(2, 2))),
})
family("where", {
    "broadcast": ("paddle.where(c, x, y)", dict(c=b(2, 1, 3), x=f(4, 1), y=f(3))),
    "f64": ("paddle.where(c, x, y)", dict(c=b(2, 3), x=d(2, 3), y=d(2, 3))),
    "number": ("paddle.where(c, x, paddle.full([2, 3], .5))", dict(c=b(2, 3), x=f(2, 3))),
    "int": ("paddle.where(c, x, y)", dict(c=b(5), x=i(5), y=i(5))),
    "zero_rank": ("paddle.where(c, x, y)", dict(c=b(), x=f(), y=f())),
    "empty": ("paddle.where(c, x, y)", dict(c=b(0, 2), x=f(0, 2), y=f(0, 2)), ""),
})
family("order", {
    "topk_f64": ("paddle.topk(x, 2)", dict(x=apart(3, 5, dtype="float64"))),
    "topk_smallest_first_axis": ("paddle.topk(x, 2, axis=0, largest=False)", dict(x=apart(4, 3))),
    "topk_middle": ("paddle.topk(x, 3, axis=-2)", dict(x=apart(2, 4, 3))),
    "topk_all": ("paddle.topk(x, 5)", dict(x=apart(5))),
    "topk_int": ("paddle.topk(x, 2)", dict(x=A([[3, 9, 1, 7], [0, -1, 5, 2]]))),
    "topk_fed_k": ("paddle.topk(x, k)", dict(x=apart(2, 5), k=A([3], "int32"))),
    "topk_zero_rank": ("paddle.topk(x, 1)", dict(x=f())),
    "sort_down_first": ("[paddle.sort(x, 0, descending=True), paddle.argsort(x, 0, descending=True)]", dict(x=apart(4, 3))),
    "sort_int": ("[paddle.sort(x), paddle.argsort(x)]", dict(x=A([5, -2, 9, 0], "int32"))),
    "sort_f64_middle": ("paddle.sort(x, -2)", dict(x=apart(2, 3, 2, dtype="float64"))),
    "sort_zero_rank": ("[paddle.sort(x), paddle.argsort(x)]", dict(x=f())),
    "argmax": ("[paddle.argmax(x), paddle.argmin(x, 0), paddle.argmax(x, -1, keepdim=True)]", dict(x=apart(3, 4)), ""),
    "argmax_int32_out": ("paddle.argmax(x, 1, dtype='int32')", dict(x=A([[1, 5, 2], [9, 0, 9]]))),
    "argmax_flat_keep": ("paddle.argmax(x, keepdim=True)", dict(x=apart(2, 3, 2, dtype="float64")), ""),
    "argmax_ties": ("[paddle.argmax(x, 1), paddle.argmin(x, 1)]", dict(x=A([[1, 1, 0], [0, 0, 0]], "float32")), ""),
    "argmax_zero_rank": ("paddle.argmax(x)", dict(x=f()), ""),
    "kthvalue": ("paddle.kthvalue(x, 2, axis=0, keepdim=True)", dict(x=apart(4, 3))),
    "mode": ("paddle.mode(x, -1)", dict(x=A([[1, 2, 2, 3], [5, 5, 0, 1]], "float32"))),
    "unique": ("paddle.unique(x, return_index=True, return_inverse=True, return_counts=True)", dict(x=A([3, 1, 3, 2, 1]))),
    "unique_axis": ("paddle.unique(x, axis=0, return_counts=True)", dict(x=A([[1, 2], [0, 1], [1, 2]], "float32")), ""),
    "unique_consecutive": ("paddle.unique_consecutive(x, return_inverse=True, return_counts=True)", dict(x=A([1, 1, 2, 2, 1]))),
    "searchsorted": ("[paddle.searchsorted(x, y), paddle.searchsorted(x, y, right=True)]", dict(x=A([1, 3, 3, 7], "float32"), y=A([[0, 3], [7, 8]], "float32")), ""),
    "accuracy": ("paddle.static.accuracy(x, y, k=2)", dict(x=apart(4, 3), y=i(4, 1, lo=0, hi=3)), ""),
})
family("cumulate", {
    "flat": ("paddle.cumsum(x)", dict(x=f(2, 3))),
    "negative_f64": ("paddle.cumsum(x, -2)", dict(x=d(2, 3, 2))),
    "reverse_exclusive": ("op('cumsum', {'X': x}, axis=1, reverse=True, exclusive=True)", dict(x=f(2, 4))),
    "exclusive": ("op('cumsum', {'X': x}, axis=0, exclusive=True)", dict(x=d(3, 2))),
    "reverse": ("op('cumsum', {'X': x}, axis=-1, reverse=True)", dict(x=f(2, 4))),
    "int": ("paddle.cumsum(x, 0)", dict(x=i(3, 2))),
    "as_f64": ("paddle.cumsum(x, 0, dtype='float64')", dict(x=f(3, 2))),
    "zero_rank": ("paddle.cumsum(x)", dict(x=f())),
    "cumprod": ("paddle.cumprod(x, 1)", dict(x=d(2, 4, lo=.5, hi=2))),
    "cumprod_zero": ("paddle.cumprod(x, 0)", dict(x=A([2, 0, 3, 0, 4], "float32"))),
    "cummax": ("[paddle.cummax(x, 1)[0], paddle.cummin(x, 0)[0]]", dict(x=apart(3, 4))),
    "logcumsumexp": ("paddle.logcumsumexp(x, -1)", dict(x=d(2, 4))),
})
family("shapes", {
    "reshape_copy_infer": ("paddle.reshape(x, [0, -1])", dict(x=d(2, 3, 4))),
    "reshape_to_zero_rank": ("paddle.reshape(x, [])", dict(x=f(1))),
    "reshape_from_zero_rank": ("paddle.reshape(x, [1, 1])", dict(x=f())),
    "reshape_fed": ("paddle.reshape(x, s)", dict(x=f(2, 3), s=A([3, -1], "int32"))),
    "reshape_mixed": ("paddle.reshape(x, [s, 2])", dict(x=f(2, 3), s=A([3], "int32"))),
    "transpose": ("paddle.transpose(x, [2, 0, 3, 1])", dict(x=d(2, 3, 4, 2))),
    "transpose_int": ("paddle.transpose(x, [1, 0])", dict(x=i(2, 3))),
    "transpose_zero_rank": ("paddle.transpose(x, [])", dict(x=f())),
    "transpose_negative": ("paddle.transpose(x, [-1, 0, 1])", dict(x=f(2, 3, 4))),
    "squeeze": ("[paddle.squeeze(x), paddle.squeeze(x, -1), paddle.squeeze(x, [0, 1])]", dict(x=f(1, 2, 1))),
    "squeeze_to_zero_rank": ("paddle.squeeze(x)", dict(x=f(1, 1))),
    "unsqueeze": ("[paddle.unsqueeze(x, [0, -1]), paddle.unsqueeze(x, 1)]", dict(x=d(2, 3))),
    "unsqueeze_zero_rank": ("paddle.unsqueeze(x, [0, 1])", dict(x=f())),
    "flatten": ("[paddle.flatten(x), paddle.flatten(x, 1, -2)]", dict(x=f(2, 3, 2, 2))),
    "flatten_zero_rank": ("paddle.flatten(x)", dict(x=f())),
    "expand": ("[paddle.expand(x, [4, -1, 3]), paddle.expand(x, [2, 1, 2, 3])]", dict(x=d(1, 2, 1)), "x"),
    "expand_zero_rank": ("paddle.expand(x, [2, 3])", dict(x=f())),
    "expand_int": ("paddle.expand(x, [2, 3])", dict(x=i(1, 3))),
    "expand_as": ("paddle.expand_as(x, y)", dict(x=f(3, 1), y=f(2, 3, 4)), "x"),
    "tile": ("[paddle.tile(x, [2, 1, 3]), paddle.tile(x, [2])]", dict(x=f(2, 3))),
    "tile_zero_rank": ("paddle.tile(x, [2, 2])", dict(x=f())),
    "tile_bool": ("paddle.tile(x, [2, 1])", dict(x=b(2, 3))),
    "flip": ("[paddle.flip(x, [0, -1]), paddle.flip(x, 1)]", dict(x=d(2, 3, 2))),
    "roll": ("[paddle.roll(x, 2), paddle.roll(x, [1, -1], [0, -1])]", dict(x=f(3, 4))),
    "tril": ("[paddle.tril(x, -1), paddle.triu(x, 1)]", dict(x=d(2, 3, 4))),
    "tril_int": ("[paddle.tril(x), paddle.triu(x)]", dict(x=i(4, 3))),
    "diag": ("[paddle.diag(x, 1), paddle.diag(x, -1, padding_value=2)]", dict(x=f(3)), ""),
    "diagonal": ("paddle.diagonal(x, 1, 0, -1)", dict(x=f(3, 2, 4))),
    "meshgrid": ("paddle.meshgrid(x, y)", dict(x=f(3), y=f(2))),
    "repeat": ("paddle.repeat_interleave(x, 2, 1)", dict(x=f(2, 3))),
    "pixel_shuffle": ("F.pixel_shuffle(x, 2)", dict(x=f(1, 4, 2, 3))),
    "unfold": ("F.unfold(x, [2, 3], [2, 1], [1, 0], 1)", dict(x=f(1, 2, 4, 5))),
    "clone_assign": ("[paddle.assign(x), x.clone()]", dict(x=d(2, 3))),
})
for mode in "constant reflect replicate circular".split():
    family("pad", {}).update({
        mode: ("F.pad(x, [1, 2, 2, 1], mode='%s')" % mode, dict(x=f(2, 2, 4, 5))),
        mode + "_f64_nhwc": ("F.pad(x, [1, 0, 0, 2], mode='%s', data_format='NHWC')" % mode, dict(x=d(1, 3, 4, 2))),
        mode + "_rank3": ("F.pad(x, [2, 1], mode='%s', data_format='NCL')" % mode, dict(x=f(2, 2, 4))),
        mode + "_rank5": ("F.pad(x, [1, 0, 0, 1, 1, 1], mode='%s', data_format='NCDHW')" % mode, dict(x=f(1, 2, 3, 3, 2))),
    })
family("pad", {}).update({
    "every_axis": ("F.pad(x, [1, 0, 0, 2], value=1.5)", dict(x=f(2, 3))),
    "int": ("F.pad(x, [1, 1, 0, 2], value=7)", dict(x=i(2, 3))),
    "pad_op_f64": ("op('pad', {'X': x}, paddings=[1, 0, 2, 1], pad_value=-1.)", dict(x=d(2, 3))),
})
for mode in "nearest bilinear bicubic".split():
    family("interpolate", {}).update({
        mode + "_up": ("F.interpolate(x, [7, 5], mode='%s')" % mode, dict(x=f(1, 2, 3, 4)), None, tight),
        mode + "_down": ("F.interpolate(x, [2, 3], mode='%s')" % mode, dict(x=d(1, 2, 5, 7)), None, FLOAT_FACTOR),
        mode + "_scale": ("F.interpolate(x, scale_factor=[1.5, 2], mode='%s')" % mode, dict(x=f(2, 1, 4, 3)), None, tight),
        mode + "_nhwc": ("F.interpolate(x, [5, 6], mode='%s', data_format='NHWC')" % mode, dict(x=f(1, 3, 4, 2)), None, tight),
    })
family("interpolate", {}).update({
    "bilinear_corners": ("F.interpolate(x, [5, 7], mode='bilinear', align_corners=True)", dict(x=f(1, 2, 3, 4)), None, tight),
    "bilinear_mode1": ("F.interpolate(x, [5, 7], mode='bilinear', align_mode=1)", dict(x=d(1, 2, 3, 4))),
    "bicubic_corners": ("F.interpolate(x, [5, 7], mode='bicubic', align_corners=True)", dict(x=f(1, 2, 3, 4)), None, tight),
    "nearest_corners": ("op('nearest_interp_v2', {'X': x}, out_h=5, out_w=7, align_corners=True, interp_method='nearest')", dict(x=f(1, 2, 3, 4)), None, tight),
    "to_one": ("F.interpolate(x, [1, 1], mode='bilinear', align_corners=True)", dict(x=f(1, 2, 3, 4)), None, tight),
    "linear": ("F.interpolate(x, [7], mode='linear', data_format='NCW')", dict(x=f(1, 2, 4)), None, tight),
    "linear_nwc_corners": ("F.interpolate(x, [7], mode='linear', align_corners=True, data_format='NWC')", dict(x=d(1, 4, 2))),
    "trilinear": ("F.interpolate(x, [3, 5, 4], mode='trilinear', data_format='NCDHW')", dict(x=f(1, 2, 2, 3, 3)), None, tight),
    "nearest_rank5": ("F.interpolate(x, scale_factor=2, mode='nearest', data_format='NCDHW')", dict(x=f(1, 1, 2, 3, 2)), None, tight),
    "area": ("F.interpolate(x, [2, 3], mode='area')", dict(x=f(1, 2, 5, 6)), None, tight),
    "fed_size": ("F.interpolate(x, s, mode='bilinear')", dict(x=f(1, 2, 3, 4), s=A([4, 6], "int32")), None, tight),
})

# ---- one input, one output -------------------------------------------------
ACTIVATIONS = dict(
    relu="F.relu(x)", relu6="F.relu6(x)", elu="F.elu(x, .7)", selu="F.selu(x)", celu="F.celu(x, 1.3)", gelu="F.gelu(x)",
    gelu_tanh="F.gelu(x, True)", sigmoid="F.sigmoid(x)", log_sigmoid="F.log_sigmoid(x)", silu="F.silu(x)", swish="F.swish(x)",
    mish="F.mish(x)", hardswish="F.hardswish(x)", hardsigmoid="F.hardsigmoid(x, .2, .4)", hardtanh="F.hardtanh(x, -.5, .7)",
    hardshrink="F.hardshrink(x, .3)", softshrink="F.softshrink(x, .2)", softplus="F.softplus(x, 2, 3)", softsign="F.softsign(x)",
    tanhshrink="F.tanhshrink(x)", leaky_relu="F.leaky_relu(x, .1)", thresholded_relu="F.thresholded_relu(x, .4)",
    tanh="paddle.tanh(x)", exp="paddle.exp(x)", expm1="paddle.expm1(x)", square="paddle.square(x)", abs="paddle.abs(x)",
    sin="paddle.sin(x)", cos="paddle.cos(x)", sinh="paddle.sinh(x)", cosh="paddle.cosh(x)", atan="paddle.atan(x)",
    asinh="paddle.asinh(x)", erf="paddle.erf(x)", sign="paddle.sign(x)", floor="paddle.floor(x)", ceil="paddle.ceil(x)",
    round="paddle.round(x)", trunc="paddle.trunc(x)", stanh="paddle.stanh(x, .5, 1.2)", scale="paddle.scale(x, 2., 1., False)",
    clip="paddle.clip(x, -.4, .5)")
for name, body in ACTIVATIONS.items():
    family("unary", {}).update({
        name: (body, dict(x=d(3, 4, lo=-3, hi=3)), None, FLOAT_FACTOR if name == "selu" else {}),
        name + "_zero_rank": (body, dict(x=f())),
    })
    if name not in ("exp", "expm1", "sinh", "cosh", "square", "sin", "cos"):
        CASES["unary"][name + "_far"] = (body, dict(x=A([-90, -20, 0, 20, 90], "float32")), "" if name in (
            "abs", "hardshrink", "celu", "hardtanh", "relu6", "hardsigmoid", "hardswish", "silu") else None)
for name in "log log2 log10 log1p sqrt rsqrt reciprocal lgamma digamma acosh".split():
    family("unary", {}).update({
        name: ("paddle.%s(x)" % name, dict(x=d(3, 4, lo=1.1, hi=4))),
        name + "_edge": ("paddle.%s(x)" % name, dict(x=A([0, 1, -1, np.inf, np.nan], "float32")), ""),
    })
family("unary", {}).update({
    "empty": ("[F.relu(x), paddle.exp(x), F.gelu(x)]", dict(x=f(0, 3)), ""),
    "ints": ("[paddle.abs(x), paddle.square(x), paddle.sign(paddle.cast(x, 'float32')), -x]", dict(x=i(5))),
    "int_scale": ("[paddle.scale(x, 2., 1.), paddle.scale(x, 3., 1., False)]", dict(x=i32(4))),
    "int_clip": ("paddle.clip(x, -2, 3)", dict(x=i(6))),
    "complex": ("[paddle.abs(x), paddle.real(x), paddle.imag(x), paddle.conj(x), paddle.angle(x)]", dict(x=c64(3))),
    "finite": ("[paddle.isnan(x), paddle.isinf(x), paddle.isfinite(x)]", dict(x=A([0, np.nan, np.inf, -np.inf], "float64")), ""),
    "finite_int": ("[paddle.isnan(x), paddle.isinf(x), paddle.isfinite(x)]", dict(x=i(3))),
    "prelu_channel": ("F.prelu(x, w)", dict(x=f(2, 3, 2, 2), w=f(3))),
    "prelu_one": ("F.prelu(x, w)", dict(x=d(2, 3), w=d(1))),
    "prelu_nhwc": ("F.prelu(x, w, data_format='NHWC')", dict(x=f(2, 2, 2, 3), w=f(3))),
    "glu": ("F.glu(x, 0)", dict(x=d(4, 3))),
    "maxout": ("F.maxout(x, 2, axis=-1)", dict(x=f(2, 3, 2, 4))),
    "clip_fed": ("op('clip', {'X': x, 'Min': lo, 'Max': hi}, min=0., max=0.)", dict(x=f(5, lo=-3, hi=3), lo=A([-1], "float32"), hi=A([2], "float32")), "x"),
    "clip_bounds": ("[paddle.clip(x, -1., 1.), paddle.clip(x, lo, hi)]", dict(x=A([-2, -1, -.5, 1, 2, np.nan], "float32"), lo=A([-.5], "float32"), hi=A([1], "float32")), "x"),
    "clip_bounds_f64": ("paddle.clip(x, -1., 1.)", dict(x=A([-2, -1, -.5, 1, 2], "float64"))),
    "scale_fed": ("paddle.scale(x, s, bias=1.)", dict(x=f(3), s=A([2.5], "float32")), "x"),
    "increment": ("paddle.increment(paddle.assign(x), 3)", dict(x=A([4]))),
    "lerp": ("paddle.lerp(x, y, w)", dict(x=d(2, 3), y=d(3), w=d(1)), "x y"),
})
# Their gradients where the pieces of the function meet. PaddlePaddle answers NaN, -0 or what lies outside of the domain
# otherwise than the formula in relu, leaky_relu, selu, hardswish, sqrt and acosh, which are left out.
for name, ends in dict(hardtanh=[-1, 1], relu6=[0, 6], hardsigmoid=[-3, 3], hardshrink=[-.5, .5], softshrink=[-.5, .5],
                       elu=[0], celu=[0], thresholded_relu=[1], softplus=[20], swish=[0], mish=[0, 20],
                       softsign=[0], tanhshrink=[0], log_sigmoid=[0]).items():
    family("unary", {})[name + "_ends"] = (f"F.{name}(x)", dict(x=A(ends + [np.nan], "float32")))
for name in "abs rsqrt reciprocal sign floor ceil round trunc frac square sinh asin acos atanh log log1p".split():
    family("unary", {})[name + "_ends"] = (f"paddle.{name}(x)", dict(x=A([-1, -.5, -0., 0, .5, 1, 1.5, 2.5], "float32")))
TYPES = "float32 float64 int32 int64 bool uint8 int8 int16 float16".split()
for to in TYPES:
    family("cast", {}).update({
        "f32_to_" + to: ("paddle.cast(x, '%s')" % to, dict(x=f(2, 3, lo=0, hi=90)), ""),
        "int64_to_" + to: ("paddle.cast(x, '%s')" % to, dict(x=i(5))),
        "bool_to_" + to: ("paddle.cast(x, '%s')" % to, dict(x=b(5))),
    })
family("cast", {}).update({
    "back_and_forth": ("paddle.cast(paddle.cast(x, 'float64') * 3, 'float32')", dict(x=f(2, 3))),
    "zero_rank": ("paddle.cast(x, 'float64')", dict(x=f())),
    "empty": ("paddle.cast(x, 'int32')", dict(x=f(0, 2)), ""),
})
for mode in ("upscale_in_train", "downscale_in_infer"):
    family("dropout", {}).update({
        mode + "_test": ("F.dropout(x, .3, training=False, mode='%s')" % mode, dict(x=d(3, 4))),
        mode + "_p0": ("F.dropout(x, 0., training=True, mode='%s')" % mode, dict(x=f(3, 4))),
        mode + "_p1": ("F.dropout(x, 1., training=True, mode='%s')" % mode, dict(x=f(3, 4))),
        mode + "_op_test": ("op('dropout', {'X': x}, 'Out Mask', is_test=True, dropout_prob=.4, dropout_implementation='%s')" % mode.replace("scale_in_infer", "grade_in_infer"), dict(x=f(3, 2)), ""),
    })
family("fill", {
    "zeros_like": ("[paddle.zeros_like(x), paddle.ones_like(x, 'int32'), paddle.full_like(x, 2.5)]", dict(x=f(2, 3)), ""),
    "full": ("[paddle.full([2, 3], 7, 'int32'), paddle.full([], 1.5, 'float64'), paddle.full([0, 2], True, 'bool')]", dict()),
    "full_fed_shape": ("paddle.full(s, 2., 'float32')", dict(s=A([2, 3], "int32"))),
    "full_fed_value": ("paddle.full([2], v, 'float32')", dict(v=A([2.5], "float32")), ""),
    "arange": ("[paddle.arange(5), paddle.arange(1, 8, 3, 'int32'), paddle.arange(1., 0., -.3, 'float64')]", dict(), None, dict(rtol=1e-12)),
    "arange_fed": ("paddle.arange(a, e, s)", dict(a=A([2]), e=A([9]), s=A([3]))),
    "linspace": ("[paddle.linspace(0, 1, 5), paddle.linspace(5, 1, 3, 'int32'), paddle.linspace(2., 3., 1, 'float64')]", dict()),
    "eye": ("[paddle.eye(3, 4), paddle.eye(2, dtype='int64')]", dict()),
    "batch_size_like": ("op('fill_constant_batch_size_like', {'Input': x}, shape=[7, 2], value=1.5, str_value='1.5', input_dim_idx=1, output_dim_idx=0)", dict(x=f(2, 3)), ""),
    "sum_list": ("paddle.add_n([x, y, z])", dict(x=d(2, 3), y=d(2, 3), z=d(2, 3))),
    "sum_ints": ("paddle.add_n([x, y])", dict(x=i(3), y=i(3))),
})
family("linear_algebra", {
    "cholesky": ("paddle.linalg.cholesky(paddle.matmul(x, x, transpose_y=True) + 2 * paddle.eye(3, dtype='float64'), upper=True)", dict(x=d(2, 3, 3)), "", dict(rtol=1e-8, atol=1e-9)),
    "inverse": ("paddle.inverse(x + 2 * paddle.eye(3, dtype='float64'))", dict(x=d(2, 3, 3)), None, dict(rtol=1e-7, atol=1e-8)),
    "det": ("paddle.linalg.det(x)", dict(x=d(2, 3, 3)), None, dict(rtol=1e-7, atol=1e-8)),
    "solve": ("paddle.linalg.solve(x + 2 * paddle.eye(3, dtype='float64'), y)", dict(x=d(3, 3), y=d(3, 2)), None, dict(rtol=1e-7, atol=1e-8)),
    "triangular": ("paddle.linalg.triangular_solve(x + 3 * paddle.eye(3), y, upper=False, transpose=True, unitriangular=True)", dict(x=f(3, 3), y=f(3, 2)), "y", tight),
    "trace": ("paddle.trace(x, 1, 0, 2)", dict(x=f(3, 2, 3))),
    "matrix_power": ("paddle.linalg.matrix_power(x, 3)", dict(x=d(3, 3))),
    "cross": ("paddle.cross(x, y, axis=0)", dict(x=f(3, 2), y=f(3, 2))),
    "dist": ("paddle.dist(x, y, 3)", dict(x=f(2, 3), y=f(3))),
})
family("vision", {
    "grid_bilinear_border": ("F.grid_sample(x, g, padding_mode='border', align_corners=False)", dict(x=f(1, 2, 4, 5), g=f(1, 3, 3, 2, lo=-1.4, hi=1.4)), None, tight),
    "grid_reflection": ("F.grid_sample(x, g, padding_mode='reflection')", dict(x=d(1, 2, 4, 5), g=d(1, 3, 3, 2, lo=-1.4, hi=1.4)), "x"),
    "grid_nearest": ("F.grid_sample(x, g, mode='nearest')", dict(x=f(1, 2, 4, 5), g=f(1, 3, 3, 2)), "x"),
    "grid_nearest_ties": ("[F.grid_sample(x, g, mode='nearest', padding_mode=p, align_corners=c) for p in ('zeros', 'border', 'reflection') for c in (True, False)]",
                          dict(x=f(1, 2, 5, 4), g=A(np.stack(np.meshgrid(np.arange(-5, 6) / 4, np.arange(-4, 5) / 4), -1)[None], "float32")), "x"),
    "grid_nearest_ties_f64": ("F.grid_sample(x, g, mode='nearest', align_corners=False)", dict(x=d(1, 1, 3, 2, 4), g=A(np.stack(np.meshgrid(np.arange(-4, 5) / 4, np.arange(-2, 3) / 2, [0, .5]), -1)[None], "float64")), "x"),
    "affine_grid": ("F.affine_grid(t, [2, 3, 4, 5], align_corners=False)", dict(t=f(2, 2, 3)), None, tight),
    "temporal_shift": ("F.temporal_shift(x, 2, .25)", dict(x=f(4, 4, 2, 2))),
    "channel_shuffle": ("F.channel_shuffle(x, 3)", dict(x=f(1, 6, 2, 2))),
})

# ---- sequences -------------------------------------------------------------
LOD = [[2, 3, 1]]
GAPS = [[2, 0, 3]]
for pool in "sum average sqrt max first last".split():
    family("sequence", {}).update({
        "pool_%s_f64" % pool: ("S.sequence_pool(x, '%s')" % pool, dict(x=d(6, 2, lod=LOD)), "" if pool == "max" else None),
        "pool_%s_gap" % pool: ("S.sequence_pool(x, '%s', pad_value=.5)" % pool, dict(x=f(5, 2, lod=GAPS)), ""),
    })
family("sequence", {}).update({
    "softmax": ("S.sequence_softmax(x)", dict(x=f(6, 1, lod=LOD))),
    "concat": ("S.sequence_concat([x, y])", dict(x=f(6, 2, lod=LOD), y=f(5, 2, lod=GAPS))),
    "reverse": ("S.sequence_reverse(x)", dict(x=d(6, 2, lod=LOD))),
    "reverse_int": ("S.sequence_reverse(x)", dict(x=i(6, 2, lod=LOD))),
    "expand": ("S.sequence_expand(x, y)", dict(x=f(3, 2), y=f(6, 1, lod=LOD)), "x"),
    "expand_gap": ("S.sequence_expand(x, y)", dict(x=f(3, 2), y=f(5, 1, lod=GAPS)), "x"),
    "expand_level": ("S.sequence_expand(x, y, ref_level=0)", dict(x=f(2, 2), y=f(6, 1, lod=[[2, 1], [2, 3, 1]])), "x"),
    "expand_as": ("S.sequence_expand_as(x, y)", dict(x=d(3, 2), y=d(6, 1, lod=LOD)), "x"),
    "pad": ("S.sequence_pad(x, v)", dict(x=f(6, 2, lod=LOD), v=A([0.5], "float32")), "x"),
    "pad_to": ("S.sequence_pad(x, v, maxlen=4)", dict(x=f(5, 2, lod=GAPS), v=A([0.5], "float32")), "x"),
    "unpad": ("S.sequence_unpad(x, n)", dict(x=f(3, 4, 2), n=A([4, 1, 2])), "x"),
    "reshape": ("S.sequence_reshape(x, 4)", dict(x=f(6, 2, lod=[[2, 4]]))),
    "slice": ("S.sequence_slice(x, o, n)", dict(x=f(6, 2, lod=LOD), o=A([[0], [1], [0]]), n=A([[1], [2], [1]])), "x"),
    "enumerate": ("S.sequence_enumerate(x, 3, pad_value=-1)", dict(x=i(6, 1, lod=LOD))),
    "scatter": ("S.sequence_scatter(x, k, u)", dict(x=f(3, 4), k=i(6, 1, lo=0, hi=4, lod=LOD), u=f(6, 1, lod=LOD))),
    "conv": ("op('sequence_conv', {'X': x, 'Filter': w}, contextLength=3, contextStart=-1, contextStride=1)", dict(x=f(6, 2, lod=LOD), w=f(6, 3))),
    "mask": ("[F.sequence_mask(x, 5), F.sequence_mask(x, dtype='float32')]", dict(x=A([3, 0, 4]))),
    "through_ops": ("S.sequence_pool(F.relu(x * 2 + 1), 'sum')", dict(x=f(6, 2, lod=LOD))),
    "embedding_pool": ("S.sequence_pool(F.embedding(x, w), 'sum')", dict(x=i(6, 1, lo=0, hi=4, lod=LOD), w=f(4, 3))),
})


# ---- control flow ----------------------------------------------------------
def loop_power(x):
    k = paddle.full([1], 0, "int32")
    return S.while_loop(lambda k, y: k < 3, lambda k, y: [k + 1, paddle.tanh(y) * x], [k, x * 1.0])[1] * 1.0


def loop_two_carried(x, y):
    k = paddle.full([1], 0, "int64")
    _, u, v = S.while_loop(lambda k, u, v: k < 4, lambda k, u, v: [k + 1, u + v * y, u * .5], [k, x * 1.0, y * 1.0])
    return paddle.sum(u * v)


def loop_zero_rank(x):
    k = paddle.full([], 0, "int64")
    return S.while_loop(lambda k, y: k < 3, lambda k, y: [k + 1, y * 2 + paddle.cast(k, "float32")], [k, x * 1.0])[1]


def loop_fed_count(x, n):
    k = paddle.full([1], 0, "int64")
    return S.while_loop(lambda k, y: k < n, lambda k, y: [k + 1, y * x], [k, paddle.ones_like(x)])[1] * 1.0


def loop_array(x):
    written = paddle.tensor.create_array("float32")
    for k in range(3):
        written = paddle.tensor.array_write(x[k] * (k + 1), paddle.full([1], k, "int64"), written)
    read = [paddle.tensor.array_read(written, paddle.full([1], k, "int64")) for k in (2, 0, 1)]
    return [read[0] * read[1] - read[2], paddle.tensor.array_length(written)]


def choose_nested(p, x):
    return S.cond(p, lambda: S.cond(paddle.sum(x) > 0, lambda: x * x, lambda: -x), lambda: paddle.exp(x)) + 1


family("control", {
    "cond_true": ("S.cond(p, lambda: x * y, lambda: x + y)", dict(p=A([True], "bool"), x=d(2, 3), y=d(3))),
    "cond_false": ("S.cond(p, lambda: x * y, lambda: x + y)", dict(p=A([False], "bool"), x=d(2, 3), y=d(3))),
    "cond_zero_rank": ("S.cond(p, lambda: x * 2, lambda: x - 1)", dict(p=A(True, "bool"), x=f())),
    "cond_of_values": ("S.cond(paddle.max(x) > .5, lambda: paddle.concat([x, x]), lambda: x[:1])", dict(x=f(3, unknown=(0,))), ""),
    "cond_nested": (choose_nested, dict(p=A([True], "bool"), x=f(4))),
    "case": ("S.case([(paddle.sum(x) > 9, lambda: x), (paddle.sum(x) < 9, lambda: x * x * x)])", dict(x=d(3))),
    "switch": ("S.switch_case(k, {0: lambda: x, 3: lambda: x * 3}, default=lambda: -x)", dict(k=A([3], "int32"), x=f(3))),
    "while_power": (loop_power, dict(x=f(2, 3))),
    "while_two_carried": (loop_two_carried, dict(x=d(3), y=d(3))),
    "while_zero_rank": (loop_zero_rank, dict(x=f()), ""),
    "while_fed_count": (loop_fed_count, dict(x=f(3), n=A([3]))),
    "while_fed_zero": (loop_fed_count, dict(x=f(3), n=A([0])), ""),
    "array": (loop_array, dict(x=f(3, 2))),
})

family("stored_types", {
    "diag_float16": ("paddle.diag(x)", dict(x=h(2, 3)), ""),
    "embedding_float16": ("F.embedding(x, w)", dict(x=A([1, 3, 1]), w=h(4, 3)), ""),
    "embedding_int8": ("F.embedding(x, w)", dict(x=A([1, 3, 1]), w=i8(4, 3))),
    "scatter_nd_add_uint8": ("paddle.scatter_nd_add(x, k, u)", dict(x=u8(3, 2), k=A([[1], [1]]), u=u8(2, 2))),
    "concat_float16": ("paddle.concat([x, y], 1)", dict(x=h(2, 3), y=h(2, 1)), ""),
    "slice_uint8": ("x[:, ::-1]", dict(x=u8(2, 3))),
})


# ---- networks: one variable read by many, several targets, stopped paths ---
def stopped(x, y):
    u = x * y
    u.stop_gradient = True
    return u * x + y


def fan_out(x):
    u = paddle.tanh(x)
    return [u * u + u, paddle.sum(u * x), paddle.concat([u, x, u], 0)]


def attention(q, k, v, m):
    scores = paddle.matmul(q, k, transpose_y=True) * (4 ** -.5) + paddle.unsqueeze((1. - m) * -1e4, [1, 2])
    return paddle.matmul(F.softmax(scores, -1), v)


def residual(x, w, u, g, s):
    y = op("group_norm", {"X": F.conv2d(x, w, padding=1), "Scale": g, "Bias": s}, "Y Mean Variance", groups=2, epsilon=1e-5)
    y = F.relu(y + x)
    return F.linear(paddle.flatten(F.adaptive_avg_pool2d(y, 1), 1), u)


def gated(x, h, w, u):
    for k in range(3):
        gates = paddle.matmul(x[:, k], w) + paddle.matmul(h, u)
        z, n = paddle.split(gates, 2, -1)
        h = h + F.sigmoid(z) * (paddle.tanh(n) - h)
    return h


def written(x, u):
    y = x * 2
    y = paddle.static.setitem(y, (slice(1, 3),), u)
    return paddle.static.setitem(y, (0, -1), 7.) * x


family("composed", {
    "stopped": (stopped, dict(x=d(2, 3), y=d(3))),
    "fan_out": (fan_out, dict(x=d(2, 3))),
    "attention": (attention, dict(q=f(2, 2, 3, 4, unknown=(0, 2)), k=f(2, 2, 5, 4), v=f(2, 2, 5, 3), m=A([[1, 1, 0, 1, 0]] * 2, "float32")), "q k v"),
    "residual": (residual, dict(x=f(2, 4, 4, 4, unknown=(0,)), w=f(4, 4, 3, 3), u=f(4, 3), g=f(4), s=f(4)), None, norm),
    "gated": (gated, dict(x=d(2, 3, 2), h=d(2, 3), w=d(2, 6), u=d(3, 6))),
    "set_items": (written, dict(x=f(4, 3), u=f(2, 3)), "x u"),
    "one_target_of_another": ("[x * y, paddle.sum(x * y * y)]", dict(x=d(3), y=d(3))),
    "unread_branch": ("[paddle.split(x, 3, 1)[1] * 2, paddle.topk(x, 2, 1)[0]]", dict(x=apart(2, 3))),
    "masked_mean": ("paddle.sum(x * paddle.cast(m, 'float32')) / paddle.cast(paddle.sum(paddle.cast(m, 'int64')), 'float32')",
                    dict(x=f(2, 3), m=A([[1, 0, 1], [1, 1, 0]], "bool"))),
    "global_norm_clip": ("[g * (1. / paddle.maximum(paddle.sqrt(paddle.add_n([paddle.sum(x * x), paddle.sum(y * y)])), paddle.full([], 1.))) for g in (x, y)]",
                         dict(x=f(2, 3), y=f(4))),
    "weighted_embeddings": ("paddle.sum(F.embedding(k, w) * paddle.unsqueeze(s, -1), 1)", dict(k=A([[0, 2, 2], [1, 1, 3]]), w=d(4, 3), s=d(2, 3))),
    "dynamic_reshape": ("paddle.reshape(x, [paddle.shape(x)[0], -1, 2]) * paddle.cast(paddle.shape(x)[1], 'float32')", dict(x=f(2, 3, 4, unknown=(0, 1)))),
    "through_int_and_back": ("x * paddle.cast(paddle.cast(x * 4, 'int32'), 'float32')", dict(x=f(2, 3)), "x"),
    "huge_softmax_loss": ("paddle.mean(F.cross_entropy(F.linear(x, w), y, reduction='none') * 3)", dict(x=f(4, 3), w=f(3, 5), y=i(4, lo=0, hi=5))),
})


# ---- updates ---------------------------------------------------------------
def update(kind, inputs, outputs, **attrs):
    given = "{'Param': p, 'Grad': g, 'LearningRate': r, %s}" % ", ".join("'%s': %s" % (slot, name) for slot, name in inputs.items())
    return "op('%s', %s, '%s', every=True, %s)" % (kind, given, outputs, ", ".join("%s=%r" % a for a in attrs.items()))


adam = dict(Moment1="m", Moment2="v", Beta1Pow="a", Beta2Pow="b")
adam_outs = "ParamOut Moment1Out Moment2Out Beta1PowOut Beta2PowOut"
for suffix, make, dtype in (("", f, "float32"), ("_f64", d, "float64")):
    fed = dict(p=make(3, 4), g=make(3, 4), r=A([.1], dtype))
    moments = dict(m=make(3, 4), v=make(3, 4, lo=.1, hi=1))
    powers = dict(a=A([.9], dtype), b=A([.99], dtype))
    exact = FLOAT_FACTOR if suffix else {}
    family("updates", {}).update({
        "sgd" + suffix: (update("sgd", {}, "ParamOut"), fed, "", exact),
        "momentum" + suffix: (update("momentum", {"Velocity": "m"}, "ParamOut VelocityOut", mu=.8), dict(**fed, m=moments["m"]), "", exact),
        "nesterov_decay" + suffix: (update("momentum", {"Velocity": "m"}, "ParamOut VelocityOut", mu=.8, use_nesterov=True, regularization_method="l2_decay",
                                           regularization_coeff=.1, rescale_grad=.5), dict(**fed, m=moments["m"]), "", exact),
        "adam" + suffix: (update("adam", adam, adam_outs, beta1=.8, beta2=.95, epsilon=1e-6), dict(**fed, **moments, **powers), "", exact),
        "adam_skipped" + suffix: (update("adam", {**adam, "SkipUpdate": "z"}, adam_outs), dict(**fed, **moments, **powers, z=A([True], "bool")), "", exact),
        "adamw" + suffix: (update("adamw", adam, adam_outs, coeff=.1, lr_ratio=.5, with_decay=True), dict(**fed, **moments, **powers), "", exact),
        "adamw_plain" + suffix: (update("adamw", adam, adam_outs, with_decay=False), dict(**fed, **moments, **powers), "", exact),
        "adamax" + suffix: (update("adamax", {"Moment": "m", "InfNorm": "v", "Beta1Pow": "a"}, "ParamOut MomentOut InfNormOut", beta1=.8),
                            dict(**fed, **moments, a=powers["a"]), "", exact),
        "adagrad" + suffix: (update("adagrad", {"Moment": "v"}, "ParamOut MomentOut", epsilon=1e-4), dict(**fed, v=moments["v"]), "", exact),
        "lamb" + suffix: (update("lamb", adam, adam_outs, weight_decay=.05), dict(**fed, **moments, **powers), "", exact),
    })


# ---- ops that PaddlePaddle's programs hold and its CPU kernels lack --------
def by_answer(body, inputs, answer, by=None, **tolerances):
    return (body, inputs, by, dict(answer=answer, **tolerances))


for name, function in dict(abs="abs", cos="cos", erf="erf", exp="exp", sin="sin", tanh="tanh").items():
    family("primitives", {})[name] = by_answer(f"op('{name}_p', {{'X': x}}, 'Y')", dict(x=d(2, 3)), f"paddle.{function}(x)", "")
for name in "log rsqrt sqrt".split():
    family("primitives", {})[name] = by_answer(f"op('{name}_p', {{'X': x}}, 'Y')", dict(x=f(2, 3, lo=.5, hi=2)), f"paddle.{name}(x)", "")
for name, function in dict(add="add", sub="subtract", mul="multiply", div="divide", max="maximum", pow="pow", eq="equal", ne="not_equal",
                           ge="greater_equal", gt="greater_than").items():
    positive = dict(lo=.5, hi=2) if name in ("div", "pow") else {}
    family("primitives", {})[name] = by_answer(f"op('{name}_p', {{'X': x, 'Y': y}}, 'Z')", dict(x=d(3, 4, **positive), y=d(3, 4, **positive)),
                                               f"paddle.{function}(x, y)", "")
family("primitives", {}).update({
    "eq_ties": by_answer("op('eq_p', {'X': x, 'Y': y}, 'Z')", dict(x=i(20, lo=0, hi=3), y=i(20, lo=0, hi=3)), "paddle.equal(x, y)"),
    "matmul": by_answer("op('matmul_p', {'X': x, 'Y': y}, 'Z')", dict(x=f(2, 3), y=f(3, 4)), "paddle.matmul(x, y)", ""),
    "matmul_lists": by_answer("op('matmul_p', {'X': x, 'Y': y}, 'Z')", dict(x=d(2, 2, 3), y=d(2, 3, 4)), "paddle.matmul(x, y)", ""),
    "select": by_answer("op('select_p', {'Condition': c, 'X': x, 'Y': y}, 'Z', 'float32')", dict(c=b(2, 3), x=f(2, 3), y=f(2, 3)), "paddle.where(c, x, y)", ""),
    "cast": by_answer("op('cast_p', {'X': x}, 'Y', 'int64', attr_dtype=3)", dict(x=f(5, lo=-9, hi=9)), "paddle.cast(x, 'int64')", ""),
    "fill_constant": by_answer("op('fill_constant_p', {}, 'Y', 'float32', shape=[2, 3], value=1.5, attr_dtype=5) + x", dict(x=f(2, 3)), "paddle.full([2, 3], 1.5) + x", ""),
    "bernoulli_sure": by_answer("op('bernoulli_p', {}, 'Y', 'float32', shape=[2, 3], p=1., attr_dtype=5) + x", dict(x=f(2, 3)), "paddle.ones([2, 3]) + x", ""),
    "uniform_narrow": by_answer("op('uniform_random_p', {}, 'Out', 'float32', shape=[2, 3], min=2., max=2.000001, seed=3, attr_dtype=5) + x", dict(x=f(2, 3)),
                                "paddle.full([2, 3], 2.) + x", ""),
    "broadcast": by_answer("op('broadcast_p', {'X': x}, 'Y', shape=[2, 3, 4])", dict(x=f(3, 1)), "paddle.broadcast_to(x, [2, 3, 4])", ""),
    "reshape": by_answer("op('reshape_p', {'X': x}, 'Y', shape=[4, 3])", dict(x=f(2, 6)), "paddle.reshape(x, [4, 3])", ""),
    "transpose": by_answer("op('transpose_p', {'X': x}, 'Y', axis=[2, 0, 1])", dict(x=f(2, 3, 4)), "paddle.transpose(x, [2, 0, 1])", ""),
    "concat": by_answer("op('concat_p', {'XS': [x, y]}, 'Y', axis=1)", dict(x=f(2, 3), y=f(2, 1)), "paddle.concat([x, y], 1)", ""),
    "reduce_sum": by_answer("op('reduce_sum_p', {'X': x}, 'Y', axis=[0, 2], keepdim=True)", dict(x=d(2, 3, 4)), "paddle.sum(x, [0, 2], keepdim=True)", ""),
    "reduce_sum_one": by_answer("op('reduce_sum_p', {'X': x}, 'Y', axis=[-1], keepdim=False)", dict(x=d(2, 3, 4)), "paddle.sum(x, -1)", ""),
    "slice_select": by_answer("op('slice_select_p', {'X': x}, 'Y', axis=[0, 1], starts=[0, 1], ends=[3, 6], strides=[2, 2])", dict(x=f(4, 6)), "x[0:3:2, 1:6:2]", ""),
    "slice_assign": by_answer("op('slice_assign_p', {'X': x, 'Y': y}, 'Z', axis=[1], starts=[1], ends=[5], strides=[2])", dict(x=f(3, 6), y=f(3, 2)),
                              "paddle.static.setitem(x * 1., (slice(None), slice(1, 5, 2)), y)", ""),
    "gather": by_answer("op('gather_p', {'X': x}, 'Y', axis=1, index=[2, 0])", dict(x=f(2, 3)), "paddle.index_select(x, paddle.to_tensor([2, 0]), 1)", ""),
    "gather_tensor": by_answer("op('gather_p', {'X': x, 'IndexTensor': k}, 'Y', axis=0)", dict(x=f(3, 2), k=A([2, 2, 0], "int32")), "paddle.gather(x, k, 0)", ""),
    "scatter_add": by_answer("op('scatter_add_p', {'X': x, 'Y': y, 'IndexTensor': k}, 'Z', axis=0)", dict(x=f(4, 2), y=f(3, 2), k=A([2, 2, 0], "int32")),
                             "paddle.index_add(x, k, 0, y)", ""),
    "scatter_add_list": by_answer("op('scatter_add_p', {'X': x, 'Y': y}, 'Z', axis=1, index=[1, 1])", dict(x=f(2, 3), y=f(2, 2)),
                                  "paddle.index_add(x, paddle.to_tensor([1, 1]), 1, y)", ""),
})


def split_primitive(x):
    helper = LayerHelper("split_p")
    outs = [helper.create_variable_for_type_inference(x.dtype) for _ in range(2)]
    helper.append_op(type="split_p", inputs={"X": x}, outputs={"YS": outs}, attrs={"axis": 1, "num_or_sections": [1, 2]})
    return outs


family("primitives", {})["split"] = by_answer(split_primitive, dict(x=f(2, 3)), "paddle.split(x, [1, 2], 1)", "")


def strided(places):
    return f"paddle.gather(paddle.flatten(x), paddle.to_tensor(np.array({places}).ravel())).reshape(np.array({places}).shape)"


family("views", {
    "as_strided": by_answer("op('as_strided', {'input': x}, 'out', dims=[2, 2], stride=[4, 2], offset=8)", dict(x=d(3, 4)), strided("[[1, 3], [5, 7]]")),
    "as_strided_overlap": by_answer("op('as_strided', {'input': x}, 'out', dims=[3, 2], stride=[1, 1], offset=0)", dict(x=f(4)), strided("[[0, 1], [1, 2], [2, 3]]")),
    "tensor_unfold": by_answer("op('tensor_unfold', {'input': x}, 'out', axis=1, size=3, step=2)", dict(x=d(2, 6)),
                               strided("[[[0, 1, 2], [2, 3, 4]], [[6, 7, 8], [8, 9, 10]]]")),
    "tensor_unfold_first": by_answer("op('tensor_unfold', {'input': x}, 'out', axis=0, size=2, step=1)", dict(x=f(3, 2)),
                                     strided("[[[0, 2], [1, 3]], [[2, 4], [3, 5]]]")),
    "index_select_strided": by_answer("op('index_select_strided', {'x': x}, 'out', index=1, axis=1)", dict(x=d(3, 4)), "x[:, 1]"),
    "index_select_negative": by_answer("op('index_select_strided', {'x': x}, 'out', index=2, axis=-2)", dict(x=f(3, 4)), "x[2]"),
    "view_shape": by_answer("op('view_shape', {'input': x}, 'out', dims=[2, 6])", dict(x=d(3, 4)), "paddle.reshape(x, [2, 6])"),
    "view_dtype": by_answer("op('view_dtype', {'input': x}, 'out', 'int32', attr_dtype=2)", dict(x=A([[1, -1], [3, 1 << 40]])),
                            "paddle.to_tensor(np.array([[1, 0, -1, -1], [3, 0, 0, 256]], 'int32')) + paddle.cast(paddle.sum(x) * 0, 'int32')"),
    "view_dtype_same": by_answer("op('view_dtype', {'input': x}, 'out', 'int32', attr_dtype=2)", dict(x=A([1., -2.], "float32")),
                                 "paddle.to_tensor(np.array([0x3F800000, -0x40000000], 'int32')) + paddle.cast(paddle.sum(x) * 0, 'int32')", ""),
    "transfer_layout": ("op('transfer_layout', {'X': x}, src_layout=2, dst_layout=1)", dict(x=f(1, 2, 3, 4)), ""),
    "transfer_dtype": ("op('transfer_dtype', {'X': x}, 'Out', 'int64', in_dtype=5, out_dtype=3)", dict(x=f(2, 3, lo=-9, hi=9)), ""),
    "npu_identity": ("op('npu_identity', {'x': x}, 'out')", dict(x=f(2, 3)), ""),
    "memcpy_h2d": ("op('memcpy_h2d', {'X': x}, dst_place_type=0)", dict(x=f(2, 3)), ""),
    "memcpy_d2h": ("op('memcpy_d2h', {'X': x}, dst_place_type=0)", dict(x=i(2, 3))),
    "shadow_output": by_answer("op('shadow_output', {'x': x}, 'out', name='kept')", dict(x=f(2, 3)), "x * 1.", ""),
    "fetch_v2": by_answer("op('fetch_v2', {'X': x}, col=0)", dict(x=f(2, 3)), "x * 1.", ""),
    "identity_loss_sum": ("op('identity_loss', {'X': x}, reduction=0)", dict(x=d(2, 3)), ""),
    "identity_loss_sum_grad": by_answer("op('identity_loss', {'X': x}, reduction=0)", dict(x=d(2, 3)), "paddle.sum(x)"),
    "identity_loss_mean": by_answer("op('identity_loss', {'X': x}, reduction=1)", dict(x=d(2, 3)), "paddle.mean(x)"),
    "identity_loss_none": by_answer("op('identity_loss', {'X': x}, reduction=2)", dict(x=f(2, 3)), "x * 1."),
    "grad_add": ("op('grad_add', {'X': x, 'Y': y})", dict(x=f(2, 3), y=f(2, 3)), ""),
    "fill": by_answer("op('fill', {}, 'Out', 'float32', value=[1., 2., 3., 4.], shape=[2, 2], attr_dtype=5) + x", dict(x=f(2, 2)),
                      "paddle.to_tensor(np.array([[1, 2], [3, 4]], 'float32')) + x", ""),
    "full_int_array": by_answer("op('full_int_array', {}, 'out', 'int64', value=[4, 5], attr_dtype=3) + x", dict(x=i(2)), "paddle.to_tensor(np.array([4, 5])) + x"),
    "check_numerics": ("op('check_numerics', {'tensor': x}, 'stats values', every=True, check_nan_inf_level=3, op_type='a', var_name='b')",
                       dict(x=A([[0, 1.5], [-2, 3]], "float32")), ""),
    "hash_int64": ("op('hash', {'X': x}, num_hash=3, mod_by=10000)", dict(x=i(4, 2, lo=0, hi=1000))),
    "hash_int32_long": ("op('hash', {'X': x}, num_hash=2, mod_by=1000000)", dict(x=i32(3, 11, lo=0, hi=1000))),
    "lookup_table_dequant": ("op('lookup_table_dequant', {'W': w, 'Ids': k}, dtype='float32')", dict(w=f(3, 5, lo=1, hi=9), k=A([[1], [2]])), ""),
})

rotary = "op('fused_rotary_position_embedding', {'q': q, 'k': k, 'sin': s, 'cos': c}, 'out_q out_k', every=True, use_neox_rotary_style=%s)"


def rotary_pairs(q, k, s, c):
    def turn(x):
        other = paddle.reshape(paddle.stack([-x[..., 1::2], x[..., 0::2]], -1), x.shape)
        return x * paddle.unsqueeze(c, 1) + other * paddle.unsqueeze(s, 1)
    return [turn(q), turn(k)]


def rotary_halves(q, k, s, c):
    def turn(x):
        a, b = paddle.split(x, 2, -1)
        return x * paddle.unsqueeze(c, 1) + paddle.concat([-b, a], -1) * paddle.unsqueeze(s, 1)
    return [turn(q), turn(k)]


def rotary_natural(q):
    angle = np.arange(3)[:, None] / 10000. ** (np.arange(4) // 2 * 2 / 4.)
    c, s = [paddle.to_tensor(v(angle)[:, None]) for v in (np.cos, np.sin)]
    return q * c + paddle.reshape(paddle.stack([-q[..., 1::2], q[..., 0::2]], -1), q.shape) * s


def attend(q, k, v, scale, mask=None):
    q, k, v = [paddle.transpose(t, [0, 2, 1, 3]) for t in (q, k, v)]
    k, v = [paddle.repeat_interleave(t, q.shape[1] // k.shape[1], 1) for t in (k, v)]
    scores = paddle.matmul(q, k, transpose_y=True) * scale
    scores = scores if mask is None else scores + mask
    return paddle.transpose(paddle.matmul(F.softmax(scores, -1), v), [0, 2, 1, 3])



def heads_first(attention):
    """[batch, heads, steps, width] for a function of [batch, steps, heads, width]."""
    return lambda *tensors: paddle.transpose(attention(*[paddle.transpose(t, [0, 2, 1, 3]) for t in tensors]), [0, 2, 1, 3])


def causal(queries, keys):
    return paddle.to_tensor(np.triu(np.full((queries, keys), -1e30), keys - queries + 1))


def flash_plain(q, k, v):
    return attend(q, k, v, 4 ** -.5)


def flash_masked(q, k, v, m):
    return attend(q, k, v, 4 ** -.5, m)


def flash_causal(q, k, v):
    return attend(q, k, v, 4 ** -.5, causal(3, 5))


def flash_sequences(q, k, v):
    parts = [attend(q[a:b].unsqueeze(0), k[c:e].unsqueeze(0), v[c:e].unsqueeze(0), .3)[0] for a, b, c, e in ((0, 2, 0, 3), (2, 5, 3, 5))]
    return paddle.concat(parts, 0)


def variable_lengths(q, k, v):
    parts = [heads_first(lambda *t: attend(*t, .5))(q[n:n + 1, :, :a], k[n:n + 1, :, :c], v[n:n + 1, :, :c]) for n, a, c in ((0, 3, 2), (1, 1, 4))]
    return paddle.concat([F.pad(p, [0, 0, 0, 3 - p.shape[2]]) for p in parts], 0)


def dropout_norm(x, r, b, g, s):
    return F.layer_norm(r + x + b, [4], g, s, 1e-5)


def rms(x, w, b):
    return x * paddle.rsqrt(paddle.mean(x * x, -1, keepdim=True) + 1e-5) * w + b


fused = family("fused_on_devices", {
    "rotary_pairs": by_answer(rotary % True, dict(q=d(2, 3, 2, 4), k=d(2, 3, 1, 4), s=d(3, 4), c=d(3, 4)), rotary_pairs, "q k"),
    "rotary_halves": by_answer(rotary % False, dict(q=f(2, 3, 2, 4), k=f(2, 3, 2, 4), s=f(3, 4), c=f(3, 4)), rotary_halves, "q k"),
    "rotary_natural": by_answer("op('fused_rotary_position_embedding', {'q': q}, 'out_q')", dict(q=d(2, 3, 2, 4)), rotary_natural, "q", **FLOAT_FACTOR),
    "rotary_positions": by_answer("op('fused_rotary_position_embedding', {'q': q, 'sin': s, 'cos': c, 'position_ids': p}, 'out_q')",
                                  dict(q=d(2, 3, 2, 4), s=d(5, 4), c=d(5, 4), p=A([[4, 0, 2], [4, 0, 2]])),
                                  lambda q, s, c, p: rotary_pairs(q, q, paddle.gather(s, p[0]), paddle.gather(c, p[0]))[0], "q"),
    "flash_attn": by_answer("op('flash_attn', {'q': q, 'k': k, 'v': v}, 'out softmax softmax_lse seed_offset')",
                            dict(q=d(2, 3, 2, 4), k=d(2, 5, 2, 4), v=d(2, 5, 2, 4)), flash_plain),
    "flash_attn_shared_heads": by_answer("op('flash_attn', {'q': q, 'k': k, 'v': v}, 'out softmax softmax_lse seed_offset')",
                                         dict(q=d(2, 3, 4, 4), k=d(2, 5, 2, 4), v=d(2, 5, 2, 4)), flash_plain),
    "flash_attn_masked": by_answer("op('flash_attn', {'q': q, 'k': k, 'v': v, 'attn_mask': m}, 'out softmax softmax_lse seed_offset')",
                                   dict(q=f(2, 3, 2, 4), k=f(2, 5, 2, 4), v=f(2, 5, 2, 4), m=f(2, 1, 3, 5)), flash_masked, "q k v"),
    "flash_attn_causal": by_answer("op('flash_attn', {'q': q, 'k': k, 'v': v}, 'out softmax softmax_lse seed_offset', causal=True)",
                                   dict(q=d(2, 3, 2, 4), k=d(2, 5, 2, 4), v=d(2, 5, 2, 4)), flash_causal),
    "flash_attn_unpadded": by_answer("op('flash_attn_unpadded', {'q': q, 'k': k, 'v': v, 'cu_seqlens_q': a, 'cu_seqlens_k': c}, 'out softmax softmax_lse seed_offset', "
                                     "max_seqlen_q=3, max_seqlen_k=3, scale=.3)",
                                     dict(q=d(5, 2, 4), k=d(5, 2, 4), v=d(5, 2, 4), a=A([0, 2, 5], "int32"), c=A([0, 3, 5], "int32")),
                                     lambda q, k, v, a, c: flash_sequences(q, k, v)),
    "memory_efficient_attention": by_answer("op('memory_efficient_attention', {'query': q, 'key': k, 'value': v, 'bias': m}, 'output logsumexp seed_and_offset', "
                                            "max_seqlen_q=3., max_seqlen_k=5., causal=False, dropout_p=0., scale=-1., is_test=True)",
                                            dict(q=f(2, 3, 2, 4), k=f(2, 5, 2, 4), v=f(2, 5, 2, 4), m=f(2, 1, 3, 5)), flash_masked, "q k v"),
    "variable_lengths": by_answer("op('variable_length_memory_efficient_attention', {'query': q, 'key': k, 'value': v, 'seq_lens': a, 'kv_seq_lens': c}, 'out', "
                                  "scale=.5, causal=False, pre_cache_length=0)",
                                  dict(q=d(2, 2, 3, 4), k=d(2, 2, 4, 4), v=d(2, 2, 4, 4), a=A([[3], [1]], "int32"), c=A([[2], [4]], "int32")),
                                  lambda q, k, v, a, c: variable_lengths(q, k, v), ""),
    "dropout_add_none": by_answer("op('fused_dropout_add', {'x': x, 'y': y}, 'out seed_offset', p=0., is_test=False, mode='upscale_in_train')",
                                  dict(x=d(2, 3), y=d(2, 3)), "x + y"),
    "dropout_add_test": by_answer("op('fused_dropout_add', {'x': x, 'y': y}, 'out seed_offset', p=.25, is_test=True, mode='downgrade_in_infer')",
                                  dict(x=d(2, 3), y=d(2, 3)), "x * .75 + y"),
    "dropout_norm": by_answer("op('fused_bias_dropout_residual_layer_norm', {'X': x, 'Residual': r, 'Bias': b, 'LnScale': g, 'LnBias': s}, "
                              "'Y BiasDropoutResidualOut DropoutMaskOut LnMean LnVariance', dropout_rate=0.)",
                              dict(x=d(2, 3, 4), r=d(2, 3, 4), b=d(4), g=d(4), s=d(4)), dropout_norm),
    "dropout_norm_bare": by_answer("op('fused_bias_dropout_residual_layer_norm', {'X': x, 'Residual': r}, "
                                   "'Y BiasDropoutResidualOut DropoutMaskOut LnMean LnVariance', dropout_rate=.5, is_test=True)",
                                   dict(x=f(2, 3, 4), r=f(2, 3, 4)), "F.layer_norm(r + x * .5, [4], None, None, 1e-5)", ""),
    "bias_residual_layernorm": by_answer("op('fused_bias_residual_layernorm', {'x': x, 'bias': b, 'residual': r, 'norm_weight': g, 'norm_bias': s}, "
                                         "'out residual_out mean variance', every=True, epsilon=1e-5, residual_alpha=.5, begin_norm_axis=1, quant_scale=-1., "
                                         "quant_round_type=1, quant_max_bound=127., quant_min_bound=-127.)[:2]",
                                         dict(x=f(3, 4), b=f(4), r=f(3, 4), g=f(4), s=f(4)), "[F.layer_norm(x + b + r * .5, [4], g, s, 1e-5), x + b + r * .5]", ""),
    "rms_norm": by_answer("op('rms_norm', {'x': x, 'norm_weight': w, 'norm_bias': b}, 'out', epsilon=1e-5, begin_norm_axis=1, quant_scale=-1., "
                          "quant_round_type=1, quant_max_bound=127., quant_min_bound=-127.)", dict(x=d(3, 4), w=d(4), b=d(4)), rms, ""),
    "rms_norm_residual": by_answer("op('rms_norm', {'x': x, 'residual': r, 'norm_weight': w, 'norm_bias': b}, 'out residual_out', every=True, epsilon=1e-5, "
                                   "begin_norm_axis=2, quant_scale=-1., quant_round_type=1, quant_max_bound=127., quant_min_bound=-127.)",
                                   dict(x=f(2, 3, 4), r=f(2, 3, 4), w=f(4), b=f(4)), lambda x, r, w, b: [rms(x + r, w, b), x + r], ""),
    "linear_param_grad_add": by_answer("op('fused_linear_param_grad_add', {'x': x, 'dout': g, 'dweight': w, 'dbias': b}, 'dweight_out dbias_out', every=True, multi_precision=False)",
                                       dict(x=d(2, 3, 4), g=d(2, 3, 5), w=d(4, 5), b=d(5)),
                                       "[paddle.matmul(x.reshape([6, 4]), g.reshape([6, 5]), transpose_x=True) + w, g.sum([0, 1]) + b]", ""),
    "batch_fc": by_answer("op('batch_fc', {'Input': x, 'W': w, 'Bias': b})", dict(x=d(2, 3, 4), w=d(2, 4, 5), b=d(2, 5)), "paddle.bmm(x, w) + b.unsqueeze(1)"),
    "correlation": by_answer("op('correlation', {'Input1': x, 'Input2': y}, 'Output', pad_size=1, kernel_size=1, max_displacement=1, stride1=1, stride2=1)",
                             dict(x=d(2, 3, 4, 5), y=d(2, 3, 4, 5)),
                             "paddle.stack([paddle.mean(x * F.pad(y, [1, 1, 1, 1])[:, :, j:j + 4, i:i + 5], 1) for j in range(3) for i in range(3)], 1)"),
    "embedding_fc_lstm": ("op('fused_embedding_fc_lstm', {'Ids': k, 'Embeddings': w, 'WeightH': h, 'Bias': b}, 'Hidden Cell XX BatchedInput BatchedHidden BatchedCell "
                          "ReorderedH0 ReorderedC0', dtype='float32', every=True, use_peepholes=True)[:2]",
                          dict(k=In(lambda rng: rng.randint(0, 5, (5, 1)), [[2, 3]]), w=f(5, 8), h=f(2, 8), b=f(1, 14)), ""),
    "embedding_fc_lstm_reverse": ("op('fused_embedding_fc_lstm', {'Ids': k, 'Embeddings': w, 'WeightH': h, 'Bias': b}, 'Hidden Cell XX BatchedInput BatchedHidden "
                                  "BatchedCell ReorderedH0 ReorderedC0', dtype='float64', every=True, use_peepholes=False, is_reverse=True)[:2]",
                                  dict(k=In(lambda rng: rng.randint(0, 5, (5, 1)), [[2, 3]]), w=d(5, 8), h=d(2, 8), b=d(1, 8)), ""),
    "seqpool_cvm": by_answer("op('fused_seqpool_cvm', {'X': [x], 'CVM': c})", dict(x=In(lambda rng: rng.uniform(0, 3, (5, 4)).astype('float32'), [[2, 3]]), c=f(2, 2)),
                             "op('cvm', {'X': op('sequence_pool', {'X': x}, 'Out MaxIndex', pooltype='SUM'), 'CVM': c}, 'Y', use_cvm=True)", ""),
    "transpose_flatten_concat": by_answer("op('fusion_transpose_flatten_concat', {'X': [x, y]}, trans_axis=[0, 2, 3, 1], flatten_axis=1, concat_axis=1)",
                                          dict(x=f(2, 3, 4, 5), y=f(2, 1, 2, 2)),
                                          "paddle.concat([paddle.flatten(paddle.transpose(t, [0, 2, 3, 1]), 1) for t in (x, y)], 1)", ""),
    "conv2d_add_act": by_answer("op('fused_conv2d_add_act', {'Input': x, 'Filter': w, 'Bias': b, 'ResidualData': r}, 'Output', paddings=[1, 1], activation='sigmoid')",
                                dict(x=f(2, 3, 4, 4), w=f(2, 3, 3, 3), b=f(2), r=f(2, 2, 4, 4)), "F.sigmoid(F.conv2d(x, w, b, padding=1) + r)", ""),
    "token_prune": by_answer("op('fused_token_prune', {'Attn': a, 'X': x, 'Mask': m, 'NewMask': n}, 'SlimmedX CLSInds')",
                             dict(a=A([[[[1, 2, 3, 4], [4, 3, 2, 1], [5, 9, 5, 4], [9, 6, 5, 4]], [[8, 5, 2, 0], [1, 0, 2, 3], [2, 2, 3, 2], [7, 4, 1, 8]]]], "float32"),
                                  x=f(1, 4, 3), m=A([[[[-1, -1, -1, 1]] + [[-1, -1, 1, 1]] * 3, [[-1, -1, 1, 1]] * 4]], "float32"), n=f(1, 2, 2, 2)),
                             "paddle.index_select(x, paddle.to_tensor([0, 3]), 1)", ""),
})
for act, function in dict(gelu="F.gelu(x + b)", relu="F.relu(x + b)", swiglu="F.silu((x + b)[:, :3]) * (x + b)[:, 3:]", geglu="F.gelu((x + b)[:, :3]) * (x + b)[:, 3:]").items():
    fused["bias_act_" + act] = by_answer(f"op('fused_bias_act', {{'x': x, 'bias': b}}, 'out', act_method='{act}')", dict(x=f(4, 6), b=f(6)), function, "")
fused["bias_act_smooth"] = by_answer("op('fused_bias_act', {'x': x, 'shift': s, 'smooth': m}, 'out', act_method='relu')", dict(x=f(4, 6), s=f(6), m=f(6)),
                                     "(F.relu(x) + s) * m", "")

def layer_attention(x, w, o, flat=False, pre=False, residual=True, bias=None, mask=None, cache=None, out_bias=None, g1=None, s1=None, g2=None, s2=None):
    """A layer's half, of two heads of width 3: its output, and its keys and values."""
    rows = F.layer_norm(x, [6], g1, s1, 1e-5) if pre else x
    all = paddle.matmul(rows, w if flat else paddle.transpose(w.reshape([18, 6]), [1, 0]))
    all = all if bias is None else all + bias.reshape([18])
    q, k, v = [paddle.transpose(t.reshape([0, 0, 2, 3]), [0, 2, 1, 3]) for t in paddle.split(all, 3, -1)]
    if cache is not None:
        k, v = paddle.concat([cache[0], k], 2), paddle.concat([cache[1], v], 2)
    scores = paddle.matmul(q, k, transpose_y=True) / 3 ** .5
    weights = F.softmax(scores if mask is None else scores + mask)
    out = paddle.matmul(paddle.transpose(paddle.matmul(weights, v), [0, 2, 1, 3]).reshape([0, 0, 6]), o)
    out = out if out_bias is None else out + out_bias
    out = out + x if residual else out
    return out if pre else F.layer_norm(out, [6], g2, s2, 1e-5), paddle.stack([k, v])


def layer_feed_forward(x, w1, w2, act=None, pre=False, residual=True, b1=None, b2=None, g=None, s=None):
    rows = F.layer_norm(x, [6], g, s, 1e-5) if pre else x
    hidden = paddle.matmul(rows, w1)
    out = paddle.matmul((act or F.gelu)(hidden if b1 is None else hidden + b1), w2)
    out = out if b2 is None else out + b2
    out = out + x if residual else out
    return out if pre else F.layer_norm(out, [6], g, s, 1e-5)


def transformer_layer(x, w, o, w1, w2, gate=None, pre=True, **more):
    out, kept = layer_attention(x, w, o, pre=pre, **{k: v for k, v in more.items() if k in "bias mask cache out_bias g1 s1 g2 s2 flat".split()})
    return layer_feed_forward(out, w1, w2, gate, pre, b1=more.get("b1"), b2=more.get("b2"), g=more.get("g"), s=more.get("s")), kept


def rms_layer(x, w, o, w1, w2, g, e):
    """With norms of another kind in front, and half of what is passed by."""
    all = paddle.matmul(rms(x, g, 0.), paddle.transpose(w.reshape([18, 6]), [1, 0]))
    q, k, v = [t.reshape([0, 0, 2, 3]) for t in paddle.split(all, 3, -1)]
    x = x * .5 + paddle.matmul(attend(q, k, v, 3 ** -.5).reshape([0, 0, 6]), o)
    return x * .5 + paddle.matmul(F.gelu(paddle.matmul(rms(x, e, 0.), w1)), w2)


def gated(act):
    return lambda x: act(paddle.split(x, 2, -1)[0]) * paddle.split(x, 2, -1)[1]


attention_kept = ("Y LnMean LnVariance LnOut QKVOut QKVBiasOut TransposeOut2 QKOut QKTVOut SoftmaxOut SrcMaskOut AttnDropoutOut AttnDropoutMaskOut FMHAOut "
                  "OutLinearOut DropoutMaskOut Ln2Mean Ln2Variance BiasDropoutResidualOut")
feed_forward_kept = "Out Dropout1Mask Dropout2Mask Linear1Out Dropout1Out Dropout2Out Ln1Out Ln1Mean Ln1Variance Ln2Mean Ln2Variance"
no_dropout = "attn_dropout_rate=0., dropout_rate=0."
attention_in = dict(x=d(2, 3, 6), w=d(3, 2, 3, 6), o=d(6, 6))
all_biases = dict(b=d(3, 2, 3), c=d(6), g=d(6, lo=.5, hi=1.5), s=d(6))
feed_forward_in = dict(x=d(2, 3, 6), w1=d(6, 5), w2=d(5, 6))
layer_in = dict(x=d(2, 3, 6), w=d(3, 2, 3, 6), o=d(6, 6), w1=d(6, 5), w2=d(5, 6))
one_layer = "'QKVW': [w], 'OutLinearW': [o], 'FFN1Weight': [w1], 'FFN2Weight': [w2]"
two_layers = dict(x=f(2, 3, 6), **{name + n: make for n in "12" for name, make in dict(
    w=f(3, 2, 3, 6), o=f(6, 6), u=f(6, 5), v=f(5, 6), a=f(6), b=f(3, 2, 3), c=f(6), e=f(6), h=f(5), k=f(6), p=f(6), q=f(6)).items()})


def two_transformer_layers(x, **t):
    for n in "12":
        x = transformer_layer(x, t["w" + n], t["o" + n], t["u" + n], t["v" + n], g1=t["a" + n], s1=t["p" + n], bias=t["b" + n], out_bias=t["c" + n],
                              g=t["e" + n], s=t["q" + n], b1=t["h" + n], b2=t["k" + n])[0]
    return x


def one_step(x, w, o, w1, w2, k, bias=None, mask=None):
    """Step 2 of a cache of 4 steps."""
    out, kept = transformer_layer(x, w, o, w1, w2, cache=k[:, :, :, :2], bias=bias, mask=mask)
    return [out, paddle.concat([kept, k[:, :, :, 3:]], 3)]


def first_steps(x, w, o, w1, w2, k):
    out, kept = transformer_layer(x, w, o, w1, w2)
    return [out, paddle.concat([kept, k[:, :, :, 3:]], 3)]


family("fused_transformer", {
    "attention": by_answer(f"op('fused_attention', {{'X': x, 'QKVW': w, 'OutLinearW': o}}, '{attention_kept}', {no_dropout})", attention_in,
                           lambda x, w, o: layer_attention(x, w, o)[0]),
    "attention_post": by_answer(f"op('fused_attention', {{'X': x, 'QKVW': w, 'OutLinearW': o, 'QKVBias': b, 'OutLinearBias': c, 'SrcMask': m, 'Ln2Scale': g, 'Ln2Bias': s}}, "
                                f"'{attention_kept}', {no_dropout})", dict(**attention_in, **all_biases, m=d(2, 1, 3, 3)),
                                lambda x, w, o, b, c, g, s, m: layer_attention(x, w, o, bias=b, out_bias=c, mask=m, g2=g, s2=s)[0], "x w o b c g s"),
    "attention_pre": by_answer(f"op('fused_attention', {{'X': x, 'QKVW': w, 'OutLinearW': o, 'QKVBias': b, 'OutLinearBias': c, 'SrcMask': m, 'LnScale': g, 'LnBias': s}}, "
                               f"'{attention_kept}', {no_dropout}, pre_layer_norm=True)", dict(**attention_in, **all_biases, m=d(2, 2, 3, 3)),
                               lambda x, w, o, b, c, g, s, m: layer_attention(x, w, o, pre=True, bias=b, out_bias=c, mask=m, g1=g, s1=s)[0], "x w o b c g s"),
    "attention_flat": by_answer(f"op('fused_attention', {{'X': x, 'QKVW': w, 'OutLinearW': o, 'QKVBias': b}}, '{attention_kept}', {no_dropout}, pre_layer_norm=True, "
                                "num_heads=2, transpose_qkv_wb=True, add_residual=False)", dict(x=d(2, 3, 6), w=d(6, 18), o=d(6, 6), b=d(18)),
                                lambda x, w, o, b: layer_attention(x, w, o, flat=True, pre=True, residual=False, bias=b)[0]),
    "attention_cache": by_answer(f"op('fused_attention', {{'X': x, 'QKVW': w, 'OutLinearW': o, 'CacheKV': k}}, 'Y CacheKVOut', every=True, pre_layer_norm=True, is_test=True, "
                                 "attn_dropout_rate=.3, dropout_rate=.5, dropout_implementation='upscale_in_train')",
                                 dict(x=f(2, 1, 6), w=f(3, 2, 3, 6), o=f(6, 6), k=f(2, 2, 2, 4, 3)), lambda x, w, o, k: list(layer_attention(x, w, o, pre=True, cache=k)), ""),
    "feed_forward": by_answer(f"op('fused_feedforward', {{'X': x, 'Linear1Weight': w1, 'Linear2Weight': w2}}, '{feed_forward_kept}', dropout1_rate=0., dropout2_rate=0.)",
                              feed_forward_in, lambda x, w1, w2: layer_feed_forward(x, w1, w2)),
    "feed_forward_post": by_answer(f"op('fused_feedforward', {{'X': x, 'Linear1Weight': w1, 'Linear2Weight': w2, 'Linear1Bias': p, 'Linear2Bias': q, 'Ln2Scale': g, 'Ln2Bias': s}}, "
                                   f"'{feed_forward_kept}', dropout1_rate=0., dropout2_rate=0., act_method='relu')",
                                   dict(**feed_forward_in, p=d(5), q=d(6), g=d(6), s=d(6)),
                                   lambda x, w1, w2, p, q, g, s: layer_feed_forward(x, w1, w2, F.relu, b1=p, b2=q, g=g, s=s)),
    "feed_forward_pre": by_answer(f"op('fused_feedforward', {{'X': x, 'Linear1Weight': w1, 'Linear2Weight': w2, 'Linear1Bias': p, 'Linear2Bias': q, 'Ln1Scale': g, 'Ln1Bias': s}}, "
                                  f"'{feed_forward_kept}', dropout1_rate=0., dropout2_rate=0., pre_layer_norm=True)",
                                  dict(**feed_forward_in, p=d(5), q=d(6), g=d(6), s=d(6)),
                                  lambda x, w1, w2, p, q, g, s: layer_feed_forward(x, w1, w2, pre=True, b1=p, b2=q, g=g, s=s)),
    "feed_forward_alone": by_answer(f"op('fused_feedforward', {{'X': x, 'Linear1Weight': w1, 'Linear2Weight': w2}}, '{feed_forward_kept}', dropout1_rate=0., dropout2_rate=0., "
                                    "pre_layer_norm=True, add_residual=False, act_method='relu')", feed_forward_in,
                                    lambda x, w1, w2: layer_feed_forward(x, w1, w2, F.relu, pre=True, residual=False)),
    "feed_forward_test": by_answer("op('fused_feedforward', {'X': x, 'Linear1Weight': w1, 'Linear2Weight': w2}, is_test=True, pre_layer_norm=True, dropout1_rate=.25, "
                                   "dropout2_rate=.5)", dict(x=f(2, 3, 6), w1=f(6, 5), w2=f(5, 6)),
                                   lambda x, w1, w2: x + layer_feed_forward(x, w1, w2 * .75 * .5, pre=True, residual=False), ""),
    "transformer": by_answer("op('fused_multi_transformer', {'X': x, 'LnScale': [a1, a2], 'LnBias': [p1, p2], 'QKVW': [w1, w2], 'QKVBias': [b1, b2], 'OutLinearW': [o1, o2], "
                             "'OutLinearBias': [c1, c2], 'FFNLnScale': [e1, e2], 'FFNLnBias': [q1, q2], 'FFN1Weight': [u1, u2], 'FFN1Bias': [h1, h2], "
                             "'FFN2Weight': [v1, v2], 'FFN2Bias': [k1, k2]})", two_layers, two_transformer_layers, ""),
    "transformer_post": by_answer(f"op('fused_multi_transformer', {{'X': x, {one_layer}, 'LnScale': [g], 'FFNLnBias': [s], 'SrcMask': m}}, pre_layer_norm=False, act_method='relu')",
                                  dict(**layer_in, g=d(6), s=d(6), m=d(2, 1, 3, 3)),
                                  lambda x, w, o, w1, w2, g, s, m: transformer_layer(x, w, o, w1, w2, F.relu, pre=False, mask=m, g2=g, s=s)[0], ""),
    "transformer_flat": by_answer(f"op('fused_multi_transformer', {{'X': x, {one_layer}}}, trans_qkvw=False, act_method='none')", {**layer_in, 'w': d(6, 3, 2, 3)},
                                  lambda x, w, o, w1, w2: transformer_layer(x, w.reshape([6, 18]), o, w1, w2, lambda x: x, flat=True)[0], ""),
    "transformer_swiglu": by_answer(f"op('fused_multi_transformer', {{'X': x, {one_layer}}}, act_method='swiglu')", {**layer_in, 'w1': d(6, 10)},
                                    lambda x, w, o, w1, w2: transformer_layer(x, w, o, w1, w2, gated(F.silu))[0], ""),
    "transformer_rms": by_answer(f"op('fused_multi_transformer', {{'X': x, {one_layer}, 'LnScale': [g], 'FFNLnScale': [e]}}, norm_type='rmsnorm', residual_alpha=.5)",
                                 dict(x=f(2, 3, 6), w=f(3, 2, 3, 6), o=f(6, 6), w1=f(6, 5), w2=f(5, 6), g=f(6), e=f(6)),
                                 rms_layer, ""),
    "transformer_first_steps": by_answer(f"op('fused_multi_transformer', {{'X': x, {one_layer}, 'CacheKV': [k]}}, 'Out CacheKVOut', every=True)", dict(**layer_in, k=d(2, 2, 2, 4, 3)),
                                         first_steps, ""),
    "transformer_one_step": by_answer(f"op('fused_multi_transformer', {{'X': x, {one_layer}, 'CacheKV': [k], 'TimeStep': t}}, 'Out CacheKVOut', every=True)",
                                      dict({**layer_in, 'x': d(2, 1, 6)}, k=d(2, 2, 2, 4, 3), t=A([2], "int32")), lambda t, **more: one_step(**more), "", **FLOAT_FACTOR),
    "transformer_one_step_masked": by_answer(f"op('fused_multi_transformer', {{'X': x, {one_layer}, 'CacheKV': [k], 'TimeStep': t, 'QKVBias': [b], 'SrcMask': m}}, "
                                             "'Out CacheKVOut', every=True)",
                                             dict({**layer_in, 'x': d(2, 1, 6)}, k=d(2, 2, 2, 4, 3), t=A([2], "int32"), b=d(3, 2, 3), m=d(2, 1, 1, 3)),
                                             lambda t, b, m, **more: one_step(bias=b, mask=m, **more), "", **FLOAT_FACTOR),
})


# ---- ops that PaddlePaddle's oneDNN passes write ---------------------------
onednn = family("onednn_fused", {
    "conv3d": ("op('fused_conv3d', {'Input': x, 'Filter': w}, 'Output', strides=[1, 1, 1], paddings=[0, 0, 0], dilations=[1, 1, 1], data_format='NCDHW', "
               "fuse_activation='relu', use_mkldnn=True)", dict(x=f(1, 2, 3, 4, 4), w=f(3, 2, 2, 2, 2)), ""),
    "conv3d_all": by_answer("op('fused_conv3d', {'Input': x, 'Filter': w, 'Bias': b, 'ResidualData': r}, 'Output', strides=[1, 1, 1], paddings=[0, 0, 0], "
                            "dilations=[1, 1, 1], data_format='NCDHW', fuse_activation='sigmoid')",
                            dict(x=f(1, 2, 3, 4, 4), w=f(3, 2, 2, 2, 2), b=f(3), r=f(1, 3, 2, 3, 3)), "F.sigmoid(F.conv3d(x, w, b) + r)", ""),
    "softplus": by_answer("op('fused_softplus', {'X': x}, beta=2., fuse_activation='tanh')", dict(x=f(3, 4, lo=-3, hi=3)), "paddle.tanh(F.softplus(x, 2.))", ""),
    "matmul": by_answer("op('fused_matmul', {'X': x, 'Y': y, 'ResidualData': r}, trans_y=True, matmul_alpha=.5, fuse_activation='relu', fused_output_scale=2.)",
                        dict(x=f(2, 3), y=f(4, 3), r=f(2, 4)), "F.relu(paddle.matmul(x, y, transpose_y=True) * .5 + r) * 2.", ""),
    "matmul_moved": by_answer("op('fused_matmul', {'X': x, 'Y': y}, fused_reshape_X=[0, 0, 2, 3], fused_transpose_X=[0, 2, 1, 3], fused_transpose_Out=[0, 2, 1, 3], "
                              "fused_reshape_Out=[0, 0, 8])", dict(x=f(2, 5, 6), y=f(2, 2, 3, 4)),
                              "paddle.matmul(x.reshape([2, 5, 2, 3]).transpose([0, 2, 1, 3]), y).transpose([0, 2, 1, 3]).reshape([2, 5, 8])", ""),
    "transpose": by_answer("op('fused_transpose', {'X': x}, 'Out XShape', axis=[1, 0], fused_squeeze2_axes=[1], fused_unsqueeze2_axes=[0])", dict(x=f(2, 1, 3)),
                           "x.squeeze(1).transpose([1, 0]).unsqueeze(0)", ""),
    "transpose_reshape": by_answer("op('fused_transpose', {'X': x}, 'Out XShape', axis=[0, 2, 1], fused_reshape2_shape=[2, 12])", dict(x=f(2, 3, 4)),
                                   "x.transpose([0, 2, 1]).reshape([2, 12])", ""),
    "elementwise_scales": by_answer("op('fused_elementwise_mul', {'X': x, 'Y': y}, fused_output_scale=.5, scale_x=2., scale_y=4., scale_out=3., fused_unsqueeze2_axes=[0])",
                                    dict(x=f(2, 3), y=f(3)), "((x / 2. * (y / 4.)) * 3. * .5).unsqueeze(0)", ""),
    "multi_gru": by_answer("op('multi_gru', {'X': x, 'WeightX': [a, b], 'WeightH': [c, e], 'Bias': [g, h]}, 'Hidden')",
                           dict(x=In(lambda rng: rng.uniform(-1, 1, (5, 3)).astype('float32'), [[2, 3]]), a=f(3, 6), b=f(3, 6), c=f(2, 6), e=f(2, 6), g=f(1, 6), h=f(1, 6)),
                           "paddle.concat([op('fusion_gru', {'X': x, 'WeightX': wx, 'WeightH': wh, 'Bias': bias}, 'Hidden XX BatchedInput BatchedOut ReorderedH0', "
                           "is_reverse=r) for wx, wh, bias, r in ((a, c, g, False), (b, e, h, True))], 1)", ""),
})
for name, sign in dict(add="+", sub="-", mul="*", div="/").items():
    onednn["elementwise_" + name] = by_answer(f"op('fused_elementwise_{name}', {{'X': x, 'Y': y}}, fuse_activation='tanh')", dict(x=f(2, 3), y=f(3, lo=.5, hi=2)),
                                              f"paddle.tanh(x {sign} y)", "")
for act, answer in dict(swish="x * F.sigmoid(1.5 * x)", hard_swish="x * paddle.clip(1.5 * x + .25, 0., 1.)", hard_sigmoid="paddle.clip(1.5 * x + .25, 0., 1.)",
                        relu6="paddle.clip(x, 0., 1.5)", gelu_erf="F.gelu(x)", gelu_tanh="F.gelu(x, True)", mish="F.mish(x)", linear="x * 1.5 + .25").items():
    onednn["act_" + act] = by_answer(f"op('fused_elementwise_add', {{'X': x, 'Y': y}}, fuse_activation='{act}', fuse_alpha=1.5, fuse_beta=.25)",
                                     dict(x=f(3, 4, lo=-3, hi=3), y=A([0.], "float32")), answer, "")

# ---- updates again ---------------------------------------------------------
family("more_updates", {
    "fused_adam": ("op('fused_adam', {'Params': [p], 'Grads': [g], 'LearningRate': r, 'Moments1': [m], 'Moments2': [v], 'Beta1Pows': [a], 'Beta2Pows': [b]}, "
                   "'ParamsOut Moments1Out Moments2Out Beta1PowsOut Beta2PowsOut', every=True, chunk_size=65536)",
                   dict(p=f(3, 4), g=f(3, 4), r=A([.1], "float32"), m=f(3, 4), v=f(3, 4, lo=.1, hi=1), a=A([.9], "float32"), b=A([.99], "float32")), ""),
    "fused_adamw": ("op('fused_adam', {'Params': [p], 'Grads': [g], 'LearningRate': r, 'Moments1': [m], 'Moments2': [v], 'Beta1Pows': [a], 'Beta2Pows': [b]}, "
                    "'ParamsOut Moments1Out Moments2Out Beta1PowsOut Beta2PowsOut', every=True, chunk_size=65536, use_adamw=True, weight_decay=.1)",
                    dict(p=f(3, 4), g=f(3, 4), r=A([.1], "float32"), m=f(3, 4), v=f(3, 4, lo=.1, hi=1), a=A([.9], "float32"), b=A([.99], "float32")), ""),
    "dgc_clip": ("op('dgc_clip_by_norm', {'X': x, 'current_step': s}, max_norm=.5, rampup_begin_step=2.)", dict(x=f(3, 4), s=A([2], "float32")), ""),
    "dgc_clip_small": ("op('dgc_clip_by_norm', {'X': x, 'current_step': s}, max_norm=50., rampup_begin_step=2.)", dict(x=f(3, 4), s=A([3], "float32")), ""),
    "dgc_clip_early": by_answer("op('dgc_clip_by_norm', {'X': x, 'current_step': s}, max_norm=.5, rampup_begin_step=2.)", dict(x=f(3, 4), s=A([1], "float32")), "x * 1.", ""),
    "dgc_momentum_early": by_answer("op('dgc_momentum', {'Param': p, 'Grad': g, 'Velocity': v, 'LearningRate': r, 'current_step': s, 'nranks': n}, "
                                    "'ParamOut VelocityOut Grad_out', every=True, mu=.9, rampup_begin_step=2.)",
                                    dict(p=f(3, 4), g=f(3, 4), v=f(3, 4), r=A([.1], "float32"), s=A([1], "float32"), n=A([2], "float32")),
                                    "[p - .1 * (.9 * v + g / 2), .9 * v + g / 2, g / 2]", ""),
    "dgc_momentum_late": by_answer("op('dgc_momentum', {'Param': p, 'Grad': g, 'Velocity': v, 'LearningRate': r, 'current_step': s, 'nranks': n}, "
                                   "'ParamOut VelocityOut Grad_out', every=True, mu=.9, rampup_begin_step=2.)",
                                   dict(p=f(3, 4), g=f(3, 4), v=f(3, 4), r=A([.1], "float32"), s=A([2], "float32"), n=A([2], "float32")),
                                   "[p - .1 * (g / 2), v * 1., g / 2]", ""),
})

# ---- graphs, samples, experts ----------------------------------------------
graph = dict(row=A([3, 7, 0, 9, 1, 4, 2, 9, 3, 9, 1, 9, 7]), ptr=A([0, 2, 4, 5, 6, 7, 9, 11, 11, 13, 13]), x=A([0, 8, 1, 2]))
family("samples", {
    "neighbors_all": ("op('graph_sample_neighbors', {'Row': row, 'Col_Ptr': ptr, 'X': x}, 'Out Out_Count Out_Eids', every=True, sample_size=5)[:2]", graph, ""),
    "neighbors_some": ("op('graph_sample_neighbors', {'Row': row, 'Col_Ptr': ptr, 'X': x}, 'Out Out_Count Out_Eids', every=True, sample_size=2)[:2]", graph, ""),
    "neighbors_edges": ("op('graph_sample_neighbors', {'Row': row, 'Col_Ptr': ptr, 'X': x, 'Eids': e}, 'Out Out_Count Out_Eids', every=True, sample_size=5, return_eids=True)",
                        dict(graph, e=A(list(range(20, 33)))), ""),
    "neighbors_weighted": ("op('weighted_sample_neighbors', {'row': row, 'colptr': ptr, 'edge_weight': w, 'input_nodes': x}, 'out_neighbors out_count out_eids', "
                           "every=True, sample_size=5, return_eids=False)[:2]", dict(graph, w=f(13, lo=.1, hi=1)), ""),
    "number_count": by_answer("op('number_count', {'numbers': x}, upper_range=4)", dict(x=A([0, 2, 2, 1, -1])), "paddle.to_tensor(np.array([1, 1, 2, 0])) + 0 * x[0]", ""),
    "assign_pos": by_answer("op('assign_pos', {'X': x, 'cum_count': c, 'eff_num_len': n})", dict(x=A([0, 2, -1, 2, 1]), c=A([1, 2, 4]), n=A([4])),
                            "paddle.to_tensor(np.array([0, 4, 3, 1])) + 0 * x[0]", ""),
    "limit_by_capacity": by_answer("op('limit_by_capacity', {'expert_count': x, 'capacity': c}, n_worker=2)", dict(x=A([3, 1, 4, 5]), c=A([5, 4])),
                                   "paddle.to_tensor(np.array([3, 1, 2, 3])) + 0 * x[0]", ""),
    "prune_gate": by_answer("op('prune_gate_by_capacity', {'GateIdx': x, 'ExpertCount': c}, 'NewGateIdx', n_expert=3, n_worker=1)", dict(x=A([1, 0, 1, 1, 2]), c=A([1, 2, 0])),
                            "paddle.to_tensor(np.array([1, 0, 1, -1, -1])) + 0 * x[0]", ""),
    "random_routing": by_answer("op('random_routing', {'Prob': p, 'TopK_Value': v, 'TopK_Idx': k}, 'Out', 'int64')",
                                dict(p=A([.1, .9], "float32"), v=A([[.8, .2], [.6, .4]], "float32"), k=A([[0, 2], [2, 1]])),
                                "paddle.to_tensor(np.array([[0, 2], [2, -1]])) + 0 * k[0, 0]", ""),
    "top_p_likeliest": by_answer("op('top_p_sampling', {'x': x, 'ps': p}, 'out ids')", dict(x=A([[.2, .5, .3], [.6, .3, .1]], "float32"), p=A([[.1], [.2]], "float32")),
                                 "paddle.max(x, 1, keepdim=True)", ""),
    "unzip": by_answer("op('unzip', {'X': x, 'lod': n}, 'Y', len=2)", dict(x=f(2, 2), n=A([0, 2, 2, 4])), "paddle.concat([x[:1], x[:1] * 0., x[1:]], 0)", ""),
})


def attend_step(x, cache, bias, mask):
    """Two heads of width 2, at step 2 of a cache of 4."""
    q, k, v = [t.squeeze(1) for t in paddle.split(paddle.reshape(x, [2, 3, 2, 2]) + bias, 3, 1)]
    keys, values = [paddle.concat([old[:, :, :2], new.unsqueeze(2)], 2) for old, new in ((cache[0], k), (cache[1], v))]
    scores = paddle.sum(q.unsqueeze(2) * keys, -1) * 2 ** -.5 + mask[:, 0]
    out = paddle.sum(F.softmax(scores, -1).unsqueeze(-1) * values, 2)
    return [paddle.reshape(out, [2, 4]), paddle.stack([paddle.concat([t, old[:, :, 3:]], 2) for t, old in ((keys, cache[0]), (values, cache[1]))])]


family("samples", {}).update({
    "tdm_sampler": ("op('tdm_sampler', {'X': x, 'Travel': t, 'Layer': n}, 'Out Labels Mask', every=True, neg_samples_num_list=[1, 1], layer_offset_lod=[0, 2, 4])",
                    dict(x=A([[1], [2], [0], [3]]), t=A([[0, 0], [1, 3], [2, 4], [1, 0]]), n=A([[1], [2], [3], [4]])), ""),
    "rank_attention": by_answer("op('rank_attention', {'X': x, 'RankOffset': k, 'RankParam': p}, 'Out InputHelp InsRank', MaxRank=2)",
                                dict(x=d(3, 2), k=A([[1, 1, 0, 2, 1], [2, 1, 2, 0, 0], [0, 0, 0, 0, 0]], "int32"), p=d(8, 3)),
                                "paddle.stack([paddle.matmul(x[0], p[:2]) + paddle.matmul(x[1], p[2:4]), paddle.matmul(x[2], p[4:6]), x[0, 0] * 0 * p[0]])", "p"),
})
fused["masked_multihead_attention"] = by_answer(
    "op('masked_multihead_attention', {'x': x, 'cache_kv': c, 'bias': b, 'src_mask': m}, 'out cache_kv_out', every=True, seq_len=1, rotary_emb_dims=0)",
    dict(x=f(2, 12), c=f(2, 2, 2, 4, 2), b=f(3, 2, 2), m=f(2, 1, 1, 3)), lambda x, c, b, m: attend_step(x, c, b, m), "")
fused["masked_multihead_attention_lengths"] = by_answer(
    "op('masked_multihead_attention', {'x': x, 'cache_kv': c, 'bias': b, 'src_mask': m, 'sequence_lengths': n}, 'out cache_kv_out', every=True, seq_len=1, rotary_emb_dims=0)",
    dict(x=d(2, 12), c=d(2, 2, 2, 4, 2), b=d(3, 2, 2), m=d(2, 1, 1, 3), n=A([[2], [2]], "int32")), lambda x, c, b, m, n: attend_step(x, c, b, m), "", **FLOAT_FACTOR)
fused["scale_bias_add_relu"] = by_answer("op('fused_scale_bias_add_relu', {'x1': x, 'scale1': s, 'bias1': b, 'x2': y}, 'out', fuse_dual=False, exhaustive_search=False)",
                                         dict(x=f(2, 3, 3, 4), s=f(4), b=f(4), y=f(2, 3, 3, 4)), "F.relu(x * s + b + y)", "")
fused["scale_bias_add_relu_dual"] = by_answer(
    "op('fused_scale_bias_add_relu', {'x1': x, 'scale1': s, 'bias1': b, 'x2': y, 'scale2': t, 'bias2': c}, 'out', fuse_dual=True, exhaustive_search=False)",
    dict(x=f(2, 3, 3, 4), s=f(4), b=f(4), y=f(2, 3, 3, 4), t=f(4), c=f(4)), "F.relu(x * s + b + y * t + c)", "")
family("views", {})["fake_init"] = by_answer("op('fake_init', {}, 'Out', 'float32', shape=[2, 3]) + x", dict(x=f(2, 3)), "x * 1.", "")

# ---- 8-bit weights ---------------------------------------------------------
eighths = In(lambda rng: np.concatenate([np.full((1, 64), 127 / 64), rng.randint(-126, 127, (63, 64)) / 64]).astype("float16"))
WEIGHTS = [[3, -7, 120, 5], [-127, 0, 1, 64], [9, 33, -2, -90]]
family("llm_int8", {
    "weight_quantize": ("op('weight_quantize', {'x': x}, 'out scale', dtype='int8', every=True, algo='llm.int8', arch=80)[:1]", dict(x=eighths), ""),
    "weight_dequantize": by_answer("op('weight_dequantize', {'x': x, 'scale': s}, 'out', 'float32', algo='llm.int8', out_dtype=5)", dict(x=A(WEIGHTS, 'int8'), s=f(3), v=A(WEIGHTS, 'float32')),
                                   "paddle.transpose(v * s.unsqueeze(1), [1, 0])", ""),
    # A row of whole numbers with a greatest one of 127 is not rounded.
    "llm_int8_linear": by_answer("op('llm_int8_linear', {'x': x, 'weight': w, 'bias': b, 'weight_scale': s}, 'out', threshold=6.)",
                                 dict(x=A([[1.27, .5, -.3, 9.], [-.2, 1.27, .01, .1]], "float32"), w=A(WEIGHTS, 'int8'), b=f(3), s=f(3), v=A(WEIGHTS, 'float32')),
                                 "paddle.matmul(x, v * s.unsqueeze(1), transpose_y=True) + b", "", rtol=1e-5, atol=1e-5),
    "quant_linear": by_answer("op('quant_linear', {'x': x, 'w': w, 'bias': b}, 'out', scale_in=.5, scale_weights=[2., 4., 1., .5], activation_type='relu')",
                              dict(x=f(5, 3, lo=-3, hi=3), w=A(WEIGHTS, 'int8'), b=f(4), v=A(WEIGHTS, 'float32')),
                              "F.relu(paddle.matmul(paddle.clip(paddle.round(x * 63.5), -127., 127.), v) / "
                              "(127. * 127. * .5 * paddle.to_tensor(np.array([2, 4, 1, .5], 'float32'))) + b)", ""),
})

def quantized(w, bits):
    """A weight rounded to whole multiples of its columns' steps."""
    step = paddle.max(paddle.abs(w), 0) / (2. ** (bits - 1) - 1)
    return paddle.round(w / step) * step


def weight_only_linear(x, w, b, bits):
    weight, scale = paddle.nn.quant.weight_quantize(w, f"weight_only_int{bits}", 80)
    return op("weight_only_linear", {"x": x, "weight": weight, "weight_scale": scale, "bias": b}, "out", "float32", weight_dtype=f"int{bits}", arch=80)


def weight_dequantize(w, bits):
    weight, scale = paddle.nn.quant.weight_quantize(w, f"weight_only_int{bits}", 80)
    return op("weight_dequantize", {"x": weight, "scale": scale}, "out", "float32", algo=f"weight_only_int{bits}", out_dtype=5)


linear = dict(x=f(3, 64), w=f(64, 32), b=f(32))
family("llm_int8", {}).update({
    "weight_only_quantize_int8": ("op('weight_quantize', {'x': x}, 'out scale', dtype='int8', every=True, algo='weight_only_int8', arch=80)[:1]", dict(x=h(128, 32)), ""),
    "weight_only_quantize_int4": ("op('weight_quantize', {'x': x}, 'out scale', dtype='int8', every=True, algo='weight_only_int4', arch=80)[:1]", dict(x=h(128, 32)), ""),
    "weight_only_linear_int8": by_answer(lambda x, w, b: weight_only_linear(x, w, b, 8), linear, lambda x, w, b: paddle.matmul(x, quantized(w, 8)) + b, "", rtol=1e-4, atol=1e-5),
    "weight_only_linear_int4": by_answer(lambda x, w, b: weight_only_linear(x, w, b, 4), linear, lambda x, w, b: paddle.matmul(x, quantized(w, 4)) + b, "", rtol=1e-4, atol=1e-5),
    "weight_only_dequantize_int8": by_answer(lambda w: weight_dequantize(w, 8), dict(w=f(64, 16)), lambda w: quantized(w, 8), ""),
    "weight_only_dequantize_int4": by_answer(lambda w: weight_dequantize(w, 4), dict(w=f(64, 16)), lambda w: quantized(w, 4), ""),
})

# ---- operators that few programs have --------------------------------------
hops = dict(row=A([1, 2, 0, 3, 4, 0, 2, 1]), ptr=A([0, 2, 4, 5, 6, 8]), x=A([0, 2]), e=A([10, 11, 12, 13, 14, 15, 16, 17]))
pictures = dict(x=f(34, 1, lod=[[24, 4, 6]]), r=f(9, 1, lod=[[4, 2, 3]]), c=f(5, 1, lod=[[3, 1, 1]]))


def hop(row, outputs, **attrs):
    arguments = ", ".join(f"{k}={v!r}" for k, v in attrs.items())
    return f"op('graph_khop_sampler', {{{row}'Row': row, 'Col_Ptr': ptr, 'X': x}}, '{outputs}', every=True, {arguments})"


def var_conv(channels, filters, height, width, **strides):
    sizes = dict(InputChannel=channels, OutputChannel=filters, KernelH=height, KernelW=width, **strides)
    return f"op('var_conv_2d', {{'X': x, 'ROW': r, 'COLUMN': c, 'W': w}}, 'Out Col', **{sizes!r})"


def pyramid(**attrs):
    numbers = dict(dict(num_emb=6, rand_len=2, space_len=40, pyramid_layer=3, drop_out_percent=.5, is_training=0, use_filter=False, seed=3), **attrs)
    return f"op('pyramid_hash', {{'X': x, 'W': w, 'WhiteList': a, 'BlackList': b}}, 'Out DropPos X_Temp_Out', 'float32', **{numbers!r})"


def bloom_filter(*groups):
    """PaddlePaddle's Bloom filter, 256 bits and 2 hashes, of groups of words."""
    bits = bytearray(32)
    for group in groups:
        for seed in range(2):
            for place in murmur3(np.array(group, "float32").tobytes(), seed):
                bits[place % 256 // 8] |= 128 >> place % 8
    head = np.array([17070416, 256, 2, len(groups)], "uint64").tobytes()
    return A(np.frombuffer(head + bytes(bits), "float32").reshape(-1, 1), "float32")


def murmur3(data, seed):
    """A. Appleby's MurmurHash3 for 64-bit machines: 128 bits of whole words, as two numbers."""
    most = 2 ** 64 - 1
    rotated = lambda v, n: (v << n | v >> 64 - n) & most
    factors = 0x87c37b91114253d5, 0x4cf5ad432745937f
    h = [seed, seed]
    for start in range(0, len(data), 16):
        block = data[start:start + 16]
        for k, (turn, after, addend) in enumerate(((31, 27, 0x52dce729), (33, 31, 0x38495ab5))):
            word = int.from_bytes(block[8 * k:8 * k + 8], "little") * factors[k] & most
            h[k] ^= rotated(word, turn) * factors[1 - k] & most
            if len(block) == 16:
                h[k] = (rotated(h[k], after) + h[1 - k]) * 5 + addend & most

    def mixed(v):
        v = (v ^ v >> 33) * 0xff51afd7ed558ccd & most
        v = (v ^ v >> 33) * 0xc4ceb9fe1a85ec53 & most
        return v ^ v >> 33

    h = [v ^ len(data) for v in h]
    h[0] = h[0] + h[1] & most
    h[1] = h[1] + h[0] & most
    h = [mixed(v) for v in h]
    h[0] = h[0] + h[1] & most
    return h[0], h[1] + h[0] & most


words = dict(x=A([[3], [1], [4], [1], [5], [9], [2], [6]], "int32"), w=f(42, 1))
words["x"].lod = [[4, 1, 3]]
no_filters = dict(words, a=f(1, 1), b=f(1, 1))
family("rare_types", {
    "khop": (hop("", "Out_Src Out_Dst Sample_Index Reindex_X Out_Eids", sample_sizes=[5, 5])[:-1] + ")[:4]", hops, ""),
    "khop_edges": (hop("'Eids': e, ", "Out_Src Out_Dst Sample_Index Reindex_X Out_Eids", sample_sizes=[5, 5, 5], return_eids=True), hops, ""),
    "khop_int32": (hop("", "Out_Src Out_Dst Sample_Index Reindex_X Out_Eids", sample_sizes=[2])[:-1] + ")[:4]",
                   dict(row=A([1, 2, 0, 3, 4, 0, 2, 1], "int32"), ptr=A([0, 2, 4, 5, 6, 8], "int32"), x=A([4, 1], "int32")), ""),
    "var_conv": (var_conv(2, 3, 3, 3), dict(pictures, w=f(3, 18)), "x w"),
    "var_conv_strides": (var_conv(2, 2, 2, 4, StrideH=2, StrideW=3), dict(pictures, w=f(2, 16)), "x w"),
    "pyramid_hash": (pyramid(), no_filters, ""),
    "pyramid_hash_layers": (pyramid(pyramid_layer=8, num_emb=4, rand_len=4, space_len=38), no_filters, ""),
    "pyramid_hash_training": (pyramid(is_training=1, seed=7), no_filters, ""),
    "pyramid_hash_filters": (pyramid(use_filter=True, white_list_len=16, black_list_len=16),
                             dict(words, a=bloom_filter([3, 1], [1, 4], [4, 1], [3, 1, 4], [9, 2, 6]), b=bloom_filter([1, 4])), ""),
})


def sliced(x, grid, guide, offset):
    """bilateral_slice: grid_sample reads the coefficients of each pixel."""
    (n, c, h, w), places = x.shape, [(paddle.arange(k, dtype=x.dtype) + .5) * 2 / k - 1 for k in x.shape[:1:-1]]
    flow = paddle.stack([paddle.expand(places[0], [n, h, w]), paddle.expand(places[1].unsqueeze(1), [n, h, w]), guide * 2 - 1], -1)
    read = F.grid_sample(grid, flow.unsqueeze(1), padding_mode="border", align_corners=False).squeeze(2)
    width = c + offset
    return paddle.stack([sum((read[:, o * width + i] * (x[:, i] if i < c else 1.) for i in range(1, width)), read[:, o * width] * x[:, 0])
                         for o in range(grid.shape[1] // width)], 1)


def lstm_layers(x, h, c, weights, lengths=None, bidirectional=False):
    """The rnn operator; returns the output and both states."""
    helper = LayerHelper("rnn")
    out, last_h, last_c, reserve, drop = (helper.create_variable_for_type_inference(x.dtype) for _ in range(5))
    inputs = {"Input": [x], "PreState": [h, c], "WeightList": weights}
    if lengths is not None:
        inputs["SequenceLength"] = [lengths]
    helper.append_op(type="rnn", inputs=inputs, outputs={"Out": [out], "State": [last_h, last_c], "Reserve": [reserve], "DropoutState": [drop]},
                     attrs=dict(mode="LSTM", input_size=3, hidden_size=4, num_layers=len(weights) // (8 if bidirectional else 4), is_bidirec=bidirectional,
                                dropout_prob=0., is_test=False, seed=0))
    return [out, last_h, last_c]


def cudnn_lstm(inputs, **attrs):
    return f"op('cudnn_lstm', {{'Input': x, 'InitH': h, 'InitC': c, {inputs}}}, 'Out LastH LastC StateOut Reserve', every=True, **{attrs!r})[:3]"


def flat_lstm(x, h, c, w):
    parts = [paddle.reshape(w[a:b], shape) for a, b, shape in ((0, 48, [16, 3]), (48, 112, [16, 4]), (112, 128, [16]), (128, 144, [16]))]
    return lstm_layers(x, h, c, parts)


def experts(x, gate, a, b, c, d, act):
    """moe: every expert computes every token; those it does not take count 0."""
    taken = paddle.sum(F.one_hot(paddle.topk(paddle.transpose(gate, [0, 2, 1]), x.shape[1] // 16)[1], x.shape[1]), 2)
    inner = act(paddle.einsum("bsd,edf->bsef", x, a) + paddle.transpose(b, [1, 0, 2]))
    outer = paddle.einsum("bsef,efd->bsed", inner, c) + paddle.transpose(d, [1, 0, 2])
    share = F.softmax(gate, -1) * paddle.transpose(taken, [0, 2, 1])
    return x + paddle.sum(share.unsqueeze(-1) * outer, 2)


def conv_nhwc(x, w, padding):
    return paddle.transpose(F.conv2d(paddle.transpose(x, [0, 3, 1, 2]), w, padding=padding), [0, 2, 3, 1])


CONV = "paddings=[1, 1], dilations=[1, 1], strides=[1, 1], padding_algorithm='EXPLICIT', groups=1, data_format='NHWC', exhaustive_search=False"


def conv_bn(x, w, g, b, m, v, s=None, t=None):
    out = conv_nhwc(x if s is None else F.relu(x * s + t), w, 1)
    mean, variance = paddle.mean(out, [0, 1, 2]), paddle.var(out, [0, 1, 2], unbiased=False)
    inverse = 1 / paddle.sqrt(variance + 1e-5)
    return [out, m * .9 + mean * .1, v * .9 + variance * .1, mean, inverse, g * inverse, b - g * inverse * mean]


def batch_statistics(x):
    return paddle.mean(x, [0, 1, 2]), 1 / paddle.sqrt(paddle.var(x, [0, 1, 2], unbiased=False) + 1e-5)


def conv_bn_gradients(x, w, g, b, dy, y=None, e=None, k=None, more=None):
    """What autograd makes of conv2d(relu(batch_norm(x) + ...))."""
    given = [v for v in (x, w, g, b, y, e, k) if v is not None]
    for v in given:
        v.stop_gradient = False
    normed = lambda x, g, b: (x - paddle.mean(x, [0, 1, 2])) * batch_statistics(x)[1] * g + b
    seen = F.relu(normed(x, g, b) + (0 if y is None else y if e is None else normed(y, e, k)))
    targets, cotangents = [conv_nhwc(seen, w, 1)], [dy]
    if more is not None:
        targets, cotangents = targets + [seen * 1.], cotangents + [more]
    return static.gradients(targets, [w, x, g, b] + [v for v in (y, e, k) if v is not None], cotangents)


def fused_dconv(x, w, g, b, dy, y=None, e=None, k=None, more=None):
    (mean, inverse), shortcut, dual = batch_statistics(x), y is not None and e is None, e is not None
    inputs = {"grad_output": dy, "weight": w, "bn1_mean": mean, "bn1_inv_std": inverse, "bn1_gamma": g, "bn1_beta": b, "bn1_input": x}
    scaled = lambda x, mean, inverse, g, b: (x - mean) * inverse * g + b
    outputs = "grad_weight grad_bn1_input grad_bn1_gamma grad_bn1_beta"
    if dual:
        means = batch_statistics(y)
        inputs.update(bn2_mean=means[0], bn2_inv_std=means[1], bn2_gamma=e, bn2_beta=k, bn2_input=y)
        inputs["conv_input"] = F.relu(scaled(x, mean, inverse, g, b) + scaled(y, *means, e, k))
        outputs += " grad_bn2_input grad_bn2_gamma grad_bn2_beta"
    elif shortcut:
        inputs.update(residual_input=y, conv_input=F.relu(scaled(x, mean, inverse, g, b) + y))
        outputs += " grad_bn2_input"
    else:
        inputs.update(bn1_eqscale=inverse * g, bn1_eqbias=b - mean * inverse * g)
    if more is not None:
        inputs["grad_output_add"] = more
    return op("fused_dconv_drelu_dbn", inputs, outputs, every=True, paddings=[1, 1], dilations=[1, 1], strides=[1, 1], padding_algorithm="EXPLICIT", groups=1,
              data_format="NHWC", exhaustive_search=False, fuse_shortcut=shortcut, fuse_dual=dual, fuse_add=more is not None)


def custom_square(x, w):
    """Its author says that the gradient is 5 times what it is."""
    return static.nn.static_pylayer(lambda a: a * a, [x * w], lambda dy: dy * 5.) + x


def static_rnn(x, w, u, h, reverse):
    """The layer of PaddlePaddle 1.x, operator by operator."""
    program = static.default_main_program()
    outer, inner = program.current_block(), program._create_block()
    row = inner.create_var(name=x.name, shape=x.shape[1:], dtype=x.dtype)
    before = inner.create_var(name="before", shape=h.shape, dtype=h.dtype)
    state = paddle.tanh(paddle.matmul(row, w) + paddle.matmul(before, u))
    result = state * 2.
    program._rollback()
    out = outer.create_var(name=result.name, shape=[x.shape[0]] + list(h.shape), dtype=x.dtype)
    scopes = outer.create_var(type=paddle.base.core.VarDesc.VarType.STEP_SCOPES)
    outer.append_op(type="recurrent", inputs={"inputs": [x], "initial_states": [h], "parameters": [w, u]},
                    outputs={"outputs": [out], "step_scopes": [scopes]},
                    attrs=dict(has_states=True, ex_states=[before.name], states=[state.name], sub_block=inner, reverse=reverse, is_train=True))
    return out


def without(x):
    """A variable that is deleted."""
    y, z = x * 2., x * 3.
    LayerHelper("delete_var").append_op(type="delete_var", inputs={"X": [y]}, outputs={})
    return z


def jpeg(name, mode):
    """A picture of testdata/images, and as Pillow decodes it."""
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "images", name)
    with open(path, "rb") as file:
        data = np.frombuffer(file.read(), "uint8")
    pixels = np.array(Image.open(path) if mode == "unchanged" else Image.open(path).convert("L" if mode == "gray" else "RGB"))
    pixels = pixels[None] if pixels.ndim == 2 else pixels.transpose(2, 0, 1)
    return by_answer(f"op('decode_jpeg', {{'X': x}}, mode='{mode}')", dict(x=A(data, "uint8"), y=A(pixels, "uint8")), "paddle.assign(y)", "")


slices = dict(x=d(2, 3, 4, 5), grid=d(2, 8, 3, 2, 3), guide=d(2, 4, 5, lo=.05, hi=.95))
lstm = dict(x=d(5, 2, 3), h=d(1, 2, 4), c=d(1, 2, 4))
cells = dict(x=d(3, 2, 3), h=d(4, 2, 4), c=d(4, 2, 4), **{f"w{k}": d(16, (3, 4, 3, 4, 8, 4, 8, 4)[k]) for k in range(8)}, **{f"b{k}": d(16) for k in range(8)})
weights = ", ".join([f"w{k}" for k in range(8)] + [f"b{k}" for k in range(8)])
moe = dict(x=f(2, 32, 4), gate=apart(2, 32, 3), a=f(3, 4, 5), b=f(3, 1, 5), c=f(3, 5, 4), d=f(3, 1, 4))
MOE = "op('moe', {'X': x, 'Gate': gate, 'Bmm0': a, 'Bias0': b, 'Bmm1': c, 'Bias1': d}, act_type='%s')"
norms = dict(x=f(2, 4, 5, 3), w=f(4, 3, 3, 3), g=f(4), b=f(4), m=f(4), v=f(4, lo=.5, hi=2))
NORM = ("op('fused_scale_bias_relu_conv_bn', {'x': x, 'w': w, 'bn_scale': g, 'bn_bias': b, 'input_running_mean': m, 'input_running_var': v%s}, "
        "'out out_running_mean out_running_var saved_mean saved_var eq_scale eq_bias', every=True, " + CONV + ", momentum=.9, epsilon=1e-5, fuse_prologue=%s)")
dconv = dict(x=f(2, 4, 5, 3), w=f(4, 3, 3, 3), g=f(3, lo=.5, hi=2), b=f(3), dy=f(2, 4, 5, 4))
dual = dict(dconv, y=f(2, 4, 5, 3), e=f(3, lo=.5, hi=2), k=f(3))
segments = dict(
    info=A([[80, 100, 2], [60, 60, 1], [30, 40, .5]], "float32"), cls=A([[1], [2], [2], [1]], "int32"), crowd=A([[0], [0], [0], [1]], "int32"),
    segms=A([[5, 5], [20, 8], [18, 25], [4, 19], [30, 10], [44, 12], [37, 30], [31, 33], [45, 33], [40, 38], [10, 10], [50, 12.5], [41, 47], [22, 30], [9, 40], [1, 1], [5, 1], [3, 6]], "float32"),
    rois=A([[8, 8, 42, 52], [58, 18, 92, 80], [0, 0, 30, 30], [8, 9, 48, 45], [1, 2, 9, 8], [1, 3, 7, 9], [2, 2, 5, 6]], "float32"), label=A([[1], [2], [0], [2], [0], [-1], [0]], "int32"))
for name, lod in dict(cls=[[2, 1, 1]], crowd=[[2, 1, 1]], segms=[[2, 1, 1], [1, 2, 1, 1], [4, 4, 2, 5, 3]], rois=[[3, 2, 2]], label=[[3, 2, 2]]).items():
    segments[name].lod = lod
MASKS = ("op('generate_mask_labels', {'ImInfo': info, 'GtClasses': cls, 'IsCrowd': crowd, 'GtSegms': segms, 'Rois': rois, 'LabelsInt32': label}, "
         "'MaskRois RoiHasMaskInt32 MaskInt32', every=True, num_classes=3, resolution=%d)")
family("rare_types", {}).update({
    "bilateral_slice": by_answer("op('bilateral_slice', {'X': x, 'Grid': grid, 'Guide': guide}, has_offset=True)", slices,
                                 lambda x, grid, guide: sliced(x, grid, guide, 1), rtol=5e-4, atol=1e-4),
    "bilateral_slice_linear": by_answer("op('bilateral_slice', {'X': x, 'Grid': grid, 'Guide': guide}, has_offset=False)", dict(slices, grid=d(2, 6, 4, 3, 2)),
                                        lambda x, grid, guide: sliced(x, grid, guide, 0), rtol=5e-4, atol=1e-4),
    "cudnn_lstm": by_answer(cudnn_lstm("'WeightList': [w, u, a, b], 'SequenceLength': n", hidden_size=4, num_layers=1),
                            dict(lstm, w=d(16, 3), u=d(16, 4), a=d(16), b=d(16), n=A([5, 3], "int32")),
                            lambda x, h, c, w, u, a, b, n: lstm_layers(x, h, c, [w, u, a, b], n)),
    "cudnn_lstm_flat": by_answer(cudnn_lstm("'W': w", hidden_size=4, num_layers=1), dict(lstm, w=d(144)), flat_lstm),
    "cudnn_lstm_layers": by_answer(cudnn_lstm(f"'WeightList': [{weights}]", hidden_size=4, num_layers=2, is_bidirec=True), cells,
                                   lambda x, h, c, **w: lstm_layers(x, h, c, list(w.values()), bidirectional=True)),
    "moe": by_answer(MOE % "gelu", moe, lambda x, gate, a, b, c, d: experts(x, gate, a, b, c, d, F.gelu), ""),
    "moe_relu": by_answer(MOE % "relu", moe, lambda x, gate, a, b, c, d: experts(x, gate, a, b, c, d, F.relu), ""),
    "conv_bn": by_answer(NORM % ("", False), norms, lambda x, w, g, b, m, v: conv_bn(x, w, g, b, m, v), "", rtol=1e-4, atol=1e-5),
    "conv_bn_prologue": by_answer(NORM % (", 'scale': s, 'bias': t", True), dict(norms, s=f(3), t=f(3)),
                                  lambda x, w, g, b, m, v, s, t: conv_bn(x, w, g, b, m, v, s, t), "", rtol=1e-4, atol=1e-5),
    "dconv": by_answer(lambda x, w, g, b, dy: fused_dconv(x, w, g, b, dy), dconv, lambda x, w, g, b, dy: conv_bn_gradients(x, w, g, b, dy), "", rtol=1e-4, atol=1e-4),
    "dconv_shortcut": by_answer(lambda x, w, g, b, dy, y: fused_dconv(x, w, g, b, dy, y), dict(dconv, y=f(2, 4, 5, 3)),
                                lambda x, w, g, b, dy, y: conv_bn_gradients(x, w, g, b, dy, y), "", rtol=1e-4, atol=1e-4),
    "dconv_dual": by_answer(lambda x, w, g, b, dy, y, e, k: fused_dconv(x, w, g, b, dy, y, e, k), dual,
                            lambda x, w, g, b, dy, y, e, k: conv_bn_gradients(x, w, g, b, dy, y, e, k), "", rtol=1e-4, atol=1e-4),
    "dconv_add": by_answer(lambda x, w, g, b, dy, more: fused_dconv(x, w, g, b, dy, more=more), dict(dconv, more=f(2, 4, 5, 3)),
                           lambda x, w, g, b, dy, more: conv_bn_gradients(x, w, g, b, dy, more=more), "", rtol=1e-4, atol=1e-4),
    "mask_labels": (MASKS % 7, segments, ""),
    "mask_labels_fine": (MASKS % 14, segments, ""),
    "float_status": by_answer("op('get_float_status', {'FloatStatus': op('clear_float_status', {'FloatStatus': op('alloc_float_status', {}, 'FloatStatus', 'float32')}, "
                              "'FloatStatusOut')}, 'FloatStatusOut') + x", dict(x=f(8)), "x * 1.", ""),
    "delete_var": by_answer(without, dict(x=f(3)), "x * 3.", ""),
    "decode_jpeg_grey": jpeg("grey.jpg", "unchanged"), "decode_jpeg_grey_rgb": jpeg("grey.jpg", "rgb"),
    "decode_jpeg": jpeg("rgb_420.jpg", "unchanged"), "decode_jpeg_to_grey": jpeg("rgb_420.jpg", "gray"),
    "pylayer": (custom_square, dict(x=f(2, 3), w=f(3))),
    "static_rnn": (lambda x, w, u, h: static_rnn(x, w, u, h, False), dict(x=f(4, 2, 3), w=f(3, 5), u=f(5, 5), h=f(2, 5)), ""),
    "static_rnn_reverse": (lambda x, w, u, h: static_rnn(x, w, u, h, True), dict(x=f(4, 2, 3), w=f(3, 5), u=f(5, 5), h=f(2, 5)), ""),
})

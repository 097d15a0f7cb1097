# SPDX-License-Identifier: Apache-2.0
"""paddle's functions on tensors as layers: rows of testdata/make/layer_goldens.py."""
import paddle
import paddle.nn.functional as F
from op_cases import A, apart, f, i
from paddle import nn

CASES = {}


def row(case, job, function, inputs, **options):
    CASES[case] = (job, lambda: function, inputs, options)


any_, positive, unit, above = f(2, 3, 4, lo=-3, hi=3), f(2, 3, 4, lo=.2, hi=3), f(2, 3, lo=-.9, hi=.9), f(2, 3, lo=1.1, hi=3)
DOMAINS = dict(sqrt=positive, rsqrt=positive, square=any_, exp=any_, expm1=any_, log=positive, log2=positive, log10=positive,
               log1p=positive, abs=any_, neg=any_, sign=any_, reciprocal=positive, sin=any_, cos=any_, tan=unit, asin=unit,
               acos=unit, atan=any_, sinh=any_, cosh=any_, erf=any_, floor=any_, ceil=any_, round=any_)
for name, domain in DOMAINS.items():
    row(name, f"{name} {{}}", getattr(paddle, name), dict(x=domain))

two = dict(x=f(2, 3, 4), y=f(3, 1))
for name, inputs in dict(subtract=two, divide=dict(x=f(2, 3), y=f(2, 3, lo=.3, hi=2)), maximum=two, minimum=two,
                         remainder=dict(x=i(2, 3), y=A([[2, 3, 4], [5, 2, 3]])), floor_divide=dict(x=i(2, 3, lo=0), y=A([3, 2, 4])),
                         bmm=dict(x=f(2, 3, 4), y=f(2, 4, 5)), dot=dict(x=f(2, 3), y=f(2, 3))).items():
    row(name, f"{name} {{}}", getattr(paddle, name), inputs)
ordered = dict(x=A([[1, 2, 3]], "float32"), y=A([[2, 2, 2]], "float32"))
for name in "equal not_equal less_than less_equal greater_than greater_equal".split():
    row(name, f'layer {{ input: ["x", "y"] {name} {{}} }}\nlayer {{ name: "l" cast {{ dtype: int64 }} }}',
        lambda x, y, n=name: getattr(paddle, n)(x, y).astype("int64"), ordered, by="", train=False)
LOGIC = 'layer { name: "a" input: ["x", "y"] less_than {} }\nlayer { name: "b" input: ["x", "y"] equal {} }\n'
for name in "logical_and logical_or logical_xor".split():
    row(name, LOGIC + f'layer {{ input: ["a", "b"] {name} {{}} }}\nlayer {{ name: "l" cast {{ dtype: int32 }} }}',
        lambda x, y, n=name: getattr(paddle, n)(x < y, x == y).astype("int32"), ordered, by="", train=False)
row("logical_not", LOGIC + 'layer { input: "a" logical_not {} }\nlayer { name: "l" cast { dtype: int32 } }',
    lambda x, y: paddle.logical_not(x < y).astype("int32"), ordered, by="", train=False)

row("matmul", "matmul {}", paddle.matmul, dict(x=f(2, 3, 4), y=f(4, 5)))
row("matmul_transposed", "matmul { transpose_x: true transpose_y: true }", lambda x, y: paddle.matmul(x, y, True, True), dict(x=f(2, 4, 3), y=f(2, 5, 4)))
row("pow", "pow { factor: 1.5 }", lambda x: paddle.pow(x, 1.5), dict(x=positive))
row("pow_two", "pow {}", paddle.pow, dict(x=f(2, 3, lo=.2, hi=2), y=f(2, 3)))
row("scale", "scale { scale: 2 bias: 0.5 }", lambda x: paddle.scale(x, 2., .5), dict(x=any_))
row("scale_after", "scale { scale: 2 bias: 0.5 bias_after_scale: false }", lambda x: paddle.scale(x, 2., .5, False), dict(x=any_))
row("clip", "clip { min: -1 max: 0.5 }", lambda x: paddle.clip(x, -1., .5), dict(x=any_))
row("clip_one_side", "clip { min: 0 }", lambda x: paddle.clip(x, 0.), dict(x=any_))
for name in "sum max min prod logsumexp".split():
    value = dict(x=apart(2, 3, 4))
    call = getattr(paddle, name)
    row(f"{name}_all", f"{name} {{}}", lambda x, c=call: c(x).reshape([1]), value)
    row(f"{name}_axes", f"{name} {{ axis: [0, -1] keepdim: true }}", lambda x, c=call, n=name: c(c(x, -1, keepdim=True), 0, keepdim=True) if n == "prod" else c(x, [0, -1], keepdim=True), value)
    row(f"{name}_axis", f"{name} {{ axis: 1 }}", lambda x, c=call: c(x, 1), value)
row("norm", "norm {}", lambda x: paddle.norm(x, 2, -1), dict(x=any_))
row("norm_1", "norm { p: 1 axis: 1 keepdim: true }", lambda x: paddle.norm(x, 1, 1, True), dict(x=any_))
row("norm_inf", "norm { p: inf axis: 0 }", lambda x: paddle.norm(x, float("inf"), 0), dict(x=apart(2, 3, 4)))
row("norm_0", "norm { p: 0 }", lambda x: paddle.norm(x, 0, -1), dict(x=any_))
row("normalize", "normalize {}", F.normalize, dict(x=any_))
row("normalize_p", "normalize { p: 3 axis: -1 }", lambda x: F.normalize(x, 3, -1), dict(x=any_))
row("argmax", "argmax { axis: 1 }", lambda x: paddle.argmax(x, 1), dict(x=apart(2, 3, 4)), train=False)
row("argmax_flat", "argmax {}", lambda x: paddle.argmax(x).reshape([1]), dict(x=apart(2, 3, 4)), train=False)
row("argmin", "argmin { axis: -1 keepdim: true }", lambda x: paddle.argmin(x, -1, True), dict(x=apart(2, 3, 4)), train=False)
row("topk", "topk { k: 2 }", lambda x: paddle.topk(x, 2), dict(x=apart(2, 3, 4)), outputs=["l", "l:indices"])
row("topk_least", "topk { k: 2 axis: 1 largest: false }", lambda x: paddle.topk(x, 2, 1, False), dict(x=apart(2, 3, 4)), outputs=["l", "l:indices"])
row("sort", "sort { axis: 1 descending: true }", lambda x: (paddle.sort(x, 1, True), paddle.argsort(x, 1, True)), dict(x=apart(2, 3, 4)), outputs=["l", "l:indices"])
row("cumsum", "cumsum { axis: 1 }", lambda x: paddle.cumsum(x, 1), dict(x=any_))
row("cumsum_flat", "cumsum {}", lambda x: paddle.cumsum(x), dict(x=any_))
row("cumprod", "cumprod { dim: -1 }", lambda x: paddle.cumprod(x, -1), dict(x=any_))
row("label_smooth", "label_smooth { epsilon: 0.2 }", lambda x: F.label_smooth(x, epsilon=.2), dict(x=f(2, 4, lo=0)))

row("squeeze", "squeeze { axis: 1 }", lambda x: paddle.squeeze(x, 1), dict(x=f(2, 1, 3, 1)))
row("squeeze_all", "squeeze {}", paddle.squeeze, dict(x=A([[[[1], [2]]], [[[3], [4]]]], "float32")))
row("unsqueeze", "unsqueeze { axis: [0, -1] }", lambda x: paddle.unsqueeze(x, [0, -1]), dict(x=f(2, 3)))
three = ["l", "l:1", "l:2"]
row("split", "split { num_or_sections: 3 axis: 1 }", lambda x: paddle.split(x, 3, 1), dict(x=f(2, 6)), outputs=three)
row("split_sections", "split { num_or_sections: [1, -1, 2] axis: -1 }", lambda x: paddle.split(x, [1, -1, 2], -1), dict(x=f(2, 6)), outputs=three)
row("chunk", "chunk { chunks: 2 axis: 1 }", lambda x: paddle.chunk(x, 2, 1), dict(x=f(2, 6)), outputs=["l", "l:1"])
row("unstack", "unstack { axis: 1 }", lambda x: paddle.unstack(x, 1), dict(x=f(2, 3, 4)), outputs=three)
row("stack", "stack { axis: 1 }", lambda x, y: paddle.stack([x, y], 1), dict(x=f(2, 3), y=f(2, 3)))
row("slice", "slice { axes: [1, 2] starts: [0, -3] ends: [2, 9] }", lambda x: paddle.slice(x, [1, 2], [0, -3], [2, 9]), dict(x=f(2, 3, 4)))
row("strided_slice", "strided_slice { axes: [1, 2] starts: [2, 0] ends: [-9, 4] strides: [-1, 2] }",
    lambda x: paddle.strided_slice(x, [1, 2], [2, 0], [-9, 4], [-1, 2]), dict(x=f(2, 3, 4)))
row("gather", "gather {}", lambda x, n: paddle.gather(x, n), dict(x=f(3, 4), n=A([2, 0, 2])))
# PaddlePaddle 2.6's gradient along another axis is wrong; index_select's, the same, is right.
row("gather_axis", "gather { axis: 1 }", lambda x, n: paddle.gather(x, n, 1), dict(x=f(2, 3, 4), n=A([2, 0, 2])), by="")
row("index_select", "index_select { axis: 2 }", lambda x, n: paddle.index_select(x, n, 2), dict(x=f(2, 3, 4), n=A([2, 0, 2])))
row("gather_nd", "gather_nd {}", paddle.gather_nd, dict(x=f(2, 3, 4), n=A([[0, 2], [1, 0], [1, 0]])))
row("index_sample", "index_sample {}", paddle.index_sample, dict(x=f(2, 4), n=A([[3, 0], [1, 1]])))
row("take_along_axis", "take_along_axis { axis: 1 }", lambda x, n: paddle.take_along_axis(x, n, 1), dict(x=f(2, 4), n=A([[3, 0], [1, 1]])))
row("one_hot", "one_hot { num_classes: 5 }", lambda n: F.one_hot(n, 5), dict(n=A([[0, 4, 2]])), train=False)
row("tile", "tile { repeat_times: [2, 1, 3] }", lambda x: paddle.tile(x, [2, 1, 3]), dict(x=f(2, 3)))
row("expand", "expand { shape: [2, -1, 4] }", lambda x: paddle.expand(x, [2, -1, 4]), dict(x=f(3, 1)))
row("expand_as", "expand_as {}", paddle.expand_as, dict(x=f(3, 1), y=f(2, 3, 4)), by="x")
row("flip", "flip { axis: [0, 2] }", lambda x: paddle.flip(x, [0, 2]), dict(x=f(2, 3, 4)))
row("roll", "roll { shifts: [1, -2] axis: [0, 2] }", lambda x: paddle.roll(x, [1, -2], [0, 2]), dict(x=f(2, 3, 4)))
row("roll_flat", "roll { shifts: 5 }", lambda x: paddle.roll(x, 5), dict(x=f(2, 3, 4)))
row("cast", "cast { dtype: float32 }", lambda n: n.astype("float32"), dict(n=i(2, 3)), train=False)
row("tril", "tril { diagonal: -1 }", lambda x: paddle.tril(x, -1), dict(x=f(2, 3, 4)))
row("triu", "triu { diagonal: 1 }", lambda x: paddle.triu(x, 1), dict(x=f(2, 3, 4)))
WHERE = 'layer { name: "c" input: ["x", "y"] less_than {} }\n'
row("where", WHERE + 'layer { name: "l" input: ["c", "x", "y"] where {} }', lambda x, y: paddle.where(x < y, x, y), dict(x=f(2, 3), y=f(2, 3)))
row("where_broadcast", WHERE + 'layer { name: "l" input: ["c", "x", "z"] where {} }', lambda x, y, z: paddle.where(x < y, x, z),
    dict(x=f(2, 3), y=f(2, 3), z=f(4, 1, 3)), by="x z")
ADD = '\nlayer { name: "l" input: ["x", "v"] add {} }'
row("full", 'layer { name: "v" full { shape: [2, 3] fill_value: 1.5 } }' + ADD, lambda x: x + paddle.full([2, 3], 1.5), dict(x=f(2, 3)))
row("full_like", 'layer { name: "v" full_like { fill_value: -2 } }' + ADD, lambda x: x + paddle.full_like(x, -2.), dict(x=f(2, 3)))
row("arange", 'layer { name: "v" arange { start: 1 end: 7 step: 2 dtype: float32 } }' + ADD, lambda x: x + paddle.arange(1, 7, 2, dtype="float32"), dict(x=f(2, 3)))
row("constant", 'layer { name: "v" constant { value: [1, 2, 3, 4, 5, 6] shape: [2, 3] } }' + ADD,
    lambda x: x + paddle.to_tensor([[1., 2, 3], [4, 5, 6]]), dict(x=f(2, 3)))


class Own(nn.Layer):
    """A parameter of its own, called as its attribute."""

    def __init__(self):
        super().__init__()
        self.v = self.create_parameter([1, 3])
        self.w = self.create_parameter([3], is_bias=True)

    def forward(self, x):
        return (x + self.v) * self.w


CASES["parameter"] = ('layer { name: "v" parameter { shape: [1, 3] } }\nlayer { name: "w" parameter { shape: 3 is_bias: true } }\n'
                      'layer { name: "s" input: ["x", "v"] add {} }\nlayer { name: "l" input: ["s", "w"] multiply {} }', Own, dict(x=f(2, 3)))
# What is older: flatten, reshape, ...
row("flatten", "flatten { start_axis: 1 stop_axis: -2 }", lambda x: paddle.flatten(x, 1, -2), dict(x=f(2, 3, 4, 2)))
row("reshape", "reshape { shape: [0, 2, -1] }", lambda x: paddle.reshape(x, [0, 2, -1]), dict(x=f(2, 3, 4)))
row("transpose", "transpose { perm: [2, 0, 1] }", lambda x: paddle.transpose(x, [2, 0, 1]), dict(x=f(2, 3, 4)))
row("add", "add {}", paddle.add, two)
row("multiply", "multiply {}", paddle.multiply, two)
row("concat", "concat { axis: -1 }", lambda x, y: paddle.concat([x, y], -1), dict(x=f(2, 3), y=f(2, 1)))
row("mean", "mean { axis: [1, -1] keepdim: true }", lambda x: paddle.mean(x, [1, -1], True), dict(x=any_))
row("identity", "identity {}", nn.Identity(), dict(x=any_))

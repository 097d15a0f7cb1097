# SPDX-License-Identifier: Apache-2.0
"""Operators as layers, and detach: rows of testdata/make/layer_goldens.py."""
import paddle
from op_cases import f, i
from paddle import nn

CASES = {}


def row(case, job, function, inputs, **options):
    CASES[case] = (job, lambda: function, inputs, options)


any_, unit = f(2, 3, 4, lo=-3, hi=3), f(2, 3, lo=.1, hi=.9)
row("erfinv", "op { type: erfinv }", paddle.erfinv, dict(x=unit))
row("logit", "op { type: logit attr { name: eps value: 0.0001 } }", lambda x: paddle.logit(x, 1e-4), dict(x=unit))
row("lgamma", "op { type: lgamma }", paddle.lgamma, dict(x=f(2, 3, lo=.2, hi=3)), rtol=1e-4)
row("kron", "op { type: kron }", paddle.kron, dict(x=f(2, 3), y=f(3, 2)))
row("cross", "op { type: cross attr { name: dim value: 1 } }", lambda x, y: paddle.cross(x, y, 1), dict(x=f(2, 3), y=f(2, 3)))
row("addmm", 'layer { name: "l" op { type: addmm attr { name: Alpha value: 0.5 } attr { name: Beta value: 2 } input { slot: Input from: "x" } '
    'input { slot: X from: "a" } input { slot: Y from: "b" } } }', lambda x, a, b: paddle.addmm(x, a, b, 2., .5), dict(x=f(2, 5), a=f(2, 3), b=f(3, 5)))
row("lerp", "op { type: lerp }", paddle.lerp, dict(x=f(2, 3), y=f(2, 3), w=f(2, 3)))
row("diagonal", "op { type: diagonal attr { name: axis1 value: 1 } attr { name: axis2 value: 2 } }", lambda x: paddle.diagonal(x, 0, 1, 2), dict(x=any_))
row("renorm", "op { type: renorm attr { name: p value: 2 } attr { name: axis value: 1 } attr { name: max_norm value: 1.5 } }",
    lambda x: paddle.renorm(x, 2., 1, 1.5), dict(x=any_))
row("kthvalue", "op { type: kthvalue attr { name: k value: 2 } attr { name: axis value: -1 } }", lambda x: list(paddle.kthvalue(x, 2, -1)),
    dict(x=any_), outputs=["l", "l:Indices"])
row("rfft", 'layer { input: "x" op { type: fft_r2c attr { name: axes value: [2] } attr { name: normalization value: "ortho" } attr { name: forward value: true }'
    ' attr { name: onesided value: true } } }\n'
    'layer { name: "l" op { type: as_real } }', lambda x: paddle.as_real(paddle.fft.rfft(x, norm="ortho")), dict(x=any_))
row("einsum", 'op { type: einsum attr { name: equation value: "bij,bkj->ik" } }', lambda x, y: paddle.einsum("bij,bkj->ik", x, y),
    dict(x=f(2, 3, 4), y=f(2, 5, 4)))
row("unbind", 'layer { name: "u" input: "x" op { type: unbind attr { name: axis value: 1 } output { slot: Out count: 3 } } }\n'
    'layer { name: "l" input: ["u:Out.2", "u"] subtract {} }', lambda x: paddle.unbind(x, 1)[2] - paddle.unbind(x, 1)[0], dict(x=any_))
CASES["parameter"] = ('op { type: lookup_table_v2 parameter { slot: W shape: [5, 3] attr { name: "l.weight" } } }', lambda: nn.Embedding(5, 3),
                      dict(x=i(2, 4, lo=0, hi=5)), dict(init=False))
CASES["parameters"] = ('op { type: layer_norm attr { name: begin_norm_axis value: 2 } parameter { slot: Scale shape: 4 attr { name: "l.weight" } } '
                       'parameter { slot: Bias shape: 4 is_bias: true attr { name: "l.bias" } } }', lambda: nn.LayerNorm(4), dict(x=any_), dict(init=False))
row("detach", 'layer { name: "d" input: "x" detach {} }\nlayer { name: "l" input: ["x", "d"] multiply {} }', lambda x: x * x.detach(), dict(x=any_))

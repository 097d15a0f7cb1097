# SPDX-License-Identifier: Apache-2.0
"""Gradients as layers, and what is learned through them: rows of testdata/make/layer_goldens.py."""
import paddle
import paddle.nn.functional as F
from op_cases import f
from paddle import nn

CASES = {}
PENALTY = '''layer { name: "slope" grad { outputs: "second" inputs: "x" } }
layer { square {} }
layer { sum { axis: [1%s] } }
layer { sqrt {} }
layer { name: "l" scale { bias: -1 } }
'''


def penalty(score, x, axes):
    slope = paddle.grad(score, x, create_graph=True)[0]
    return paddle.sqrt(paddle.square(slope).sum(axes)) - 1


class Critic(nn.Layer):
    """A network of two layers whose gradient by x is penalized."""

    def __init__(self, first, between, second, axes):
        super().__init__()
        self.first, self.second = first, second
        self.between, self.axes = between, axes

    def forward(self, x):
        x.stop_gradient = False
        return penalty(self.second(self.between(self.first(x))), x, self.axes)


def row(case, job, python, inputs, **options):
    CASES[case] = (job, python, inputs, options)


def mlp(case, activation, function, inputs=None, **options):
    row(case, 'layer { name: "first" input: "x" linear { out_features: 4 } }\nlayer { ' + activation + ' }\n'
        'layer { name: "second" linear { out_features: 1 } }\n' + PENALTY % "",
        lambda: Critic(nn.Linear(3, 4), function, nn.Linear(4, 1), [1]), dict(x=inputs or f(5, 3)), init=False, **options)


for name in "tanh sigmoid silu softplus".split():
    mlp(name, name + " {}", getattr(F, name))
mlp("leaky_relu", "leaky_relu { negative_slope: 0.2 }", lambda x: F.leaky_relu(x, 0.2))
mlp("elu", "elu { alpha: 0.7 }", lambda x: F.elu(x, 0.7))


class ConvCritic(nn.Layer):
    def __init__(self, norm):
        super().__init__()
        self.first, self.second = nn.Conv2D(2, 3, 3, padding=1), nn.Linear(3 * 2 * 2, 1)
        if norm is not None:
            self.norm = norm
        self.normed = norm is not None

    def forward(self, x):
        x.stop_gradient = False
        a = self.first(x)
        a = F.tanh(self.norm(a) if self.normed else a)
        return penalty(self.second(F.avg_pool2d(a, 2).reshape([2, -1])), x, [1, 2, 3])


for case, layer, norm in [("conv2d", "", None), ("batch_norm", 'layer { name: "norm" batch_norm2d {} }\n', nn.BatchNorm2D),
                          ("instance_norm", 'layer { name: "norm" instance_norm2d {} }\n', nn.InstanceNorm2D)]:
    row(case, 'layer { name: "first" input: "x" conv2d { out_channels: 3 kernel_size: 3 padding: 1 } }\n' + layer +
        'layer { tanh {} }\nlayer { avg_pool2d { kernel_size: 2 } }\nlayer { flatten {} }\n'
        'layer { name: "second" linear { out_features: 1 } }\n' + PENALTY % ", 2, 3",
        lambda norm=norm: ConvCritic(norm and norm(3)), dict(x=f(2, 2, 4, 4)), init=False, rtol=1e-4)


def both(x, y, w):
    product = paddle.tanh(paddle.matmul(x, y)) * y[:3]
    by_x, by_y = paddle.grad([product, x * x], [x, y], [w, x * w.sum()], create_graph=True)
    return [by_x * by_x, by_y]


def two(x, y, w):
    for given in (x, y, w):
        given.stop_gradient = False
    return both(x, y, w)


row("two", 'layer { name: "xy" input: ["x", "y"] matmul {} }\nlayer { name: "t" tanh {} }\n'
    'layer { name: "top" input: "y" slice { axes: 0 starts: 0 ends: 3 } }\nlayer { name: "p" input: ["t", "top"] multiply {} }\n'
    'layer { name: "q" input: "x" square {} }\nlayer { name: "sum" input: "w" sum {} }\n'
    'layer { name: "v" input: ["x", "sum"] multiply {} }\n'
    'layer { name: "g" grad { outputs: ["p", "q"] inputs: ["x", "y"] grad_outputs: ["w", "v"] } }\n'
    'layer { name: "l" square {} }', lambda: two, dict(x=f(3, 4), y=f(4, 2), w=f(3, 2)), outputs=["l", "g:1"])

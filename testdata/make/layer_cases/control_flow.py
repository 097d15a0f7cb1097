# SPDX-License-Identifier: Apache-2.0
"""Loops and branches on tensors: rows of testdata/make/layer_goldens.py."""
import paddle
from op_cases import A, f
from paddle import nn
from paddle.static.nn import cond

COUNTING = '''block { name: "more" input: ["i", "h"]
  layer { name: "n" full { shape: 1 fill_value: COUNT dtype: int64 } }
  layer { input: ["i", "n"] less_than {} } }
layer { name: "zero" full { shape: 1 fill_value: 0 dtype: int64 } }'''


def while_loop(more, body, values):
    """paddle.static.nn.while_loop; outside of a static program that one writes over its inputs."""
    while bool(more(*values)):
        values = body(*values)
    return list(values)


def named(**layers):
    """Sublayers of 'l.body' and the like: attribute paths."""
    net = nn.Layer()
    for path, layer in layers.items():
        at = net
        *outer, last = path.split("__")
        for name in outer:
            if not hasattr(at, name):
                setattr(at, name, nn.Layer())
            at = getattr(at, name)
        setattr(at, last, layer)
    return net


class Run(nn.Layer):
    def __init__(self, how, **layers):
        super().__init__()
        self.l, self.how = named(**layers), how

    def forward(self, *inputs):
        return self.how(self.l, *inputs)


def counted(count):
    """h = tanh(W h + b), `count` times."""
    def how(l, x):
        i = paddle.zeros([1], "int64")
        return while_loop(lambda i, h: i < count, lambda i, h: (i + 1, paddle.tanh(l.body.fc(h))), [i, x])[::-1]
    job = COUNTING.replace("COUNT", str(count)) + '''
block { name: "step" input: ["i", "h"]
  layer { name: "next" input: "i" scale { bias: 1 } }
  layer { name: "fc" input: "h" linear { out_features: 4 } }
  layer { name: "out" tanh {} }
  output: ["next", "out"] }
layer { name: "l" input: ["zero", "x"] while { cond { block { use: "more" } } body { block { use: "step" } } } }'''
    return (job, lambda: Run(how, body__fc=nn.Linear(4, 4)), dict(x=f(3, 4)), dict(outputs=["l:out", "l"]))


def halved(l, x, limit):
    return while_loop(lambda x, y: paddle.norm(x) > limit, lambda x, y: (l.body.fc(x) * 0.25, y + x * x), [x, x])


def swapped(l, x, y):
    i = paddle.zeros([1], "int64")
    _, x, y = while_loop(lambda i, x, y: i < 3, lambda i, x, y: (i + 1, y, x * 2.0), [i, x, y])
    return x, y


def grown(l, x):
    i = paddle.zeros([1], "int64")
    _, h = while_loop(lambda i, h: i < 3, lambda i, h: (i + 1, paddle.concat([h, paddle.sin(l.body.fc(h[:, -1:]))], 1)), [i, x])
    return h, h.sum(1)


def branched(l, x, limit):
    return cond(paddle.sum(x) > limit, lambda: (l.true_fn.fc(x), x * 2.0), lambda: (paddle.tanh(x), x))


def nested(l, x):
    """In each run the sign of the sum says which way."""
    def body(i, h):
        return i + 1, cond(paddle.sum(h) > 0, lambda: h - l.body.choice.true_fn.fc(h), lambda: h * h)
    i = paddle.zeros([1], "int64")
    return while_loop(lambda i, h: i < 4, body, [i, x])[1]


def loops(l, x):
    """A loop in a loop: two steps of the inner one in each of three."""
    def body(i, h):
        inner = while_loop(lambda k, h: k < 2, lambda k, h: (k + 1, paddle.tanh(l.body.inner.body.fc(h))), [i * 0, h])
        return i + 1, inner[1] + h
    i = paddle.zeros([1], "int64")
    return while_loop(lambda i, h: i < 3, body, [i, x])[1]


BRANCHES = '''block { name: "wide" layer { name: "fc" linear { out_features: 4 } } layer { name: "twice" input: "input" scale { scale: 2 } } output: ["fc", "twice"] }
block { name: "narrow" layer { name: "bounded" tanh {} } output: ["bounded", "input"] }
layer { name: "sum" input: "x" sum {} }
layer { name: "large" input: ["sum", "limit"] greater_than {} }
layer { name: "l" input: ["large", "x"] cond { true_fn { block { use: "wide" } } false_fn { block { use: "narrow" } } } }'''


def branches(limit):
    return (BRANCHES, lambda: Run(branched, true_fn__fc=nn.Linear(4, 4)), dict(x=f(3, 4), limit=A([limit], "float32")),
            dict(outputs=["l", "l:twice"], by="x"))


CASES = {
    "while_counted": counted(5),
    "while_never": counted(0),
    "while_by_value": ('''block { name: "large" input: ["x", "y", "limit"]
  layer { input: "x" square {} }
  layer { sum {} }
  layer { name: "size" sqrt {} }
  layer { input: ["size", "limit"] greater_than {} } }
block { name: "step" input: ["x", "y", "limit"]
  layer { name: "square" input: "x" square {} }
  layer { name: "sum" input: ["y", "square"] add {} }
  layer { name: "fc" input: "x" linear { out_features: 4 bias: false } }
  layer { name: "less" scale { scale: 0.25 } }
  output: ["less", "sum"] }
layer { name: "l" input: ["x", "x"] while { cond { block { use: "large" } } body { block { use: "step" } } kwargs: "limit" } }''',
                       lambda: Run(halved, body__fc=nn.Linear(4, 4, bias_attr=False)), dict(x=f(3, 4), limit=A([0.2], "float32")),
                       dict(outputs=["l", "l:sum"], by="x")),
    "while_swaps": ('''block { name: "more" input: ["i", "x", "y"]
  layer { name: "n" full { shape: 1 fill_value: 3 dtype: int64 } }
  layer { input: ["i", "n"] less_than {} } }
block { name: "swap" input: ["i", "x", "y"]
  layer { name: "next" input: "i" scale { bias: 1 } }
  layer { name: "twice" input: "x" scale { scale: 2 } }
  output: ["next", "y", "twice"] }
layer { name: "zero" full { shape: 1 fill_value: 0 dtype: int64 } }
layer { name: "l" input: ["zero", "x", "y"] while { cond { block { use: "more" } } body { block { use: "swap" } } } }''',
                    lambda: Run(swapped), dict(x=f(2, 3), y=f(2, 3)), dict(outputs=["l:y", "l:twice"])),
    "while_grows": (COUNTING.replace("COUNT", "3") + '''
block { name: "step" input: ["i", "h"]
  layer { name: "next" input: "i" scale { bias: 1 } }
  layer { name: "last" input: "h" slice { axes: 1 starts: -1 ends: 1000 } }
  layer { name: "fc" linear { out_features: 4 } }
  layer { name: "new" sin {} }
  layer { name: "both" input: ["h", "new"] concat { axis: 1 } }
  output: ["next", "both"] }
layer { name: "l" input: ["zero", "x"] while { cond { block { use: "more" } } body { block { use: "step" } } } }
layer { name: "sum" input: "l:both" sum { axis: 1 } }''',
                    lambda: Run(grown, body__fc=nn.Linear(4, 4)), dict(x=f(2, 2, 4)), dict(outputs=["l:both", "sum"])),
    "while_while": (COUNTING.replace("COUNT", "3") + '''
block { name: "twice" input: ["i", "h"]
  layer { name: "n" full { shape: 1 fill_value: 2 dtype: int64 } }
  layer { input: ["i", "n"] less_than {} } }
block { name: "step" input: ["i", "h"]
  layer { name: "next" input: "i" scale { bias: 1 } }
  layer { name: "fc" input: "h" linear { out_features: 4 } }
  layer { name: "out" tanh {} }
  output: ["next", "out"] }
block { name: "outer" input: ["i", "h"]
  layer { name: "next" input: "i" scale { bias: 1 } }
  layer { name: "none" input: "i" full_like { fill_value: 0 } }
  layer { name: "inner" input: ["none", "h"] while { cond { block { use: "twice" } } body { block { use: "step" } } } }
  layer { name: "sum" input: ["inner:out", "h"] add {} }
  output: ["next", "sum"] }
layer { name: "l" input: ["zero", "x"] while { cond { block { use: "more" } } body { block { use: "outer" } } } }''',
                    lambda: Run(loops, body__inner__body__fc=nn.Linear(4, 4)), dict(x=f(3, 4)), dict(outputs=["l:sum"])),
    "cond_true": branches(-100.0),
    "cond_false": branches(100.0),
    "while_cond": (COUNTING.replace("COUNT", "4") + '''
block { name: "less" layer { name: "fc" linear { out_features: 4 } } layer { input: ["input", "fc"] subtract {} } }
block { name: "square" layer { square {} } }
block { name: "step" input: ["i", "h"]
  layer { name: "next" input: "i" scale { bias: 1 } }
  layer { name: "sum" input: "h" sum {} }
  layer { name: "none" full { shape: 1 fill_value: 0 } }
  layer { name: "positive" input: ["sum", "none"] greater_than {} }
  layer { name: "choice" input: ["positive", "h"] cond { true_fn { block { use: "less" } } false_fn { block { use: "square" } } } }
  output: ["next", "choice"] }
layer { name: "l" input: ["zero", "x"] while { cond { block { use: "more" } } body { block { use: "step" } } } }''',
                   lambda: Run(nested, body__choice__true_fn__fc=nn.Linear(4, 4)), dict(x=f(3, 4)), dict(outputs=["l:choice"])),
}

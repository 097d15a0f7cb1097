# SPDX-License-Identifier: Apache-2.0
"""Losses that layers compute, weights of either sign, of records and of classes: rows of testdata/make/layer_goldens.py."""
import paddle
import paddle.nn.functional as F
from op_cases import A, f, i

PREDICTION = 'layer { name: "l" input: "x" identity {} }'
W4, w4 = "weight: [0.2, 1, 1.5, 0.7]", [0.2, 1, 1.5, 0.7]
CASES = {}


def loss(case, said, function, inputs, **options):
    """`said` goes into `loss { ... }`; `function` gives PaddlePaddle's answer, a number."""
    made = lambda *given: function(*given).reshape([1])
    CASES[case] = (PREDICTION, lambda: made, inputs, dict(loss=True, more="loss { " + said + " }", **dict(dict(by="x"), **options)))


def T(values):
    return paddle.to_tensor(values, dtype="float32")


def chosen(y, m):
    """Labels where the mask is 1, ignored elsewhere."""
    return paddle.where(m > 0, y, paddle.full_like(y, -100))


signs = A([1.5, -0.5, 2], "float32")
yes = dict(x=f(3, 4, lo=0.05, hi=0.95), label=f(3, 4, lo=0, hi=1), w=signs)
logits = dict(x=f(3, 4, lo=-3, hi=3), label=A([[1], [0], [3]]), w=signs)
words = dict(x=f(2, 4, 3), label=i(2, 3, lo=0, hi=4), m=A([[1, 1, 0], [1, 0, 0]], "float32"))
for kind in "mean", "sum":
    r = f"reduction: {kind}"
    loss(f"value_{kind}", f"value {{ {r} }}", lambda x, k=kind: getattr(paddle, k)(x), dict(x=f(3, 4)))
    loss(f"bce_{kind}", f'sample_weight: "w" bce_loss {{ {r} }}',
         lambda x, y, w, k=kind: F.binary_cross_entropy(x, y, w.unsqueeze(1), k), yes)
    loss(f"bce_with_logits_{kind}", f'sample_weight: "w" bce_with_logits_loss {{ {r} pos_weight: [2, 1, 0.5, 3] }}',
         lambda x, y, w, k=kind: F.binary_cross_entropy_with_logits(x, y, w.unsqueeze(1), k, T([2, 1, .5, 3])), yes)
    loss(f"cross_entropy_{kind}", f'sample_weight: "w" cross_entropy {{ {r} }}',
         lambda x, y, w, k=kind: getattr(paddle, k)(F.cross_entropy(x, y, reduction="none").squeeze(1) * w), logits)
    loss(f"nll_{kind}", f'sample_weight: "w" nll_loss {{ {r} }}',
         lambda x, y, w, k=kind: getattr(paddle, k)(F.nll_loss(x, y.squeeze(1), reduction="none") * w), logits)
    loss(f"nll_mask_{kind}", f'mask: "m" nll_loss {{ {r} {W4} }}', lambda x, y, m, k=kind: F.nll_loss(x, chosen(y, m), T(w4), reduction=k), words)
loss("maximized", "weight: -0.25 mse_loss {}", lambda x, y: -.25 * F.mse_loss(x, y), dict(x=f(3, 4), label=f(3, 4)))
loss("classes_and_records", f'sample_weight: "w" cross_entropy {{ {W4} }}',
     lambda x, y, w: (F.cross_entropy(x, y, T(w4), reduction="none").squeeze(1) * w).sum() / paddle.gather(T(w4), y.squeeze(1)).sum(), logits)
loss("columns", 'sample_weight: "w" mse_loss {}', lambda x, y, w: (F.mse_loss(x, y, "none") * w).mean(),
     dict(x=f(3, 4), label=f(3, 4), w=A([[2], [-1], [.5]], "float32")))

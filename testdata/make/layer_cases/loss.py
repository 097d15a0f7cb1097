# SPDX-License-Identifier: Apache-2.0
"""Losses: rows of testdata/make/layer_goldens.py. The prediction is 'x'."""
import paddle
import paddle.nn.functional as F
from op_cases import A, f, i
from paddle import nn

PREDICTION = 'layer { name: "l" input: "x" identity {} }'
CASES = {}


def scalar(function):
    return lambda *inputs: function(*inputs).reshape([1])


def loss(case, said, function, inputs, **options):
    """`said` goes into `loss { ... }`; `function` gives PaddlePaddle's answer, a number."""
    more = "loss { " + said + " }"
    made = (lambda: scalar(function)) if not isinstance(function, type) else function
    by = options.pop("by", "x")
    CASES[case] = (PREDICTION, made, inputs, dict(loss=True, more=more, by=by, **options))


def masked(each, mask, kind="mean"):
    """The mean over what a mask leaves; `each` has the mask's shape, or more axes."""
    if each.ndim > mask.ndim:
        each = each.mean(list(range(mask.ndim, each.ndim)))
    total = (each * mask).sum()
    return total / mask.sum() if kind == "mean" else total


def smooth(labels):
    return F.label_smooth(F.one_hot(labels.squeeze(1), 4), epsilon=.2)


def margin(x, true):
    """PaddlePaddle has margin_cross_entropy on GPUs only; this is its formula."""
    return x + true * (paddle.cos(.9 * paddle.acos(x) + .4) - .1 - x)


def T(values):
    return paddle.to_tensor(values, dtype="float32")


W4 = "weight: [0.2, 1, 1.5, 0.7]"
w4 = [0.2, 1, 1.5, 0.7]
logits, numbers = f(5, 4, lo=-3, hi=3), A([[1], [0], [3], [2], [1]])
ce = dict(x=logits, label=numbers)
soft = dict(x=logits, label=f(5, 4, lo=0, hi=1))
image = dict(x=f(2, 4, 3, 2), label=i(2, 3, 2, lo=0, hi=4))
words = dict(x=f(2, 3, 4), label=i(2, 3, lo=0, hi=4))
MASK, mask = A([[1, 1, 0], [1, 0, 0]], "float32"), [[1, 1, 0], [1, 0, 0]]

for kind in "mean", "sum":
    r = f"reduction: {kind}"
    loss(f"cross_entropy_{kind}", f"cross_entropy {{ {r} }}", lambda x, y, k=kind: F.cross_entropy(x, y, reduction=k), ce)
    loss(f"cross_entropy_weight_{kind}", f"cross_entropy {{ {r} {W4} }}",
         lambda x, y, k=kind: F.cross_entropy(x, y, T(w4), reduction=k), ce)
    loss(f"cross_entropy_ignore_{kind}", f"cross_entropy {{ {r} ignore_index: 1 }}",
         lambda x, y, k=kind: F.cross_entropy(x, y, ignore_index=1, reduction=k), ce)
    loss(f"cross_entropy_weight_ignore_{kind}", f"cross_entropy {{ {r} ignore_index: 1 {W4} }}",
         lambda x, y, k=kind: F.cross_entropy(x, y, T(w4), ignore_index=1, reduction=k), ce)
    loss(f"cross_entropy_soft_{kind}", f"cross_entropy {{ {r} soft_label: true }}",
         lambda x, y, k=kind: F.cross_entropy(x, y, soft_label=True, reduction=k), soft)
    loss(f"cross_entropy_soft_weight_{kind}", f"cross_entropy {{ {r} soft_label: true {W4} }}",
         lambda x, y, k=kind: F.cross_entropy(x, y, T(w4), soft_label=True, reduction=k), soft)
    loss(f"nll_{kind}", f"nll_loss {{ {r} }}", lambda x, y, k=kind: F.nll_loss(x, y.squeeze(1), reduction=k), ce)
    loss(f"nll_weight_{kind}", f"nll_loss {{ {r} {W4} ignore_index: 3 }}",
         lambda x, y, k=kind: F.nll_loss(x, y.squeeze(1), T(w4), 3, k), ce)
    pair = dict(x=f(3, 4), label=f(3, 4))
    loss(f"mse_{kind}", f"mse_loss {{ {r} }}", lambda x, y, k=kind: F.mse_loss(x, y, k), pair)
    loss(f"l1_{kind}", f"l1_loss {{ {r} }}", lambda x, y, k=kind: F.l1_loss(x, y, k), pair)
    loss(f"smooth_l1_{kind}", f"smooth_l1_loss {{ {r} delta: 0.6 }}",
         lambda x, y, k=kind: F.smooth_l1_loss(x, y, k, 0.6), pair)
    yes = dict(x=f(3, 4, lo=0.05, hi=0.95), label=f(3, 4, lo=0, hi=1))
    loss(f"bce_{kind}", f"bce_loss {{ {r} }}", lambda x, y, k=kind: F.binary_cross_entropy(x, y, reduction=k), yes)
    loss(f"bce_weight_{kind}", f"bce_loss {{ {r} {W4} }}",
         lambda x, y, k=kind: F.binary_cross_entropy(x, y, T(w4), k), yes)
    bits = dict(x=f(3, 4, lo=-3, hi=3), label=f(3, 4, lo=0, hi=1))
    loss(f"bce_with_logits_{kind}", f"bce_with_logits_loss {{ {r} }}",
         lambda x, y, k=kind: F.binary_cross_entropy_with_logits(x, y, reduction=k), bits)
    loss(f"bce_with_logits_weights_{kind}", f"bce_with_logits_loss {{ {r} {W4} pos_weight: [2, 1, 0.5, 3] }}",
         lambda x, y, k=kind: F.binary_cross_entropy_with_logits(x, y, T(w4), k, T([2, 1, .5, 3])), bits)
    loss(f"focal_{kind}", f"sigmoid_focal_loss {{ {r} alpha: 0.4 gamma: 1.5 }}",
         lambda x, y, k=kind: F.sigmoid_focal_loss(x, y, alpha=.4, gamma=1.5, reduction=k),
         dict(x=f(3, 4, lo=-3, hi=3), label=A([[1, 0, 0, 1], [0, 1, 1, 0], [1, 1, 0, 0]], "float32")))
    loss(f"kl_div_{kind}", f"kl_div_loss {{ {r} }}", lambda x, y, k=kind: F.kl_div(x, y, k),
         dict(x=f(3, 4, lo=-3, hi=0), label=f(3, 4, lo=0, hi=1)))
    sides = dict(x=f(3, 4), other=f(3, 4), label=A([[1, -1, 1, -1]] * 3, "float32"))
    loss(f"margin_ranking_{kind}", f'margin_ranking_loss {{ {r} other: "other" margin: 0.3 }}',
         lambda x, o, y, k=kind: F.margin_ranking_loss(x, o, y, .3, k), sides, by="x other")
    loss(f"hinge_embedding_{kind}", f"hinge_embedding_loss {{ {r} margin: 0.8 }}",
         lambda x, y, k=kind: F.hinge_embedding_loss(x, y, .8, k),
         dict(x=f(3, 4, lo=0, hi=2), label=A([[1, -1, 1, -1]] * 3, "float32")))
    loss(f"cosine_embedding_{kind}", f'cosine_embedding_loss {{ {r} other: "other" margin: 0.1 }}',
         lambda x, o, y, k=kind: F.cosine_embedding_loss(x, o, y, .1, k),
         dict(x=f(4, 3), other=f(4, 3), label=A([1, -1, 1, -1], "float32")), by="x other")
    loss(f"triplet_{kind}", f'triplet_margin_loss {{ {r} positive: "p" negative: "n" }}',
         lambda x, p, n, k=kind: F.triplet_margin_loss(x, p, n, reduction=k), dict(x=f(4, 3), p=f(4, 3), n=f(4, 3)), by="x p n")
    ctc = dict(x=f(6, 2, 5), label=i(2, 3, lo=1, hi=5), steps=A([6, 5]), labels=A([3, 2]))
    loss(f"ctc_{kind}", f'ctc_loss {{ {r} input_length: "steps" label_length: "labels" }}',
         lambda x, y, n, m, k=kind: F.ctc_loss(x, y.astype("int32"), n, m, reduction=k), ctc, rtol=1e-4)
    loss(f"soft_margin_{kind}", f"soft_margin_loss {{ {r} }}", lambda x, y, k=kind: F.soft_margin_loss(x, y, k),
         dict(x=f(3, 4), label=A([[1, -1, 1, -1]] * 3, "float32")))
    loss(f"multi_label_soft_margin_{kind}", f"multi_label_soft_margin_loss {{ {r} {W4} }}",
         lambda x, y, k=kind: F.multi_label_soft_margin_loss(x, y, T(w4), k),
         dict(x=f(3, 4), label=A([[1, 0, 1, 0]] * 3, "float32")))
    loss(f"multi_margin_{kind}", f"multi_margin_loss {{ {r} margin: 0.9 }}",
         lambda x, y, k=kind: F.multi_margin_loss(x, y.squeeze(1), margin=.9, reduction=k), ce)
    loss(f"poisson_nll_{kind}", f"poisson_nll_loss {{ {r} }}", lambda x, y, k=kind: F.poisson_nll_loss(x, y, reduction=k),
         dict(x=f(3, 4), label=f(3, 4, lo=0, hi=5)))
    loss(f"poisson_nll_full_{kind}", f"poisson_nll_loss {{ {r} log_input: false full: true }}",
         lambda x, y, k=kind: F.poisson_nll_loss(x, y, False, True, reduction=k),
         dict(x=f(3, 4, lo=0.1, hi=5), label=f(3, 4, lo=0.1, hi=5)))
    loss(f"gaussian_nll_{kind}", f'gaussian_nll_loss {{ {r} variance: "v" full: true }}',
         lambda x, y, v, k=kind: F.gaussian_nll_loss(x, y, v, True, reduction=k),
         dict(x=f(3, 4), label=f(3, 4), v=f(3, 4, lo=.1, hi=2)), by="x v")
    loss(f"mask_{kind}", f'mask: "m" cross_entropy {{ {r} }}',
         lambda x, y, m, k=kind: masked(F.cross_entropy(x, y, reduction="none"), m, k), dict(words, m=MASK))
    loss(f"rnnt_{kind}", f'rnnt_loss {{ {r} fastemit_lambda: 0 input_length: "steps" label_length: "labels" }}',
         lambda x, y, n, m, k=kind: F.rnnt_loss(x, y.astype("int32"), n.astype("int32"), m.astype("int32"), fastemit_lambda=0., reduction=k),
         dict(x=f(2, 4, 3, 5), label=i(2, 2, lo=1, hi=5), steps=A([4, 3]), labels=A([2, 1])), rtol=1e-4)

# Its weighted sum in PaddlePaddle 2.6 is N times too large ([N] - [N, 1]).
loss("multi_margin_weight", f"multi_margin_loss {{ p: 2 {W4} }}", lambda x, y: F.multi_margin_loss(x, y.squeeze(1), 2, 1., T(w4)), ce)
loss("cross_entropy_axis", "cross_entropy { axis: 1 }", lambda x, y: F.cross_entropy(x, y, axis=1), image)
loss("cross_entropy_axis_weight", f"cross_entropy {{ axis: 1 {W4} ignore_index: 0 }}",
     lambda x, y: F.cross_entropy(x, y.unsqueeze(1), T(w4), ignore_index=0, axis=1), image)
loss("cross_entropy_sequence", "cross_entropy { ignore_index: 2 }", lambda x, y: F.cross_entropy(x, y, ignore_index=2), words)
loss("cross_entropy_all_ignored", "cross_entropy { ignore_index: 1 }", lambda x, y: F.cross_entropy(x, y, ignore_index=1),
     dict(x=f(2, 4), label=A([1, 1])))
loss("cross_entropy_probabilities", "cross_entropy { use_softmax: false }", lambda x, y: F.cross_entropy(x, y, use_softmax=False),
     dict(x=f(5, 4, lo=.1, hi=1), label=numbers))
loss("cross_entropy_smoothing", "cross_entropy { label_smoothing: 0.2 }", lambda x, y: F.cross_entropy(x, smooth(y), soft_label=True), ce)
loss("cross_entropy_smoothing_weight", f"cross_entropy {{ label_smoothing: 0.2 {W4} }}",
     lambda x, y: F.cross_entropy(x, smooth(y), T(w4), soft_label=True), ce)
loss("cross_entropy_factor", "weight: 0.3 cross_entropy {}", lambda x, y: .3 * F.cross_entropy(x, y), ce)
loss("nll_image", f"nll_loss {{ {W4} }}", lambda x, y: F.nll_loss(x, y, T(w4)), image)
loss("nll_volume", "nll_loss {}", lambda x, y: F.nll_loss(x, y), dict(x=f(2, 4, 3), label=i(2, 3, lo=0, hi=4)))
loss("square_error_cost", "square_error_cost {}", lambda x, y: F.square_error_cost(x, y).mean(), dict(x=f(3, 4), label=f(3, 4)))
loss("log_loss", "log_loss { epsilon: 0.001 }", lambda x, y: F.log_loss(x, y, .001).mean(),
     dict(x=f(5, 1, lo=0, hi=1), label=A([[1], [0], [1], [1], [0]], "float32")))
loss("kl_div_batchmean", "kl_div_loss { reduction: batchmean }", lambda x, y: F.kl_div(x, y, "batchmean"),
     dict(x=f(3, 4, lo=-3, hi=0), label=f(3, 4, lo=0, hi=1)))
loss("focal_normalizer", 'sigmoid_focal_loss { normalizer: "n" }', lambda x, y, n: F.sigmoid_focal_loss(x, y, n),
     dict(x=f(3, 4), label=A([[1, 0, 0, 1]] * 3, "float32"), n=A([6], "float32")))
loss("triplet_swap", 'triplet_margin_loss { positive: "p" negative: "n" swap: true p: 1 margin: 2 epsilon: 0.01 }',
     lambda x, p, n: F.triplet_margin_loss(x, p, n, 2., 1., .01, True), dict(x=f(4, 3), p=f(4, 3), n=f(4, 3)), by="x p n")
loss("dice", "dice_loss {}", lambda x, y: F.dice_loss(x, y), dict(x=f(2, 3, 4, lo=0, hi=1), label=i(2, 3, 1, lo=0, hi=4)))
loss("npair", 'npair_loss { positive: "p" l2_reg: 0.1 }', lambda x, p, y: F.npair_loss(x, p, y, .1),
     dict(x=f(4, 3), p=f(4, 3), label=A([1, 0, 1, 2])), by="x p")
loss("margin_cross_entropy", "margin_cross_entropy { scale: 8 margin1: 0.9 margin2: 0.4 margin3: 0.1 }",
     lambda x, y: F.cross_entropy(8 * margin(x, F.one_hot(y.squeeze(1), 4)), y), dict(x=f(5, 4, lo=-.9, hi=.9), label=numbers))
loss("length", 'length: "n" cross_entropy {}',
     lambda x, y, n: masked(F.cross_entropy(x, y, reduction="none"), F.sequence_mask(n, 3, "float32")), dict(words, n=A([2, 1])))
loss("mask_vectors", 'mask: "m" mse_loss {}', lambda x, y, m: masked(F.mse_loss(x, y, "none"), m),
     dict(x=f(2, 3, 4), label=f(2, 3, 4), m=MASK))
loss("mask_weight", f'mask: "m" cross_entropy {{ {W4} }}',
     lambda x, y, m: F.cross_entropy(x, paddle.where(m > 0, y, paddle.full_like(y, -100)), T(w4)), dict(words, m=MASK))
loss("ctc_norm_by_times", 'ctc_loss { blank: 4 norm_by_times: true input_length: "steps" label_length: "labels" }',
     lambda x, y, n, m: F.ctc_loss(x, y.astype("int32"), n, m, 4, norm_by_times=True),
     dict(x=f(6, 2, 5), label=i(2, 3, lo=0, hi=4), steps=A([6, 5]), labels=A([3, 2])), rtol=1e-4)
loss("yolo", """yolo_loss { anchors: [10, 13, 16, 30, 33, 23] anchor_mask: [0, 2] class_num: 2 ignore_thresh: 0.7 downsample_ratio: 32
  gt_box: "box" scale_x_y: 1.1 }""",
     lambda x, b, y: paddle.vision.ops.yolo_loss(x, b, y.astype("int32"), [10, 13, 16, 30, 33, 23], [0, 2], 2, .7, 32, scale_x_y=1.1).mean(),
     dict(x=f(2, 14, 3, 3), box=f(2, 2, 4, lo=.2, hi=.6), label=i(2, 2, lo=0, hi=2)), rtol=1e-4)
loss("yolo_score", """yolo_loss { anchors: [10, 13, 16, 30] anchor_mask: [0, 1] class_num: 2 ignore_thresh: 0.5 downsample_ratio: 16
  gt_box: "box" gt_score: "score" use_label_smooth: false reduction: sum }""",
     lambda x, b, y, s: paddle.vision.ops.yolo_loss(x, b, y.astype("int32"), [10, 13, 16, 30], [0, 1], 2, .5, 16, s, False).sum(),
     dict(x=f(2, 14, 3, 3), box=f(2, 2, 4, lo=.2, hi=.6), label=i(2, 2, lo=0, hi=2), score=f(2, 2, lo=.3, hi=1)), rtol=1e-4)

# Of these PaddlePaddle 2.6 has no function any more, only the ops; the formulas are theirs.
loss("rank_loss", 'rank_loss { other: "o" }', lambda x, o, y: (F.softplus(x - o) - y * (x - o)).mean(),
     dict(x=f(4, 1), o=f(4, 1), label=A([[1], [0], [0.5], [1]], "float32")), by="x o")
loss("bpr_loss", "bpr_loss {}", lambda x, y: (F.softplus(x - paddle.index_sample(x, y)).sum(1) - F.softplus(paddle.zeros([5]))).mean() / 3, ce)
loss("teacher_student", "teacher_student_sigmoid_loss { reduction: sum }", lambda x, y: sum(
    F.softplus(x[k]) * (1 if y[k] < 0 else 2) - x[k] * c for k, c in enumerate([0, 1, 0.3, 1.4])).sum(),
     dict(x=f(4, 1, lo=-3, hi=3), label=A([[-2], [-1], [0.3], [1.4]], "float32")))


class HSigmoid(nn.Layer):
    def __init__(self, custom=False):
        super().__init__()
        self.h = nn.HSigmoidLoss(3, 5, is_custom=custom)

    def forward(self, x, label, *path):
        return self.h(x, label, *path).mean().reshape([1])


features = dict(x=f(4, 3), label=i(4, 1, lo=0, hi=5))
loss("hsigmoid", 'name: "h" hsigmoid_loss { num_classes: 5 }', HSigmoid, features)

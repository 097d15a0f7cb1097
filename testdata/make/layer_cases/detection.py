# SPDX-License-Identifier: Apache-2.0
"""Layers and losses of detectors: rows of testdata/make/layer_goldens.py.

Of multi_box_head, detection_output and ssd_loss PaddlePaddle 2.6 has no functions any more; they are put together here as
PaddlePaddle 2.3 does, with its ops for the numbers and NumPy for matching."""
import numpy as np
import paddle
import paddle.nn.functional as F
from op_cases import A, f
from paddle import nn, static
from paddle.base import create_lod_tensor
from paddle.vision import ops

rng = np.random.RandomState(11)


def boxes(n, m, size=1.0, numbers=rng):
    low = numbers.uniform(0, 0.6, (n, m, 2))
    return ((np.concatenate([low, low + numbers.uniform(0.1, 0.4, (n, m, 2))], 2)) * size).astype("float32")


B = boxes(2, 12)
B[0, 3:6] = B[0, :3] + 0.02  # overlap much
B[1, 6:9] = B[1, :3] - 0.03
S = rng.uniform(0, 1, (2, 3, 12)).astype("float32")
found = dict(b=A(B.tolist(), "float32"), s=A(S.tolist(), "float32"))
NMS = dict(outputs=["l", "l:rois_num", "l:index"], by="")
VARIANCES = [0.1, 0.1, 0.2, 0.2]


def nms(threshold, top, keep, overlap=0.3, normalized=True, eta=1.0, background=0):
    def call(b, s):
        out, index, number = paddle._C_ops.multiclass_nms3(b, s, None, threshold, top, keep, overlap, normalized, eta, background)
        return out, number, index
    return lambda: call


def matrix(*args, **kwargs):
    return lambda: lambda b, s: ops.matrix_nms(b, s, *args, return_index=True, **kwargs)


def anchors(*, sizes=(64., 128., 256., 512.), ratios=(.5, 1., 2.), variance=tuple(VARIANCES), stride=(16., 16.), offset=.5):
    return lambda: lambda x: paddle._legacy_C_ops.anchor_generator(
        x, "anchor_sizes", list(sizes), "aspect_ratios", list(ratios), "variances", list(variance), "stride", list(stride),
        "offset", offset)


class MultiBoxHead(nn.Layer):
    """fluid.layers.detection.multi_box_head of two feature maps with 2 channels."""

    def __init__(self, classes, boxes, kernel, pad, priors):
        super().__init__()
        self.classes, self.priors = classes, priors
        for i, n in enumerate(boxes):
            setattr(self, f"loc{i}", nn.Conv2D(2, n * 4, kernel, padding=pad))
            setattr(self, f"conf{i}", nn.Conv2D(2, n * classes, kernel, padding=pad))

    def forward(self, *inputs):
        *maps, image = inputs
        made = [[], [], [], []]
        for i, x in enumerate(maps):
            box, var = ops.prior_box(x, image, **self.priors[i])
            for part, conv, width in ((made[0], getattr(self, f"loc{i}"), 4), (made[1], getattr(self, f"conf{i}"), self.classes)):
                part.append(conv(x).transpose([0, 2, 3, 1]).reshape([x.shape[0], -1, width]))
            made[2].append(box.reshape([-1, 4]))
            made[3].append(var.reshape([-1, 4]))
        return [paddle.concat(part, 1 if k < 2 else 0) for k, part in enumerate(made)]


def priors(least, most, ratios, **more):
    return [dict(min_sizes=[a], max_sizes=[b] if b else [], aspect_ratios=r, flip=True, **more) for a, b, r in zip(least, most, ratios)]


def detection_output(loc, conf, prior, var):
    decoded = ops.box_coder(prior, var, loc, code_type="decode_center_size")
    scores = F.softmax(conf).transpose([0, 2, 1])
    out, index, number = paddle._C_ops.multiclass_nms3(decoded, scores, None, .2, 400, 5, .45, True, 1.0, 0)
    return out, number, index


def overlap(a, b):
    low, high = np.maximum(a[:, None, :2], b[None, :, :2]), np.minimum(a[:, None, 2:], b[None, :, 2:])
    common = np.clip(high - low, 0, None).prod(2)
    area = lambda c: (c[:, 2:] - c[:, :2]).prod(1)
    return common / (area(a)[:, None] + area(b)[None] - common + 1e-10)


def ssd_matches(truth, prior, per_prediction, threshold):
    """Row of each prior box, -1 for none, and the overlap: Liu et al., 2015."""
    iou = overlap(truth, prior)
    match, value = np.full(len(prior), -1), np.zeros(len(prior))
    left = iou.copy()
    for _ in truth:
        row, column = np.unravel_index(left.argmax(), left.shape)
        if left[row, column] < 1e-6:
            break
        match[column], value[column] = row, iou[row, column]
        left[row], left[:, column] = -1, -1
    if per_prediction:
        for j in np.flatnonzero(match < 0):
            row = iou[:, j].argmax()
            if iou[row, j] >= threshold:
                match[j], value[j] = row, iou[row, j]
    return match, value


def encoded(truth, prior, var):
    def parts(c):
        return (c[:, :2] + c[:, 2:]) / 2, c[:, 2:] - c[:, :2]
    (tc, ts), (pc, ps) = parts(truth), parts(prior)
    return np.concatenate([(tc - pc) / ps, np.log(ts / ps)], 1) / var


def matched_by_numpy(truth, prior, each, threshold, ratio, negative, per_prediction):
    match, value = ssd_matches(truth, prior, per_prediction, threshold)
    candidates = [j for j in np.flatnonzero(match < 0) if value[j] < negative]
    hardest = sorted(candidates, key=lambda j: -each(match)[j])
    return match, hardest[:int((match >= 0).sum() * ratio)]


def run(kind, feeds, outputs, attrs):
    """One operator in a static program. feeds: slot -> name, array and, of sequences, their lengths."""
    paddle.enable_static()
    try:
        main = static.Program()
        with static.program_guard(main):
            block, fed = main.global_block(), {}
            for slot, (name, array, lengths) in feeds.items():
                block.create_var(name=name, shape=array.shape, dtype=str(array.dtype), lod_level=int(lengths is not None))
                fed[name] = array if lengths is None else create_lod_tensor(array, [lengths], paddle.CPUPlace())
            for name, dtype in outputs.values():
                block.create_var(name=name, dtype=dtype)
            block.append_op(type=kind, inputs={slot: [name] for slot, (name, *_) in feeds.items()},
                            outputs={slot: [name] for slot, (name, _) in outputs.items()}, attrs=attrs)
        return static.Executor(paddle.CPUPlace()).run(main, fed, [name for name, _ in outputs.values()], return_numpy=False)
    finally:
        paddle.disable_static()


def matched_by_paddle(truth, prior, each, threshold, ratio, negative, per_prediction):
    """The operators that fluid.layers.ssd_loss appends, which PaddlePaddle 2.6 still has (target_assign it has not)."""
    iou, = run("iou_similarity", dict(X=("x", truth.astype("float32"), [len(truth)]), Y=("y", prior.astype("float32"), None)),
               dict(Out=("iou", "float32")), dict(box_normalized=True))
    match, value = run("bipartite_match", dict(DistMat=("iou", np.array(iou), [len(truth)])),
                       dict(ColToRowMatchIndices=("match", "int32"), ColToRowMatchDist=("value", "float32")),
                       dict(match_type="per_prediction" if per_prediction else "bipartite", dist_threshold=threshold))
    match, value = np.array(match), np.array(value)
    negatives, updated = run("mine_hard_examples", dict(ClsLoss=("each", each(match[0])[None].astype("float32"), None),
                                                        MatchIndices=("match", match, None), MatchDist=("value", value, None)),
                             dict(NegIndices=("negatives", "int32"), UpdatedMatchIndices=("updated", "int32")),
                             dict(neg_pos_ratio=ratio, neg_dist_threshold=negative, mining_type="max_negative", sample_size=0))
    return np.array(updated)[0], np.array(negatives).ravel()


def ssd_loss(background=0, threshold=.5, ratio=3., negative=.5, loc_weight=1., conf_weight=1., per_prediction=True, normalize=True,
             matched_by=matched_by_numpy):
    def call(x, conf, prior, var, box, label):
        p, v, n = prior.numpy().astype("float64"), var.numpy().astype("float64"), x.shape[0]
        target = np.full(conf.shape[:2], background)
        offsets, matched, counted = np.zeros(x.shape), np.zeros(conf.shape[:2]), np.zeros(conf.shape[:2])
        for i in range(n):
            real = (box.numpy()[i, :, 2:] > box.numpy()[i, :, :2]).all(1)
            truth, classes = box.numpy()[i][real].astype("float64"), label.numpy()[i][real]
            if not len(truth):
                continue

            def class_loss(match):
                wanted = np.where(match >= 0, classes[match], background)
                return F.cross_entropy(conf[i], paddle.to_tensor(wanted), reduction="none").numpy()
            match, hardest = matched_by(truth, p, class_loss, threshold, ratio, negative, per_prediction)
            yes = match >= 0
            target[i, yes] = classes[match[yes]]
            offsets[i, yes] = encoded(truth[match[yes]], p[yes], v[yes])
            matched[i, yes] = counted[i, yes] = 1
            counted[i, hardest] = 1
        conf_loss = F.cross_entropy(conf, paddle.to_tensor(target), reduction="none") * paddle.to_tensor(counted.astype("float32"))
        loc_loss = F.smooth_l1_loss(x, paddle.to_tensor(offsets.astype("float32")), reduction="none").sum(2)
        loss = (conf_weight * conf_loss + loc_weight * loc_loss * paddle.to_tensor(matched.astype("float32"))).sum()
        return loss / max(matched.sum(), 1) if normalize else loss
    return lambda: lambda *inputs: call(*inputs).reshape([1])


P = boxes(1, 10)[0]
T = boxes(3, 3)
T[0, 0], T[0, 1] = P[2] + 0.01, P[5] - 0.02
T[1, 0] = P[7] + 0.015
T[1, 1:] = 0  # padding
T[2] = 0
truths = dict(x=f(3, 10, 4), conf=f(3, 10, 4), prior=A(P.tolist(), "float32"), var=A([VARIANCES] * 10, "float32"),
              gt_box=A(T.tolist(), "float32"), label=A([[1, 3, 2], [2, 0, 0], [0, 0, 0]], "int64"))
# Many prior boxes, several of which stand for one true box; other random numbers, so that those of the rows above stay.
own = np.random.RandomState(12)
GRID = np.stack(np.meshgrid(np.arange(6), np.arange(6)), 2).reshape(-1, 2) / 6
P36 = np.concatenate([np.concatenate([GRID - size / 2 + 1 / 12, GRID + size / 2 + 1 / 12], 1) for size in (.2, .35)])
low = own.uniform(0, .6, (4, 5, 2))
T5 = np.concatenate([low, low + own.uniform(.15, .4, (4, 5, 2))], 2)
T5[0, 3:], T5[1, 1:] = 0, 0
many = dict(x=A(own.uniform(-1, 1, (4, 72, 4)).tolist(), "float32"), conf=A(own.uniform(-2, 2, (4, 72, 5)).tolist(), "float32"),
            prior=A(P36.tolist(), "float32"), var=A([VARIANCES] * 72, "float32"), gt_box=A(T5.tolist(), "float32"),
            label=A(own.randint(0, 4, (4, 5)).tolist(), "int64"))
SSD = 'layer { name: "l" input: "x" identity {} }'


def ssd(said="", of=truths, **options):
    return (SSD, ssd_loss(**options), of,
            dict(loss=True, by="x conf", rtol=1e-4,
                 more=f'loss {{ ssd_loss {{ confidence: "conf" prior_box: "prior" prior_box_var: "var" {said} }} }}'))


class RpnHead(nn.Layer):
    """Of 2 channels; anchors as anchor_generator lays them out."""

    def __init__(self, channels, sizes, ratios, stride, kernel=3):
        super().__init__()
        normal = lambda: paddle.ParamAttr(initializer=nn.initializer.Normal(0, .01))
        count = len(sizes) * len(ratios)
        self.conv = nn.Conv2D(2, channels, kernel, padding=kernel // 2, weight_attr=normal())
        self.score = nn.Conv2D(channels, count, 1, weight_attr=normal())
        self.delta = nn.Conv2D(channels, 4 * count, 1, weight_attr=normal())
        self.anchors = anchors(sizes=sizes, ratios=ratios, variance=(1., 1., 1., 1.), stride=stride)()

    def forward(self, x):
        y = F.relu(self.conv(x))
        scores = self.score(y)
        return [scores, F.sigmoid(scores), self.delta(y), *self.anchors(x)]


class RcnnHead(nn.Layer):
    def __init__(self, classes):
        super().__init__()
        normal = lambda std: paddle.ParamAttr(initializer=nn.initializer.Normal(0, std))
        self.score = nn.Linear(5, classes + 1, weight_attr=normal(.01))
        self.delta = nn.Linear(5, 4 * (classes + 1), weight_attr=normal(.001))

    def forward(self, x):
        return self.score(x), self.delta(x)


WIDTH, HEIGHT = 48, 40  # of the pictures of Faster R-CNN's cases


def unpadded(box, label):
    """Rows in pixels, classes, and how many each image has."""
    real = [(b[:, 2:] > b[:, :2]).all(1) for b in box]
    pixels = box * np.array([WIDTH, HEIGHT] * 2, "float32") - np.array([0, 0, 1, 1], "float32")
    rows = np.concatenate([b[r] for b, r in zip(pixels, real)])
    classes = np.concatenate([c[r] for c, r in zip(label, real)])
    return rows, classes.astype("int32")[:, None], [int(r.sum()) for r in real]


def info(n):
    return np.array([[HEIGHT, WIDTH, 1]] * n, "float32")


def rpn_loss(batch=256, straddle=0., fraction=.5, positive=.7, negative=.3, sigma=3.):
    def call(x, offsets, anchor, box, image):
        truths, _, lengths = unpadded(box.numpy(), np.zeros(box.shape[:2]))
        location, score, target, label, weight = [np.array(one) for one in run(
            "rpn_target_assign",
            dict(Anchor=("a", anchor.numpy().reshape(-1, 4), None), GtBoxes=("g", truths, lengths),
                 IsCrowd=("c", np.zeros((len(truths), 1), "int32"), lengths), ImInfo=("i", info(len(lengths)), None)),
            dict(LocationIndex=("l", "int32"), ScoreIndex=("s", "int32"), TargetBBox=("t", "float32"), TargetLabel=("o", "int32"),
                 BBoxInsideWeight=("w", "float32")),
            dict(rpn_batch_size_per_im=batch, rpn_straddle_thresh=straddle, rpn_fg_fraction=fraction, rpn_positive_overlap=positive,
                 rpn_negative_overlap=negative, use_random=False))]
        assert len(location) > 2 and (label == 0).any(), "nothing to learn"
        flat = lambda t, width: t.transpose([0, 2, 3, 1]).reshape([-1, width])
        by_class = F.binary_cross_entropy_with_logits(paddle.gather(flat(x, 1), paddle.to_tensor(score)),
                                                      paddle.to_tensor(label.astype("float32")))
        return by_class + smooth(paddle.gather(flat(offsets, 4), paddle.to_tensor(location)), target, weight, sigma) / len(score)
    return lambda: lambda *inputs: call(*inputs).reshape([1])


def smooth(x, target, weight, sigma):
    """The sum of smooth_l1_loss, whose function went with fluid."""
    d = ((x - paddle.to_tensor(target)) * paddle.to_tensor(weight)).abs()
    return paddle.where(d < 1 / sigma ** 2, d * d * (sigma ** 2 / 2), d - .5 / sigma ** 2).sum()


def proposals(scores, deltas, image, anchor, variance):
    sizes = paddle.to_tensor([[HEIGHT, WIDTH]] * scores.shape[0], dtype="float32")
    return ops.generate_proposals(scores, deltas, sizes, anchor, variance, 30, 12, .7, 2., pixel_offset=True, return_rois_num=True)


PROPOSALS = """layer { name: "rois" input: ["s", "d", "image", "a", "v"] generate_proposals { pre_nms_top_n: 30 post_nms_top_n: 12
    nms_thresh: 0.7 min_size: 2 pixel_offset: true } }""".replace("\n    ", " ")


def samples(scores, deltas, image, anchor, variance, box, label, batch=256, fraction=.25, foreground=.25, high=.5, low=0.,
            units=(.1, .1, .2, .2)):
    """Rois, how many each image has, labels, targets, weights."""
    rois, _, counts = proposals(scores, deltas, image, anchor, variance)
    truths, classes, lengths = unpadded(box.numpy(), label.numpy())
    names = ["Rois", "LabelsInt32", "BboxTargets", "BboxInsideWeights", "BboxOutsideWeights", "MaxOverlapWithGT"]
    made = run("generate_proposal_labels",
               dict(RpnRois=("r", rois.numpy(), counts.numpy().tolist()), GtClasses=("k", classes + 1, lengths),
                    IsCrowd=("c", np.zeros((len(truths), 1), "int32"), lengths), GtBoxes=("g", truths, lengths),
                    ImInfo=("i", info(len(lengths)), None)),
               {name: (name, "int32" if name == "LabelsInt32" else "float32") for name in names},
               dict(batch_size_per_im=batch, fg_fraction=fraction, fg_thresh=foreground, bg_thresh_hi=high, bg_thresh_lo=low,
                    bbox_reg_weights=list(units), class_nums=4, use_random=False, is_cls_agnostic=False, is_cascade_rcnn=False))
    offsets = made[0].lod()[0]
    return [np.array(made[0]), np.diff(offsets).astype("int32")] + [np.array(one) for one in made[1:4]]


def rcnn_output(scores, offsets, rois, counts, image):
    rows, classes = scores.shape
    box = ops.box_coder(rois, [.1, .1, .2, .2], offsets.reshape([rows, classes, 4])[:, 1:], "decode_center_size", False, axis=1)
    last = paddle.to_tensor([WIDTH - 1., HEIGHT - 1.] * 2)
    box = (paddle.minimum(box.clip(0), last) + paddle.to_tensor([0., 0., 1., 1.])) / paddle.to_tensor([float(WIDTH), HEIGHT] * 2)
    out, index, number = paddle._C_ops.multiclass_nms3(box, F.softmax(scores)[:, 1:], counts, .2, -1, 9, .45, True, 1.0, -1)
    return out, number, index


def rcnn_loss(sigma=1.):
    def call(x, offsets, *chain):
        _, _, labels, targets, weights = samples(*chain, foreground=.4)
        by_class = F.cross_entropy(x, paddle.to_tensor(labels.astype("int64")))
        return by_class + smooth(offsets, targets, weights, sigma) / len(labels)
    return lambda: lambda *inputs: call(*inputs).reshape([1])


def lists(**arrays):
    return {name: A(array.tolist(), str(array.dtype)) for name, array in arrays.items()}


own = np.random.RandomState(13)
A4 = anchors(sizes=(8., 14.), ratios=(.5, 1.), variance=(1., 1., 1., 1.), stride=(8., 8.))()(paddle.zeros([1, 1, 5, 6]))
true_boxes = boxes(3, 3, numbers=own)
true_boxes[1, 2:], true_boxes[2, 1:] = 0, 0  # padding; without any box PaddlePaddle refuses an image
CHAIN = dict(s=own.uniform(0, 1, (3, 4, 5, 6)), d=own.uniform(-.4, .4, (3, 16, 5, 6)), image=np.zeros((3, 1, HEIGHT, WIDTH)),
             a=A4[0].numpy(), v=A4[1].numpy(), box=true_boxes, label=own.randint(0, 3, (3, 3)))
CHAIN = {name: array.astype("int64" if name == "label" else "float32") for name, array in CHAIN.items()}
SAMPLED = len(samples(*[paddle.to_tensor(one) for one in CHAIN.values()], foreground=.4)[0])
RPN = dict(x=f(3, 4, 5, 6), offsets=f(3, 16, 5, 6), **lists(a=CHAIN["a"], gt_box=true_boxes, image=CHAIN["image"]))


def rpn(said="", **options):
    return ('layer { name: "l" input: "x" identity {} }', rpn_loss(**options), RPN,
            dict(loss=True, by="x offsets", more=f'loss {{ input: "l" rpn_loss {{ offsets: "offsets" anchors: "a" {said} }} }}'))


def sampling(said, **options):
    return (PROPOSALS + '\nlayer { name: "l" input: ["rois", "box", "label", "image"] generate_proposal_labels { num_classes: 3 '
            + said + " use_random: false } }", lambda: lambda *chain: [paddle.to_tensor(one) for one in samples(*chain, **options)],
            lists(**CHAIN), dict(outputs=["l", "l:rois_num", "l:labels", "l:targets", "l:weights"], by=""))


two_maps = dict(a=f(2, 2, 4, 4), b=f(2, 2, 2, 2), image=f(2, 3, 32, 32))
HEAD = dict(outputs=["l", "l:confidences", "l:boxes", "l:variances"], by="a b")

CASES = {
    "multiclass_nms": ("multiclass_nms { score_threshold: 0.3 nms_top_k: -1 keep_top_k: -1 background_label: -1 }",
                       nms(.3, -1, -1, background=-1), found, NMS),
    "multiclass_nms_options": ("""multiclass_nms { score_threshold: 0.1 nms_top_k: 8 keep_top_k: 6 nms_threshold: 0.6 normalized: false
                                  nms_eta: 0.9 background_label: 1 }""", nms(.1, 8, 6, .6, False, .9, 1), found, NMS),
    "multiclass_nms_nothing": ("multiclass_nms { score_threshold: 2 nms_top_k: 4 keep_top_k: 4 }", nms(2., 4, 4), found, NMS),
    "matrix_nms": ("matrix_nms { score_threshold: 0.2 post_threshold: 0.1 nms_top_k: 20 keep_top_k: 10 }", matrix(.2, .1, 20, 10),
                   found, NMS),
    "matrix_nms_gaussian": ("""matrix_nms { score_threshold: 0.1 post_threshold: 0.3 nms_top_k: 6 keep_top_k: 9 use_gaussian: true
                               gaussian_sigma: 1.5 background_label: -1 normalized: false }""",
                            matrix(.1, .3, 6, 9, use_gaussian=True, gaussian_sigma=1.5, background_label=-1, normalized=False), found, NMS),
    "prior_box": ("prior_box { min_sizes: 8 }", "lambda x, y: ops.prior_box(x, y, [8.])", dict(x=f(2, 3, 2, 3), y=f(2, 3, 20, 36)),
                  dict(outputs=["l", "l:variances"], by="")),
    "prior_box_options": ("""prior_box { min_sizes: [4, 10] max_sizes: [9, 16] aspect_ratios: [2, 3] variance: [0.2, 0.1, 0.3, 0.4] flip: true
                             clip: true steps: [9, 11] offset: 0.4 min_max_aspect_ratios_order: true }""",
                          "lambda x, y: ops.prior_box(x, y, [4., 10.], [9., 16.], [2., 3.], [.2, .1, .3, .4], True, True, [9., 11.], .4, True)",
                          dict(x=f(1, 3, 2, 3), y=f(1, 3, 20, 36)), dict(outputs=["l", "l:variances"], by="")),
    "anchor_generator": ("anchor_generator {}", anchors(), dict(x=f(1, 2, 2, 3)), dict(outputs=["l", "l:variances"], by="")),
    "anchor_generator_options": ("""anchor_generator { anchor_sizes: [16, 40] aspect_ratios: [1, 3] variance: [1, 1, 1, 0.5] stride: [8, 6]
                                    offset: 0.2 }""", anchors(sizes=(16., 40.), ratios=(1., 3.), variance=(1., 1., 1., .5), stride=(8., 6.), offset=.2),
                                 dict(x=f(1, 2, 2, 3)), dict(outputs=["l", "l:variances"], by="")),
    "box_coder": ("box_coder {}", "lambda p, v, t: ops.box_coder(p, v, t)",
                  dict(p=A(P.tolist(), "float32"), v=A([VARIANCES] * 10, "float32"), t=A(T[0].tolist(), "float32")), dict(by="")),
    "box_coder_decode": ("box_coder { code_type: decode_center_size variance: [0.1, 0.1, 0.2, 0.2] box_normalized: false }",
                         "lambda p, t: ops.box_coder(p, [.1, .1, .2, .2], t, 'decode_center_size', False)",
                         dict(p=A((P * 40).tolist(), "float32"), t=f(2, 10, 4)), dict(by="")),
    "box_coder_decode_axis": ("box_coder { code_type: decode_center_size axis: 1 }", "lambda p, v, t: ops.box_coder(p, v, t, 'decode_center_size', axis=1)",
                              dict(p=A(P.tolist(), "float32"), v=A([VARIANCES] * 10, "float32"), t=f(10, 3, 4)), dict(by="")),
    "generate_proposals": ("generate_proposals { pre_nms_top_n: 20 post_nms_top_n: 6 nms_thresh: 0.4 min_size: 2 }",
                           "lambda s, d, i, a, v: ops.generate_proposals(s, d, i, a, v, 20, 6, .4, 2., return_rois_num=True)",
                           dict(s=f(2, 3, 4, 4), d=f(2, 12, 4, 4), i=A([[40, 50], [30, 44]], "float32"),
                                a=A(boxes(1, 48, 40)[0].reshape(4, 4, 3, 4).tolist(), "float32"), v=f(4, 4, 3, 4, lo=.1, hi=.3)),
                           dict(outputs=["l", "l:scores", "l:rois_num"], by="")),
    "yolo_box_img_size": ("yolo_box { anchors: [10, 13, 16, 30] class_num: 2 conf_thresh: 0.4 downsample_ratio: 8 img_size: [24, 30] }",
                          "lambda x: ops.yolo_box(x, paddle.to_tensor([[24, 30], [24, 30]], 'int32'), [10, 13, 16, 30], 2, 0.4, 8)",
                          dict(x=f(2, 14, 3, 3)), dict(outputs=["l", "l:scores"], by="")),
    "multi_box_head": ("""multi_box_head { num_classes: 3 min_sizes: [6, 12] max_sizes: [12, 20] aspect_ratios { value: 2 }
                          aspect_ratios { value: [2, 3] } kernel_size: 3 pad: 1 }""",
                       lambda: MultiBoxHead(3, [4, 6], 3, 1, priors([6., 12.], [12., 20.], [[2.], [2., 3.]])), two_maps, HEAD),
    "multi_box_head_no_larger": ("""multi_box_head { num_classes: 2 min_sizes: [6, 12] max_sizes: [0, 20] aspect_ratios { value: 2 }
                                    aspect_ratios { value: 3 } }""",
                                 lambda: MultiBoxHead(2, [3, 4], 1, 0, priors([6., 12.], [0., 20.], [[2.], [3.]])), two_maps, HEAD),
    "multi_box_head_ratios": ("""multi_box_head { num_classes: 2 base_size: 32 min_ratio: 20 max_ratio: 90 aspect_ratios { value: 2 }
                                 aspect_ratios { value: 2 } aspect_ratios { value: 2 } clip: true steps: [8, 16, 16] offset: 0.3 }""",
                              lambda: MultiBoxHead(2, [4, 4, 4], 1, 0, [dict(p, steps=[s, s]) for p, s in zip(priors(
                                  [3.2, 6.4, 28.8], [6.4, 28.8, 51.2], [[2.]] * 3, clip=True, offset=.3), (8., 16., 16.))]),
                              dict(a=f(2, 2, 4, 4), b=f(2, 2, 2, 2), c=f(2, 2, 2, 2), image=f(2, 3, 32, 32)), dict(HEAD, by="a b c")),
    "detection_output": ("detection_output { score_threshold: 0.2 keep_top_k: 5 nms_threshold: 0.45 }", lambda: detection_output,
                         dict(loc=f(2, 10, 4), conf=f(2, 10, 3, lo=-2, hi=2), p=A(P.tolist(), "float32"), v=A([VARIANCES] * 10, "float32")), NMS),
    "ssd_loss": ssd(),
    "ssd_loss_bipartite": ssd("match_type: bipartite neg_pos_ratio: 1.5 neg_overlap: 0.3 loc_loss_weight: 2 conf_loss_weight: 0.5",
                              per_prediction=False, ratio=1.5, negative=.3, loc_weight=2., conf_weight=.5),
    "ssd_loss_operators": ssd("background_label: 4 overlap_threshold: 0.35 neg_overlap: 0.35", of=many, background=4, threshold=.35,
                              negative=.35, matched_by=matched_by_paddle),
    "ssd_loss_background": ssd("background_label: 0 overlap_threshold: 0.3 normalize: false", threshold=.3, normalize=False),
    "generate_proposals_images": (PROPOSALS, lambda: lambda *chain: list(proposals(*chain)),
                                  lists(**{name: CHAIN[name] for name in ("s", "d", "image", "a", "v")}),
                                  dict(outputs=["rois", "rois:scores", "rois:rois_num"], by="")),
    "rpn_head": ("rpn_head { channels: 3 anchor_sizes: [8, 14] aspect_ratios: [0.5, 1] stride: [8, 8] }",
                 lambda: RpnHead(3, (8., 14.), (.5, 1.), (8., 8.)), dict(x=f(2, 2, 4, 3)),
                 dict(outputs=["l", "l:probabilities", "l:offsets", "l:anchors", "l:variances"])),
    "rpn_loss": rpn("use_random: false"),
    "rpn_loss_options": rpn("""use_random: false rpn_batch_size_per_im: 20 rpn_straddle_thresh: -1 rpn_fg_fraction: 0.2 rpn_positive_overlap: 0.5
                               rpn_negative_overlap: 0.4 sigma: 1.5""", batch=20, straddle=-1., fraction=.2, positive=.5, negative=.4, sigma=1.5),
    "generate_proposal_labels": sampling(""),
    "generate_proposal_labels_options": sampling("""batch_size_per_im: 8 fg_fraction: 0.4 fg_thresh: 0.45 bg_thresh_hi: 0.4 bg_thresh_lo: 0.01
                                                    bbox_reg_weights: [0.2, 0.1, 0.3, 0.4]""", batch=8, fraction=.4, foreground=.45, high=.4,
                                                 low=.01, units=(.2, .1, .3, .4)),
    "rcnn_head": ("rcnn_head { num_classes: 3 }", lambda: RcnnHead(3), dict(x=f(7, 5)), dict(outputs=["l", "l:offsets"])),
    "rcnn_output": ("rcnn_output { score_threshold: 0.2 keep_top_k: 9 nms_threshold: 0.45 }", lambda: rcnn_output,
                    dict(x=f(12, 4, lo=-2, hi=2), offsets=f(12, 16, lo=-2, hi=2),
                         **lists(rois=(boxes(1, 12, 40, own)[0] - 1).astype("float32"), n=np.array([5, 0, 7], "int32"), image=CHAIN["image"])), NMS),
    "rcnn_loss": (PROPOSALS + """
                  layer { name: "samples" input: ["rois", "box", "label", "image"] generate_proposal_labels { num_classes: 3 fg_thresh: 0.4 use_random: false } }
                  layer { name: "l" input: "x" identity {} }""", rcnn_loss(),
                  dict(x=f(SAMPLED, 4, lo=-2, hi=2), offsets=f(SAMPLED, 16, lo=-2, hi=2), **lists(**CHAIN)),
                  dict(loss=True, by="x offsets", more='loss { input: "l" rcnn_loss { samples: "samples" offsets: "offsets" } }')),
}

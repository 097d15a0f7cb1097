#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Networks in the shapes of Caffe's zoo with random weights, and what OpenCV answers: testdata/caffe.

    caffe_models.py OUT

Needs numpy, opencv-python-headless (its dnn module reads Caffe's files), protobuf and protoc; the files are written with
formats/caffe.proto. For each NAME: NAME.prototxt, NAME.caffemodel and NAME.npz with the arrays of the inputs and, as
"out.BLOB", of the outputs. Layers that OpenCV lacks are in formulas.prototxt, whose answers are numpy's.
"""
import importlib
import os
import subprocess
import sys
import tempfile

import cv2
import numpy as np

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RNG = np.random.default_rng(7)


def schema():
    folder = tempfile.mkdtemp()
    subprocess.run(["protoc", f"-I{ROOT}/formats", f"--python_out={folder}", "caffe.proto"], check=True)
    sys.path.insert(0, folder)
    return importlib.import_module("caffe_pb2")


PB = schema()


class Net:
    """The text of a network and, beside it, the weights of its layers."""

    def __init__(self, name, inputs, old_input=False):
        self.name, self.inputs, self.text, self.blobs = name, inputs, [f'name: "{name}"'], {}
        self.shapes = {}
        for blob, shape in inputs.items():
            dims = " ".join(f"dim: {d}" for d in shape)
            if old_input:
                self.text.append(f'input: "{blob}"\n' + "\n".join(f"input_dim: {d}" for d in shape))
            else:
                self.text.append(f'layer {{ name: "{blob}" type: "Input" top: "{blob}" '
                                 f'input_param {{ shape {{ {dims} }} }} }}')

    def layer(self, name, kind, bottoms, top=None, params="", blobs=()):
        tops = top if isinstance(top, list) else [top or name]
        bottoms = bottoms if isinstance(bottoms, list) else [bottoms]
        ends = " ".join(f'bottom: "{b}"' for b in bottoms) + " " + " ".join(f'top: "{t}"' for t in tops)
        self.text.append(f'layer {{ name: "{name}" type: "{kind}" {ends} {params} }}')
        self.blobs[name] = [np.asarray(b, np.float32) for b in blobs]
        return tops[0] if len(tops) == 1 else tops

    def conv(self, name, x, cin, cout, k, params="", group=1, bias=True, relu=True, kind="Convolution"):
        fan = cin // group * k * k
        shape = (cout, cin // group, k, k) if kind == "Convolution" else (cin, cout // group, k, k)
        blobs = [RNG.normal(0, np.sqrt(2 / fan), shape)]
        if bias:
            blobs.append(RNG.normal(0, .1, cout))
        fields = f"num_output: {cout} kernel_size: {k} {params}"
        fields += f" group: {group}" if group > 1 else ""
        fields += "" if bias else " bias_term: false"
        x = self.layer(name, kind, x, None,
                       f"convolution_param {{ {fields} weight_filler {{ type: \"xavier\" }} }}", blobs)
        return self.layer("relu_" + name, "ReLU", x, x) if relu else x

    def norm(self, name, x, channels, relu=True):
        scale = 998.5
        self.layer("bn_" + name, "BatchNorm", x, x, "batch_norm_param { use_global_stats: true }",
                   [RNG.normal(0, .3, channels) * scale, RNG.uniform(.5, 2, channels) * scale, [scale]])
        self.layer("scale_" + name, "Scale", x, x, "scale_param { bias_term: true }",
                   [RNG.uniform(.5, 1.5, channels), RNG.normal(0, .2, channels)])
        return self.layer("relu_" + name, "ReLU", x, x) if relu else x

    def fc(self, name, x, cin, cout, relu=False):
        x = self.layer(name, "InnerProduct", x, None, f"inner_product_param {{ num_output: {cout} }}",
                       [RNG.normal(0, np.sqrt(2 / cin), (cout, cin)), RNG.normal(0, .1, cout)])
        return self.layer("relu_" + name, "ReLU", x, x) if relu else x

    def pool(self, name, x, params, kind="MAX"):
        return self.layer(name, "Pooling", x, None, f"pooling_param {{ pool: {kind} {params} }}")

    def weights(self):
        net = PB.Net(name=self.name)
        for name, blobs in self.blobs.items():
            layer = net.layer.add(name=name)
            for blob in blobs:
                out = layer.blobs.add()
                out.shape.dim.extend(blob.shape)
                out.data.extend(blob.ravel().tolist())
        return net


def lenet():
    """With the layers and weights of files before 2014."""
    net = Net("lenet", {"data": (2, 1, 28, 28)}, old_input=True)
    x = net.conv("conv1", "data", 1, 6, 5, relu=False)
    x = net.pool("pool1", x, "kernel_size: 2 stride: 2")
    x = net.conv("conv2", x, 6, 12, 5, relu=False)
    x = net.pool("pool2", x, "kernel_size: 2 stride: 2")
    x = net.fc("ip1", x, 192, 30, relu=True)
    net.layer("prob", "Softmax", net.fc("ip2", x, 30, 10))
    types = {"Convolution": "CONVOLUTION", "Pooling": "POOLING", "InnerProduct": "INNER_PRODUCT", "ReLU": "RELU",
             "Softmax": "SOFTMAX"}
    text = "\n".join(net.text).replace("layer {", "layers {")
    for new, old in types.items():
        text = text.replace(f'type: "{new}"', f"type: {old}")
    net.text = [text]
    made = net.weights()
    old = PB.Net(name="lenet")
    for layer in made.layer:
        out = old.layers.add(name=layer.name)
        for blob in layer.blobs:
            b = out.blobs.add(data=blob.data)
            dims = [1] * (4 - len(blob.shape.dim)) + list(blob.shape.dim)
            b.num, b.channels, b.height, b.width = dims
    net.weights = lambda: old
    return net


def alexnet():
    net = Net("alexnet", {"data": (1, 3, 67, 67)})
    x = net.conv("conv1", "data", 3, 12, 11, "stride: 4")
    x = net.pool("pool1", x, "kernel_size: 3 stride: 2")
    x = net.layer("norm1", "LRN", x, None, "lrn_param { local_size: 5 alpha: 0.5 beta: 0.75 }")
    x = net.conv("conv2", x, 12, 32, 5, "pad: 2", group=2)
    x = net.pool("pool2", x, "kernel_size: 3 stride: 2")
    x = net.layer("norm2", "LRN", x, None, "lrn_param { local_size: 3 alpha: 0.3 beta: 0.75 }")
    x = net.conv("conv3", x, 32, 24, 3, "pad: 1")
    x = net.pool("pool5", x, "kernel_size: 3 stride: 2")
    x = net.fc("fc6", x, 24, 40, relu=True)
    x = net.layer("drop6", "Dropout", x, x, "dropout_param { dropout_ratio: 0.5 }")
    net.layer("prob", "Softmax", net.fc("fc8", x, 40, 10))
    return net


def vgg():
    net = Net("vgg", {"data": (1, 3, 32, 32)}, old_input=True)
    x, cin = "data", 3
    for block, cout in enumerate((8, 12, 16), 1):
        for i in (1, 2):
            x = net.conv(f"conv{block}_{i}", x, cin, cout, 3, "pad: 1")
            cin = cout
        x = net.pool(f"pool{block}", x, "kernel_size: 2 stride: 2")
    x = net.fc("fc6", x, 256, 32, relu=True)
    net.layer("prob", "Softmax", net.fc("fc7", x, 32, 10))
    return net


def googlenet():
    net = Net("googlenet", {"data": (1, 3, 64, 64)})
    x = net.conv("conv1", "data", 3, 8, 7, "pad: 3 stride: 2")
    x = net.pool("pool1", x, "kernel_size: 3 stride: 2")
    x = net.layer("norm1", "LRN", x, None, "lrn_param { local_size: 5 alpha: 0.1 beta: 0.75 }")
    cin = 8
    for i in (1, 2):
        a = net.conv(f"inc{i}_1x1", x, cin, 6, 1)
        b = net.conv(f"inc{i}_3x3", net.conv(f"inc{i}_3x3_reduce", x, cin, 4, 1), 4, 8, 3, "pad: 1")
        c = net.conv(f"inc{i}_5x5", net.conv(f"inc{i}_5x5_reduce", x, cin, 2, 1), 2, 4, 5, "pad: 2")
        d = net.conv(f"inc{i}_proj", net.pool(f"inc{i}_pool", x, "kernel_size: 3 stride: 1 pad: 1"), cin, 4, 1)
        x = net.layer(f"inc{i}", "Concat", [a, b, c, d])
        cin = 22
        if i == 1:
            x = net.pool("pool3", x, "kernel_size: 3 stride: 2")
    x = net.pool("pool5", x, "kernel_size: 8 stride: 1", "AVE")
    x = net.layer("drop", "Dropout", x, x)
    net.layer("prob", "Softmax", net.fc("classifier", x, 22, 10))
    return net


def resnet():
    net = Net("resnet", {"data": (2, 3, 56, 56)})
    x = net.norm("conv1", net.conv("conv1", "data", 3, 8, 7, "pad: 3 stride: 2", bias=False, relu=False), 8)
    x = net.pool("pool1", x, "kernel_size: 3 stride: 2")
    cin = 8
    for block, (cout, stride) in enumerate(((8, 1), (16, 2)), 2):
        left = x
        if cin != cout or stride > 1:
            left = net.norm(f"{block}_branch1", net.conv(f"res{block}_branch1", x, cin, cout, 1, f"stride: {stride}",
                                                         bias=False, relu=False), cout, relu=False)
        right = net.norm(f"{block}_2a", net.conv(f"res{block}_2a", x, cin, cout, 3, f"pad: 1 stride: {stride}",
                                                 bias=False, relu=False), cout)
        right = net.norm(f"{block}_2b", net.conv(f"res{block}_2b", right, cout, cout, 3, "pad: 1", bias=False,
                                                 relu=False), cout, relu=False)
        x = net.layer(f"res{block}", "Eltwise", [left, right])
        x = net.layer(f"res{block}_relu", "ReLU", x, x)
        cin = cout
    x = net.pool("pool5", x, "global_pooling: true", "AVE")
    net.layer("prob", "Softmax", net.fc("fc", x, 16, 10))
    return net


def squeezenet():
    net = Net("squeezenet", {"data": (1, 3, 59, 59)})
    x = net.conv("conv1", "data", 3, 8, 3, "stride: 2")
    x = net.pool("pool1", x, "kernel_size: 3 stride: 2")
    cin = 8
    for i in (2, 3):
        s = net.conv(f"fire{i}_squeeze1x1", x, cin, 4, 1)
        x = net.layer(f"fire{i}_concat", "Concat", [net.conv(f"fire{i}_expand1x1", s, 4, 8, 1),
                                                    net.conv(f"fire{i}_expand3x3", s, 4, 8, 3, "pad: 1")])
        cin = 16
        x = net.pool(f"pool{i}", x, "kernel_size: 3 stride: 2")
    x = net.conv("conv10", net.layer("drop9", "Dropout", x, x), 16, 10, 1)
    net.layer("prob", "Softmax", net.pool("pool10", x, "global_pooling: true", "AVE"))
    return net


def mobilenet():
    net = Net("mobilenet", {"data": (1, 3, 33, 33)})
    x = net.norm("conv1", net.conv("conv1", "data", 3, 8, 3, "pad: 1 stride: 2", bias=False, relu=False), 8)
    cin = 8
    for i, (cout, stride) in enumerate(((12, 1), (16, 2)), 2):
        x = net.norm(f"conv{i}_dw", net.conv(f"conv{i}_dw", x, cin, cin, 3, f"pad: 1 stride: {stride}", group=cin,
                                             bias=False, relu=False), cin)
        x = net.norm(f"conv{i}_sep", net.conv(f"conv{i}_sep", x, cin, cout, 1, bias=False, relu=False), cout)
        cin = cout
    x = net.pool("pool6", x, "global_pooling: true", "AVE")
    net.layer("prob", "Softmax", net.conv("fc7", x, 16, 10, 1, relu=False))
    return net


def fcn():
    """A picture of classes: deconvolution, crop, a sum with weights of both."""
    net = Net("fcn", {"data": (1, 3, 37, 41)})
    x = net.conv("conv1", "data", 3, 8, 3, "pad: 6 dilation: 2")
    one = net.pool("pool1", x, "kernel_size: 2 stride: 2")
    two = net.pool("pool2", net.conv("conv2", one, 8, 12, 3, "pad: 1"), "kernel_size: 3 stride: 2 pad: 1", "AVE")
    score = net.conv("score_fr", two, 12, 5, 1, relu=False)
    up = net.conv("upscore2", score, 5, 5, 4, "stride: 2", bias=False, relu=False, kind="Deconvolution")
    skip = net.conv("score_pool1", one, 8, 5, 1, relu=False)
    crop = net.layer("crop1", "Crop", [up, skip], None, "crop_param { axis: 2 offset: 2 }")
    fuse = net.layer("fuse", "Eltwise", [skip, crop], None, "eltwise_param { operation: SUM coeff: 1 coeff: 0.5 }")
    big = net.conv("upscore", fuse, 5, 5, 4, "stride: 2 pad: 1", group=5, relu=False, kind="Deconvolution")
    crop = net.layer("score", "Crop", [big, "data"], None, "crop_param { axis: 2 offset: 1 offset: 3 }")
    net.layer("prob", "Softmax", crop, None, "softmax_param { axis: 1 }")
    return net


def detector():
    """The heads of SSD, without its boxes."""
    net = Net("detector", {"data": (1, 3, 30, 30)})
    x = net.conv("conv4", "data", 3, 8, 3, "pad: 1 stride: 2")
    n = net.layer("conv4_norm", "Normalize", x, None, "norm_param { across_spatial: false channel_shared: false }",
                  [RNG.uniform(5, 20, 8)])
    y = net.conv("conv5", x, 8, 12, 3, "pad: 1 stride: 2")
    parts = []
    for name, source, cin in (("conv4", n, 8), ("conv5", y, 12)):
        head = net.conv(f"{name}_conf", source, cin, 6, 3, "pad: 1", relu=False)
        head = net.layer(f"{name}_perm", "Permute", head, None,
                         "permute_param { order: 0 order: 2 order: 3 order: 1 }")
        parts.append(net.layer(f"{name}_flat", "Flatten", head, None, "flatten_param { axis: 1 }"))
    x = net.layer("mbox_conf", "Concat", parts, None, "concat_param { axis: 1 }")
    x = net.layer("conf_reshape", "Reshape", x, None, "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }")
    net.layer("conf_softmax", "Softmax", x, None, "softmax_param { axis: 2 }")
    return net


def ssd():
    """A detector with its boxes. OpenCV has the rows in another order and zeros behind them: Caffe's is by class."""
    net = Net("ssd", {"data": (2, 3, 48, 40)})
    x = net.conv("conv4", "data", 3, 8, 3, "pad: 1 stride: 4")
    y = net.conv("conv5", x, 8, 12, 3, "pad: 1 stride: 2")
    parts = {"loc": [], "conf": [], "prior": []}
    for name, source, cin, boxes, prior in (
            ("conv4", x, 8, 4, "min_size: 9 max_size: 14.5 aspect_ratio: 2 flip: true clip: false variance: 0.1 "
                               "variance: 0.1 variance: 0.2 variance: 0.2 offset: 0.5"),
            ("conv5", y, 12, 6, "min_size: 18 min_size: 24 aspect_ratio: 3 flip: true clip: true variance: 0.15 "
                                "step: 8 offset: 0.4")):
        for part, size in (("loc", 4), ("conf", 3)):
            head = net.conv(f"{name}_{part}", source, cin, boxes * size, 3, "pad: 1", relu=False)
            head = net.layer(f"{name}_{part}_perm", "Permute", head, None,
                             "permute_param { order: 0 order: 2 order: 3 order: 1 }")
            parts[part].append(net.layer(f"{name}_{part}_flat", "Flatten", head, None, "flatten_param { axis: 1 }"))
        parts["prior"].append(net.layer(f"{name}_prior", "PriorBox", [source, "data"], None,
                                        f"prior_box_param {{ {prior} }}"))
    loc, conf, prior = (net.layer(f"mbox_{part}", "Concat", parts[part], None,
                                  f"concat_param {{ axis: {2 if part == 'prior' else 1} }}")
                        for part in ("loc", "conf", "prior"))
    conf = net.layer("conf_reshape", "Reshape", conf, None, "reshape_param { shape { dim: 0 dim: -1 dim: 3 } }")
    conf = net.layer("conf_softmax", "Softmax", conf, None, "softmax_param { axis: 2 }")
    conf = net.layer("conf_flatten", "Flatten", conf, None, "flatten_param { axis: 1 }")
    for name, code, keep, more in (("detection_out", "CENTER_SIZE", 30, ""),
                                   ("corners", "CORNER", 12, "variance_encoded_in_target: false")):
        net.layer(name, "DetectionOutput", [loc, conf, prior], None,
                  "detection_output_param { num_classes: 3 share_location: true background_label_id: 0 "
                  "nms_param { nms_threshold: 0.45 top_k: 40 } save_output_param { output_directory: \"out\" } "
                  f"code_type: {code} keep_top_k: {keep} confidence_threshold: 0.3 {more} }}")
    net.fix = lambda rows: np.array(sorted((row for row in rows.reshape(-1, 7).tolist() if row[1] > 0),
                                           key=lambda row: (row[0], row[1], -row[2])), np.float32)[None, None]
    return net


def priors():
    """Boxes of a picture of given extents, and what Caffe says where nothing is found: by hand."""
    net = Net("priors", {"data": (1, 3, 20, 20), "map": (1, 2, 2, 3), "loc": (2, 24), "conf": (2, 12)})
    net.layer("boxes", "PriorBox", ["map", "data"], None,
              "prior_box_param { min_size: 4 img_h: 10 img_w: 30 clip: true }")
    fine = net.layer("fine", "PriorBox", ["map", "data"], None,
                     "prior_box_param { min_size: 3 max_size: 12 aspect_ratio: 4 flip: false step_h: 8 step_w: 6 "
                     "variance: 0.5 }")
    more = "detection_output_param { num_classes: 2 nms_param { nms_threshold: 0.5 } confidence_threshold: 0.99 }"
    net.layer("none", "DetectionOutput", ["loc", "conf", "boxes"], None, more)
    net.layer("sizes", "DetectionOutput", ["loc", "conf", "boxes"], None,
              "detection_output_param { num_classes: 2 background_label_id: -1 code_type: CORNER_SIZE "
              "nms_param { nms_threshold: 0.5 top_k: 1 } }")
    feeds = {"data": np.zeros((1, 3, 20, 20)), "map": np.zeros((1, 2, 2, 3)), "loc": RNG.normal(0, 1, (2, 24)),
             "conf": RNG.uniform(0, .9, (2, 12))}

    def cells(sizes, step, image, offset=.5):
        rows = [[(x + offset) * step[1] - w / 2, (y + offset) * step[0] - h / 2, (x + offset) * step[1] + w / 2,
                 (y + offset) * step[0] + h / 2] for y in range(2) for x in range(3) for w, h in sizes]
        return np.array(rows) / [image[1], image[0], image[1], image[0]]
    boxes = np.clip(cells([(4, 4)], (5, 10), (10, 30)), 0, 1)
    fines = cells([(3, 3), (6, 6), (6, 1.5)], (8, 6), (20, 20))
    out = {"boxes": np.stack([boxes.ravel(), np.full(24, .1)])[None],
           "fine": np.stack([fines.ravel(), np.full(72, .5)])[None],
           "none": np.array([[0] + [-1] * 6, [1] + [-1] * 6])[None, None]}
    size = np.concatenate([boxes[:, 2:] - boxes[:, :2]] * 2, 1)
    rows = []
    for n in range(2):
        decoded = boxes + .1 * feeds["loc"][n].reshape(-1, 4) * size
        for label in range(2):
            scores = feeds["conf"][n].reshape(-1, 2)[:, label]
            best = scores.argmax()
            rows.append([n, label, scores[best], *decoded[best]])
    out["sizes"] = np.array(rows)[None, None]
    del out["boxes"]  # read
    net.answers = [{name: value.astype(np.float32) for name, value in values.items()} for values in (feeds, out)]
    return net


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def recurrent():
    """Caffe's LSTM and RNN, which begin anew where cont is 0: by their formulas in float64."""
    steps, records, width, units, still = 6, 3, 4, 5, 2
    net = Net("recurrent", {"x": (steps, records, 2, 2), "cont": (steps, records), "still": (records, still),
                            "h": (1, records, units), "c": (1, records, units)})
    feeds = {name: RNG.normal(0, 1, shape) for name, shape in net.inputs.items()}
    feeds["cont"] = np.ones((steps, records))
    feeds["cont"][0] = 0
    feeds["cont"][3, 1] = feeds["cont"][2, 2] = feeds["cont"][4, 2] = 0
    feeds = {name: value.astype(np.float32) for name, value in feeds.items()}
    x = feeds["x"].reshape(steps, records, width).astype(float)
    out = {}

    def weights(*shapes):
        return [RNG.normal(0, .5, shape).astype(np.float32) for shape in shapes]

    def lstm(w, b, v, fixed=0, h=0, c=0):
        h, c, ys = np.zeros((records, units)) + h, np.zeros((records, units)) + c, []
        for t in range(steps):
            keep = feeds["cont"][t][:, None]
            i, f, o, g = np.split(x[t] @ w.T + b + fixed + (h * keep) @ v.T, 4, 1)
            c = keep * (sigmoid(f) * c) + sigmoid(i) * np.tanh(g)
            h = sigmoid(o) * np.tanh(c)
            ys.append(h)
        return np.array(ys), h[None], c[None]

    def rnn(w, b, v, wo, bo, fixed=0, h=0):
        h, ys = np.zeros((records, units)) + h, []
        for t in range(steps):
            h = np.tanh(x[t] @ w.T + b + fixed + (h * feeds["cont"][t][:, None]) @ v.T)
            ys.append(np.tanh(h @ wo.T + bo))
        return np.array(ys), h[None]

    params = f"recurrent_param {{ num_output: {units} weight_filler {{ type: \"uniform\" }} }}"
    exposed = f"recurrent_param {{ num_output: {units} expose_hidden: true }}"
    w, b, v = blobs = weights((4 * units, width), (4 * units,), (4 * units, units))
    net.layer("lstm", "LSTM", ["x", "cont"], None, params, blobs)
    out["lstm"] = lstm(w, b, v)[0]
    w, b, s, v = blobs = weights((4 * units, width), (4 * units,), (4 * units, still), (4 * units, units))
    net.layer("lstm_all", "LSTM", ["x", "cont", "still", "h", "c"], ["lstm_y", "lstm_h", "lstm_c"], exposed, blobs)
    # Caffe forgets the states that it is given where the first cont is 0.
    out["lstm_y"], out["lstm_h"], out["lstm_c"] = lstm(w, b, v, feeds["still"] @ s.T, feeds["h"][0], feeds["c"][0])
    w, b, v, wo, bo = blobs = weights((units, width), (units,), (units, units), (units, units), (units,))
    net.layer("rnn", "RNN", ["x", "cont"], None, params, blobs)
    out["rnn"] = rnn(w, b, v, wo, bo)[0]
    w, b, s, v, wo, bo = blobs = weights((units, width), (units,), (units, still), (units, units), (units, units),
                                         (units,))
    net.layer("rnn_all", "RNN", ["x", "cont", "still", "h"], ["rnn_y", "rnn_h"], exposed, blobs)
    out["rnn_y"], out["rnn_h"] = rnn(w, b, v, wo, bo, feeds["still"] @ s.T, feeds["h"][0])
    net.answers = (feeds, {name: value.astype(np.float32) for name, value in out.items()})
    return net


def elementwise():
    net = Net("elementwise", {"data": (1, 6, 7, 9)})
    a, b = net.layer("slice", "Slice", "data", ["left", "right"], "slice_param { axis: 1 slice_point: 2 }")
    a = net.layer("prelu", "PReLU", a, None, "", [RNG.uniform(.1, .4, 2)])
    a = net.layer("power", "Power", net.layer("abs", "AbsVal", a), None, "power_param { power: 0.5 scale: 2 shift: 1 }")
    b = net.layer("elu", "ELU", b, None, "elu_param { alpha: 0.7 }")
    b = net.layer("bnll", "BNLL", b)
    b1, b2 = net.layer("halves", "Slice", b, ["b1", "b2"], "slice_param { axis: 1 }")
    prod = net.layer("prod", "Eltwise", [b1, b2], None, "eltwise_param { operation: PROD }")
    peak = net.layer("peak", "Eltwise", [prod, a], None, "eltwise_param { operation: MAX }")
    x = net.layer("leaky", "ReLU", net.layer("mvn", "MVN", peak), None, "relu_param { negative_slope: 0.2 }")
    x = net.layer("tanh", "TanH", x)
    x = net.layer("scale2", "Scale", x, None, "scale_param { axis: 1 bias_term: true }",
                  [RNG.uniform(.5, 2, 2), RNG.normal(0, 1, 2)])
    x = net.layer("sigmoid", "Sigmoid", x)
    net.layer("within", "LRN", x, None, "lrn_param { local_size: 3 alpha: 0.7 beta: 0.6 norm_region: WITHIN_CHANNEL }")
    net.pool("mean", x, "kernel_h: 3 kernel_w: 2 stride_h: 2 stride_w: 3 pad_h: 1 pad_w: 1", "AVE")
    net.pool("max", x, "kernel_size: 3 stride: 2 pad: 1")
    return net


def formulas():
    """What OpenCV lacks, by Caffe's formulas."""
    net = Net("formulas", {"x": (2, 4, 3, 5), "ids": (2, 3)})
    x = RNG.normal(0, 1, (2, 4, 3, 5)).astype(np.float32)
    ids = np.array([[1, 0, 4], [2, 2, 3]], np.float32)
    out = {}
    net.layer("threshold", "Threshold", "x", None, "threshold_param { threshold: 0.3 }")
    out["threshold"] = (x > .3).astype(np.float32)
    net.layer("exp", "Exp", "x", None, "exp_param { base: 2 scale: 0.5 shift: 1 }")
    out["exp"] = 2 ** (1 + .5 * x)
    net.layer("log", "Log", "exp", None, "log_param { base: 10 shift: 2 }")
    out["log"] = np.log10(2 + out["exp"])
    net.layer("tile", "Tile", "x", None, "tile_param { axis: 2 tiles: 3 }")
    out["tile"] = np.tile(x, (1, 1, 3, 1))
    table, bias = RNG.normal(0, 1, (5, 6)).astype(np.float32), RNG.normal(0, 1, 6).astype(np.float32)
    net.layer("embed", "Embed", "ids", None, "embed_param { num_output: 6 input_dim: 5 }", [table, bias])
    out["embed"] = table[ids.astype(int)] + bias
    add = RNG.normal(0, 1, (4, 3)).astype(np.float32)
    net.layer("bias", "Bias", "x", None, "bias_param { axis: 1 num_axes: 2 }", [add])
    out["bias"] = x + add[None, :, :, None]
    gate = RNG.normal(0, 1, (2, 4)).astype(np.float32)
    net.inputs["gate"] = gate.shape
    net.text.insert(1, 'layer { name: "gate" type: "Input" top: "gate" input_param { shape { dim: 2 dim: 4 } } }')
    net.layer("gated", "Scale", ["x", "gate"], None, "scale_param { axis: 0 }")
    out["gated"] = x * gate[:, :, None, None]
    for name, operation, value in (("sum", "SUM", x), ("asum", "ASUM", np.abs(x)), ("sumsq", "SUMSQ", x * x),
                                   ("mean", "MEAN", x / 15)):
        net.layer(name, "Reduction", "x", None, f"reduction_param {{ operation: {operation} axis: 2 coeff: 1.5 }}")
        out[name] = 1.5 * value.sum((2, 3))
    net.layer("all", "Reduction", "x", None, "")
    out["all"] = x.sum()
    ties = np.array([[.5, 2, 2, -1], [3, 3, 3, 1]], np.float32)
    net.inputs["ties"] = ties.shape
    net.text.insert(1, 'layer { name: "ties" type: "Input" top: "ties" input_param { shape { dim: 2 dim: 4 } } }')
    net.layer("argmax", "ArgMax", "ties", None, "argmax_param { out_max_val: true }")
    out["argmax"] = np.array([[[2], [2]], [[2], [3]]], np.float32)
    net.layer("top", "ArgMax", "x", None, "argmax_param { top_k: 3 }")
    out["top"] = np.argsort(-x.reshape(2, -1), 1)[:, None, :3].astype(np.float32)
    net.layer("top_axis", "ArgMax", "x", None, "argmax_param { top_k: 2 axis: -1 out_max_val: true }")
    out["top_axis"] = -np.sort(-x, 3)[..., :2]
    net.layer("lrn", "LRN", "x", None, "lrn_param { local_size: 3 alpha: 0.6 beta: 0.5 k: 2 }")
    squares = np.pad(x * x, ((0, 0), (1, 1), (0, 0), (0, 0)))
    out["lrn"] = x / np.sqrt(2 + .2 * (squares[:, :-2] + squares[:, 1:-1] + squares[:, 2:]))
    net.layer("argmax_axis", "ArgMax", "x", None, "argmax_param { axis: 1 }")
    out["argmax_axis"] = x.argmax(1)[:, None].astype(np.float32)
    w = RNG.normal(0, 1, (5, 7)).astype(np.float32)
    net.layer("product", "InnerProduct", "x", None,
              "inner_product_param { num_output: 7 axis: 3 transpose: true bias_term: false }", [w])
    out["product"] = x @ w
    net.layer("reshape", "Reshape", "x", None, "reshape_param { shape { dim: 2 dim: -1 } axis: 1 num_axes: 2 }")
    out["reshape"] = x.reshape(2, 2, 6, 5)
    net.layer("mvn_all", "MVN", "x", None, "mvn_param { across_channels: true normalize_variance: false }")
    out["mvn_all"] = x - x.mean((1, 2, 3), keepdims=True)
    net.layer("norm_all", "Normalize", "x", None, "", [[3.0]])
    out["norm_all"] = 3 * x / np.sqrt((x * x).sum((1, 2, 3), keepdims=True) + 1e-10)
    net.layer("relu6", "ReLU6", "exp")
    out["relu6"] = np.clip(out["exp"], 0, 6)
    net.layer("silence", "Silence", "x", [], "")
    del out["exp"]  # read, and so no output
    net.answers = ({"x": x, "ids": ids, "gate": gate, "ties": ties}, out)
    return net


def write(net, folder):
    base = os.path.join(folder, net.name)
    with open(base + ".prototxt", "w") as file:
        file.write("\n".join(net.text) + "\n")
    with open(base + ".caffemodel", "wb") as file:
        file.write(net.weights().SerializeToString())
    if hasattr(net, "answers"):
        feeds, outs = net.answers
    else:
        feeds = {name: RNG.normal(0, 1, shape).astype(np.float32) for name, shape in net.inputs.items()}
        judge = cv2.dnn.readNetFromCaffe(base + ".prototxt", base + ".caffemodel")
        for name, value in feeds.items():
            judge.setInput(value, name)
        names = judge.getUnconnectedOutLayersNames()
        outs = dict(zip(names, judge.forward(names)))
        if hasattr(net, "fix"):
            outs = {name: net.fix(value) for name, value in outs.items()}
    np.savez_compressed(base + ".npz", **feeds, **{"out." + name: value for name, value in outs.items()})
    print(net.name, {name: np.shape(value) for name, value in outs.items()})


if __name__ == "__main__":
    os.makedirs(sys.argv[1], exist_ok=True)
    networks = (lenet, alexnet, vgg, googlenet, resnet, squeezenet, mobilenet, fcn, detector, elementwise, formulas, ssd,
                priors, recurrent)
    for make in networks:
        write(make(), sys.argv[1])

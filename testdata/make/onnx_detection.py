# SPDX-License-Identifier: Apache-2.0
"""Detectors that pd-export wrote as ONNX and single nodes of detectors, with
ONNX Runtime's answers: testdata/onnx_detection.

  onnx_detection.py FOLDER

Needs onnx, onnxruntime 1.32 and numpy; pd-export is found by PATH.
Extents that a detector does not know before it runs are open in all files.
NAME.onnx is one, NAME.CASE.npz a feed (feed:INPUT) and the answers
(want:OUTPUT).
"""
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

YOLO = '''
layer { name: "conv1" conv_norm_activation { out_channels: 4 stride: 4 } }
layer { name: "out" conv2d { out_channels: 14 kernel_size: 3 padding: 1 } }
layer { name: "boxes" yolo_box { anchors: [8, 12, 14, 9] class_num: 2 conf_thresh: 0.3 downsample_ratio: 4 img_size: 1 clip_bbox: false } }
layer { name: "by_class" input: "boxes:scores" transpose { perm: [0, 2, 1] } }
layer { input: ["boxes", "by_class"] multiclass_nms { score_threshold: 0.3 nms_top_k: 20 keep_top_k: 5 nms_threshold: 0.4 background_label: -1 } }
'''

SSD = '''
layer { name: "map4" conv_norm_activation { out_channels: 4 stride: 4 } }
layer { name: "map8" conv_norm_activation { out_channels: 4 stride: 2 } }
layer {
  name: "head"
  input: ["map4", "map8", "image"]
  multi_box_head { num_classes: 3 min_sizes: [8, 12] max_sizes: [12, 16] aspect_ratios { value: 2 } aspect_ratios { value: 2 } kernel_size: 3 pad: 1 }
}
layer {
  input: ["head", "head:confidences", "head:boxes", "head:variances"]
  detection_output { score_threshold: 0.35 nms_top_k: 20 keep_top_k: 6 nms_threshold: 0.4 background_label: 2 }
}
'''

RCNN = '''
layer { name: "map4" conv_norm_activation { out_channels: 6 stride: 4 } }
layer { name: "rpn" rpn_head { anchor_sizes: [8, 14] stride: [4, 4] } }
layer {
  name: "rois"
  input: ["rpn:probabilities", "rpn:offsets", "image", "rpn:anchors", "rpn:variances"]
  generate_proposals { pre_nms_top_n: 40 post_nms_top_n: 8 nms_thresh: 0.6 min_size: 4 pixel_offset: true }
}
layer { input: ["map4", "rois", "rois:rois_num"] roi_align { output_size: 3 spatial_scale: 0.25 sampling_ratio: 2 aligned: false } }
layer { flatten {} }
layer { name: "scores" rcnn_head { num_classes: 2 } }
layer {
  input: ["scores", "scores:offsets", "rois", "rois:rois_num", "image"]
  rcnn_output { score_threshold: 0.35 keep_top_k: 6 nms_threshold: 0.4 }
}
'''


def answer(folder, name, case, feed):
    session = onnxruntime.InferenceSession(f'{folder}/{name}.onnx')
    names = [o.name for o in session.get_outputs()]
    want = dict(zip(names, session.run(None, feed)))
    np.savez_compressed(f'{folder}/{name}.{case}.npz',
                        **{'feed:' + k: v for k, v in feed.items()},
                        **{'want:' + k: v for k, v in want.items()})
    print(name, case, {k: v.shape for k, v in want.items()})


def detector(folder, name, layers):
    with tempfile.TemporaryDirectory() as work:
        job = f'{work}/job.pbtxt'
        with open(job, 'w') as file:
            file.write('model { input { name: "image" shape: [-1, 3, 32, 32] }'
                       + layers + '}\ntrain { seed: 3 }\n')
        subprocess.run(['pd-export', '-q', '-c', job, '--to', 'onnx', '-o',
                        f'{folder}/{name}.onnx'], check=True)
    rng = np.random.default_rng(5)
    pictures = rng.standard_normal((3, 3, 32, 32)).astype(np.float32) * 4
    answer(folder, name, 'one', {'image': pictures[:1]})
    pictures[1] = 0  # nothing is found there
    answer(folder, name, 'three', {'image': pictures})
    answer(folder, name, 'none', {'image': pictures[1:2]})


def node(folder, name, nodes, inputs, outputs, constants=()):
    def value(key, dtype, shape):
        return helper.make_tensor_value_info(key, dtype, shape)
    graph = helper.make_graph(
        nodes, name, [value(*i) for i in inputs], [value(*o) for o in outputs],
        [onnx.numpy_helper.from_array(v, k) for k, v in constants])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid('', 17)],
                              ir_version=8)
    onnx.checker.check_model(model)
    onnx.save(model, f'{folder}/{name}.onnx')


def boxes(rng, images, count):
    corners = rng.uniform(0, 10, (images, count, 4))
    return corners.astype(np.float32)  # either corner may be the lower one


def suppression(folder):
    F, I = TensorProto.FLOAT, TensorProto.INT64
    one = lambda x, dtype: np.array([x], dtype)
    outputs = [('selected', I, ['k', 3])]
    inputs = [('boxes', F, ['n', 'm', 4]), ('scores', F, ['n', 'c', 'm'])]
    limits = [('most', one(3, np.int64)), ('overlap', one(0.2, np.float32))]
    node(folder, 'nms', [helper.make_node(
        'NonMaxSuppression', ['boxes', 'scores', 'most', 'overlap', 'least'],
        ['selected'])], inputs, outputs, limits + [('least', one(0.3, np.float32))])
    node(folder, 'nms_by_centre', [helper.make_node(
        'NonMaxSuppression', ['boxes', 'scores', 'most', 'overlap'],
        ['selected'], center_point_box=1)], inputs, outputs, limits)
    node(folder, 'nms_least_given', [helper.make_node(
        'NonMaxSuppression', ['boxes', 'scores', 'most', 'overlap', 'least'],
        ['selected'])], inputs + [('least', F, [1])], outputs, limits)
    rng = np.random.default_rng(6)
    for images, classes, count in ((1, 1, 9), (2, 3, 12), (1, 2, 1), (2, 2, 0)):
        feed = {'boxes': boxes(rng, images, count),
                'scores': rng.uniform(0, 1, (images, classes, count)).astype(np.float32)}
        case = f'{images}_{classes}_{count}'
        answer(folder, 'nms', case, feed)
        answer(folder, 'nms_by_centre', case, feed)
        answer(folder, 'nms_least_given', case,
               dict(feed, least=np.array([0.5], np.float32)))
    # Equal boxes without area: ONNX keeps both.
    flat = np.array([[[1, 1, 1, 5], [1, 1, 1, 5], [0, 0, 2, 6]]], np.float32)
    answer(folder, 'nms', 'flat', {
        'boxes': flat, 'scores': np.array([[[0.9, 0.8, 0.7]]], np.float32)})
    answer(folder, 'nms', 'none', {
        'boxes': flat, 'scores': np.zeros((1, 1, 3), np.float32)})


def picking(folder):
    """What detectors pick and put by indices, over extents that are open."""
    F, I = TensorProto.FLOAT, TensorProto.INT64
    node(folder, 'put', [
        helper.make_node('ScatterElements', ['x', 'at', 'y'], ['put'], axis=1),
        helper.make_node('ScatterElements', ['x', 'at', 'y'], ['sum'], axis=1,
                         reduction='add'),
        helper.make_node('GatherND', ['x', 'places'], ['picked'])],
        [('x', F, ['n', 'm', 4]), ('at', I, ['n', 'k', 4]), ('y', F, ['n', 'k', 4]),
         ('places', I, ['p', 2])],
        [('put', F, ['n', 'm', 4]), ('sum', F, ['n', 'm', 4]), ('picked', F, ['p', 4])])
    rng = np.random.default_rng(7)
    for n, m, k in ((2, 5, 3), (1, 4, 0)):
        at = np.stack([[rng.permutation(m)[:k] for _ in range(4)]
                       for _ in range(n)]).transpose(0, 2, 1).astype(np.int64)
        answer(folder, 'put', f'{n}_{m}_{k}', {
            'x': rng.standard_normal((n, m, 4)).astype(np.float32),
            'at': np.where(at % 2, at, at - m),
            'y': rng.standard_normal((n, k, 4)).astype(np.float32),
            'places': rng.integers(-n, n, (k, 2))})
    node(folder, 'roi_align', [helper.make_node(
        'RoiAlign', ['x', 'rois', 'image'], ['bins'], output_height=2,
        output_width=3, sampling_ratio=2, spatial_scale=0.5)],
        [('x', F, ['n', 2, 'h', 'w']), ('rois', F, ['r', 4]), ('image', I, ['r'])],
        [('bins', F, ['r', 2, 2, 3])])
    for images, rois in ((3, 5), (2, 0)):
        low = rng.uniform(0, 8, (rois, 2))
        answer(folder, 'roi_align', f'{images}_{rois}', {
            'x': rng.standard_normal((images, 2, 8, 9)).astype(np.float32),
            'rois': np.concatenate([low, low + rng.uniform(1, 8, (rois, 2))],
                                   1).astype(np.float32),
            'image': rng.integers(0, images, rois)})


if __name__ == '__main__':
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    for network, text in (('yolov3', YOLO), ('ssd', SSD), ('faster_rcnn', RCNN)):
        detector(out, network, text)
    suppression(out)
    picking(out)

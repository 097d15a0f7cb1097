# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime multiplies the linear layers of a dynamically quantized model
with integers and answers nearly as WANT.npz has it. Run by
scripts/check_interop.

  MODEL.onnx FEED.npz WANT.npz PRODUCTS SHARE
"""
import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime


def main(path, feed_path, want_path, products, share):
    onnx.checker.check_model(onnx.load(path), full_check=True)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    with tempfile.TemporaryDirectory() as folder:
        options.optimized_model_filepath = os.path.join(folder, 'm.onnx')
        session = onnxruntime.InferenceSession(
            path, options, providers=['CPUExecutionProvider'])
        ops = [n.op_type
               for n in onnx.load(options.optimized_model_filepath).graph.node]
    integers = ('DynamicQuantizeMatMul', 'MatMulIntegerToFloat',
                'MatMulInteger')
    count = sum(ops.count(op) for op in integers)
    if count != int(products):
        sys.exit(f'{path}: runs {count} products of integers in {ops}; '
                 f'expected {products}')
    want = np.load(want_path)
    feed = {i.name: np.load(feed_path)[i.name] for i in session.get_inputs()}
    for output, got in zip(session.get_outputs(), session.run(None, feed)):
        expected = want[output.name]
        error = np.linalg.norm(got - expected) / np.linalg.norm(expected)
        if not error < float(share):
            sys.exit(f'{path}: {output.name} is off by {error:.3f} of its norm')


if __name__ == '__main__':
    main(*sys.argv[1:])

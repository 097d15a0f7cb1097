# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime answers as pdkit does. Run by scripts/check_interop.

  MODEL.onnx OPSET FEED.npz WANT.npz
"""
import sys

import numpy as np
import onnx
import onnxruntime


def main(path, opset, feed_path, want_path):
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    versions = [(i.domain, i.version) for i in model.opset_import]
    if versions != [('', int(opset))]:
        sys.exit(f'{path}: opset {versions}; expected {opset}')
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        path, options, providers=['CPUExecutionProvider'])
    want = np.load(want_path)
    names = [output.name for output in session.get_outputs()]
    if sorted(names) != sorted(want.files):
        sys.exit(f'{path}: outputs {names}; expected {want.files}')
    answers = session.run(names, dict(np.load(feed_path)))
    for name, got in zip(names, answers):
        np.testing.assert_allclose(got, want[name], rtol=1e-5, atol=1e-5,
                                   err_msg=f'{path}: {name}')


if __name__ == '__main__':
    main(*sys.argv[1:])

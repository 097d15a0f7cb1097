# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime answers as pdkit does. Run by scripts/check_interop.

  MODEL.onnx OPSET FEED.npz WANT.npz
"""
import sys

import numpy as np
import onnx
import onnxruntime


def answers(path, feed, opset=None):
    """The outputs of a model by name; onnx's full check comes first."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    versions = [(i.domain, i.version) for i in model.opset_import]
    if opset is not None and versions != [('', opset)]:
        raise AssertionError(f'{path}: opset {versions}; expected {opset}')
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(
        path, options, providers=['CPUExecutionProvider'])
    names = [output.name for output in session.get_outputs()]
    taken = {i.name for i in session.get_inputs()}
    values = session.run(names, {k: v for k, v in feed.items() if k in taken})
    return dict(zip(names, values))


def expect(path, got, want, rtol=1e-5, atol=1e-5):
    if sorted(got) != sorted(want):
        raise AssertionError(f'{path}: outputs {list(got)}; expected {list(want)}')
    for name, value in got.items():
        np.testing.assert_allclose(value, want[name], rtol=rtol, atol=atol,
                                   err_msg=f'{path}: {name}')


def main(path, opset, feed_path, want_path):
    got = answers(path, dict(np.load(feed_path)), int(opset))
    expect(path, got, dict(np.load(want_path)))


if __name__ == '__main__':
    main(*sys.argv[1:])

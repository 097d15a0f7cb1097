# SPDX-License-Identifier: Apache-2.0
"""Dropout, which is random in training: rows of testdata/make/layer_goldens.py."""
from op_cases import f

x, image, volume = dict(x=f(2, 3, 4)), dict(x=f(2, 3, 4, 2)), dict(x=f(2, 3, 2, 2, 2))
evaluation = dict(train=False)

CASES = {
    "dropout": ("dropout {}", "nn.Dropout()", x, evaluation),
    "dropout_downscale": ("dropout { p: 0.3 mode: downscale_in_infer }", "nn.Dropout(0.3, mode='downscale_in_infer')", x, evaluation),
    "dropout_none": ("dropout { p: 0 }", "nn.Dropout(0.0)", x),
    "dropout_all": ("dropout { p: 1 }", "nn.Dropout(1.0)", x),
    "dropout_axis": ("dropout { p: 0.3 axis: [0, 2] }", "nn.Dropout(0.3, [0, 2])", x, evaluation),
    "dropout_axis_downscale": ("dropout { p: 0.3 axis: 1 mode: downscale_in_infer }", "nn.Dropout(0.3, 1, 'downscale_in_infer')", x, evaluation),
    "dropout2d": ("dropout2d { p: 0.3 }", "nn.Dropout2D(0.3)", image, evaluation),
    "dropout3d": ("dropout3d { data_format: NDHWC }", "nn.Dropout3D(data_format='NDHWC')", volume, evaluation),
    "alpha_dropout": ("alpha_dropout { p: 0.3 }", "nn.AlphaDropout(0.3)", x, evaluation),
    "alpha_dropout_none": ("alpha_dropout { p: 0 }", "nn.AlphaDropout(0.0)", x),
    "alpha_dropout_all": ("alpha_dropout { p: 1 }", "nn.AlphaDropout(1)", x),
}

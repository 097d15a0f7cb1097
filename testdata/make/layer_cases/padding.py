# SPDX-License-Identifier: Apache-2.0
"""Padding: rows of testdata/make/layer_goldens.py."""
from op_cases import f

line, image, volume = dict(x=f(2, 3, 4)), dict(x=f(2, 3, 4, 5)), dict(x=f(2, 2, 3, 4, 3))

CASES = {
    "pad1d": ("pad1d { padding: 1 }", "nn.Pad1D(1)", line),
    "pad1d_sides": ("pad1d { padding: [1, 2] value: 0.5 }", "nn.Pad1D([1, 2], value=0.5)", line),
    "pad1d_reflect_last": ("pad1d { padding: [1, 2] mode: reflect data_format: NLC }", "nn.Pad1D([1, 2], 'reflect', data_format='NLC')", line),
    "pad2d": ("pad2d { padding: [1, 2, 3, 0] value: 2 }", "nn.Pad2D([1, 2, 3, 0], value=2.0)", image),
    "pad2d_reflect": ("pad2d { padding: [1, 2, 3, 0] mode: reflect }", "nn.Pad2D([1, 2, 3, 0], 'reflect')", image),
    "pad2d_replicate": ("pad2d { padding: 2 mode: replicate }", "nn.Pad2D(2, 'replicate')", image),
    "pad2d_circular_last": ("pad2d { padding: [1, 0, 2, 1] mode: circular data_format: NHWC }",
                            "nn.Pad2D([1, 0, 2, 1], 'circular', data_format='NHWC')", image),
    "pad3d": ("pad3d { padding: [1, 2, 0, 1, 2, 0] }", "nn.Pad3D([1, 2, 0, 1, 2, 0])", volume),
    "pad3d_replicate": ("pad3d { padding: 1 mode: replicate }", "nn.Pad3D(1, 'replicate')", volume),
    "pad3d_last": ("pad3d { padding: [1, 2, 0, 1, 2, 0] mode: circular data_format: NDHWC }",
                   "nn.Pad3D([1, 2, 0, 1, 2, 0], 'circular', data_format='NDHWC')", volume),
    "zero_pad2d": ("zero_pad2d { padding: [1, 2, 3, 0] }", "nn.ZeroPad2D([1, 2, 3, 0])", image),
    "zero_pad2d_last": ("zero_pad2d { padding: 1 data_format: NHWC }", "nn.ZeroPad2D(1, 'NHWC')", image),
}

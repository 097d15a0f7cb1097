# SPDX-License-Identifier: Apache-2.0
"""Pools: rows of testdata/make/layer_goldens.py."""
from op_cases import apart, f, A

line, image, volume = dict(x=apart(2, 2, 9)), dict(x=apart(2, 2, 6, 7)), dict(x=apart(2, 2, 4, 5, 6))
image_last, volume_last = dict(x=apart(2, 6, 7, 2)), dict(x=apart(2, 4, 5, 6, 2))
both = dict(outputs=["l", "l:mask"])
SOME = [[[1, 3, 4, 7], [0, 2, 5, 6]]]
PLACES = [[[[0, 3, 4], [10, 13, 16]]]]
DEEP = [[[[[0, 3], [10, 13]], [[16, 35], [20, 62]]]]]

CASES = {
    "max_pool1d": ("max_pool1d { kernel_size: 2 }", "nn.MaxPool1D(2)", line),
    "max_pool1d_options": ("max_pool1d { kernel_size: 3 stride: 2 padding: 1 ceil_mode: true }", "nn.MaxPool1D(3, 2, 1, ceil_mode=True)", line),
    "max_pool1d_mask": ("max_pool1d { kernel_size: 3 padding: 1 return_mask: true }", "nn.MaxPool1D(3, padding=1, return_mask=True)", line, both),
    "max_pool2d": ("max_pool2d { kernel_size: 2 }", "nn.MaxPool2D(2)", image),
    "max_pool2d_options": ("max_pool2d { kernel_size: [3, 2] stride: [2, 1] padding: [1, 0] ceil_mode: true }",
                           "nn.MaxPool2D([3, 2], [2, 1], [1, 0], ceil_mode=True)", image),
    "max_pool2d_same": ("max_pool2d { kernel_size: 3 stride: 2 padding_algorithm: SAME }", "nn.MaxPool2D(3, 2, 'SAME')", image),
    "max_pool2d_sides": ("max_pool2d { kernel_size: 3 padding: [0, 1, 2, 1] }", "nn.MaxPool2D(3, padding=[0, 1, 2, 1])", image),
    "max_pool2d_mask": ("max_pool2d { kernel_size: 3 stride: 2 padding: 1 return_mask: true }",
                        "nn.MaxPool2D(3, 2, 1, return_mask=True)", image, both),
    "max_pool2d_last": ("max_pool2d { kernel_size: 2 data_format: NHWC }", "nn.MaxPool2D(2, data_format='NHWC')", image_last),
    "max_pool3d": ("max_pool3d { kernel_size: 2 }", "nn.MaxPool3D(2)", volume),
    "max_pool3d_options": ("max_pool3d { kernel_size: [2, 3, 2] stride: [1, 2, 2] padding: [1, 0, 1] }",
                           "nn.MaxPool3D([2, 3, 2], [1, 2, 2], [1, 0, 1])", volume),
    "max_pool3d_mask": ("max_pool3d { kernel_size: 2 stride: 1 return_mask: true }", "nn.MaxPool3D(2, 1, return_mask=True)", volume, both),
    "max_pool3d_last": ("max_pool3d { kernel_size: 2 data_format: NDHWC }", "nn.MaxPool3D(2, data_format='NDHWC')", volume_last),
    "avg_pool1d": ("avg_pool1d { kernel_size: 2 }", "nn.AvgPool1D(2)", line),
    "avg_pool1d_options": ("avg_pool1d { kernel_size: 3 stride: 2 padding: 1 exclusive: false ceil_mode: true }",
                           "nn.AvgPool1D(3, 2, 1, False, True)", line),
    "avg_pool1d_sides": ("avg_pool1d { kernel_size: 3 padding: [1, 2] }", "nn.AvgPool1D(3, padding=[1, 2])", line),
    "avg_pool2d": ("avg_pool2d { kernel_size: 2 }", "nn.AvgPool2D(2)", image),
    "avg_pool2d_options": ("avg_pool2d { kernel_size: [3, 2] stride: 2 padding: 1 ceil_mode: true exclusive: false }",
                           "nn.AvgPool2D([3, 2], 2, 1, True, False)", image),
    "avg_pool2d_divisor": ("avg_pool2d { kernel_size: 3 stride: 2 divisor_override: 5 }", "nn.AvgPool2D(3, 2, divisor_override=5)", image),
    "avg_pool2d_valid": ("avg_pool2d { kernel_size: 3 padding_algorithm: VALID }", "nn.AvgPool2D(3, padding='VALID')", image),
    "avg_pool2d_last": ("avg_pool2d { kernel_size: 3 padding: 1 data_format: NHWC }", "nn.AvgPool2D(3, padding=1, data_format='NHWC')", image_last),
    "avg_pool3d": ("avg_pool3d { kernel_size: 2 }", "nn.AvgPool3D(2)", volume),
    "avg_pool3d_options": ("avg_pool3d { kernel_size: [2, 3, 2] stride: 2 padding: 1 divisor_override: 3 }",
                           "nn.AvgPool3D([2, 3, 2], 2, 1, divisor_override=3)", volume),
    "avg_pool3d_sides": ("avg_pool3d { kernel_size: 3 padding: [1, 0, 0, 1, 2, 1] exclusive: false }",
                         "nn.AvgPool3D(3, padding=[1, 0, 0, 1, 2, 1], exclusive=False)", volume),
    "adaptive_avg_pool1d": ("adaptive_avg_pool1d { output_size: 4 }", "nn.AdaptiveAvgPool1D(4)", line),
    "adaptive_avg_pool2d": ("adaptive_avg_pool2d { output_size: [4, 3] }", "nn.AdaptiveAvgPool2D([4, 3])", image),
    "adaptive_avg_pool2d_own": ("adaptive_avg_pool2d { output_size: [0, 3] data_format: NHWC }",
                                "nn.AdaptiveAvgPool2D([None, 3], data_format='NHWC')", image_last),
    "adaptive_avg_pool3d": ("adaptive_avg_pool3d { output_size: [2, 3, 0] }", "nn.AdaptiveAvgPool3D([2, 3, None])", volume),
    "adaptive_max_pool1d": ("adaptive_max_pool1d { output_size: 4 return_mask: true }", "nn.AdaptiveMaxPool1D(4, True)", line, both),
    "adaptive_max_pool2d": ("adaptive_max_pool2d { output_size: [4, 3] }", "nn.AdaptiveMaxPool2D([4, 3])", image),
    "adaptive_max_pool2d_mask": ("adaptive_max_pool2d { output_size: 3 return_mask: true }", "nn.AdaptiveMaxPool2D(3, True)", image, both),
    "adaptive_max_pool3d": ("adaptive_max_pool3d { output_size: [2, 3, 4] }", "nn.AdaptiveMaxPool3D([2, 3, 4])", volume),
    "max_unpool1d": ("max_unpool1d { kernel_size: 2 }", "nn.MaxUnPool1D(2)", dict(x=f(1, 2, 4), m=A(SOME, "int32"))),
    "max_unpool2d": ("max_unpool2d { kernel_size: 2 stride: 2 }", "nn.MaxUnPool2D(2, 2)", dict(x=f(1, 1, 2, 3), m=A(PLACES, "int32"))),
    "max_unpool2d_size": ("max_unpool2d { kernel_size: 2 stride: 2 output_size: [5, 7] }", "nn.MaxUnPool2D(2, 2, output_size=[5, 7])",
                          dict(x=f(1, 1, 2, 3), m=A(PLACES, "int32"))),
    "max_unpool3d": ("max_unpool3d { kernel_size: 2 }", "nn.MaxUnPool3D(2)", dict(x=f(1, 1, 2, 2, 2), m=A(DEEP, "int32"))),
    "there_and_back": ("""layer { name: "pool" max_pool2d { kernel_size: 2 return_mask: true } }
                          layer { name: "l" input: ["pool", "pool:mask"] max_unpool2d { kernel_size: 2 } }""",
                       "lambda x: F.max_unpool2d(*F.max_pool2d(x, 2, return_mask=True), 2)", dict(x=apart(2, 2, 6, 4))),
}

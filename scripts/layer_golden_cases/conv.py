# SPDX-License-Identifier: Apache-2.0
"""Convolutions: rows of scripts/make_layer_goldens.py."""
from op_golden_cases import f

CASES = {
    "conv2d": ("conv2d { out_channels: 4 kernel_size: 3 }", "nn.Conv2D(2, 4, 3)", dict(x=f(2, 2, 5, 6))),
    "conv2d_options": ("conv2d { out_channels: 4 kernel_size: [3, 2] stride: [2, 1] padding: [1, 0] groups: 2 dilation: [1, 2] }",
                       "nn.Conv2D(2, 4, [3, 2], [2, 1], [1, 0], [1, 2], 2)", dict(x=f(2, 2, 5, 6))),
}

# SPDX-License-Identifier: Apache-2.0
"""Activations: rows of scripts/make_layer_goldens.py."""
from op_golden_cases import f

x = dict(x=f(2, 3, 4, lo=-4, hi=4))

CASES = {
    "relu": ("relu {}", "nn.ReLU()", x),
    "relu6": ("relu6 {}", "nn.ReLU6()", dict(x=f(2, 3, 4, lo=-9, hi=9))),
    "leaky_relu": ("leaky_relu {}", "nn.LeakyReLU()", x),
    "leaky_relu_slope": ("leaky_relu { negative_slope: 0.3 }", "nn.LeakyReLU(0.3)", x),
}

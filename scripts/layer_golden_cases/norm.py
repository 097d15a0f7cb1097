# SPDX-License-Identifier: Apache-2.0
"""Normalisations: rows of scripts/make_layer_goldens.py."""
from op_golden_cases import f

CASES = {
    "batch_norm2d": ("batch_norm2d {}", "nn.BatchNorm2D(3)", dict(x=f(2, 3, 4, 2))),
    "layer_norm": ("layer_norm {}", "nn.LayerNorm(4)", dict(x=f(2, 3, 4))),
}

# SPDX-License-Identifier: Apache-2.0
"""Normalisations: rows of testdata/make/layer_goldens.py."""
from op_cases import f

line, image, volume = dict(x=f(2, 4, 5)), dict(x=f(2, 4, 3, 2)), dict(x=f(2, 4, 3, 2, 2))
image_last = dict(x=f(2, 3, 2, 4))


def ones(state):
    """What a factor and summand that nothing trains are."""
    for name in state:
        if name.endswith((".weight", ".bias")):
            state[name][:] = name.endswith(".weight")


STAYS = "weight_attr=ParamAttr(trainable=False), bias_attr=ParamAttr(trainable=False)"

CASES = {
    "batch_norm": ("batch_norm {}", "nn.BatchNorm(4)", image),
    "batch_norm_act": ('batch_norm { act: "relu" momentum: 0.7 epsilon: 1e-4 data_layout: NHWC }',
                       "nn.BatchNorm(4, 'relu', momentum=0.7, epsilon=1e-4, data_layout='NHWC')", image_last),
    "batch_norm_global": ("batch_norm { use_global_stats: true }", "nn.BatchNorm(4, use_global_stats=True)", line),
    "batch_norm1d": ("batch_norm1d {}", "nn.BatchNorm1D(4)", line),
    "batch_norm1d_rows": ("batch_norm1d { momentum: 0.5 epsilon: 1e-3 }", "nn.BatchNorm1D(4, 0.5, 1e-3)", dict(x=f(5, 4))),
    "batch_norm1d_last": ("batch_norm1d { data_format: NLC }", "nn.BatchNorm1D(5, data_format='NLC')", line),
    "batch_norm2d": ("batch_norm2d {}", "nn.BatchNorm2D(4)", image),
    "batch_norm2d_last": ("batch_norm2d { data_format: NHWC }", "nn.BatchNorm2D(4, data_format='NHWC')", image_last),
    "batch_norm2d_global": ("batch_norm2d { use_global_stats: true }", "nn.BatchNorm2D(4, use_global_stats=True)", image),
    "batch_norm2d_own": ("batch_norm2d { use_global_stats: false }", "nn.BatchNorm2D(4, use_global_stats=False)", image),
    "batch_norm2d_plain": ("batch_norm2d { weight: false bias: false }", f"nn.BatchNorm2D(4, {STAYS})", image, dict(state=ones)),
    "batch_norm3d": ("batch_norm3d {}", "nn.BatchNorm3D(4)", volume),
    "sync_batch_norm": ("sync_batch_norm {}", "nn.BatchNorm2D(4)", image),  # PaddlePaddle's needs a GPU
    "layer_norm": ("layer_norm {}", "nn.LayerNorm(5)", line),
    "layer_norm_axes": ("layer_norm { normalized_shape: [3, 2] epsilon: 1e-3 }", "nn.LayerNorm([3, 2], 1e-3)", image),
    "layer_norm_no_weight": ("layer_norm { weight: false }", "nn.LayerNorm(5, weight_attr=False)", line),
    "layer_norm_plain": ("layer_norm { weight: false bias: false }", "nn.LayerNorm(5, weight_attr=False, bias_attr=False)", line),
    "group_norm": ("group_norm { num_groups: 2 }", "nn.GroupNorm(2, 4)", image),
    "group_norm_line": ("group_norm { num_groups: 4 num_channels: 4 epsilon: 1e-3 }", "nn.GroupNorm(4, 4, 1e-3)", line),
    "group_norm_last": ("group_norm { num_groups: 2 data_format: NHWC }", "nn.GroupNorm(2, 4, data_format='NHWC')", image_last),
    "group_norm_plain": ("group_norm { num_groups: 2 weight: false bias: false }", f"nn.GroupNorm(2, 4, {STAYS})",
                         image, dict(state=ones)),
    "instance_norm1d": ("instance_norm1d {}", "nn.InstanceNorm1D(4)", line),
    "instance_norm2d": ("instance_norm2d { epsilon: 1e-3 }", "nn.InstanceNorm2D(4, 1e-3)", image),
    "instance_norm2d_plain": ("instance_norm2d { affine: false }", "nn.InstanceNorm2D(4, weight_attr=False, bias_attr=False)", image),
    "instance_norm3d": ("instance_norm3d {}", "nn.InstanceNorm3D(4)", volume),
    "local_response_norm": ("local_response_norm { size: 3 alpha: 0.5 }", "nn.LocalResponseNorm(3, 0.5)", image),
    "local_response_norm_line": ("local_response_norm { size: 2 alpha: 0.5 beta: 0.6 k: 2 }", "nn.LocalResponseNorm(2, 0.5, 0.6, 2)", line),
    "local_response_norm_volume": ("local_response_norm { size: 4 alpha: 0.5 }", "nn.LocalResponseNorm(4, 0.5)", volume),
    "local_response_norm_last": ("local_response_norm { size: 4 alpha: 0.5 data_format: NHWC }",
                                 "nn.LocalResponseNorm(4, 0.5, data_format='NHWC')", image_last),
    "spectral_norm": ("spectral_norm { weight_shape: [4, 3, 2] }", "nn.SpectralNorm([4, 3, 2])", dict(x=f(4, 3, 2))),
    "spectral_norm_options": ("spectral_norm { weight_shape: [4, 3] dim: 1 power_iters: 3 eps: 1e-6 }",
                              "nn.SpectralNorm([4, 3], 1, 3, 1e-6)", dict(x=f(4, 3))),
}

# SPDX-License-Identifier: Apache-2.0
"""weight_norm and spectral_norm of weights: rows of testdata/make/layer_goldens.py."""
from op_cases import A, f
from paddle import nn
from paddle.nn.utils import spectral_norm, weight_norm

rows, images = dict(x=f(3, 4)), dict(x=f(2, 2, 4, 5))


def row(job, make, inputs, **options):
    return job, make, inputs, dict(init=False, **options)


def whole(l):
    """PaddlePaddle 2.3's g has shape [1]."""
    weight_norm(l, dim=None)
    l.weight_g = l.create_parameter([1])
    return l


CASES = {
    "weight_norm": row("linear { out_features: 3 weight_attr { weight_norm {} } }", lambda: weight_norm(nn.Linear(4, 3)), rows),
    "weight_norm_columns": row("linear { out_features: 3 weight_attr { weight_norm { dim: 1 } } }",
                               lambda: weight_norm(nn.Linear(4, 3), dim=1), rows),
    "weight_norm_whole": row("linear { out_features: 3 weight_attr { weight_norm { dim: -1 } } }",
                             lambda: whole(nn.Linear(4, 3)), rows),
    "weight_norm_conv": row("conv2d { out_channels: 4 kernel_size: 3 weight_attr { weight_norm {} } }",
                            lambda: weight_norm(nn.Conv2D(2, 4, 3)), images),
    "weight_norm_conv_inner": row("conv2d { out_channels: 4 kernel_size: 3 groups: 2 weight_attr { weight_norm { dim: 2 } } }",
                                  lambda: weight_norm(nn.Conv2D(2, 4, 3, groups=2), dim=2), images),
    "weight_norm_conv_from_last": row("conv1d { out_channels: 3 kernel_size: 2 weight_attr { weight_norm { dim: -2 } } }",
                                      lambda: weight_norm(nn.Conv1D(2, 3, 2), dim=-2), dict(x=f(2, 2, 6))),
    "weight_norm_transpose": row("conv2d_transpose { out_channels: 3 kernel_size: 2 weight_attr { weight_norm { dim: 1 } } }",
                                 lambda: weight_norm(nn.Conv2DTranspose(2, 3, 2), dim=1), images),
    "weight_norm_embedding": row("embedding { num_embeddings: 5 embedding_dim: 3 weight_attr { weight_norm {} } }",
                                 lambda: weight_norm(nn.Embedding(5, 3)), dict(x=A([[1, 0, 4], [4, 2, 4]]))),
    "weight_norm_bias": row("linear { out_features: 3 bias_attr { weight_norm {} } }", lambda: weight_norm(nn.Linear(4, 3), "bias"), rows),
    "spectral_norm": row("linear { out_features: 3 weight_attr { spectral_norm {} } }", lambda: spectral_norm(nn.Linear(4, 3)), rows),
    "spectral_norm_rows": row("linear { out_features: 3 weight_attr { spectral_norm { dim: 0 n_power_iterations: 3 eps: 0.01 } } }",
                              lambda: spectral_norm(nn.Linear(4, 3), n_power_iterations=3, eps=0.01, dim=0), rows),
    "spectral_norm_conv": row("conv2d { out_channels: 4 kernel_size: 3 weight_attr { spectral_norm {} } }",
                              lambda: spectral_norm(nn.Conv2D(2, 4, 3)), images),
    "spectral_norm_transpose": row("conv2d_transpose { out_channels: 3 kernel_size: 2 weight_attr { spectral_norm { n_power_iterations: 2 } } }",
                                   lambda: spectral_norm(nn.Conv2DTranspose(2, 3, 2), n_power_iterations=2), images),
}

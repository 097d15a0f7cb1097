# SPDX-License-Identifier: Apache-2.0
"""Tables of rows: rows of testdata/make/layer_goldens.py."""
from op_cases import A
from paddle import nn

ids = dict(x=A([[1, 0, 4], [4, 2, 4]]))
CASES = {
    "embedding": ("embedding { num_embeddings: 5 embedding_dim: 3 }", "nn.Embedding(5, 3)", ids),
    "embedding_padding": ("embedding { num_embeddings: 5 embedding_dim: 3 padding_idx: -1 }", "nn.Embedding(5, 3, -1)", ids),
}

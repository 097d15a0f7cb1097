# SPDX-License-Identifier: Apache-2.0
"""Attention and transformers: rows of testdata/make/layer_goldens.py."""
import numpy as np
import paddle
from op_cases import A, f, of
from paddle import nn

mask01 = of("int64", 0, 1.99)


class Called(nn.Layer):
    """A layer called 'l', and how it is called with the inputs."""

    def __init__(self, l, how):
        super().__init__()
        self.l, self.how = l, how

    def forward(self, *inputs):
        return self.how(self.l, *inputs)


def row(job, make, inputs, how=lambda l, *x: l(*x), outputs="l", more=""):
    kind, arguments = job.split(" ", 1)
    reads = [k for k in inputs if k in ("x", "memory", "tgt")]
    line = f'layer {{ name: "l" input: [{", ".join(chr(34) + r + chr(34) for r in reads)}] {kind} {{ {arguments} }} }}'
    return ("\n".join([*more, line]) if more else line, lambda: Called(make(), how), inputs, dict(outputs=outputs.split()))


def cached(l, *x):
    """The step's output and the new k, v, of a layer without memory."""
    out, cache = l(x[0], cache=nn.MultiHeadAttention.Cache(*x[1:]))
    return out, cache.k, cache.v


def mha_static(l, x, k, v):
    return l(x, None, None, None, nn.MultiHeadAttention.StaticCache(k, v))[0]


def mha_cached(l, x, k, v):
    out, cache = l(x, None, None, None, nn.MultiHeadAttention.Cache(k, v))
    return out, cache.k, cache.v


def decoder_cached(l, x, memory, k, v):
    out, (now, fixed) = l(x, memory, cache=(nn.MultiHeadAttention.Cache(k, v), l.cross_attn.gen_cache(memory, memory, nn.MultiHeadAttention.StaticCache)))
    return out, now.k, now.v, fixed.k, fixed.v


def decoders_cached(l, x, memory, *caches):
    """What the second step gives when all static caches are made of memory."""
    both = [(nn.MultiHeadAttention.Cache(*caches[2 * i:2 * i + 2]), layer.cross_attn.gen_cache(memory, memory, nn.MultiHeadAttention.StaticCache))
            for i, layer in enumerate(l.layers)]
    out, new = l(x, memory, cache=both)
    return out, new[1][0].k


def mha_of_queries():
    """With a static cache k_proj and v_proj do nothing; the job's layer does not have them."""
    l = nn.MultiHeadAttention(4, 2)
    del l.k_proj, l.v_proj
    return l


def causal(length):
    return paddle.tensor.triu(paddle.full([length, length], -np.inf, "float32"), 1)


def encoder(layers=2, norm=False, **more):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, 0.0, **more), layers, nn.LayerNorm(4) if norm else None)


def decoder(layers=2, norm=False, **more):
    return nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 6, 0.0, **more), layers, nn.LayerNorm(4) if norm else None)


def with_epsilon(l, epsilon):
    """PaddlePaddle 2.3's classes have no argument for it; models set it."""
    for part in l.sublayers():
        if isinstance(part, nn.LayerNorm):
            part._epsilon = epsilon
    return l


def with_activation(l, how):
    for part in l.sublayers(include_self=True):
        if hasattr(part, "linear1"):
            part.activation = how
    return l


def sparse(key_mask=None, pair_mask=None):
    """softmax(Q K^T / sqrt(d)) V where the CSR matrix has a place: PaddlePaddle has it for GPUs only."""
    def how(q, k, v, offset, columns, *masks):
        n, heads, length, size = q.shape
        seen = np.zeros([n, heads, length, length], "float32")
        for b in range(n):
            for h in range(heads):
                o, c = offset.numpy()[b, h], columns.numpy()[b, h]
                for i in range(length):
                    seen[b, h, i, c[o[i]:o[i + 1]]] = 1
        seen = paddle.to_tensor(seen)
        masks = list(masks)
        if key_mask:
            seen = seen * masks.pop(0).unsqueeze([1, 2])
        if pair_mask:
            seen = seen * masks.pop(0)
        raised = paddle.exp(paddle.matmul(q, k, transpose_y=True) / size ** 0.5) * (seen != 0).astype("float32")
        total = raised.sum(-1, keepdim=True)
        return paddle.matmul(raised / paddle.where(total == 0, paddle.ones_like(total), total), v)
    return lambda: how


def sparse_row(more="", **masks):
    inputs = dict(q=f(2, 2, 4, 3), k=f(2, 2, 4, 3), v=f(2, 2, 4, 3), offset=A([[[0, 2, 2, 5, 6], [0, 1, 4, 6, 7]], [[0, 4, 5, 5, 7], [0, 0, 0, 3, 6]]], "int32"),
                  columns=A([[[1, 3, 0, 1, 2, 3, 0], [2, 0, 1, 3, 2, 1, 0]], [[0, 1, 2, 3, 2, 0, 3], [0, 1, 3, 1, 2, 3, 0]]], "int32"))
    given = dict(keys=A([[1, 1, 0, 1], [0, 2, 1, 1]], "float32"), pairs=A([[1, 1, 1, 0], [0, 1, 1, 1], [1, 0, 1, 1], [1, 1, 1, 1]], "float32"))
    line = f'layer {{ name: "l" input: ["q", "k", "v", "offset", "columns"] sparse_attention {{ {more} }} }}'
    return (line, sparse("keys" in more, "pairs" in more), {**inputs, **{k: given[k] for k in given if k in more}}, dict(by="q k v"))


MHA = nn.MultiHeadAttention
SMALL = "nhead: 2 dim_feedforward: 6 dropout: 0"
x, memory, k, v = f(2, 3, 4), f(2, 5, 4), f(2, 2, 4, 2), f(2, 2, 4, 2)
k1, v1 = f(2, 2, 4, 2), f(2, 2, 4, 2)
TRIANGLE = ['layer { name: "later" input: "x" square_subsequent_mask {} }']
CASES = {
    "attention": row("multi_head_attention num_heads: 2", lambda: MHA(4, 2), dict(x=x), outputs="l"),
    "attention_weights": row("multi_head_attention embed_dim: 4 num_heads: 2 need_weights: true bias: false",
                             lambda: MHA(4, 2, need_weights=True, bias_attr=False), dict(x=x), outputs="l l:weights"),
    "attention_key_value": row('multi_head_attention num_heads: 2 kdim: 3 vdim: 5 key: "k" value: "v"',
                               lambda: MHA(4, 2, kdim=3, vdim=5), dict(x=x, k=f(2, 5, 3), v=f(2, 5, 5))),
    "attention_mask": row('multi_head_attention num_heads: 2 attn_mask: "m"', lambda: MHA(4, 2),
                          dict(x=x, m=f(2, 1, 3, 3)), lambda l, x, m: l(x, None, None, m)),
    "attention_mask_of_ints": row('multi_head_attention num_heads: 2 attn_mask: "m"', lambda: MHA(4, 2),
                                  dict(x=x, m=A([[[[1, 1, 0]]], [[[1, 0, 1]]]])), lambda l, x, m: l(x, None, None, m)),
    "attention_causal": row('multi_head_attention num_heads: 2 attn_mask: "later"', lambda: MHA(4, 2), dict(x=f(2, 3, 4, unknown=(0, 1))),
                            lambda l, x: l(x, None, None, causal(3)), more=TRIANGLE),
    "attention_cache": row('multi_head_attention num_heads: 2 cache: ["k", "v"]', lambda: MHA(4, 2),
                           dict(x=x, k=k, v=v), mha_cached, "l l:k l:v"),
    "attention_cache_causal": row('multi_head_attention num_heads: 2 cache: ["k", "v"] attn_mask: "later"', lambda: MHA(4, 2),
                                  dict(x=f(2, 3, 4, unknown=(0, 1)), k=f(2, 2, 4, 2, unknown=(0, 2)), v=f(2, 2, 4, 2, unknown=(0, 2))),
                                  lambda l, x, k, v: l(x, None, None, causal(7)[4:], MHA.Cache(k, v))[0],
                                  more=['layer { name: "later" input: "x" square_subsequent_mask { cache: "k" } }']),
    "attention_static_cache": row('multi_head_attention num_heads: 2 static_cache: ["k", "v"]', mha_of_queries, dict(x=x, k=k, v=v), mha_static),
    "padding_mask": ("padding_mask { pad_token_id: 2 }", lambda: lambda ids: paddle.unsqueeze((ids == 2).astype("float32") * -1e4, [1, 2]),
                     dict(ids=A([[1, 2, 3], [4, 5, 2]]))),
    "encoder_layer": row(f"transformer_encoder_layer d_model: 4 {SMALL}", lambda: nn.TransformerEncoderLayer(4, 2, 6, 0.0), dict(x=x)),
    "encoder_layer_first": row(f'transformer_encoder_layer {SMALL} normalize_before: true activation: "gelu" src_mask: "m" bias: false',
                               lambda: nn.TransformerEncoderLayer(4, 2, 6, 0.0, "gelu", normalize_before=True, bias_attr=False),
                               dict(x=x, m=f(3, 3))),
    "encoder_layer_cache": row(f'transformer_encoder_layer {SMALL} cache: ["k", "v"]', lambda: nn.TransformerEncoderLayer(4, 2, 6, 0.0),
                               dict(x=x, k=k, v=v), cached, "l l:k l:v"),
    "decoder_layer": row(f"transformer_decoder_layer {SMALL}", lambda: nn.TransformerDecoderLayer(4, 2, 6, 0.0), dict(x=x, memory=memory)),
    "decoder_layer_first": row(f'transformer_decoder_layer {SMALL} normalize_before: true activation: "gelu" tgt_mask: "later" memory_mask: "m"',
                               lambda: nn.TransformerDecoderLayer(4, 2, 6, 0.0, "gelu", normalize_before=True),
                               dict(x=x, memory=memory, m=f(2, 1, 1, 5)),
                               lambda l, x, memory, m: l(x, memory, causal(3), m), more=TRIANGLE),
    "decoder_layer_cache": row(f'transformer_decoder_layer {SMALL} cache: ["k", "v"]', lambda: nn.TransformerDecoderLayer(4, 2, 6, 0.0),
                               dict(x=x, memory=memory, k=k, v=v), decoder_cached, "l l:k l:v l:static_k l:static_v"),
    "encoder": row(f'transformer_encoder encoder_layer {{ {SMALL} }} num_layers: 2 norm {{}} src_mask: "m"',
                   lambda: encoder(norm=True), dict(x=x, m=A([[[[1, 1, 0]]], [[[1, 0, 1]]]]))),
    "encoder_first": row(f"transformer_encoder encoder_layer {{ {SMALL} normalize_before: true activation: 'silu' }} num_layers: 2",
                         lambda: encoder(normalize_before=True, activation="silu"), dict(x=x)),
    "decoder": row(f'transformer_decoder decoder_layer {{ {SMALL} }} num_layers: 2 norm {{}} tgt_mask: "later"',
                   lambda: decoder(norm=True), dict(x=x, memory=memory), lambda l, x, memory: l(x, memory, causal(3)), more=TRIANGLE),
    "decoder_cache": row(f'transformer_decoder decoder_layer {{ {SMALL} }} num_layers: 2 cache: ["k", "v", "k1", "v1"]',
                         decoder, dict(x=x, memory=memory, k=k, v=v, k1=k1, v1=v1), decoders_cached, "l l:k1"),
    "transformer": row("transformer d_model: 4 nhead: 2 num_encoder_layers: 2 num_decoder_layers: 1 dim_feedforward: 6 dropout: 0 "
                       'src_mask: "m" tgt_mask: "later" memory_mask: "m"',
                       lambda: nn.Transformer(4, 2, 2, 1, 6, 0.0), dict(x=memory, tgt=x, m=f(2, 1, 1, 5)),
                       lambda l, x, tgt, m: l(x, tgt, m, causal(3), m),
                       more=['layer { name: "later" input: "tgt" square_subsequent_mask {} }']),
    "transformer_first": row("transformer d_model: 4 nhead: 1 num_encoder_layers: 1 num_decoder_layers: 2 dim_feedforward: 6 dropout: 0 "
                             "normalize_before: true activation: 'tanh'", lambda: nn.Transformer(4, 1, 1, 2, 6, 0.0, "tanh", normalize_before=True),
                             dict(x=memory, tgt=x)),
    "encoder_layer_gelu_tanh": row(f"transformer_encoder_layer {SMALL} activation: 'gelu {{ approximate: true }}' layer_norm_eps: 1e-3",
                                   lambda: with_activation(with_epsilon(nn.TransformerEncoderLayer(4, 2, 6, 0.0), 1e-3),
                                                           lambda x: nn.functional.gelu(x, True)), dict(x=x)),
    "decoder_mish_epsilon": row(f"transformer_decoder decoder_layer {{ {SMALL} activation: 'mish' layer_norm_eps: 5e-4 }} num_layers: 2",
                                lambda: with_epsilon(decoder(activation="mish"), 5e-4), dict(x=x, memory=memory)),
    "transformer_epsilon": row("transformer d_model: 4 nhead: 1 num_encoder_layers: 1 num_decoder_layers: 1 dim_feedforward: 6 dropout: 0 "
                               "activation: 'hardswish' layer_norm_eps: 5e-4",
                               lambda: with_epsilon(nn.Transformer(4, 1, 1, 1, 6, 0.0, "hardswish"), 5e-4), dict(x=memory, tgt=x)),
    "sparse_attention": sparse_row(),
    "sparse_attention_keys": sparse_row('key_padding_mask: "keys"'),
    "sparse_attention_masks": sparse_row('key_padding_mask: "keys" attn_mask: "pairs"'),
}

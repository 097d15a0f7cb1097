# SPDX-License-Identifier: Apache-2.0
"""Decoding of sequences: rows of testdata/make/layer_goldens.py."""
import paddle
from op_cases import A, f
from paddle import nn


class Weighted(nn.Layer):
    """A weight called 'l.NAME', and what is done with it and the inputs."""

    def __init__(self, name, shape, how):
        super().__init__()
        self.l = nn.Layer()
        setattr(self.l, name, self.l.create_parameter(shape))
        self.name, self.how = name, how

    def forward(self, *inputs):
        return self.how(getattr(self.l, self.name), *inputs)


def viterbi(more, bos):
    def how(weight, x, n):
        scores, path = paddle.text.viterbi_decode(x, weight, n, bos)
        return path, scores
    return (f'layer {{ name: "l" input: "x" viterbi_decoder {{ lengths: "n" {more} }} }}', lambda: Weighted("transitions", [4, 4], how),
            dict(x=f(3, 5, 4), n=A([5, 2, 3])), dict(outputs=["l", "l:scores"], by="", train=False))


def crf(weight, x, n):
    return paddle._legacy_C_ops.crf_decoding(x, weight, None, n)


def ctc(x, n):
    """By the definition: PaddlePaddle has no Python function for it any more."""
    best, rows = paddle.argmax(x, -1).numpy(), []
    for path, steps in zip(best.tolist(), n.numpy().tolist()):
        merged = [c for k, c in enumerate(path[:steps]) if k == 0 or c != path[k - 1]]
        rows.append([c for c in merged if c != 1])
    padded = [row + [-1] * (best.shape[1] - len(row)) for row in rows]
    return paddle.to_tensor(padded), paddle.to_tensor([[len(row)] for row in rows])


CASES = {
    "viterbi": viterbi("", True),
    "viterbi_plain": viterbi("include_bos_eos_tag: false", False),
    "crf_decoding": ('layer { name: "l" input: "x" crf_decoding { length: "n" } }', lambda: Weighted("weight", [6, 4], crf),
                     dict(x=f(3, 5, 4), n=A([5, 2, 3])), dict(by="", train=False)),
    "ctc_greedy": ('layer { name: "l" input: "x" ctc_greedy_decoder { blank: 1 padding_value: -1 input_length: "n" } }',
                   lambda: ctc, dict(x=f(3, 6, 3), n=A([6, 2, 4])), dict(outputs=["l", "l:length"], by="", train=False)),
}

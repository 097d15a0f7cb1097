# SPDX-License-Identifier: Apache-2.0
"""The zoo's recommenders, written with paddle.nn: rows of
testdata/make/layer_goldens.py."""
import paddle
import paddle.nn.functional as F
from op_cases import A, In
from paddle import nn

ROWS, WIDTH, FIELDS = 9, 4, 3


def table(features):
    return nn.Embedding(ROWS, features, weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.1)))


class Linear(nn.Layer):
    def __init__(self):
        super().__init__()
        self.weights = table(1)

    def forward(self, ids):
        return self.weights(ids).sum(axis=1)


class Deep(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc1, self.fc2 = nn.Linear(FIELDS * WIDTH, 6), nn.Linear(6, 5)

    def forward(self, vectors):
        return F.relu(self.fc2(F.relu(self.fc1(vectors.flatten(1)))))


class WideDeep(nn.Layer):
    def __init__(self):
        super().__init__()
        self.wide, self.vectors, self.deep, self.out = Linear(), table(WIDTH), Deep(), nn.Linear(5, 1)

    def forward(self, ids):
        logit = self.wide(ids) + self.out(self.deep(self.vectors(ids)))
        return logit, F.sigmoid(logit)


class DeepFM(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear, self.vectors, self.deep, self.out = Linear(), table(WIDTH), Deep(), nn.Linear(5, 1)

    def forward(self, ids):
        vectors = self.vectors(ids)
        pairs = sum((vectors[:, i] * vectors[:, k]).sum(axis=1, keepdim=True) for i in range(FIELDS) for k in range(i))
        logit = self.linear(ids) + pairs + self.out(self.deep(vectors))
        return logit, F.sigmoid(logit)


class Cross(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(FIELDS * WIDTH, 1, bias_attr=False)
        self.bias = self.create_parameter([FIELDS * WIDTH], is_bias=True)

    def forward(self, first, last):
        return first * self.linear(last) + self.bias + last


class Dcn(nn.Layer):
    def __init__(self, cross_layers):
        super().__init__()
        self.vectors, self.deep, self.logit = table(WIDTH), Deep(), nn.Linear(FIELDS * WIDTH + 5, 1)
        self.cross = nn.LayerList([Cross() for _ in range(cross_layers)])

    def forward(self, ids):
        vectors = self.vectors(ids)
        first = last = vectors.flatten(1)
        for cross in self.cross:
            last = cross(first, last)
        logit = self.logit(paddle.concat([last, self.deep(vectors)], axis=1))
        return logit, F.sigmoid(logit)


def row(network, make, *arguments):
    sets = ", ".join(f'"{a}"' for a in (f"vocabulary={ROWS}", f"width={WIDTH}", "hidden1=6", "hidden2=5") + arguments)
    ids = In(A([[0, 5, 8], [3, 2, 8], [1, 0, 4], [7, 7, 6]]).make, unknown=(0,))
    return (f'layer {{ block {{ use: "{network}" set: [{sets}] }} }}', make, dict(ids=ids), dict(outputs=["block_0", "block_0:probability"]))


CASES = {
    "wide_deep": row("wide_deep", WideDeep),
    "deepfm": row("deepfm", DeepFM),
    "dcn": row("dcn", lambda: Dcn(2), f"features={FIELDS * WIDTH}", "cross_layers=2"),
    "dcn_one": row("dcn", lambda: Dcn(1), f"features={FIELDS * WIDTH}", "cross_layers=1"),
}

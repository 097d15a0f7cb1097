# SPDX-License-Identifier: Apache-2.0
"""The zoo's networks for texts: rows of testdata/make/layer_goldens.py.

The classes are such networks written with paddle.nn, small, without dropout."""
import paddle
from op_cases import A, In
from paddle import nn



def attr():
    return paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.02))


def table(rows, features):
    return nn.Embedding(rows, features, weight_attr=attr())


def places(ids):
    ones = paddle.ones_like(ids)
    return paddle.cumsum(ones, axis=-1) - ones


def later(ids):
    return nn.Transformer.generate_square_subsequent_mask(None, ids.shape[1])


class BertEmbeddings(nn.Layer):
    def __init__(self, words, features, types, positions):
        super().__init__()
        self.word_embeddings = table(words, features)
        self.position_embeddings = table(positions, features)
        if types:
            self.token_type_embeddings = table(types, features)
            self.layer_norm = nn.LayerNorm(features)

    def forward(self, ids, types=None):
        x = self.word_embeddings(ids) + self.position_embeddings(places(ids))
        return x if types is None else self.layer_norm(x + self.token_type_embeddings(types))


class Pooler(nn.Layer):
    def __init__(self, features):
        super().__init__()
        self.dense = nn.Linear(features, features, weight_attr=attr())

    def forward(self, x):
        return paddle.tanh(self.dense(x[:, 0]))


class Bert(nn.Layer):
    def __init__(self, features=8, layers=1, activation="gelu"):
        super().__init__()
        self.embeddings = BertEmbeddings(20, features, 2, 7)
        one = nn.TransformerEncoderLayer(features, 2, 12, dropout=0, activation=activation, attn_dropout=0, act_dropout=0, weight_attr=attr())
        self.encoder = nn.TransformerEncoder(one, layers)
        self.pooler = Pooler(features)

    def forward(self, ids, types, mask=None):
        hidden = (ids == 0) if mask is None else (mask == 0)
        x = self.encoder(self.embeddings(ids, types), hidden.astype("float32").unsqueeze([1, 2]) * -1e4)
        return x, self.pooler(x)


class BertClassifier(nn.Layer):
    def __init__(self):
        super().__init__()
        self.bert = Bert()
        self.classifier = nn.Linear(8, 3, weight_attr=attr())

    def forward(self, ids, types):
        return self.classifier(self.bert(ids, types)[1])


class Predictions(nn.Layer):
    def __init__(self):
        super().__init__()
        self.transform = nn.Linear(8, 8, weight_attr=attr())
        self.layer_norm = nn.LayerNorm(8)
        self.decoder_bias = self.create_parameter([20], is_bias=True)

    def forward(self, x, weight):
        x = self.layer_norm(nn.functional.gelu(self.transform(x)))
        return paddle.matmul(x, weight, transpose_y=True) + self.decoder_bias


class BertPretraining(nn.Layer):
    def __init__(self):
        super().__init__()
        self.bert, self.cls = Bert(), nn.Layer()
        self.cls.predictions = Predictions()
        self.cls.seq_relationship = nn.Linear(8, 2, weight_attr=attr())

    def forward(self, ids, types):
        x, pooled = self.bert(ids, types)
        return self.cls.predictions(x, self.bert.embeddings.word_embeddings.weight), self.cls.seq_relationship(pooled)


class Gpt(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embeddings = BertEmbeddings(20, 8, 0, 7)
        self.decoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 12, dropout=0, activation="gelu", act_dropout=0, normalize_before=True, weight_attr=attr()),
            2, nn.LayerNorm(8))

    def forward(self, ids):
        return self.decoder(self.embeddings(ids), later(ids))


class GptLm(nn.Layer):
    def __init__(self):
        super().__init__()
        self.gpt = Gpt()

    def forward(self, ids):
        return paddle.matmul(self.gpt(ids), self.gpt.embeddings.word_embeddings.weight, transpose_y=True)


class Seq2SeqEmbeddings(nn.Layer):
    def __init__(self, words, features):
        super().__init__()
        self.features = features
        self.word_embedding = nn.Embedding(words, features, weight_attr=paddle.ParamAttr(initializer=nn.initializer.Normal(0.0, 0.044)))

    def forward(self, ids):
        x = self.word_embedding(ids) * self.features**0.5
        speed = 10000.0 ** (-paddle.arange(0, self.features, 2, dtype="float32") / self.features)
        angle = places(ids).astype("float32").unsqueeze(-1) * speed
        return x + paddle.concat([paddle.sin(angle), paddle.cos(angle)], axis=-1)


class Seq2Seq(nn.Layer):
    def __init__(self):
        super().__init__()
        self.source_embedding, self.target_embedding = Seq2SeqEmbeddings(18, 8), Seq2SeqEmbeddings(15, 8)
        self.transformer = nn.Transformer(8, 2, 2, 1, 12, dropout=0)

    def forward(self, source, target):
        padding = (source == 0).astype("float32").unsqueeze([1, 2]) * -1e4
        x = self.transformer(self.source_embedding(source), self.target_embedding(target), padding, later(target), padding)
        return paddle.matmul(x, self.target_embedding.word_embedding.weight, transpose_y=True)


class LstmLm(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(12, 6)
        self.lstm = nn.LSTM(6, 5, num_layers=2)
        self.fc = nn.Linear(5, 12)

    def forward(self, ids):
        return self.fc(self.lstm(self.embedding(ids))[0])


def open_ended(values):
    """Whose batch and length are not known before."""
    return In(A(values).make, unknown=(0, 1))


IDS = dict(ids=open_ended([[1, 5, 19, 7, 2], [3, 0, 4, 0, 0]]))
TYPES = dict(types=open_ended([[0, 0, 1, 1, 1], [0, 1, 1, 0, 0]]))
MASK = dict(mask=open_ended([[1, 1, 0, 1, 1], [1, 1, 1, 0, 0]]))
TEXTS = dict(source=open_ended([[1, 17, 4, 6], [2, 9, 0, 0]]), target=open_ended([[1, 3, 14], [1, 8, 0]]))

NO_DROPOUT = ["hidden_dropout_prob=0", "attention_probs_dropout_prob=0"]
SIZES = ["vocab_size=20", "num_attention_heads=2", "intermediate_size=12", "max_position_embeddings=7"] + NO_DROPOUT
SMALL = SIZES + ["hidden_size=8", "num_hidden_layers=1"]


def row(network, inputs, make, arguments, outputs=("block_0",)):
    reads = ", ".join(f'"{name}"' for name in inputs)
    sets = ", ".join(f'"{argument}"' for argument in arguments)
    return (f'layer {{ input: [{reads}] block {{ use: "{network}" set: [{sets}] }} }}', make, inputs, dict(outputs=list(outputs)))


BOTH = ("block_0", "block_0:pooled")
CASES = {
    "bert": row("bert", {**IDS, **TYPES}, lambda: Bert(16, 2), SIZES + ["hidden_size=16", "num_hidden_layers=2"], BOTH),
    "bert_masked": row("bert_masked", {**IDS, **TYPES, **MASK}, Bert, SMALL, BOTH),
    "bert_classifier": row("bert_classifier", {**IDS, **TYPES}, BertClassifier, SMALL + ["num_classes=3"]),
    "bert_pretraining": row("bert_pretraining", {**IDS, **TYPES}, BertPretraining, SMALL, ("block_0", "block_0:cls.seq_relationship")),
    "ernie": row("ernie", {**IDS, **TYPES}, lambda: Bert(activation="relu"), SMALL, BOTH),
    "gpt": row("gpt", IDS, Gpt, SIZES + ["hidden_size=8", "num_hidden_layers=2"]),
    "gpt_lm": row("gpt_lm", IDS, GptLm, SIZES + ["hidden_size=8", "num_hidden_layers=2"]),
    "transformer_seq2seq": row("transformer_seq2seq", TEXTS, Seq2Seq, [
        "source_vocab_size=18", "target_vocab_size=15", "d_model=8", "nhead=2", "num_encoder_layers=2", "num_decoder_layers=1",
        "dim_feedforward=12", "dropout=0"]),
    "lstm_lm": row("lstm_lm", dict(ids=open_ended([[1, 5, 11, 7], [3, 0, 4, 1]])), LstmLm,
                   ["vocab_size=12", "embedding_size=6", "hidden_size=5", "dropout=0"]),
}

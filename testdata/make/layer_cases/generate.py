# SPDX-License-Identifier: Apache-2.0
"""Decoders that write: rows of testdata/make/layer_goldens.py. The loops are written out here, over the ids so far or with caches."""
import numpy as np
import paddle
from op_cases import A, f
from paddle import nn

WORDS = 11
JOB = '''block { name: "gpt" input: "ids" optional_input: "cache"
  layer { name: "emb" input: "ids" embedding { num_embeddings: 11 embedding_dim: 8 } }
  layer { name: "places" input: "ids" positions { cache: "cache" } }
  layer { name: "pos" embedding { num_embeddings: 16 embedding_dim: 8 } }
  layer { name: "sum" input: ["emb", "pos"] add {} }
  layer { name: "mask" input: "ids" square_subsequent_mask { cache: "cache" } }
  layer { name: "encoder" input: "sum" transformer_encoder {
    encoder_layer { nhead: 2 dim_feedforward: 16 dropout: 0 activation: "gelu" } num_layers: 2 src_mask: "mask" cache: "cache" } }
  layer { name: "fc" linear { out_features: 11 } }
  output: ["fc", "encoder:cache"] }
'''


class Gpt(nn.Layer):
    def __init__(self):
        super().__init__()
        self.emb, self.pos = nn.Embedding(WORDS, 8), nn.Embedding(16, 8)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, dropout=0, activation="gelu"), 2)
        self.fc = nn.Linear(8, WORDS)

    def forward(self, ids, cache=None):
        """Logits of the last place, and the new cache."""
        before = 0 if cache is None else cache[0].k.shape[2]
        x = self.emb(ids) + self.pos(paddle.arange(before, before + ids.shape[1]))
        mask = nn.Transformer.generate_square_subsequent_mask(None, before + ids.shape[1])[before:]
        cache = self.encoder.gen_cache(x) if cache is None else cache
        x, cache = self.encoder(x, mask, cache)
        return self.fc(x)[:, -1], cache


def philox(seed, stream, count):
    """Numbers 0 ... count - 1 of libcore/base/rng.h, as 32 bits."""
    out, m = [], 0xFFFFFFFF
    for block in range((count + 3) // 4):
        c, k = [block & m, block >> 32, stream & m, stream >> 32], [seed & m, seed >> 32]
        for _ in range(10):
            p0, p1 = 0xD2511F53 * c[0], 0xCD9E8D57 * c[2]
            c = [(p1 >> 32) ^ c[1] ^ k[0], p1 & m, (p0 >> 32) ^ c[3] ^ k[1], p0 & m]
            k = [(k[0] + 0x9E3779B9) & m, (k[1] + 0xBB67AE85) & m]
        out += c
    return out[:count]


def uniform(seed, rows, places):
    """What the op of the job draws, one number for each place."""
    stream = 0xCBF29CE484222325
    for c in b"uniform_random_inplace_0.tmp_0":
        stream = ((stream ^ c) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return (np.array(philox(seed, stream, rows * places)) >> 8).reshape(rows, places).astype("float32") * np.float32(2.0**-24)


def greedy(logits, place):
    return logits.argmax(-1).numpy()


def sampler(seed, rows, places, temperature=1.0, top_k=0, top_p=1.0):
    numbers = uniform(seed, rows, places)

    def pick(logits, place):
        """PaddleNLP's TopKProcess and TopPProcess, then the inverse of the distribution function."""
        probs = nn.functional.softmax(logits / temperature).numpy()
        order = np.argsort(-probs, -1, kind="stable") if top_k or top_p < 1 else np.tile(np.arange(WORDS), (rows, 1))
        kept = np.take_along_axis(probs, order, -1).astype("float64")
        if top_k:
            kept[:, top_k:] = 0
        if top_p < 1:
            kept[np.cumsum(kept, -1) - kept > top_p] = 0
        sums = np.cumsum(kept, -1)
        at = (sums <= numbers[:, place:place + 1] * sums[:, -1:]).sum(-1)
        return np.take_along_axis(order, at[:, None], -1)[:, 0]
    return pick


def write(net, prompt, steps, pick, cached, eos=None, pad=None, lengths=None):
    """ids, scores and lengths, one place after the other."""
    ids = np.concatenate([prompt.numpy(), np.full((prompt.shape[0], steps), eos if pad is None and eos is not None else pad or 0)], 1)
    rows, ends = ids.shape[0], np.zeros(ids.shape[0], bool)
    own = np.full(rows, prompt.shape[1]) if lengths is None else lengths.numpy()
    scores, written, cache, read = np.zeros(rows, "float32"), np.zeros(rows, "int64"), None, 0
    for place in range(own.min(), ids.shape[1]):
        if ends.all():
            break
        logits, new = net(paddle.to_tensor(ids[:, read:place]), cache)
        if cached:
            cache, read = new, place
        chosen = pick(logits, place)
        gain = nn.functional.log_softmax(logits).numpy()[np.arange(rows), chosen]
        counts = ~ends & (own <= place)
        scores, written = scores + gain * counts, written + counts
        ids[:, place] = np.where(own > place, ids[:, place], np.where(ends, eos if pad is None and eos is not None else pad or 0, chosen))
        ends |= counts & (chosen == (-1 if eos is None else eos))
    return paddle.to_tensor(ids), paddle.to_tensor(scores), paddle.to_tensor(written)


class Writer(nn.Layer):
    def __init__(self, how, net=None):
        super().__init__()
        self.net, self.how = net or Gpt(), how

    def forward(self, *inputs):
        return self.how(self.net, *inputs)


def stretched(end=None, lead=0.0):
    """What comes next depends on the ids before; `end` is likelier by `lead`."""
    def state(start):
        for key in start:
            if "emb" in key or "fc" in key or "pos" in key:
                start[key] *= 2
            if end is not None and key == "net.fc.bias":
                start[key][end] += lead
    return state


PROMPT = [[1, 6, 2], [5, 4, 9], [3, 3, 0], [10, 8, 7]]


def row(fields, pick=greedy, steps=6, cached=True, end=None, lead=0.0, lengths=None, pad=None):
    reads = "" if lengths is None else ' sequence_length: "n"'
    if end is not None:
        reads += f" eos_token_id: {end}"
    if pad is not None:
        reads += f" pad_token_id: {pad}"
    job = JOB + f'layer {{ name: "l" input: "ids" generate {{ decoder {{ name: "net" block {{ use: "gpt" }} }} max_length: {steps}{reads} {fields} }} }}'
    inputs = dict(ids=A(PROMPT))
    if lengths is not None:
        inputs["n"] = A(lengths)
    return (job, lambda: Writer(lambda net, ids, *n: write(net, ids, steps, pick, cached, end, pad, *n)), inputs,
            dict(outputs=["l", "l:scores", "l:lengths"], by="", train=False, state=stretched(end, lead)))


def search(net, prompt, steps, beams, end):
    """By the definition, over the ids so far: the `beams` likeliest of all continuations."""
    found = []
    for start in prompt.numpy().tolist():
        live = [(0.0, start, False, 0)]
        for _ in range(steps):
            grown = []
            for score, ids, ended, count in live:
                if ended:
                    grown.append((score, ids + [end], True, count))
                    continue
                logits, _ = net(paddle.to_tensor([ids]))
                gains = nn.functional.log_softmax(logits).numpy()[0]
                grown += [(score + gains[w], ids + [w], w == end, count + 1) for w in range(WORDS)]
            live = sorted(grown, key=lambda one: -one[0])[:beams]
        found.append(live)
    ids = np.array([[one[1] for one in live] for live in found])
    scores = np.array([[one[0] for one in live] for live in found], "float32")
    return tuple(map(paddle.to_tensor, (ids[:, 0], scores[:, 0], np.array([live[0][3] for live in found]), ids, scores)))


def searched(fields, beams, steps, end, lead):
    job = JOB + f'layer {{ name: "l" input: "ids" generate {{ decoder {{ name: "net" block {{ use: "gpt" }} }} max_length: {steps} eos_token_id: {end} decode_strategy: beam_search num_beams: {beams} {fields} }} }}'
    return (job, lambda: Writer(lambda net, ids: search(net, ids, steps, beams, end)), dict(ids=A(PROMPT)),
            dict(outputs=["l", "l:scores", "l:lengths", "l:beams", "l:beam_scores"], by="", train=False, state=stretched(end, lead)))


class Gru(nn.RNNCellBase):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.fc = nn.Embedding(7, 4), nn.GRUCell(4, 3), nn.Linear(3, 7)

    def forward(self, ids, h):
        out, h = self.rnn(self.emb(ids), h)
        return self.fc(out), h


def dynamic_decode(net, h):
    """paddle.nn.BeamSearchDecoder's sequences; what it does not run is filled up with the end."""
    ids, state, lengths = nn.dynamic_decode(nn.BeamSearchDecoder(net, 2, 5, 3), h, max_step_num=7, return_length=True)
    left = 8 - ids.shape[1]
    ids = paddle.concat([ids, paddle.full([ids.shape[0], left, 3], 5, "int64")], 1).transpose([0, 2, 1])
    return ids[:, 0], state.log_probs[:, 0], lengths[:, 0], ids, state.log_probs


class Translator(nn.Layer):
    """A decoder that looks at a memory."""

    def __init__(self):
        super().__init__()
        self.emb, self.fc = nn.Embedding(WORDS, 8), nn.Linear(8, WORDS)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, dropout=0), 2)

    def forward(self, ids, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(None, ids.shape[1])
        return self.fc(self.decoder(self.emb(ids), memory, mask))[:, -1]


def translate(net, memory):
    class Step:
        def __call__(self, ids, cache):
            return net(ids, memory), None
    begin = paddle.full([memory.shape[0], 1], 1, "int64")
    ids, scores, lengths = write(Step(), begin, 6, greedy, False, 2)
    return ids[:, 1:], scores, lengths


CASES = {
    "greedy": row(""),
    "greedy_no_cache": row("use_cache: false", cached=False),
    "greedy_ends": row("", end=4, lead=4.0),
    "greedy_pad": row("", end=4, lead=4.0, pad=0),
    "greedy_lengths": row("", end=4, lead=2.0, lengths=[2, 3, 1, 3]),
    "greedy_one": row("", steps=1),
    "sampling_temperature": row("decode_strategy: sampling seed: 6 temperature: 2.5", sampler(6, 4, 9, 2.5)),
    "sampling_top_k": row("decode_strategy: sampling seed: 7 top_k: 3 temperature: 3", sampler(7, 4, 9, 3.0, 3)),
    "sampling_top_p": row("decode_strategy: sampling seed: 8 top_p: 0.7 temperature: 3", sampler(8, 4, 9, 3.0, 0, 0.7), end=4, lead=1.0),
    "sampling_top_k_top_p": row("decode_strategy: sampling seed: 9 top_k: 5 top_p: 0.6 temperature: 3 use_cache: false",
                                sampler(9, 4, 9, 3.0, 5, 0.6), cached=False),
    "beam_search": searched("", 3, 6, 4, 1.0),
    "beam_search_gru": ('''block { name: "gru" input: ["ids", "h"]
  layer { name: "emb" input: "ids" embedding { num_embeddings: 7 embedding_dim: 4 } }
  layer { name: "step" squeeze { axis: 1 } }
  layer { name: "rnn" gru_cell { hidden_size: 3 states: "h" } }
  layer { name: "fc" linear { out_features: 7 } }
  output: ["fc", "rnn"] }
layer { name: "l" generate { decoder { name: "net" block { use: "gru" } } inits: "h" bos_token_id: 2 eos_token_id: 5 max_length: 8
  decode_strategy: beam_search num_beams: 3 } }''',
                        lambda: Writer(dynamic_decode, Gru()), dict(h=f(4, 3)),
                        dict(outputs=["l", "l:scores", "l:lengths", "l:beams", "l:beam_scores"], by="", train=False, state=stretched(5, 2.0))),
    "memory": ('''block { name: "decoder" input: ["ids", "memory"] optional_input: "cache"
  layer { name: "emb" input: "ids" embedding { num_embeddings: 11 embedding_dim: 8 } }
  layer { name: "mask" input: "ids" square_subsequent_mask { cache: "cache" } }
  layer { name: "decoder" input: ["emb", "memory"] transformer_decoder {
    decoder_layer { nhead: 2 dim_feedforward: 16 dropout: 0 } num_layers: 2 tgt_mask: "mask" cache: "cache" } }
  layer { name: "fc" linear { out_features: 11 } }
  output: ["fc", "decoder:cache"] }
layer { name: "l" generate { decoder { name: "net" block { use: "decoder" } } kwargs: "m" bos_token_id: 1 eos_token_id: 2 max_length: 6 } }''',
               lambda: Writer(translate, Translator()), dict(m=f(3, 5, 8)),
               dict(outputs=["l", "l:scores", "l:lengths"], by="", train=False, state=stretched(2, 0.5))),
}

# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers over any cell, and decoding with them: rows of testdata/make/layer_goldens.py."""
import paddle
from op_cases import A, f
from paddle import nn


class Rnn(nn.Layer):
    """A recurrent layer called 'l' over x; what comes behind x goes where `reads` says."""

    def __init__(self, l, reads):
        super().__init__()
        self.l, self.reads = l, reads

    def forward(self, x, *more):
        named = dict(zip(self.reads, more))
        lengths = named.pop("n", None)
        keywords = {"keys": named.pop("keys")} if "keys" in named else {}
        states = list(named.values())
        if isinstance(self.l, nn.BiRNN) and states:
            half = len(states) // 2
            packed = (pack(states[:half]), pack(states[half:]))
        else:
            packed = pack(states)
        return self.l(x, packed, lengths, **keywords)


class Shared(nn.Layer):
    """One cell in two recurrences, and once by itself."""

    def __init__(self):
        super().__init__()
        self.base = nn.GRUCell(4, 3)

    def forward(self, x, h):
        once, _ = self.base(h.matmul(paddle.ones([3, 4])))
        return once, *nn.RNN(self.base)(x), nn.RNN(self.base, is_reverse=True)(x)[0]


def pack(states):
    return None if not states else states[0] if len(states) == 1 else tuple(states)


class GruAndLinear(nn.RNNCellBase):
    """A cell whose output is not its state."""

    def __init__(self):
        super().__init__()
        self.gru, self.fc, self.input_size = nn.GRUCell(4, 3), nn.Linear(3, 2), 4

    def forward(self, x, h):
        out, h = self.gru(x, h)
        return paddle.tanh(self.fc(out)), h

    @property
    def state_shape(self):
        return (3,)


class Attending(nn.RNNCellBase):
    """Two LSTM cells on each other; the second one also reads keys [N, S, 3] by attention."""

    def __init__(self):
        super().__init__()
        self.lower, self.upper = nn.LSTMCell(4, 3), nn.LSTMCell(6, 3)

    def forward(self, x, states, keys):
        h0, c0, h1, c1 = states
        low, (h0, c0) = self.lower(x, (h0, c0))
        weights = nn.functional.softmax(paddle.matmul(keys, h1.unsqueeze(2)), axis=1)
        seen = paddle.sum(weights * keys, axis=1)
        out, (h1, c1) = self.upper(paddle.concat([low, seen], -1), (h1, c1))
        return out, (h0, c0, h1, c1)


BLOCKS = {
    "cell": '''block { name: "cell" input: ["x", "h"]
      layer { name: "gru" input: "x" gru_cell { hidden_size: 3 states: "h" } }
      layer { name: "fc" linear { out_features: 2 } }
      layer { name: "out" tanh {} }
      output: ["out", "gru"] }''',
    "attending": '''block { name: "attending" input: ["x", "h0", "c0", "h1", "c1", "keys"]
      layer { name: "lower" input: "x" lstm_cell { hidden_size: 3 states: ["h0", "c0"] } }
      layer { name: "query" input: "h1" unsqueeze { axis: 2 } }
      layer { name: "scores" input: ["keys", "query"] matmul {} }
      layer { name: "weights" softmax { axis: 1 } }
      layer { name: "weighted" input: ["weights", "keys"] multiply {} }
      layer { name: "seen" sum { axis: 1 } }
      layer { name: "both" input: ["lower", "seen"] concat { axis: -1 } }
      layer { name: "upper" lstm_cell { hidden_size: 3 states: ["h1", "c1"] } }
      output: ["upper", "lower", "lower:c", "upper", "upper:c"] }''',
}


def row(message, make, reads="", results="h", block=None, time_major=False, steps=4, sizes=None, open_steps=False):
    reads = reads.split()
    shape = (steps, 3, 4) if time_major else (3, steps, 4)
    inputs = dict(x=f(*shape, unknown=(0, 1) if open_steps else (1 if time_major else 0,)))
    fields = message
    states = [r for r in reads if r not in ("n", "keys")]
    for s in states:
        inputs[s] = f(3, (sizes or {}).get(s, 3))
    if states:
        fields += " initial_states: [" + ", ".join(f'"{s}"' for s in states) + "]"
    if "n" in reads:
        inputs["n"] = A([4, 1, 3])
        fields += ' sequence_length: "n"'
    if "keys" in reads:
        inputs["keys"] = f(3, 5, 3)
        fields += ' kwargs: "keys"'
    kind, arguments = fields.split(" ", 1)
    job = f'layer {{ name: "l" input: "x" {kind} {{ {arguments} }} }}'
    if block:
        job = BLOCKS[block] + "\n" + job
    return (job, lambda: Rnn(make(), list(inputs)[1:]), inputs, dict(outputs=["l"] + [f"l:{r}" for r in results.split()]))


class Decoder(nn.Layer):
    """A beam search called 'l', with what a BeamSearchDecoder holds."""

    def __init__(self, cell, embedding_fn, output_fn, tokens=(0, 1), beam=3, steps=6, tile=0, **options):
        super().__init__()
        self.l = nn.Layer()
        self.l.cell = cell
        if isinstance(embedding_fn, nn.Layer):
            self.l.embedding_fn = embedding_fn
        if isinstance(output_fn, nn.Layer):
            self.l.output_fn = output_fn
        self.decoder = nn.BeamSearchDecoder(cell, tokens[0], tokens[1], beam, embedding_fn, output_fn)
        self.end, self.beam, self.steps, self.tile, self.options = tokens[1], beam, steps, tile, options

    def forward(self, *inits):
        inits, more = (inits[:-1], {"keys": self.decoder.tile_beam_merge_with_batch(inits[-1], self.beam)}) if self.tile else (inits, {})
        ids, states, lengths = nn.dynamic_decode(
            self.decoder, pack(list(inits)), max_step_num=self.steps, return_length=True, **self.options, **more)
        # PaddlePaddle stops when all have ended; a job's result has max_step_num + 1 steps.
        axis = 0 if self.options.get("output_time_major") else 1
        left = list(ids.shape)
        left[axis] = self.steps + 1 - left[axis]
        if left[axis]:
            ids = paddle.concat([ids, paddle.full(left, self.end, "int64")], axis)
        return ids, lengths, states.log_probs, states.finished


def search(message, make, inits, block=None, lead=0.0, end=1):
    """`lead`: how much likelier the id `end` is made, so that sequences end."""
    fields = message + " inits: [" + ", ".join(f'"{s}"' for s in inits if s != "keys") + "]"
    if "keys" in inits:
        fields += ' kwargs: "keys"'
    job = f'layer {{ name: "l" beam_search {{ {fields} }} }}'
    if block:
        job = BLOCKS[block] + "\n" + job

    def state(start):
        for key in start:
            start[key] *= 10 if "emb" in key else 3  # what comes next depends on the id before
            if key in ("l.output_fn.bias", "l.cell.fc.bias"):
                start[key][end] += lead
    return (job, make, inits, dict(outputs=["l", "l:lengths", "l:log_probs", "l:finished"], by="", train=False, state=state))


BLOCKS["ids_to_logits"] = '''block { name: "ids_to_logits" input: ["ids", "h"]
  layer { name: "emb" input: "ids" embedding { num_embeddings: 7 embedding_dim: 4 } }
  layer { name: "rnn" simple_rnn_cell { hidden_size: 3 states: "h" } }
  layer { name: "fc" linear { out_features: 7 } }
  output: ["fc", "rnn"] }'''


class IdsToLogits(nn.RNNCellBase):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.fc = nn.Embedding(7, 4), nn.SimpleRNNCell(4, 3), nn.Linear(3, 7)

    def forward(self, ids, h):
        out, h = self.rnn(self.emb(ids), h)
        return self.fc(out), h


class IdsRnn(nn.Layer):
    """A recurrence over ids, whose cell looks them up."""

    def __init__(self):
        super().__init__()
        self.l = nn.RNN(IdsToLogits())

    def forward(self, x):
        return self.l(x, paddle.zeros([2, 3]))


class Growing(nn.Layer):
    """Its state is all ids so far."""

    def __init__(self):
        super().__init__()
        self.emb, self.fc = nn.Embedding(7, 4), nn.Linear(4, 7)

    def forward(self, ids, so_far):
        both = paddle.concat([so_far, ids.unsqueeze(1)], 1)
        return self.fc(paddle.cumsum(self.emb(both), 1)[:, -1]), both


BLOCKS["growing"] = '''block { name: "growing" input: ["ids", "so_far"]
  layer { name: "column" input: "ids" unsqueeze { axis: 1 } }
  layer { name: "both" input: ["so_far", "column"] concat { axis: 1 } }
  layer { name: "emb" embedding { num_embeddings: 7 embedding_dim: 4 } }
  layer { name: "added" sum { axis: 1 } }
  layer { name: "fc" linear { out_features: 7 } }
  output: ["fc", "both"] }'''


FNS = "embedding_fn { embedding { num_embeddings: 8 embedding_dim: 4 } } output_fn { linear { out_features: 8 } }"
TOKENS = "start_token: 0 end_token: 1"


def fns(cell, **options):
    return lambda: Decoder(cell(), nn.Embedding(8, 4), nn.Linear(3, 8), **options)


LSTM, GRU, SIMPLE = "lstm_cell { hidden_size: 3 }", "gru_cell { hidden_size: 3 }", "simple_rnn_cell { hidden_size: 3 }"
CASES = {
    "rnn_lstm": row(f"rnn cell {{ {LSTM} }}", lambda: nn.RNN(nn.LSTMCell(4, 3)), results="h c"),
    "rnn_gru_reverse": row(f"rnn cell {{ {GRU} }} is_reverse: true", lambda: nn.RNN(nn.GRUCell(4, 3), is_reverse=True)),
    "rnn_simple_time_major": row(f"rnn cell {{ {SIMPLE} }} time_major: true",
                                 lambda: nn.RNN(nn.SimpleRNNCell(4, 3), time_major=True), time_major=True),
    "rnn_one_step": row(f"rnn cell {{ {GRU} }}", lambda: nn.RNN(nn.GRUCell(4, 3)), "h0", steps=1),
    "rnn_relu": row("rnn cell { simple_rnn_cell { hidden_size: 3 activation: relu } } time_major: true is_reverse: true",
                    lambda: nn.RNN(nn.SimpleRNNCell(4, 3, "relu"), True, True), "h0 n", time_major=True),
    "rnn_lengths": row(f"rnn cell {{ {LSTM} }}", lambda: nn.RNN(nn.LSTMCell(4, 3)), "h0 c0 n", results="h c"),
    "rnn_lengths_reverse": row(f"rnn cell {{ {LSTM} }} is_reverse: true", lambda: nn.RNN(nn.LSTMCell(4, 3), True), "n", results="h c"),
    "rnn_block": row('rnn cell { block { use: "cell" } state_shape { shape: 3 } }', lambda: nn.RNN(GruAndLinear()),
                     results="gru", block="cell"),
    "rnn_block_lengths": row('rnn cell { block { use: "cell" } } is_reverse: true', lambda: nn.RNN(GruAndLinear(), True), "h0 n",
                             results="gru", block="cell"),
    "rnn_kwargs": row('rnn cell { block { use: "attending" } }', lambda: nn.RNN(Attending()), "h0 c0 h1 c1 keys",
                      results="lower lower:c upper upper:c", block="attending"),
    "rnn_open": row(f"rnn cell {{ {LSTM} }}", lambda: nn.RNN(nn.LSTMCell(4, 3)), results="h c", open_steps=True),
    "rnn_open_one_step": row(f"rnn cell {{ {GRU} }}", lambda: nn.RNN(nn.GRUCell(4, 3)), "h0", steps=1, open_steps=True),
    "rnn_open_lengths": row(f"rnn cell {{ {LSTM} }} is_reverse: true", lambda: nn.RNN(nn.LSTMCell(4, 3), True), "n", results="h c",
                            open_steps=True),
    "rnn_open_kwargs": row('rnn cell { block { use: "attending" } }', lambda: nn.RNN(Attending()), "h0 c0 h1 c1 keys",
                           results="lower lower:c upper upper:c", block="attending", open_steps=True),
    "bi_rnn_open": row(f"bi_rnn cell_fw {{ {GRU} }} cell_bw {{ simple_rnn_cell {{ hidden_size: 2 }} }} time_major: true",
                       lambda: nn.BiRNN(nn.GRUCell(4, 3), nn.SimpleRNNCell(4, 2), time_major=True), "h0 h1 n",
                       results="fw:h bw:h", time_major=True, sizes={"h1": 2}, open_steps=True),
    "rnn_shared": (f"""
      layer {{ name: "ones" full {{ shape: [3, 4] fill_value: 1 }} }}
      layer {{ name: "wide" input: ["h", "ones"] matmul {{}} }}
      layer {{ name: "base" {GRU} }}
      layer {{ name: "there" input: "x" rnn {{ cell {{ name: "base" {GRU} }} }} }}
      layer {{ name: "back" input: "x" rnn {{ cell {{ name: "base" {GRU} }} is_reverse: true }} }}""",
                   Shared, dict(x=f(3, 4, 4), h=f(3, 3)), dict(outputs=["base", "there", "there:h", "back"])),
    "bi_rnn_lstm": row(f"bi_rnn cell_fw {{ {LSTM} }} cell_bw {{ {LSTM} }}", lambda: nn.BiRNN(nn.LSTMCell(4, 3), nn.LSTMCell(4, 3)),
                       results="fw:h fw:c bw:h bw:c"),
    "bi_rnn_mixed": row(f"bi_rnn cell_fw {{ {GRU} }} cell_bw {{ simple_rnn_cell {{ hidden_size: 2 }} }} time_major: true",
                        lambda: nn.BiRNN(nn.GRUCell(4, 3), nn.SimpleRNNCell(4, 2), time_major=True), "h0 h1 n",
                        results="fw:h bw:h", time_major=True, sizes={"h1": 2}),
    "rnn_ids": (BLOCKS["ids_to_logits"] + """
      layer { name: "l" input: "x" rnn { cell { block { use: "ids_to_logits" } state_shape { shape: 3 } } } }""",
                IdsRnn, dict(x=A([[1, 6, 2, 0, 3], [5, 4, 2, 2, 1]])), dict(outputs=["l", "l:rnn"])),
    "bi_rnn_lengths": row(f"bi_rnn cell_fw {{ {LSTM} }} cell_bw {{ {LSTM} }}", lambda: nn.BiRNN(nn.LSTMCell(4, 3), nn.LSTMCell(4, 3)),
                          "n", results="fw:h fw:c bw:h bw:c"),
    "bi_rnn_block": row('bi_rnn cell_fw { block { use: "cell" } state_shape { shape: 3 } } '
                        'cell_bw { block { use: "cell" } state_shape { shape: 3 } }',
                        lambda: nn.BiRNN(GruAndLinear(), GruAndLinear()), results="fw:gru bw:gru", block="cell"),
    "beam_search_wide": search(f"cell {{ {GRU} }} {FNS} {TOKENS} beam_size: 12 max_step_num: 4",
                               fns(lambda: nn.GRUCell(4, 3), beam=12, steps=4), dict(h=f(2, 3)), lead=2.0),
    "beam_search_gru": search(f"cell {{ {GRU} }} {FNS} {TOKENS} beam_size: 3 max_step_num: 6", fns(lambda: nn.GRUCell(4, 3)),
                              dict(h=f(4, 3)), lead=2.0),
    "beam_search_lstm": search(f"cell {{ {LSTM} }} {FNS} {TOKENS} beam_size: 4 max_step_num: 5 output_time_major: true",
                               fns(lambda: nn.LSTMCell(4, 3), beam=4, steps=5, output_time_major=True), dict(h=f(2, 3), c=f(2, 3)), lead=3.0),
    "beam_search_greedy": search(f"cell {{ {SIMPLE} }} {FNS} {TOKENS} beam_size: 1 max_step_num: 6",
                                 fns(lambda: nn.SimpleRNNCell(4, 3), beam=1), dict(h=f(5, 3))),
    "beam_search_ends_early": search(f"cell {{ {GRU} }} {FNS} {TOKENS} beam_size: 2 max_step_num: 20",
                                     fns(lambda: nn.GRUCell(4, 3), beam=2, steps=20), dict(h=f(3, 3)), lead=9.0),
    "beam_search_one_step": search(f"cell {{ {GRU} }} {FNS} {TOKENS} beam_size: 3 max_step_num: 0",
                                   fns(lambda: nn.GRUCell(4, 3), steps=0), dict(h=f(2, 3))),
    "beam_search_block": search('cell { block { use: "ids_to_logits" } } start_token: 2 end_token: 5 beam_size: 3 max_step_num: 7',
                                lambda: Decoder(IdsToLogits(), None, None, (2, 5), 3, 7), dict(h=f(3, 3)), block="ids_to_logits", lead=4.0, end=5),
    "beam_search_growing": search('cell { block { use: "growing" } } start_token: 2 end_token: 5 beam_size: 3 max_step_num: 5',
                                  lambda: Decoder(Growing(), None, None, (2, 5), 3, 5), dict(s=A([[3], [4], [6]])), block="growing",
                                  lead=4.0, end=5),
    "beam_search_kwargs": search(f'cell {{ block {{ use: "attending" }} }} {FNS} {TOKENS} beam_size: 2 max_step_num: 6',
                                 fns(Attending, beam=2, tile=1),
                                 dict(h0=f(3, 3), c0=f(3, 3), h1=f(3, 3), c1=f(3, 3), keys=f(3, 5, 3)), block="attending", lead=2.0),
}

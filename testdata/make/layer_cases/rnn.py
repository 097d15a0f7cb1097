# SPDX-License-Identifier: Apache-2.0
"""Recurrent layers: rows of testdata/make/layer_goldens.py."""
from op_cases import A, f
from paddle import nn


class Rnn(nn.Layer):
    """A recurrent layer or cell called 'l'; what comes behind x goes where `reads` says."""

    def __init__(self, l, reads=()):
        super().__init__()
        self.l, self.reads = l, reads

    def forward(self, x, *more):
        named = dict(zip(self.reads, more))
        states = [named[key] for key in ("h0", "c0") if key in named]
        states = (states[0] if len(states) == 1 else tuple(states)) if states else None
        if "n" in named:
            return self.l(x, states, named["n"])
        out, after = self.l(x, states)
        if not isinstance(self.l, nn.RNNCellBase):
            return out, after
        return (out, after[1]) if isinstance(after, tuple) else out  # h is the output


def row(message, make, reads="", steps=5, time_major=False, results="h", layers=1, batch=3, state=None):
    reads = reads.split()
    fields = message
    shape = (steps, batch, 4) if time_major else (batch, steps, 4)
    inputs = dict(x=f(*shape, unknown=(1 if time_major else 0,)))
    if "n" in reads:
        fields += ' sequence_length: "n"'
        inputs["n"] = A([5, 2, 3][:batch])
    states = [s for s in reads if s != "n"]
    if states:
        fields += " initial_states: [" + ", ".join(f'"{s}"' for s in states) + "]"
        for s in states:
            inputs[s] = f(layers, batch, 3, unknown=(1,))
    kind, arguments = fields.split(" ", 1)
    job = f'layer {{ name: "l" input: "x" {kind} {{ {arguments} }} }}'
    outputs = ["l"] + [f"l:{r}" for r in results.split()]
    return (job, lambda: Rnn(make(), list(inputs)[1:]), inputs, dict(outputs=outputs, state=state))


def cell(message, make, reads="", outputs="l"):
    reads = reads.split()
    kind, arguments = message.split(" ", 1)
    if reads:
        arguments += " states: [" + ", ".join(f'"{s}"' for s in reads) + "]"
    inputs = dict(x=f(3, 4), **{s: f(3, 3) for s in reads})
    return (f'layer {{ name: "l" input: "x" {kind} {{ {arguments} }} }}', lambda: Rnn(make(), reads), inputs,
            dict(outputs=outputs.split()))


LSTM = "h c"
CASES = {
    "simple_rnn": row("simple_rnn hidden_size: 3", lambda: nn.SimpleRNN(4, 3)),
    "simple_rnn_relu": row("simple_rnn hidden_size: 3 activation: relu num_layers: 2",
                           lambda: nn.SimpleRNN(4, 3, 2, activation="relu"), layers=2),
    "lstm": row("lstm hidden_size: 3", lambda: nn.LSTM(4, 3), results=LSTM),
    "lstm_time_major": row("lstm input_size: 4 hidden_size: 3 time_major: true",
                           lambda: nn.LSTM(4, 3, time_major=True), time_major=True, results=LSTM),
    "lstm_two_layers_both_ways": row("lstm hidden_size: 3 num_layers: 2 direction: bidirect",
                                     lambda: nn.LSTM(4, 3, 2, direction="bidirect"), results=LSTM),
    "lstm_lengths": row("lstm hidden_size: 3 num_layers: 2 direction: bidirectional",
                        lambda: nn.LSTM(4, 3, 2, direction="bidirectional"), "n", results=LSTM),
    # Both ways, with lengths and states, PaddlePaddle's gradient of weight_hh_*_reverse takes zeros for the
    # states before a sequence's last step (its own cells, run step by step, do not).
    "lstm_all": row("lstm hidden_size: 3 num_layers: 2", lambda: nn.LSTM(4, 3, 2), "h0 c0 n", results=LSTM, layers=2),
    "gru": row("gru hidden_size: 3", lambda: nn.GRU(4, 3)),
    "gru_states": row("gru hidden_size: 3 num_layers: 2", lambda: nn.GRU(4, 3, 2), "h0", layers=2),
    "gru_lengths": row("gru hidden_size: 3 direction: bidirect time_major: true",
                       lambda: nn.GRU(4, 3, direction="bidirect", time_major=True), "n", time_major=True),
    "simple_rnn_cell": cell("simple_rnn_cell hidden_size: 3", lambda: nn.SimpleRNNCell(4, 3)),
    "simple_rnn_cell_relu": cell("simple_rnn_cell hidden_size: 3 activation: relu",
                                 lambda: nn.SimpleRNNCell(4, 3, "relu"), "h0"),
    "lstm_cell": cell("lstm_cell hidden_size: 3", lambda: nn.LSTMCell(4, 3), outputs="l l:c"),
    "lstm_cell_states": cell("lstm_cell hidden_size: 3", lambda: nn.LSTMCell(4, 3), "h0 c0", outputs="l l:c"),
    "gru_cell": cell("gru_cell hidden_size: 3", lambda: nn.GRUCell(4, 3), "h0"),
}

# SPDX-License-Identifier: Apache-2.0
"""PaddlePaddle goes on where a run of pd-train stands. Run by scripts/check_interop.

  check_continue.py WORK [NAME...]

Each case is a network, an optimizer and a schedule, once as a job and once as
paddle.nn's layers. pd-train makes ten steps and saves after the fifth and the
tenth; PaddlePaddle loads the fifth's model.pdparams and model.pdopt as every
program of its users does, makes five steps over the same batches, and must stand
where the tenth does: parameters, statistics, optimizer states, schedule. Then
pd-train's optimizer states under the names of `opt.state_dict()` are all that
PaddlePaddle writes itself.

The last line is "N of M networks"; the exit status is 0 when all are right.
"""
import os
import subprocess
import sys
import warnings

import numpy as np
import paddle
from paddle import nn
from paddle.optimizer import lr as schedules

STEPS, BATCH = 5, 4


class Net(nn.Layer):
    """Layers one after the other, under the job's names."""

    def __init__(self, **layers):
        super().__init__()
        self.order = list(layers)
        for name, layer in layers.items():
            if isinstance(layer, nn.Layer):
                self.add_sublayer(name, layer)
            else:
                setattr(self, name, layer)

    def forward(self, x):
        for name in self.order:
            x = getattr(self, name)(x)
            x = x[0] if isinstance(x, tuple) else x
        return x


class Residual(nn.Layer):
    """A block as a user writes it."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2D(2, 4, 3, padding=1, bias_attr=False)
        self.norm = nn.BatchNorm2D(4)
        self.again = nn.Conv2D(4, 4, 3, padding=1, bias_attr=False)
        self.group = nn.GroupNorm(2, 4)
        self.fc = nn.Linear(4 * 16, 3)

    def forward(self, x):
        x = nn.functional.relu(self.norm(self.stem(x)))
        x = x + self.group(self.again(x))
        return self.fc(x.flatten(1))


def layer(name, text, more=''):
    return f'  layer {{ name: "{name}" {more}{text} }}\n'


def last(x):
    return x[:, -1]


MLP = ('[-1, 6]', layer('a', 'linear { out_features: 8 }') + layer('t', 'tanh {}') + layer('b', 'linear { out_features: 3 }'),
       lambda: Net(a=nn.Linear(6, 8), t=nn.Tanh(), b=nn.Linear(8, 3)))
IMAGES = ('[-1, 2, 4, 4]',
          layer('stem', 'conv2d { out_channels: 4 kernel_size: 3 padding: 1 bias: false }') + layer('norm', 'batch_norm2d {}')
          + layer('r', 'relu {}') + layer('again', 'conv2d { out_channels: 4 kernel_size: 3 padding: 1 bias: false }')
          + layer('group', 'group_norm { num_groups: 2 }') + layer('sum', 'add {}', 'input: ["r", "group"] ')
          + layer('flat', 'flatten {}') + layer('fc', 'linear { out_features: 3 }'), Residual)
WORDS = ('[-1, 5] dtype: int64',
         layer('emb', 'embedding { num_embeddings: 9 embedding_dim: 4 }') + layer('rnn', 'lstm { hidden_size: 3 direction: bidirect }')
         + layer('end', 'slice { axes: 1 starts: -1 ends: 1000 }') + layer('flat', 'flatten {}')
         + layer('fc', 'linear { out_features: 3 }'),
         lambda: Net(emb=nn.Embedding(9, 4), rnn=nn.LSTM(4, 3, direction='bidirect'), end=last, fc=nn.Linear(6, 3)))
GATES = ('[-1, 5, 4]',
         layer('rnn', 'gru { hidden_size: 3 num_layers: 2 }') + layer('norm', 'layer_norm {}') + layer('flat', 'flatten {}')
         + layer('fc', 'linear { out_features: 3 }'),
         lambda: Net(rnn=nn.GRU(4, 3, num_layers=2), norm=nn.LayerNorm(3), flat=nn.Flatten(), fc=nn.Linear(15, 3)))
ATTENTION = ('[-1, 5, 8]',
             layer('enc', 'transformer_encoder { num_layers: 2 encoder_layer { d_model: 8 nhead: 2 dim_feedforward: 6 dropout: 0 } }')
             + layer('flat', 'flatten {}') + layer('fc', 'linear { out_features: 3 }'),
             lambda: Net(enc=nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 6, dropout=0.), 2), flat=nn.Flatten(),
                         fc=nn.Linear(40, 3)))
SERIES = ('[-1, 2, 7]',
          layer('c', 'conv1d { out_channels: 3 kernel_size: 3 }') + layer('p', 'prelu {}') + layer('n', 'batch_norm1d {}')
          + layer('t', 'conv1d_transpose { out_channels: 2 kernel_size: 2 bias: false }') + layer('i', 'instance_norm1d {}')
          + layer('flat', 'flatten {}') + layer('fc', 'linear { out_features: 3 }'),
          lambda: Net(c=nn.Conv1D(2, 3, 3), p=nn.PReLU(), n=nn.BatchNorm1D(3), t=nn.Conv1DTranspose(3, 2, 2, bias_attr=False),
                      i=nn.InstanceNorm1D(2), flat=nn.Flatten(), fc=nn.Linear(12, 3)))

# Before a norm stands no bias: its gradient is nothing but rounding, which Adam makes steps of.

# name -> network, the job's optimizer, PaddlePaddle's schedule, its optimizer
CASES = {
    'mlp_adam_step': (MLP, 'adam { learning_rate: 0.05 } lr { step_decay { step_size: 3 gamma: 0.5 } }',
                      lambda: schedules.StepDecay(0.05, 3, 0.5), lambda r, p: paddle.optimizer.Adam(r, parameters=p)),
    'mlp_sgd': (MLP, 'sgd { learning_rate: 0.1 }', lambda: 0.1, lambda r, p: paddle.optimizer.SGD(r, parameters=p)),
    'images_momentum_cosine': (
        IMAGES, 'momentum { learning_rate: 0.1 use_nesterov: true } weight_decay { l2_decay { coeff: 0.01 } } '
        'lr { cosine_annealing_decay { T_max: 20 } }', lambda: schedules.CosineAnnealingDecay(0.1, 20),
        lambda r, p: paddle.optimizer.Momentum(r, parameters=p, use_nesterov=True, weight_decay=0.01)),
    'images_adamw_warmup': (
        IMAGES, 'adamw { learning_rate: 0.02 weight_decay: 0.1 } lr { linear_warmup { warmup_steps: 4 start_lr: 0.001 '
        'end_lr: 0.02 after { exponential_decay { gamma: 0.8 } } } } ',
        lambda: schedules.LinearWarmup(schedules.ExponentialDecay(0.02, 0.8), 4, 0.001, 0.02),
        lambda r, p: paddle.optimizer.AdamW(r, parameters=p, weight_decay=0.1)),
    'words_adam_clip': (
        WORDS, 'adam { learning_rate: 0.05 } grad_clip { by_global_norm { clip_norm: 0.5 } }', lambda: 0.05,
        lambda r, p: paddle.optimizer.Adam(r, parameters=p, grad_clip=nn.ClipGradByGlobalNorm(0.5))),
    'words_adagrad': (WORDS, 'adagrad { learning_rate: 0.1 } lr { natural_exp_decay { gamma: 0.1 } }',
                      lambda: schedules.NaturalExpDecay(0.1, 0.1),
                      lambda r, p: paddle.optimizer.Adagrad(r, parameters=p)),
    'gates_rmsprop': (GATES, 'rmsprop { learning_rate: 0.01 momentum: 0.9 centered: true } lr { polynomial_decay { decay_steps: 20 } }',
                      lambda: schedules.PolynomialDecay(0.01, 20),
                      lambda r, p: paddle.optimizer.RMSProp(r, momentum=0.9, centered=True, parameters=p)),
    'gates_adamax': (GATES, 'adamax { learning_rate: 0.05 } lr { noam_decay { d_model: 8 warmup_steps: 6 } }',
                     lambda: schedules.NoamDecay(8, 6), lambda r, p: paddle.optimizer.Adamax(r, parameters=p)),
    'attention_lamb': (ATTENTION, 'lamb { learning_rate: 0.02 } lr { piecewise_decay { boundaries: [3, 7] values: [0.02, 0.01, 0.005] } }',
                       lambda: schedules.PiecewiseDecay([3, 7], [0.02, 0.01, 0.005]),
                       lambda r, p: paddle.optimizer.Lamb(r, parameters=p)),
    'attention_adadelta': (ATTENTION, 'adadelta { learning_rate: 1 } lr { multi_step_decay { milestones: [2, 6] } }',
                           lambda: schedules.MultiStepDecay(1., [2, 6]),
                           lambda r, p: paddle.optimizer.Adadelta(r, parameters=p)),
    'series_adam_cyclic': (
        SERIES, 'adam {} lr { cyclic { base_learning_rate: 0.01 max_learning_rate: 0.05 step_size_up: 3 } }',
        lambda: schedules.CyclicLR(0.01, 0.05, 3), lambda r, p: paddle.optimizer.Adam(r, parameters=p)),
    'series_momentum_onecycle': (
        SERIES, 'momentum {} lr { one_cycle { max_learning_rate: 0.1 total_steps: 20 } }',
        lambda: schedules.OneCycleLR(0.1, 20), lambda r, p: paddle.optimizer.Momentum(r, parameters=p)),
}


def batches(shape, dtype):
    random = np.random.RandomState(11)
    size = [2 * STEPS * BATCH] + shape
    x = random.randint(0, 9, size).astype('int64') if dtype == 'int64' else random.uniform(-1, 1, size).astype('float32')
    return x, random.randint(0, 3, (2 * STEPS * BATCH, 1)).astype('int64')


def train(folder, network, optimizer, x, y):
    np.savez(os.path.join(folder, 'data.npz'), x=x, label=y)
    with open(os.path.join(folder, 'job.pbtxt'), 'w') as job:
        job.write(f'model {{\n  input {{ name: "x" shape: {network[0]} }}\n{network[1]}}}\nloss {{ cross_entropy {{}} }}\n'
                  f'optimizer {{ {optimizer} }}\ndata {{ train {{ npz {{ path: "data.npz" }} batch_size: {BATCH} }} }}\n'
                  f'train {{ epochs: 1 checkpoint {{ every_steps: {STEPS} keep_last: 0 }} log {{ every_steps: 1 }} }}\n')
    subprocess.run(['pd-train', '-q', '-c', os.path.join(folder, 'job.pbtxt'), '--out', os.path.join(folder, 'run')],
                   check=True, capture_output=True, text=True)
    return [os.path.join(folder, f'run/checkpoints/step-{s}/model') for s in (STEPS, 2 * STEPS)]


def near(want, got, what):
    np.testing.assert_allclose(np.asarray(got), np.asarray(want), rtol=2e-4, atol=2e-5, err_msg=what)


def check(folder, network, optimizer, schedule, make):
    shape = [int(n) for n in network[0].split(']')[0][1:].split(', ')[1:]]
    x, y = batches(shape, 'int64' if 'int64' in network[0] else 'float32')
    begin, end = train(folder, network, optimizer, x, y)
    with paddle.utils.unique_name.guard():  # a process of its own
        go_on(network, schedule, make, (x, y), begin, end)


def go_on(network, schedule, make, data, begin, end):
    x, y = data
    net = network[2]()
    rate = schedule()
    opt = make(rate, net.parameters())
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        missing, unexpected = net.set_state_dict(paddle.load(begin + '.pdparams'))
    state = net.state_dict()
    # Recurrent layers list each weight twice: 'rnn.weight_ih_l0', 'rnn.0.cell.weight_ih'.
    given = {value.name for name, value in state.items() if name not in missing}
    lost = [name for name in missing if state[name].name not in given]
    assert not lost and not unexpected, (lost, unexpected)
    opt.set_state_dict(paddle.load(begin + '.pdopt'))
    for step in range(STEPS, 2 * STEPS):
        at = slice(step * BATCH, (step + 1) * BATCH)
        loss = nn.functional.cross_entropy(net(paddle.to_tensor(x[at])), paddle.to_tensor(y[at]))
        loss.backward()
        opt.step()
        opt.clear_grad()
        if not isinstance(rate, float):
            rate.step()
    want, wanted = paddle.load(end + '.pdparams'), paddle.load(end + '.pdopt')
    for name, value in state.items():
        if name in want:
            near(value, want[name], name)
    for name, value in opt.state_dict().items():
        if name == 'LR_Scheduler':
            assert set(value) == set(wanted[name]), (value, wanted[name])
            for key, number in value.items():
                if isinstance(number, dict):
                    assert set(number) == set(wanted[name][key]), (value, wanted[name])
                    continue
                near(number, wanted[name][key], f'{name}.{key}')
        else:
            near(value, wanted[name], name)
    # Programs keep the learning rate in a variable, which PaddlePaddle's optimizers of layers pass over.
    more = set(wanted) - set(opt.state_dict())
    assert all(name.startswith('learning_rate') for name in more), more
    names = paddle.load(end + '.pdparams', keep_name_table=True)['StructuredToParameterName@@']
    for name, value in state.items():
        assert name in missing or names[name] == value.name, (name, names.get(name), value.name)


def main(work, only):
    good = 0
    cases = {name: case for name, case in CASES.items() if not only or name in only}
    for name, case in cases.items():
        folder = os.path.join(work, name)
        os.makedirs(folder, exist_ok=True)
        try:
            check(folder, *case)
            good += 1
        except subprocess.CalledProcessError as error:
            print(f'{name}: pd-train: {error.stderr.strip()[-500:]}')
        except Exception as error:  # PaddlePaddle's errors are of many kinds
            print(f'{name}: {type(error).__name__} {str(error).strip()[:600]}')
    print(f'{good} of {len(cases)} networks')
    return 0 if good == len(cases) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2:]))

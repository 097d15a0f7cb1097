#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Asks PaddlePaddle 2.6.2 what mixed precision makes of small programs.

For each network and setting, writes to the folder given: NAME.pdmodel, the
forward program, and NAME-SETTING.txt, the same after
paddle.static.amp.decorate(...).minimize(): an op a line. The lists of ops are
2.3's, which fp16_lists.py had before layer_norm became black. Also writes
loss_scaling.json: what a run over batches with infinities does to the scale.
"""
import json
import os
import sys

import numpy as np
import paddle
from paddle.nn import functional as F

WHITE = {'conv2d', 'matmul', 'matmul_v2', 'mul',
         'fake_quantize_dequantize_abs_max',
         'fake_quantize_dequantize_moving_average_abs_max'}
ANY_LEVEL = {'lookup_table', 'lookup_table_v2', 'scatter', 'linear_interp_v2',
             'nearest_interp_v2', 'bilinear_interp_v2', 'bicubic_interp_v2',
             'trilinear_interp_v2'}
ONLY_O1 = {'exp', 'square', 'log', 'mean', 'sum', 'cos_sim', 'softmax',
           'softmax_with_cross_entropy', 'sigmoid_cross_entropy_with_logits',
           'c_softmax_with_cross_entropy', 'cross_entropy', 'cross_entropy2',
           'reduce_sum'}


def mlp():
    x = paddle.static.data('x', [None, 20], 'float32')
    y = paddle.static.data('y', [None, 1], 'int64')
    h = paddle.nn.Linear(20, 16)(x)
    h = F.relu(h)
    h = paddle.nn.Linear(16, 16)(h)
    h = paddle.tanh(h) * F.sigmoid(h)
    h = paddle.nn.Linear(16, 4)(h)
    return F.cross_entropy(h, y)


def lenet():
    x = paddle.static.data('x', [None, 1, 28, 28], 'float32')
    y = paddle.static.data('y', [None, 1], 'int64')
    h = F.relu(paddle.nn.Conv2D(1, 6, 3, padding=1)(x))
    h = F.max_pool2d(h, 2, 2)
    h = paddle.nn.Conv2D(6, 16, 5, bias_attr=False)(h)
    h = F.relu(paddle.nn.BatchNorm2D(16)(h))
    h = F.max_pool2d(h, 2, 2)
    h = paddle.reshape(h, [-1, 400])
    h = paddle.nn.Linear(400, 120)(h)
    h = paddle.nn.Linear(120, 10)(h)
    return F.cross_entropy(h, y)


def transformer():
    ids = paddle.static.data('ids', [None, 8], 'int64')
    y = paddle.static.data('y', [None, 1], 'int64')
    h = paddle.nn.Embedding(50, 16)(ids)
    h = paddle.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.1,
                                          activation='gelu')(h)
    h = paddle.nn.LayerNorm(16)(h)
    h = h[:, 0]
    return F.cross_entropy(paddle.nn.Linear(16, 3)(h), y)


def residual():
    x = paddle.static.data('x', [None, 3, 8, 8], 'float32')
    y = paddle.static.data('y', [None, 4], 'float32')
    a = paddle.nn.Conv2D(3, 4, 3, padding=1)(x)
    b = F.softmax(paddle.nn.Conv2D(3, 4, 1)(x), axis=1)
    h = paddle.concat([a + b, b + a, F.leaky_relu(a)], axis=1)
    h = paddle.scale(h, 0.5) / 2.0
    h = F.adaptive_avg_pool2d(h, 1)
    h = paddle.cast(paddle.flatten(h, 1), 'float64')
    h = paddle.nn.Linear(12, 4)(paddle.cast(h, 'float32'))
    return F.mse_loss(paddle.exp(h), y)


NETWORKS = {'mlp': mlp, 'lenet': lenet, 'transformer': transformer,
            'residual': residual}
SETTINGS = {
    'O1-float16': dict(level='O1', dtype='float16'),
    'O1-bfloat16': dict(level='O1', dtype='bfloat16'),
    'O2-float16': dict(level='O2', dtype='float16'),
    'O1-custom': dict(level='O1', dtype='float16',
                      white={'gelu', 'softmax', 'tanh'},
                      black={'elementwise_add', 'pool2d'}),
    'O2-custom': dict(level='O2', dtype='bfloat16', white={'softmax'},
                      black={'relu', 'layer_norm', 'matmul_v2'}),
}


def lists_for(setting):
    lists = paddle.static.amp.CustomOpLists(dtype=setting['dtype'])
    white, black = setting.get('white', set()), setting.get('black', set())
    o2 = setting['level'] == 'O2'
    lists.white_list = (WHITE | white) - black
    # cast_model_to_fp16 takes 2.6's list from it under O2.
    lists.black_list = ((ANY_LEVEL if o2 else ANY_LEVEL | ONLY_O1) | black)
    lists.black_list -= white
    lists.gray_list = lists.gray_list - white - black
    lists.unsupported_list = set(black)
    return lists


def text_of(program, brain):
    """Ops without casts of parameters, which are halves themselves in O2."""
    block = program.global_block()
    names = {}
    lines = []
    for op in block.ops:
        if op.type == 'cast' and block.var(op.input('X')[0]).persistable:
            names[op.output('Out')[0]] = op.input('X')[0]
            continue
        if op.attr('op_role') not in (0, 256):
            break

        def slots(of, keys):
            return ' '.join(
                '%s=%s' % (k, ','.join(names.get(n, n) for n in of(k)))
                for k in sorted(keys) if of(k))
        line = '%s %s -> %s' % (op.type, slots(op.input, op.input_names),
                                slots(op.output, op.output_names))
        for k in op.output_names:
            for n in op.output(k):
                if not block.var(n).persistable and k != 'XShape':
                    line += ' ' + str(block.var(n).dtype).split('.')[-1]
        lines.append(line.replace('.cast_fp16', '.cast_bf16') if brain
                     else line)
    return '\n'.join(lines) + '\n'


def build(network, setting):
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.utils.unique_name.guard(), \
            paddle.static.program_guard(main, startup):
        paddle.seed(1)
        loss = NETWORKS[network]()
        before = main.clone()
        if setting is None:
            return before, None
        optimizer = paddle.static.amp.decorate(
            paddle.optimizer.Momentum(0.1), lists_for(setting),
            level=setting['level'], dtype=setting['dtype'],
            init_loss_scaling=1.0, use_dynamic_loss_scaling=False)
        optimizer.minimize(loss)
    return before, main


def train_types():
    """The op types of a whole training step, as decorate makes it."""
    result = {}
    for network in NETWORKS:
        main, startup = paddle.static.Program(), paddle.static.Program()
        with paddle.utils.unique_name.guard(), \
                paddle.static.program_guard(main, startup):
            loss = NETWORKS[network]()
            paddle.static.amp.decorate(
                paddle.optimizer.AdamW(0.1),
                lists_for(SETTINGS['O1-float16']), level='O1',
                dtype='float16').minimize(loss)
        # memcpy brings the flag from a GPU.
        result[network] = [op.type for op in main.global_block().ops
                           if op.type != 'memcpy']
    return result


def loss_scaling():
    """mlp in float32 (every op is black) with loss scaling."""
    main, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.utils.unique_name.guard(), \
            paddle.static.program_guard(main, startup):
        x = paddle.static.data('x', [None, 3], 'float32')
        y = paddle.static.data('y', [None, 2], 'float32')
        constant = paddle.nn.initializer.Assign(
            np.arange(6, dtype='float32').reshape(3, 2) / 8)
        h = paddle.static.nn.fc(x, 2, weight_attr=constant)
        loss = F.mse_loss(h, y)
        setting = dict(level='O1', dtype='float16', black={
            op.type for op in main.global_block().ops})
        optimizer = paddle.static.amp.decorate(
            paddle.optimizer.Adam(0.125), lists_for(setting), level='O1',
            dtype='float16', init_loss_scaling=1024.0, incr_every_n_steps=3,
            decr_every_n_nan_or_inf=2, incr_ratio=2.0, decr_ratio=0.5)
        optimizer.minimize(loss)
    exe = paddle.static.Executor()
    exe.run(startup)
    rng = np.random.RandomState(0)
    steps = []
    for step in range(16):
        x = rng.rand(4, 3).astype('float32')
        y = rng.rand(4, 2).astype('float32')
        bad = step in (2, 6, 7, 8, 9, 12)
        if bad:
            x[1, step % 3] = np.inf if step % 2 else np.nan
        got = exe.run(main, feed={'x': x, 'y': y}, fetch_list=[
            'loss_scaling_0', 'num_good_steps_0', 'num_bad_steps_0',
            'fc_0.w_0'])
        steps.append({
            'x': [None if not np.isfinite(v) else float(v)
                  for v in x.reshape(-1)],
            'y': [float(v) for v in y.reshape(-1)],
            'infinite': bool(np.isinf(x).any()),
            'scale': float(got[0][0]), 'good': int(got[1][0]),
            'bad': int(got[2][0]),
            'w': [float(v) for v in got[3].reshape(-1)]})
    return steps


def main():
    folder = sys.argv[1]
    os.makedirs(folder, exist_ok=True)
    paddle.enable_static()
    for network in NETWORKS:
        before, _ = build(network, None)
        for op in before.global_block().ops:
            op._remove_attr('op_callstack')
        with open('%s/%s.pdmodel' % (folder, network), 'wb') as f:
            f.write(before.desc.serialize_to_string())
        for name, setting in SETTINGS.items():
            _, after = build(network, setting)
            with open('%s/%s-%s.txt' % (folder, network, name), 'w') as f:
                f.write(text_of(after, setting['dtype'] == 'bfloat16'))
    with open(folder + '/train_types.json', 'w') as f:
        json.dump(train_types(), f, indent=1)
    with open(folder + '/loss_scaling.json', 'w') as f:
        json.dump(loss_scaling(), f)


main()

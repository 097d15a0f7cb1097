# SPDX-License-Identifier: Apache-2.0
"""Gradients of programs that PaddlePaddle saved for inference: `pd-eval --grad` on what
paddle.jit.save wrote gives the gradients that PaddlePaddle computes in dygraph.

  check_gradients.py WORK [--cases N] [--seed N] [--only N]   random networks
  check_gradients.py WORK --named                             those of NAMED and STATIC
  check_gradients.py WORK --goldens OUT.zip                   the same, for the tests

A random network is a chain of layers and functions, many of them with outputs that
jit.save prunes (XShape, SavedMean, Mask), and of loops and branches that overwrite
variables: `while`, `for` over rows and numbers, `if`, in each other, with lists that
become tensor arrays. Its source stays in WORK/net_N.py, its model beside it. Networks
that paddle.jit.to_static refuses, or whose saved program answers otherwise than dygraph
does, are counted and left out. pd-eval is the one on the PATH.

The last line is "N of M networks"; the exit status is 0 when all are right.
"""
import argparse
import importlib.util
import io
import json
import os
import random
import subprocess
import sys
import warnings
import zipfile

import numpy as np
import paddle
from paddle import static

warnings.filterwarnings('ignore')

ROWS, COLUMNS = 3, 4
HEAD = '''import paddle
import paddle.nn.functional as F
from paddle import nn


class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.weight = self.create_parameter([3, 4])
        self.instance = nn.InstanceNorm1D(3)
        self.batch = nn.BatchNorm1D(3)
        self.layer = nn.LayerNorm(4)
        self.group = nn.GroupNorm(3, 3)
        self.conv = nn.Conv2D(1, 2, 3, padding=1)
        self.dropout = nn.Dropout(0.4)
        self.lstm = nn.LSTM(4, 3)
        self.gru = nn.GRU(4, 2, 2, direction='bidirect')
        self.downscale = nn.Dropout(0.4, mode='downscale_in_infer')

    def forward(self, x, y):
'''
# Of a [3, 4] variable a (and b) another one.
UNARY = '''
paddle.tanh({a}) | paddle.sin({a}) | paddle.atan({a}) | F.sigmoid({a}) | F.softplus({a}) | paddle.sqrt({a} * {a} + 1)
F.relu({a}) + 0.1 * {a} | F.gelu({a}) | F.swish({a}) | F.leaky_relu({a}) | F.softmax({a}, -1) | F.log_softmax({a}, 0)
self.linear({a}) | {a} * self.weight | paddle.matmul({a}, self.linear.weight) | paddle.clip({a}, -0.7, 0.7)
paddle.transpose(paddle.tanh(paddle.transpose({a}, [1, 0])), [1, 0]) | paddle.reshape(paddle.sin(paddle.reshape({a}, [-1])), [3, 4])
paddle.reshape(paddle.cumsum(paddle.flatten({a})), [3, 4]) * 0.2 | paddle.flatten(paddle.unsqueeze({a}, 0), 0, 1) * 0.7
paddle.squeeze(paddle.sin(paddle.unsqueeze({a}, [0, 2])), [0, 2]) | paddle.squeeze(self.instance(paddle.unsqueeze({a}, 0)), 0)
paddle.squeeze(self.batch(paddle.unsqueeze({a}, 0)), 0) | self.layer({a}) | paddle.squeeze(self.group(paddle.unsqueeze({a}, 0)), 0)
self.dropout({a}) | self.downscale({a}) | F.dropout({a}, 0.3, training=False, mode='downscale_in_infer')
paddle.squeeze(F.max_pool2d(paddle.unsqueeze({a}, [0, 1]), 3, 1, 1), [0, 1]) | paddle.squeeze(F.avg_pool2d(paddle.unsqueeze({a}, [0, 1]), 3, 1, 1), [0, 1])
F.max_pool2d(paddle.unsqueeze({a}, [0, 1]), 3, 1, 1, return_mask=True)[0].reshape([3, 4]) | F.adaptive_max_pool2d(paddle.unsqueeze({a}, [0, 1]), [3, 2], return_mask=True)[0].reshape([3, 2]).tile([1, 2])
self.conv(paddle.unsqueeze({a}, [0, 1])).sum([0, 1]) | F.pad({a}, [1, 2, 0, 1], mode='constant')[1:4, 1:5]
paddle.concat(paddle.split({a}, 2, 1)[::-1], 1) | paddle.stack(paddle.unstack({a}, 0)[::-1], 0) | paddle.roll({a}, 1, 1) | paddle.flip({a}, [0])
paddle.topk({a}, 2, axis=1)[0].tile([1, 2]) | paddle.sort({a}, axis=0) | {a}[paddle.to_tensor([2, 0, 1])] | paddle.gather({a}, paddle.to_tensor([1, 1, 2]))
{a} - {a}.mean(0, keepdim=True) | {a} * {a}.max(1, keepdim=True) | paddle.expand({a}[0], [3, 4]) * 0.8 | {a} / (1 + paddle.norm({a}))
paddle.logsumexp({a}, 1, keepdim=True) * {a} * 0.3 | paddle.cumprod(F.sigmoid({a}), 1) | paddle.where({a} > 0, {a} * 2, paddle.sin({a}))
paddle.tril({a}) + 0.2 | paddle.kron({a}[:, :2], paddle.ones([1, 2])) | F.normalize({a}, axis=1) | paddle.mode({a}, 1, keepdim=True)[0] + {a}
paddle.median({a}, 1, keepdim=True) * {a} | paddle.kthvalue({a}, 2, 1, keepdim=True)[0] + {a} | F.prelu({a}, self.weight[0, :1]) | F.log_sigmoid({a}) | F.rrelu({a}, training=False) * 0.8
F.interpolate(paddle.unsqueeze({a}, [0, 1]), [6, 8])[0, 0, ::2, ::2] | F.unfold(paddle.unsqueeze({a}, [0, 1]), 1).reshape([3, 4]) * 1.5 | F.maxout(paddle.concat([{a}, paddle.sin({a})]).reshape([1, 2, 3, 4]), 2).reshape([3, 4])
F.local_response_norm(paddle.unsqueeze({a}, 0), 3).squeeze(0) | F.temporal_shift({a}.reshape([3, 4, 1, 1]), 3, 0.25).reshape([3, 4]) | F.pixel_shuffle({a}.reshape([1, 4, 1, 3]), 2).reshape([3, 4])
'''
BINARY = '''
{a} * {b} | {a} + {b} | {a} - 0.5 * {b} | {a} / ({b} * {b} + 1) | paddle.maximum({a}, {b}) | paddle.tanh({a}) * {b} | paddle.matmul({a}, {b}, transpose_y=True)[:, :3].matmul({b})
paddle.where({a} > {b}, {a}, 0.3 * {b}) | paddle.concat([{a}, {b}], 0)[1:4] | paddle.stack([{a}, {b}]).sum(0) | paddle.add_n([{a}, {b}]) | paddle.lerp({a}, {b}, 0.3)
paddle.einsum('ij,kj->ik', {a}, {b}).matmul({a}) | F.cosine_similarity({a}, {b}, axis=1).unsqueeze(1) * {a} | paddle.outer({a}[:, 0], {b}[0])
'''

# Bodies of forward(x, y), by name.
NAMED = {
    'shapes': """
        a = paddle.transpose(paddle.reshape(x, [2, 6]), [1, 0])
        b = paddle.squeeze(paddle.unsqueeze(paddle.flatten(a), [0, 2]), [2])
        return paddle.sin(b) * paddle.tanh(paddle.flatten(y)).unsqueeze(0)
""",
    'norms': """
        a = paddle.unsqueeze(x, 0)
        return self.instance(a) * self.batch(a) + self.group(paddle.sin(a)) * self.layer(a) + y
""",
    'dropouts': "        return self.dropout(paddle.sin(x)) * self.downscale(y)\n",
    'pools': """
        a = paddle.unsqueeze(x, [0, 1])
        b, index = F.max_pool2d(a, 2, 1, return_mask=True)
        return F.max_unpool2d(b * 2, index, 2, 1).sum() + F.adaptive_max_pool2d(a, [2, 2], return_mask=True)[0].squeeze([0, 1]) * y[:2, :2]
""",
    'orders': """
        return paddle.topk(x, 2, axis=1)[0] * paddle.sort(y, 0)[:, 1:3] + paddle.median(x) * paddle.mode(y, 1)[0].unsqueeze(1) + paddle.kthvalue(x, 2, 1)[0].sum()
""",
    # In dygraph, an rnn in evaluation has no gradient.
    'recurrences': """
        self.lstm.train()
        self.gru.train()
        return self.lstm(paddle.unsqueeze(x, 0))[0].sum() * self.gru(paddle.unsqueeze(y, 0))[0]
""",
    'eigenvalues': """
        return paddle.linalg.eigvalsh(paddle.matmul(x, y, transpose_y=True)) * y.sum()
""",
    'read_before_a_loop': """
        r, b = x, paddle.atan(x)
        r = r * 1.0
        b = paddle.atan(r)
        k = paddle.zeros([1], 'int32')
        while k < 3:
            r = paddle.sin(r) * y
            k += 1
        return r + b * b
""",
    'rows': """
        v = paddle.zeros([1])
        for row in x:
            v = v + paddle.sin(row).mean() * v.cos() + self.linear(row).sum()
        return v * y
""",
    'rows_of_what_changes': """
        v = x * 1.0
        for row in paddle.tanh(y):
            v = paddle.sin(v * row) + v[0]
        return v
""",
    'range': """
        v = paddle.ones([4])
        for k in range(x.shape[0]):
            v = v * paddle.cos(x[k]) + y[k].mean() * v
        return v
""",
    'list': """
        l = []
        v = y * 1.0
        for row in x:
            v = paddle.sin(v + row)
            l.append(v.sum(0) * row)
        return paddle.stack(l) * v
""",
    'nested_loops': """
        v, k = x * 1.0, paddle.zeros([1], 'int32')
        while k < 2:
            j = paddle.zeros([1], 'int32')
            u = paddle.atan(v)
            while j < 2:
                v = paddle.sin(v) * self.weight + u
                u = v * y
                j += 1
            v = v * u
            k += 1
        return v
""",
    'branches': """
        v = paddle.sin(x)
        u = v * y
        if x.mean() > 5.0:
            v = u * v
        else:
            u = paddle.exp(v)
            v = u * 2
        if x.mean() < 5.0:
            u = v * u
        return u * v
""",
    'branches_in_loops': """
        v, u, k = x * 1.0, y * 1.0, paddle.zeros([1], 'int32')
        while k < 4:
            if k % 2 == 0:
                v = paddle.sin(v) * u
            else:
                if v.mean() > 3.0:
                    u = u * 0.5
                else:
                    u = paddle.tanh(u + v)
            k += 1
        return u * v
""",
    'loop_in_a_branch': """
        v = x * 1.0
        if v.mean() < 9.0:
            u = paddle.atan(v)
            for row in y:
                v = paddle.sin(v) * row
            v = v * u
        else:
            v = v * 2
        return v
""",
    'break': """
        v, k = x * 1.0, paddle.zeros([1], 'int32')
        while k < 5:
            v = paddle.sin(v) * y
            k += 1
            if k > 2:
                break
            v = v + self.weight
        return v
""",
    'no_run': """
        v, k = paddle.tanh(x), paddle.full([1], 7, 'int32')
        while k < 5:
            v = paddle.sin(v) * y
            k += 1
        return v * y
""",
}


def overwrite(variable, value):
    paddle.assign(value, output=variable)


def overwriting_branch(taken):
    """A branch that writes over a variable of the program around it."""
    def program(x, y):
        v = paddle.sin(x)
        u = paddle.atan(v)
        static.nn.cond((y > -9).all() if taken else (y > 9).all(), lambda: overwrite(v, v * v * y))
        return v * x + u

    def dygraph(x, y):
        v = paddle.sin(x)
        return (v * v * y if taken else v) * x + paddle.atan(v)
    return program, dygraph


def overwriting_loop(inner):
    """A loop whose block writes over variables, in a branch or a loop of its own as well."""
    def program(x, y):
        v, u, t = paddle.sin(x), paddle.atan(x), x * 1.0
        k, n = paddle.zeros([1], 'int64'), paddle.full([1], 3, 'int64')
        go = paddle.less_than(k, n)
        with static.nn.control_flow.While(go).block():
            paddle.assign(paddle.cos(v), output=t)
            if inner == 'branch':
                static.nn.cond(paddle.equal(k % 2, paddle.zeros([1], 'int64')), lambda: overwrite(u, v * t))
            else:
                j = paddle.zeros([1], 'int64')
                more = paddle.less_than(j, n - 1)
                with static.nn.control_flow.While(more).block():
                    paddle.assign(u * y + t, output=u)
                    paddle.increment(j)
                    paddle.assign(paddle.less_than(j, n - 1), output=more)
            paddle.assign(v + u * t, output=v)
            paddle.increment(k)
            paddle.assign(paddle.less_than(k, n), output=go)
        return v * u + t * y

    def dygraph(x, y):
        v, u, t = paddle.sin(x), paddle.atan(x), x * 1.0
        for k in range(3):
            t = paddle.cos(v)
            if inner == 'branch':
                u = v * t if k % 2 == 0 else u
            else:
                u = (u * y + t) * y + t
            v = v + u * t
        return v * u + t * y
    return program, dygraph


def overwriting_inside(what):
    """A branch whose own branch or loop writes over a variable of the program around both."""
    def again(v, y):
        k = paddle.zeros([1], 'int64')
        go = paddle.less_than(k, paddle.full([1], 3, 'int64'))
        with static.nn.control_flow.While(go).block():
            paddle.assign(v * v * y, output=v)
            paddle.increment(k)
            paddle.assign(paddle.less_than(k, paddle.full([1], 3, 'int64')), output=go)

    def program(x, y):
        v = paddle.sin(x)
        u = paddle.atan(v)

        def inside():
            if what == 'loop':
                again(v, y)
            else:
                static.nn.cond((x > -9).all(), lambda: overwrite(v, v * v * y))
        static.nn.cond((y > -9).all(), inside)
        return v * x + u

    def dygraph(x, y):
        v = paddle.sin(x)
        u = paddle.atan(v)
        for _ in range(3 if what == 'loop' else 1):
            v = v * v * y
        return v * x + u
    return program, dygraph


def overwriting_where_filled(filled):
    """A block that runs where a variable has elements: it reads that one and writes over another."""
    def program(x, y):
        v = paddle.sin(x)
        u = paddle.atan(v)
        some = x * y if filled else paddle.masked_select(x, x > 9)
        with static.nn.control_flow.ConditionalBlock([some]).block():
            paddle.assign(v * v * some.mean(), output=v)
        return v * x + u * y

    def dygraph(x, y):
        v = paddle.sin(x)
        return (v * v * (x * y).mean() if filled else v) * x + paddle.atan(v) * y
    return program, dygraph


def constant_branch(taken):
    """A branch without inputs, which writes over a variable."""
    def program(x, y):
        v = paddle.sin(x)
        static.nn.cond((y > -9).all() if taken else (y > 9).all(), lambda: overwrite(v, paddle.full_like(v, 0.5)))
        return v * x + y

    def dygraph(x, y):
        return (paddle.full_like(x, 0.5) if taken else paddle.sin(x)) * x + y
    return program, dygraph


def rewritten_array(where):
    """Elements of an array that are read, and written over."""
    def number(k):
        return paddle.full([1], k, 'int64')

    def program(x, y):
        array = paddle.tensor.array_write(paddle.sin(x), number(0))

        def rewrite():
            paddle.tensor.array_write(paddle.tensor.array_read(array, number(0)) * y, number(0), array)
            paddle.tensor.array_write(x * y, number(1), array)
        if where == 'loop':
            k = number(0)
            go = paddle.less_than(k, number(2))
            with static.nn.control_flow.While(go).block():
                rewrite()
                paddle.increment(k)
                paddle.assign(paddle.less_than(k, number(2)), output=go)
        elif where == 'branches':
            static.nn.cond((y > -9).all(), lambda: static.nn.cond((x > -9).all(), rewrite))
        else:
            rewrite()
        return paddle.tensor.array_read(array, number(0)) * x + paddle.tensor.array_read(array, number(1))

    def dygraph(x, y):
        return paddle.sin(x) * (y * y if where == 'loop' else y) * x + x * y
    return program, dygraph


# What paddle.static's functions make, which no jit.save does: pairs of functions of (x, y).
STATIC = {
    'static_branch_taken': overwriting_branch(True),
    'static_branch_not_taken': overwriting_branch(False),
    'static_loop_with_branch': overwriting_loop('branch'),
    'static_loop_with_loop': overwriting_loop('loop'),
    'static_branch_in_branch': overwriting_inside('branch'),
    'static_loop_in_branch': overwriting_inside('loop'),
    'static_constant_taken': constant_branch(True),
    'static_constant_not_taken': constant_branch(False),
    'static_array': rewritten_array('here'),
    'static_array_in_loop': rewritten_array('loop'),
    'static_array_in_branches': rewritten_array('branches'),
    'static_block_filled': overwriting_where_filled(True),
    'static_block_empty': overwriting_where_filled(False),
}


def choices(text):
    return [one.strip() for line in text.strip().splitlines() for one in line.split(' | ')]


UNARY, BINARY = choices(UNARY), choices(BINARY)


class Writer:
    """One random network as Python source."""

    def __init__(self, rng):
        self.rng, self.lines, self.names = rng, [], 0

    def new(self, prefix='t'):
        self.names += 1
        return f'{prefix}{self.names}'

    def put(self, depth, line):
        self.lines.append('    ' * (depth + 2) + line)

    def expression(self, known):
        rng = self.rng
        if rng.random() < 0.55:
            return rng.choice(UNARY).format(a=rng.choice(known))
        return rng.choice(BINARY).format(a=rng.choice(known), b=rng.choice(known))

    def assign(self, depth, known, carried):
        """To a new variable, or over one of those that live on."""
        rng = self.rng
        target = rng.choice(carried) if carried and rng.random() < 0.5 else self.new()
        value = self.expression(known)
        if target in carried and rng.random() < 0.2:
            self.put(depth, f'{target} {rng.choice(["+=", "*=", "-="])} {value} * 0.5')
        else:
            self.put(depth, f'{target} = {value}')
        return known if target in known else known + [target]

    def condition(self, known):
        return f'{self.rng.choice(known)}.mean() {self.rng.choice("<>")} {self.rng.uniform(-0.3, 0.5):.3f}'

    def body(self, depth, level, known, carried, size):
        """Statements; what they define lives on within them alone."""
        for _ in range(size):
            kind = self.rng.random()
            if level > 0 and kind < 0.16:
                self.branch(depth, level - 1, known, carried)
            elif level > 0 and kind < 0.46:
                self.loop(depth, level - 1, known, carried)
            else:
                known = self.assign(depth, known, carried)
        if carried:  # something happens to what lives on
            target = self.rng.choice(carried)
            self.put(depth, f'{target} = {self.expression(known)}')
        return known

    def branch(self, depth, level, known, carried):
        self.put(depth, f'if {self.condition(known)}:')
        self.body(depth + 1, level, known, carried, self.rng.randint(0, 2))
        if self.rng.random() < 0.7:
            self.put(depth, 'else:')
            self.body(depth + 1, level, known, carried, self.rng.randint(0, 2))

    def loop(self, depth, level, known, carried):
        rng = self.rng
        kind = rng.choice(['while', 'while', 'rows', 'rows', 'range', 'list', 'break'])
        # to_static reads rows of the variable as it has become: not of one that changes.
        source = f'({rng.choice(known)} * 0.9)'
        if kind in ('while', 'break'):
            k = self.new('k')
            self.put(depth, f"{k} = paddle.zeros([1], 'int32')")
            self.put(depth, f'while {k} < {rng.randint(0, 4)}:')
            if rng.random() < 0.5:
                self.put(depth + 1, f'{k} += 1')
                self.body(depth + 1, level, known, carried, rng.randint(1, 3))
            else:
                self.body(depth + 1, level, known, carried, rng.randint(1, 3))
                self.put(depth + 1, f'{k} = {k} + 1')
            if kind == 'break':
                self.put(depth + 1, f'if {self.condition(carried)}:')
                self.put(depth + 2, 'break')
        elif kind == 'rows':
            row, made = self.new('row'), self.new('r')
            self.put(depth, f'for {row} in {source}:')
            self.put(depth + 1, f'{made} = {rng.choice(known)} * {row}')
            self.body(depth + 1, level, known + [made], carried, rng.randint(0, 2))
            self.put(depth + 1, f'{rng.choice(carried)} = {rng.choice(carried)} * 0.7 + {row}.mean() * {made}')
        elif kind == 'range':
            k = self.new('k')
            self.put(depth, f'for {k} in range({source}.shape[0]):')
            self.body(depth + 1, level, known, carried, rng.randint(0, 2))
            self.put(depth + 1, f'{rng.choice(carried)} = {rng.choice(known)}[{k}] * {rng.choice(carried)}')
        else:
            items, row, out = self.new('l'), self.new('row'), self.new()
            self.put(depth, f'{items} = []')
            self.put(depth, f'for {row} in {source}:')
            self.put(depth + 1, f'{rng.choice(carried)} = {rng.choice(known)} * {row}')
            self.put(depth + 1, f'{items}.append({row} * {rng.choice(carried)}[0])')
            self.put(depth, f'{out} = paddle.stack({items})')
            self.put(depth, f'{rng.choice(carried)} = {out} + {rng.choice(known)}')

    def network(self, loops):
        known = ['x', 'y']
        carried = [self.new('v') for _ in range(self.rng.randint(1, 3))]
        for name in carried:
            value = self.rng.choice(['paddle.zeros([3, 4])', 'paddle.ones([3, 4])', self.expression(known), self.expression(known)])
            self.put(0, f'{name} = {value}')
        known = self.body(0, 3 if loops else 0, known + carried, carried, self.rng.randint(3, 7))
        self.put(0, 'return 0.1 * x * y + ' + ' + '.join(dict.fromkeys(carried + [self.rng.choice(known), self.rng.choice(known)])))
        return '\n'.join(self.lines) + '\n'


def load(path):
    spec = importlib.util.spec_from_file_location(os.path.basename(path)[:-3], path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Refused(Exception):
    """By PaddlePaddle: no case."""


def last_line(error):
    return f'{type(error).__name__}: {(str(error).strip().splitlines() or [""])[-1]}'


def run_saved(prefix, feed):
    """The name of a saved program's output, and what it gives."""
    paddle.enable_static()
    try:
        with static.scope_guard(static.Scope()):
            executor = static.Executor(paddle.CPUPlace())
            program, names, outputs = static.load_inference_model(prefix, executor)
            given = {name: value for name, value in feed.items() if name in names}
            return outputs[0].name, executor.run(program, feed=given, fetch_list=outputs)[0]
    finally:
        paddle.disable_static()


def save_static(prefix, function, feed):
    paddle.enable_static()
    try:
        program = static.Program()
        with static.program_guard(program, static.Program()), paddle.utils.unique_name.guard():
            given = [static.data(name, value.shape, str(value.dtype)) for name, value in feed.items()]
            for variable in given:
                variable.stop_gradient = False
            made = function(*given)
            static.save_inference_model(prefix, given, [made], static.Executor(paddle.CPUPlace()), program=program)
    finally:
        paddle.disable_static()


def judge(path, body, dynamic, seed):
    """Saves a network; gives the model's path, its output, feeds and the gradients of dygraph."""
    paddle.seed(seed)
    rng = np.random.RandomState(seed)
    prefix = path[:-3]
    for stale in (prefix + '.pdiparams', prefix + '.got.npz'):  # a network without parameters writes none
        if os.path.exists(stale):
            os.remove(stale)
    state = {}
    if isinstance(body, str):
        with open(path, 'w') as file:
            file.write(HEAD + body)
        net = load(path).Net()
        net.eval()
        state = {v.name: v for v in net.parameters()}  # statistics are among them
        for parameter in state.values():
            low = 0.5 if parameter.stop_gradient else -1
            parameter.set_value(rng.uniform(low, 1, parameter.shape).astype('float32'))
        function = net
    else:
        program, function = body
    feed = {name: rng.uniform(-1, 1, (ROWS, COLUMNS)).astype('float32') for name in 'xy'}
    given = {name: paddle.to_tensor(value, stop_gradient=False) for name, value in feed.items()}
    made = function(*given.values())
    cotangent = rng.uniform(-1, 1, made.shape).astype('float32')
    of = {**given, **{k: v for k, v in state.items() if not v.stop_gradient}}
    try:
        found = paddle.grad([made], list(of.values()), [paddle.to_tensor(cotangent)], allow_unused=True)
    except Exception as error:
        raise Refused(last_line(error)) from error
    gradients = {name + '@GRAD': g.numpy() for name, g in zip(of, found) if g is not None}
    if not all(np.isfinite(g).all() for g in gradients.values()):
        raise Refused('a gradient is not finite')
    try:
        if isinstance(body, str):
            spec = [static.InputSpec([None if d in dynamic else n for d, n in enumerate(v.shape)], 'float32', k) for k, v in feed.items()]
            paddle.jit.save(paddle.jit.to_static(net, input_spec=spec, full_graph=True), prefix)
        else:
            save_static(prefix, program, feed)
        output, answer = run_saved(prefix, feed)
    except Exception as error:
        raise Refused(last_line(error)) from error
    if not np.allclose(answer, made.numpy(), 1e-5, 1e-5):
        raise Refused('the saved program answers otherwise than dygraph')
    feed['cotangent'] = cotangent
    return prefix, output, feed, gradients


def ours(prefix, output, feed, gradients):
    """"" where pd-eval gives these gradients, else what it says."""
    np.savez(prefix + '.feed.npz', **feed)
    np.savez(prefix + '.want.npz', **gradients)
    wrt = ','.join(name[:-len('@GRAD')] for name in gradients)
    command = ['pd-eval', '-m', prefix, '--feed', prefix + '.feed.npz', '--grad', output + '=cotangent', '--wrt', wrt,
               '--out', prefix + '.got.npz']
    ran = subprocess.run(command, capture_output=True, text=True)
    if ran.returncode != 0:
        return f'exit {ran.returncode}: {ran.stderr.strip()}'
    got = np.load(prefix + '.got.npz')
    wrong = []
    for name, want in gradients.items():
        error = np.abs(got[name].reshape(want.shape) - want).max(initial=0)
        if not error <= 1e-4 + 1e-3 * np.abs(want).max(initial=0):
            wrong.append(f'{name} is off by {error:.3g} of {np.abs(want).max():.3g}')
    return '; '.join(wrong)


def check(work, name, body, dynamic, seed):
    """None where PaddlePaddle gives no case, else "" or what is wrong."""
    try:
        case = judge(os.path.join(work, name + '.py'), body, dynamic, seed)
    except Refused as error:
        print(f'left out {name}: {error}')
        return None
    wrong = ours(*case)
    if wrong:
        print(f'WRONG {name}: {wrong}')
    return wrong


def check_apart(*case):
    """In a process of its own: some programs crash PaddlePaddle."""
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        answer = check(*case)
        sys.stdout.flush()
        os._exit(2 if answer is None else 1 if answer else 0)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if code not in (0, 1, 2):
        print(f'left out {case[1]}: PaddlePaddle ended with {code}')
    return {0: '', 1: 'wrong'}.get(code)


def random_cases(numbers, seed):
    for number in numbers:
        rng = random.Random(seed * 1000003 + number)
        body = Writer(rng).network(loops=number % 4 != 0)
        yield f'net_{number}', body, rng.choice([(), (0,)]), number


def named_cases():
    for name, body in NAMED.items():
        yield name, body.lstrip('\n'), (0,) if 'rows' in name else (), 1
    for name, functions in STATIC.items():
        yield name, functions, (), 1


def npz(arrays):
    out = io.BytesIO()
    np.savez(out, **arrays)  # the zip around it compresses
    return out.getvalue()


def write_goldens(work, path):
    """As testdata/ops has them; parameters are part of the feed."""
    with zipfile.ZipFile(path, 'w') as archive:
        for name, body, dynamic, seed in named_cases():
            prefix, output, feed, gradients = judge(os.path.join(work, name + '.py'), body, dynamic, seed)
            paddle.enable_static()
            with static.scope_guard(static.Scope()):
                program = static.load_inference_model(prefix, static.Executor(paddle.CPUPlace()))[0]
                feed.update({v.name: static.global_scope().find_var(v.name).get_tensor().__array__()
                             for v in program.list_vars() if v.persistable and v.name not in ('feed', 'fetch')})
            paddle.disable_static()
            inputs = [g[:-len('@GRAD')] for g in gradients]
            made_by = body if isinstance(body, str) else name
            case = dict(made_by=made_by, rtol=1e-4, atol=1e-5,
                        grad=dict(targets={output: 'cotangent'}, inputs=inputs, grads={i: i + '@GRAD' for i in inputs}))
            for block in program.blocks:
                for op in block.ops:
                    op.desc.remove_attr('op_callstack')
            model = program.desc.serialize_to_string()
            for entry, data in {'program.pdmodel': model, 'case.json': json.dumps(case, indent=1), 'feed.npz': npz(feed),
                                'expect.npz': npz(gradients)}.items():
                archive.writestr(zipfile.ZipInfo(f'{name}/{entry}', (1980, 1, 1, 0, 0, 0)), data, zipfile.ZIP_DEFLATED, 9)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('work')
    parser.add_argument('--cases', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--only', type=int)
    parser.add_argument('--named', action='store_true')
    parser.add_argument('--goldens')
    options = parser.parse_args()
    os.makedirs(options.work, exist_ok=True)
    if options.goldens:
        write_goldens(options.work, options.goldens)
        return 0
    numbers = range(options.cases) if options.only is None else [options.only]
    cases = named_cases() if options.named else random_cases(numbers, options.seed)
    answers = [check_apart(options.work, *case) for case in cases]
    right = answers.count('')
    count = len(answers) - answers.count(None)
    print(f'{len(answers) - count} left out')
    print(f'{right} of {count} networks')
    return 0 if right == count else 1


if __name__ == '__main__':
    sys.exit(main())

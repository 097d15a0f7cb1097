# SPDX-License-Identifier: Apache-2.0
"""Derivatives of small functions, for tests/cmd/derivatives_test.sh.

  derivative_goldens.py testdata/gradients/derivatives     (paddlepaddle 2.6.2, numpy)

Each function is saved as a program by paddle.static, in float64. Its jvp, vjp,
Jacobian and Hessian are those of paddle.incubate.autograd in dygraph; FORMULAS has
derivatives worked out by hand, up to the third, of functions that PaddlePaddle
differentiates once. cases.txt has a line for each result: the model, the file of
expected arrays, the options of pd-eval.
"""
import os
import sys

import numpy as np
import paddle
from paddle import static
from paddle.incubate import autograd

W = np.random.RandomState(3).uniform(-1, 1, (3, 2)).astype('float32')


GRAD = paddle.grad


def grad(outputs, inputs, grad_outputs=None, create_graph=False, **options):
    """paddle.grad, which asks for one order more than paddle.incubate.autograd's results need."""
    try:
        return GRAD(outputs, inputs, grad_outputs, retain_graph=True, create_graph=create_graph, **options)
    except RuntimeError as error:
        if "doesn't have any gradop" not in str(error):
            raise
        return GRAD(outputs, inputs, grad_outputs, retain_graph=True, create_graph=False, **options)


paddle.grad = grad


def weights():
    return paddle.assign(W).astype('float64')


# Functions of arrays: name -> (inputs with their shapes, function).
FUNCTIONS = {
    'product': (dict(x=[2, 3], w=[3, 2]), lambda x, w: paddle.matmul(paddle.tanh(x), w) * paddle.square(w[:2])),
    'unused': (dict(x=[3], z=[2]), lambda x, z: x * x * x + (z > 0).astype('float64').sum()),
    'linear': (dict(x=[3], z=[3]), lambda x, z: 2 * x - z),
    'scalar': (dict(x=[2, 2], z=[2]),
               lambda x, z: paddle.sum(paddle.nn.functional.sigmoid(paddle.matmul(x, z.reshape([2, 1]))) * x * x)),
    'records': (dict(x=[4, 3]), lambda x: paddle.tanh(paddle.matmul(x, weights()))),
    'record_scalars': (dict(x=[4, 3]), lambda x: (paddle.tanh(paddle.matmul(x, weights())) * x[:, :2]).sum(1, keepdim=True)),
}

# y, and its first three derivatives.
FORMULAS = {
    'cube': (lambda x: x * x * x, lambda x: [3 * x**2, 6 * x, 6 + 0 * x]),
    'fifth': (lambda x: paddle.pow(x, 5), lambda x: [5 * x**4, 20 * x**3, 60 * x**2]),
    'tanh': (paddle.tanh, lambda x: [1 - np.tanh(x)**2, -2 * np.tanh(x) * (1 - np.tanh(x)**2),
                                     (1 - np.tanh(x)**2) * (6 * np.tanh(x)**2 - 2)]),
    'exp': (lambda x: paddle.exp(2 * x), lambda x: [2 * np.exp(2 * x), 4 * np.exp(2 * x), 8 * np.exp(2 * x)]),
    'sine': (paddle.sin, lambda x: [np.cos(x), -np.sin(x), -np.cos(x)]),
    'root': (paddle.sqrt, lambda x: [x**-0.5 / 2, -x**-1.5 / 4, 3 * x**-2.5 / 8]),
    'logarithm': (paddle.log, lambda x: [1 / x, -1 / x**2, 2 / x**3]),
    'quotient': (lambda x: 1 / (1 + x), lambda x: [-(1 + x)**-2., 2 * (1 + x)**-3., -6 * (1 + x)**-4.]),
}


def save(prefix, shapes, function, dtypes={}, prune=True):
    """Writes the program; gives the name of its output."""
    paddle.enable_static()
    program = static.Program()
    with static.program_guard(program, static.Program()), paddle.utils.unique_name.guard():
        given = [static.data(name, shape, dtypes.get(name, 'float64')) for name, shape in shapes.items()]
        for variable in given:
            variable.stop_gradient = variable.dtype != paddle.float64
        made = function(*given)
    for block in program.blocks:
        for op in block.ops:
            op.desc.remove_attr('op_callstack')
    with open(prefix + '.pdmodel', 'wb') as file:
        if prune:
            program = static.normalize_program(program, given, [made])
            file.write(static.serialize_program(given, [made], program=program))
        else:
            file.write(program.desc.serialize_to_string())
    paddle.disable_static()
    return made.name


class Writer:
    def __init__(self, folder):
        self.folder, self.cases, self.files = folder, [], 0

    def expect(self, model, options, **arrays):
        self.expect_all(model, options, {key.replace('__', '@'): value for key, value in arrays.items()})

    def expect_all(self, model, options, arrays):
        file = f'{model}.{self.files}.npz'
        self.files += 1
        np.savez_compressed(os.path.join(self.folder, file), **{k: np.asarray(v) for k, v in arrays.items()})
        self.cases.append(f'{model} {file} {options}')


def by_paddle(writer, name, shapes, function):
    rng = np.random.RandomState(len(name))
    out = save(os.path.join(writer.folder, name), shapes, function)
    feed = {key: rng.uniform(-1, 1, shape) for key, shape in shapes.items()}
    xs = [paddle.to_tensor(feed[key]) for key in shapes]
    tangents = {'t' + key: rng.uniform(-1, 1, shape) for key, shape in shapes.items()}
    y = function(*xs)
    cotangent = rng.uniform(-1, 1, y.shape)
    np.savez_compressed(os.path.join(writer.folder, name + '.feed.npz'), c=cotangent, **feed, **tangents)
    names = ','.join(shapes)
    only = len(xs) == 1
    unwrap = (lambda values: values[0]) if only else (lambda values: values)
    ones = autograd.jvp(function, unwrap(xs))[1]
    writer.expect_all(name, f'--jvp {out} --wrt {names}', {out + '@JVP': ones})
    along = autograd.jvp(function, unwrap(xs), unwrap([paddle.to_tensor(t) for t in tangents.values()]))[1]
    wrt = ','.join(f'{key}=t{key}' for key in shapes)
    writer.expect_all(name, f'--jvp {out} --wrt {wrt}', {out + '@JVP': along})
    vjp = autograd.vjp(function, unwrap(xs), paddle.to_tensor(cotangent))[1]
    if name != 'unused':  # --grad refuses what gives zeros there
        vjp = [vjp] if only else vjp
        writer.expect_all(name, f'--grad {out}=c --wrt {names}', {k + '@GRAD': v for k, v in zip(shapes, vjp)})
    batched = name.startswith('record')
    option = ' --batched' if batched else ''
    writer.expect_all(name, f'--jacobian {out} --wrt {names}{option}',
                      {out + '@JACOBIAN': autograd.Jacobian(function, unwrap(xs), is_batched=batched)[:]})
    if name in ('scalar', 'record_scalars'):
        writer.expect_all(name, f'--hessian {out} --wrt {names}{option}',
                          {out + '@HESSIAN': autograd.Hessian(function, unwrap(xs), is_batched=batched)[:]})
    if name == 'records':
        writer.expect_all(name, f'--jacobian {out} --wrt {names}',
                          {out + '@JACOBIAN': autograd.Jacobian(function, unwrap(xs))[:]})


def by_hand(writer, name, function, derivatives):
    out = save(os.path.join(writer.folder, name), dict(x=[3]), function)
    x = np.array([0.3, 0.7, 1.9])
    np.savez_compressed(os.path.join(writer.folder, name + '.feed.npz'), x=x)
    first, second, third = derivatives(x)
    writer.expect_all(name, f'--grad {out} --wrt x --grad x@GRAD --wrt x --grad grad/grad/x@GRAD --wrt x',
                      {'x@GRAD': first, 'grad/grad/x@GRAD': second, 'grad/grad/grad/x@GRAD': third})


def others(folder):
    """Programs for the test's messages: with its gradients, with integers, with many elements."""
    def with_gradients(x):
        y = x * x * x
        static.gradients([y], [x])
        return y

    def with_integers(x, n, z):
        return paddle.sum(x) + n.astype('float64').sum() + (z > 0).astype('float64').sum()

    save(os.path.join(folder, 'with_gradients'), dict(x=[3]), with_gradients, prune=False)
    save(os.path.join(folder, 'with_integers'), dict(x=[3], n=[2], z=[2]), with_integers, dict(n='int64'))
    np.savez_compressed(os.path.join(folder, 'with_integers.feed.npz'), x=np.ones(3), n=np.arange(2), z=np.ones(2))
    save(os.path.join(folder, 'large'), dict(x=[1000000]), paddle.tanh)
    np.savez_compressed(os.path.join(folder, 'large.feed.npz'), x=np.zeros(1000000))


def main():
    writer = Writer(sys.argv[1])
    others(writer.folder)
    for name, (shapes, function) in FUNCTIONS.items():
        by_paddle(writer, name, shapes, function)
    for name, (function, derivatives) in FORMULAS.items():
        by_hand(writer, name, function, derivatives)
    with open(os.path.join(writer.folder, 'cases.txt'), 'w') as file:
        file.write('\n'.join(writer.cases) + '\n')


if __name__ == '__main__':
    main()

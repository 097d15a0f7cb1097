# SPDX-License-Identifier: Apache-2.0
"""paddle.jit.load of several methods and of .pdiparams.info. Run by
scripts/check_interop.

  check_methods.py JOB WORK

JOB is an autoencoder's job with layers `mean` and `reconstruction`; its
halves are exported as methods. pd-export and pd-eval are found by PATH.
"""
import pickle
import subprocess
import sys

import numpy as np
import paddle


def run(*command):
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def check_methods(job, work):
    out = f'{work}/autoencoder'
    run('pd-export', '-q', '-c', job, '--method', 'encode=mean', '--method',
        'decode=reconstruction from mean', '-o', out)
    layer = paddle.jit.load(out)
    x = np.random.default_rng(3).random((4, 1, 28, 28), 'float32')
    code = layer.encode(paddle.to_tensor(x))
    picture = layer.decode(code)
    whole = layer(paddle.to_tensor(x))
    np.testing.assert_allclose(picture.numpy(), whole.numpy(), rtol=1e-5, atol=1e-6)
    for name, feed, want in (('encode', x, code), ('decode', code.numpy(), picture)):
        [spec] = layer._input_spec(name)
        np.savez(f'{work}/feed.npz', **{spec.name: feed})
        run('pd-eval', '-q', '-m', f'{out}.{name}', '--feed', f'{work}/feed.npz',
            '--out', f'{work}/got.npz')
        [got] = np.load(f'{work}/got.npz').values()
        np.testing.assert_allclose(got, want.numpy(), rtol=1e-5, atol=1e-6)
    # They can be trained.
    layer.train()
    code = layer.encode(paddle.to_tensor(x))
    code.stop_gradient = False  # PaddlePaddle 2.6 stops there
    code.sum().backward()
    trained = [p.name for p in layer.parameters() if p.grad is not None]
    assert trained, 'no parameter has a gradient'


class Network(paddle.nn.Layer):
    """Parameters that are trained, and a batch norm's, which are not."""

    def __init__(self):
        super().__init__()
        self.conv = paddle.nn.Conv2D(1, 4, 3)
        self.norm = paddle.nn.BatchNorm2D(4)
        self.fc = paddle.nn.Linear(4 * 26 * 26, 3)

    @paddle.jit.to_static(input_spec=[paddle.static.InputSpec([None, 1, 28, 28])])
    def forward(self, x):
        return self.fc(paddle.flatten(self.norm(self.conv(x)), 1))


def check_info(work):
    theirs, ours = f'{work}/theirs', f'{work}/ours'
    network = Network()
    network.eval()
    paddle.jit.save(network, theirs)
    run('pd-export', '-q', '-m', theirs, '-o', ours)
    tables = []
    for prefix in (theirs, ours):
        with open(prefix + '.pdiparams.info', 'rb') as file:
            table = pickle.load(file)
        for entry in table.values():
            assert isinstance(entry.pop('structured_name'), str)
        tables.append(table)
    assert tables[0] == tables[1], tables
    x = paddle.rand([2, 1, 28, 28])
    np.testing.assert_allclose(paddle.jit.load(ours)(x).numpy(), network(x).numpy(),
                               rtol=1e-5, atol=1e-5)


if __name__ == '__main__':
    check_methods(*sys.argv[1:])
    check_info(sys.argv[2])

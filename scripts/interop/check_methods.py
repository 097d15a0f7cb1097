# SPDX-License-Identifier: Apache-2.0
"""paddle.jit.load of several methods and of .pdiparams.info. Run by
scripts/check_interop.

  check_methods.py JOB MODEL WORK

JOB is an autoencoder's job with layers `mean` and `reconstruction`; its
halves are exported as methods. MODEL is a network with batch norms. pd-export
and pd-eval are found by PATH.
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
        [fetch] = layer._output_spec(name)
        np.savez(f'{work}/feed.npz', **{spec.name: feed})
        run('pd-eval', '-q', '-m', f'{out}.{name}', '--feed', f'{work}/feed.npz',
            '--out', f'{work}/got.npz')
        got = dict(np.load(f'{work}/got.npz'))
        np.testing.assert_allclose(got[fetch.name], want.numpy(), rtol=1e-5, atol=1e-6)
    # What is trained through one method changes the other: they share weights.
    layer.train()
    layer.encode(paddle.to_tensor(x)).sum().backward()
    trained = [p.name for p in layer.parameters() if p.grad is not None]
    assert trained, 'no parameter has a gradient'


def kinds(table):
    """How many variables have which flags."""
    found = {}
    for entry in table.values():
        assert isinstance(entry['structured_name'], str)
        key = (entry['stop_gradient'], entry.get('trainable'))
        found[key] = found.get(key, 0) + 1
    return found


def check_info(model, work):
    out, again = f'{work}/ours', f'{work}/theirs'
    run('pd-export', '-q', '-m', model, '-o', out)
    layer = paddle.jit.load(out)
    paddle.jit.save(layer, again)
    with open(out + '.pdiparams.info', 'rb') as file:
        ours = pickle.load(file)
    with open(again + '.pdiparams.info', 'rb') as file:
        theirs = pickle.load(file)
    assert kinds(ours) == kinds(theirs), (kinds(ours), kinds(theirs))
    assert (True, None) in kinds(ours), 'no buffer'
    assert (False, True) in kinds(ours), 'no parameter'


if __name__ == '__main__':
    check_methods(sys.argv[1], sys.argv[3])
    check_info(sys.argv[2], sys.argv[3])

# SPDX-License-Identifier: Apache-2.0
"""Every layer's export in paddle.jit.load. Run by scripts/check_interop.

  check_layers.py LAYERS WORK [FAMILY/CASE...]

LAYERS is testdata/layers: a job, parameters, inputs and PaddlePaddle's answers
for each case. pd-export writes the job's network; paddle.jit.load must take it,
answer as the case says in evaluation and in training, and give the case's
gradients of inputs and parameters.

The last line is "N of M layers"; the exit status is 0 when all are right.
"""
import io
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import paddle

# What PaddlePaddle 2.6.2 cannot do with a file of its own either.
NOT_ON_CPUS = ('transformer/sparse_attention', 'transformer/sparse_attention_keys', 'transformer/sparse_attention_masks')
NOT_IN_EVALUATION = ('norm/batch_norm2d_own',)  # batch_norm of statistics of its own, without room for them
NO_GRADIENT = ('function/expand_as',)  # zeros where the batch is open

# In training these change what they keep from step to step, which a saved network does not.
KEEPS_STILL = ('reparameterize/spectral_norm',)


def tensors(values, kind):
    return {k[len(kind) + 1:]: v for k, v in values.items() if k.startswith(kind + '/')}


def near(want, got, case, what):
    scale = max(1.0, float(np.abs(want).max(initial=0))) if want.dtype.kind == 'f' else 1.0
    np.testing.assert_allclose(np.asarray(got).reshape(want.shape), want, rtol=max(case['rtol'], 1e-4),
                               atol=max(case['atol'], 1e-4) * scale, err_msg=what)


def set_state(layer, state):
    """Gives parameters and statistics the case's values; they are called as in the job."""
    loaded = {v.name: v for v in list(layer.parameters()) + list(layer.buffers())}
    # jit.load appends a number to names.
    variables = {name: loaded.get(name, loaded.get(name + '_0')) for name in state}
    for name, variable in variables.items():
        if variable is not None:
            variable.set_value(state[name])
    return variables


def run(layer, values, names):
    given = {}
    for name in names:
        given[name] = paddle.to_tensor(values['in/' + name])
        given[name].stop_gradient = given[name].dtype not in (paddle.float32, paddle.float64)
    made = layer(*given.values())
    made = list(made) if isinstance(made, (list, tuple)) else [made]
    for result in made:  # PaddlePaddle 2.6 stops gradients there, though it has made the graph behind it
        result.stop_gradient = result.dtype not in (paddle.float32, paddle.float64)
    return made, given


def check(called, prefix, case, values):
    layer = paddle.jit.load(prefix)
    names = [s.name for s in layer._input_spec()] if hasattr(layer, '_input_spec') else sorted(tensors(values, 'in'))
    parameters = set_state(layer, tensors(values, 'state'))
    if called not in NOT_IN_EVALUATION:
        layer.eval()
        made, _ = run(layer, values, names)
        for k, want in tensors(values, 'eval').items():
            near(want, made[int(k)].numpy(), case, f'evaluation, result {k}')
    layer.train()
    made, given = run(layer, values, names)
    still = called.startswith(KEEPS_STILL)
    for k, want in ({} if still else tensors(values, 'train')).items():
        near(want, made[int(k)].numpy(), case, f'training, result {k}')
    cotangents = tensors(values, 'ct')
    # PaddlePaddle sums up no empty tensor.
    floats = [k for k, m in enumerate(made) if not m.stop_gradient and m.size > 0]
    if not floats:
        return ''
    weights = {k: cotangents.get(str(k)) for k in floats}
    total = sum((m * (paddle.to_tensor(weights[k]).reshape(m.shape) if weights[k] is not None else 1.)).sum()
                for k, m in enumerate(made) if k in weights and (weights[k] is not None or not cotangents))
    total.backward()
    if still or called in NO_GRADIENT:
        return ''
    for name, want in tensors(values, 'grad').items():
        of = given.get(name)
        of = parameters.get(name) if of is None else of
        if of is None or of.grad is None:
            raise AssertionError(f'no gradient of {name}')
        near(want, of.grad.numpy(), case, f'gradient of {name}')
    return ''


def apart(function):
    """What `function` says in a process of its own: loaded layers must not meet, and PaddlePaddle may crash."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            said = function()
        except Exception as error:  # PaddlePaddle's errors are of many kinds
            lines = [line.strip() for line in str(error).splitlines() if line.strip()]
            said = f'{type(error).__name__} ' + ' | '.join(lines[:2] + lines[-6:])[:700]
        os.write(write, (said + '\n').encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read, 'rb') as pipe:
        said = pipe.read().decode()
    os.waitpid(child, 0)
    return said.strip() if said else 'PaddlePaddle crashed'


def export(files, name, folder):
    os.makedirs(folder, exist_ok=True)
    job, prefix = os.path.join(folder, 'job.pbtxt'), os.path.join(folder, 'm')
    with open(job, 'wb') as out:
        out.write(files.read(f'{name}/job.pbtxt'))
    exported = subprocess.run(['pd-export', '-q', '-c', job, '-o', prefix], capture_output=True, text=True)
    return prefix, '' if exported.returncode == 0 else 'pd-export: ' + exported.stderr.strip()[-300:]


def main(layers, work, only):
    good, count = 0, 0
    for archive in sorted(os.listdir(layers)):
        if not archive.endswith('.zip') or archive.startswith('loss'):
            continue
        with zipfile.ZipFile(os.path.join(layers, archive)) as files:
            for name in sorted({n.split('/')[0] for n in files.namelist()}):
                called = f'{archive[:-4]}/{name}'
                if called in NOT_ON_CPUS or only and called not in only:
                    continue
                # A loss is no part of an export.
                if b'\nloss {' in files.read(f'{name}/job.pbtxt'):
                    continue
                count += 1
                case = json.loads(files.read(f'{name}/case.json'))
                values = dict(np.load(io.BytesIO(files.read(f'{name}/values.npz'))))
                prefix, said = export(files, name, os.path.join(work, called))
                said = said or apart(lambda: check(called, prefix, case, values))
                if said:
                    print(f'{called}: {said}', flush=True)
                else:
                    good += 1
    print(f'{good} of {count} layers')
    return 0 if good == count else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

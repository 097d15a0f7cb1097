# SPDX-License-Identifier: Apache-2.0
"""Every layer's export in paddle.jit.load. Run by scripts/check_interop.

  check_layers.py LAYERS WORK [FAMILY/CASE...]

LAYERS is testdata/layers: a job, parameters, inputs and PaddlePaddle's answers
for each case. pd-export writes the job's network; paddle.jit.load must take it,
answer as the case says in evaluation and in training, and give the case's
gradients of inputs and parameters. Layers that are random in training have no
answers of training: their gradients must only be there.

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


def tensors(values, kind):
    return {k[len(kind) + 1:]: v for k, v in values.items() if k.startswith(kind + '/')}


def near(want, got, case, what):
    scale = max(1.0, float(np.abs(want).max(initial=0))) if want.dtype.kind == 'f' else 1.0
    np.testing.assert_allclose(np.asarray(got).reshape(want.shape), want, rtol=max(case['rtol'], 1e-4),
                               atol=max(case['atol'], 1e-4) * scale, err_msg=what)


def set_state(layer, state):
    """Parameters by the names that they have in the job."""
    once = {v.name: v for v in list(layer.parameters()) + list(layer.buffers())}
    names = {v.name: k for k, v in layer.state_dict().items()}
    for name, value in state.items():
        target = once.get(name) or next((v for n, v in once.items() if names.get(n) == name), None)
        if target is not None:
            target.set_value(value)
    return once


def run(layer, values, names):
    given = {}
    for name in names:
        given[name] = paddle.to_tensor(values['in/' + name])
        given[name].stop_gradient = given[name].dtype not in (paddle.float32, paddle.float64)
    made = layer(*given.values())
    return list(made) if isinstance(made, (list, tuple)) else [made], given


def check(folder, prefix, case, values):
    layer = paddle.jit.load(prefix)
    names = [s.name for s in layer._input_spec()] if hasattr(layer, '_input_spec') else sorted(tensors(values, 'in'))
    parameters = set_state(layer, tensors(values, 'state'))
    layer.eval()
    made, _ = run(layer, values, names)
    for k, want in tensors(values, 'eval').items():
        near(want, made[int(k)].numpy(), case, f'evaluation, result {k}')
    layer.train()
    made, given = run(layer, values, names)
    train = tensors(values, 'train')
    for k, want in train.items():
        near(want, made[int(k)].numpy(), case, f'training, result {k}')
    cotangents = tensors(values, 'ct')
    floats = [k for k, m in enumerate(made) if m.dtype in (paddle.float32, paddle.float64) and not m.stop_gradient]
    if not floats:
        return 'no gradient'
    weights = {k: cotangents.get(str(k)) for k in floats}
    total = sum((m * (paddle.to_tensor(weights[k]).reshape(m.shape) if weights[k] is not None else 1.)).sum()
                for k, m in enumerate(made) if k in weights and (weights[k] is not None or not cotangents))
    total.backward()
    for name, want in tensors(values, 'grad').items():
        of = given.get(name)
        of = parameters.get(name) if of is None else of
        if of is None or of.grad is None:
            raise AssertionError(f'no gradient of {name}')
        near(want, of.grad.numpy(), case, f'gradient of {name}')
    return ''


def main(layers, work, only):
    good, count = 0, 0
    for archive in sorted(os.listdir(layers)):
        if not archive.endswith('.zip') or archive.startswith('loss'):  # a loss is no part of an export
            continue
        with zipfile.ZipFile(os.path.join(layers, archive)) as files:
            for name in sorted({n.split('/')[0] for n in files.namelist()}):
                called = f'{archive[:-4]}/{name}'
                if only and called not in only:
                    continue
                count += 1
                case = json.loads(files.read(f'{name}/case.json'))
                values = dict(np.load(io.BytesIO(files.read(f'{name}/values.npz'))))
                folder = os.path.join(work, called)
                os.makedirs(folder, exist_ok=True)
                with open(os.path.join(folder, 'job.pbtxt'), 'wb') as job:
                    job.write(files.read(f'{name}/job.pbtxt'))
                prefix = os.path.join(folder, 'm')
                exported = subprocess.run(['pd-export', '-q', '-c', os.path.join(folder, 'job.pbtxt'), '-o', prefix],
                                          capture_output=True, text=True)
                if exported.returncode != 0:
                    print(f'{called}: pd-export: {exported.stderr.strip()[-300:]}')
                    continue
                try:
                    check(folder, prefix, case, values)
                    good += 1
                except Exception as error:  # PaddlePaddle's errors are of many kinds
                    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
                    print(f'{called}: ' + ' | '.join(lines[-6:])[:600])
    print(f'{good} of {count} layers')
    return 0 if good == count else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1], sys.argv[2], sys.argv[3:]))

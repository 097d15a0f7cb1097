# SPDX-License-Identifier: Apache-2.0
"""Everything that pd-export writes as ONNX, in ONNX Runtime.

  operators WORK ZIP...   PaddlePaddle's recorded cases of operators, one zip an
                          operator: ONNX Runtime gives PaddlePaddle's answers
  jobs WORK JOB...        the networks of job files: it answers as pd-eval does
  networks WORK           all networks of the zoo, likewise

pd-export and pd-eval are found by PATH. Prints a line for each; a case that
pd-export refuses is shown with its reason, and is no failure of `operators`.
The exit status is 0 only when none failed.
"""
import json
import os
import re
import subprocess
import sys
import zipfile

import numpy as np

from check_onnx import answers, expect

OPSETS = (17, 11)

# Where an index lies beyond a list's end PaddlePaddle puts empty tensors
# between, and ONNX Runtime refuses it.
NOT_IN_ONNX = ('tensor_array/length',)


def run(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.returncode, (done.stderr or done.stdout).strip()


class Count:
    def __init__(self):
        self.passed = self.refused = self.failed = 0

    def ok(self, name):
        self.passed += 1
        print(f'ok       {name}', flush=True)

    def refuse(self, name, why):
        self.refused += 1
        print(f'refused  {name}: {why.splitlines()[-1]}', flush=True)

    def fail(self, name, why):
        self.failed += 1
        print(f'FAILED   {name}')
        for line in str(why).strip().splitlines()[:14]:
            print('         ' + line[:300], flush=True)

    def end(self):
        print(f'{self.passed} passed, {self.refused} refused, {self.failed} failed')
        return 1 if self.failed else 0


def operator_case(name, folder, opset, count):
    case = json.load(open(f'{folder}/case.json'))
    feed = {k: v for k, v in np.load(f'{folder}/feed.npz').items()
            if not k.endswith('@CT')}
    want = {k: v for k, v in np.load(f'{folder}/expect.npz').items()
            if not k.endswith('@GRAD')}
    if name in NOT_IN_ONNX or not want or os.path.exists(f'{folder}/feed.lod.json'):
        return
    program = f'{folder}/forward.pdmodel'
    if not os.path.exists(program):
        program = f'{folder}/program.pdmodel'
    out = f'{folder}/{opset}.onnx'
    inputs = [x for k in feed for x in ('--input', k)]
    status, text = run('pd-export', '-q', '-m', program, *inputs, '--fetch',
                       ','.join(want), '--to', 'onnx', '--opset', str(opset),
                       '-o', out)
    label = f'{name}, opset {opset}'
    if status != 0:
        return count.refuse(label, text)
    try:
        got = answers(out, feed, opset)
        # A file of a name that has no slash: npz keeps them all.
        expect(out, got, want, max(case.get('rtol', 0), 2e-5),
               max(case.get('atol', 0), 2e-5))
    except Exception as error:  # whatever ONNX Runtime throws is an answer
        return count.fail(label, error)
    count.ok(label)


def operators(work, *zips):
    count = Count()
    for path in zips:
        operator = os.path.basename(path)[:-4]
        with zipfile.ZipFile(path) as archive:
            archive.extractall(f'{work}/{operator}')
        for case in sorted(os.listdir(f'{work}/{operator}')):
            for opset in OPSETS:
                operator_case(f'{operator}/{case}', f'{work}/{operator}/{case}',
                              opset, count)
    return count.end()


def made_up(model_path, network, batch=2):
    """Inputs of the model's own shapes: normal numbers, small integers."""
    import onnx
    rng = np.random.default_rng(7)
    feed = {}
    for value in onnx.load(model_path).graph.input:
        tensor = value.type.tensor_type
        shape = [d.dim_value if d.HasField('dim_value') else batch
                 for d in tensor.shape.dim]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        if np.issubdtype(dtype, np.floating):
            feed[value.name] = rng.standard_normal(shape).astype(dtype)
        elif dtype == np.uint8:
            feed[value.name] = rng.integers(0, 256, shape).astype(dtype)
        else:  # BERT has two segments, numbered from 0
            low = 0 if re.match('bert|ernie', network) and value.name == 'x1' else 1
            feed[value.name] = rng.integers(low, low + 2, shape).astype(dtype)
    return feed


def network(name, job, folder, count):
    os.makedirs(folder, exist_ok=True)
    # Both forms have the same first values: the job's seed gives them.
    ours = f'{folder}/paddle'
    status, text = run('pd-export', '-q', '-c', job, '-o', ours)
    if status != 0:
        return count.fail(f'{name}: export to paddle', text)
    for opset in OPSETS:
        label, out = f'{name}, opset {opset}', f'{folder}/{opset}.onnx'
        status, text = run('pd-export', '-q', '-m', ours, '--to', 'onnx',
                           '--opset', str(opset), '-o', out)
        if status != 0:
            (count.fail if opset == OPSETS[0] else count.refuse)(label, text)
            continue
        try:
            feed = made_up(out, name)
            np.savez(f'{folder}/feed.npz', **feed)
            got = answers(out, feed, opset)
        except Exception as error:
            count.fail(label, error)
            continue
        for model in (ours, out):
            status, text = run('pd-eval', '-q', '-m', model, '--feed',
                               f'{folder}/feed.npz', '--out',
                               f'{folder}/answers.npz')
            if status != 0:
                count.fail(f'{label}: pd-eval -m {model}', text)
                break
            try:
                want = dict(np.load(f'{folder}/answers.npz'))
                least = max(float(np.abs(v).max(initial=0)) for v in want.values())
                expect(out, got, want, 1e-4, 1e-5 * max(1, least))
            except Exception as error:
                count.fail(f'{label}: {model}', error)
                break
        else:
            count.ok(label)
        os.remove(out)


def jobs(work, *paths):
    count = Count()
    for path in paths:
        if re.search(r'^quant \{', open(path).read(), re.M):
            continue  # means nothing before it is trained; check_interop does
        network(path, path, f'{work}/{re.sub("[^A-Za-z0-9]+", "_", path)}', count)
    return count.end()


# What networks of the zoo take, by the first pattern that fits the name;
# pictures otherwise.
INPUTS = [
    ('lenet', ['[-1, 1, 28, 28]']),
    ('crnn', ['[-1, 1, 32, 64]']),
    ('inception', ['[-1, 3, 299, 299]']),
    ('unet|yolov3', ['[-1, 3, 64, 64]']),
    ('bert_masked', ['[-1, 9] dtype: int64'] * 3),
    ('bert|ernie', ['[-1, 9] dtype: int64'] * 2),
    ('transformer', ['[-1, 7] dtype: int64', '[-1, 5] dtype: int64']),
    ('gpt|lstm_lm', ['[-1, 9] dtype: int64']),
    ('faster_rcnn', ['[-1, 3, 224, 224]', '[-1, 2, 4]', '[-1, 2] dtype: int64']),
    ('wide_deep|deepfm', ['[-1, 8] dtype: int64']),
    ('dcn', ['[-1, 3] dtype: int64']),
    ('', ['[-1, 3, 224, 224]']),
]


def zoo_job(name):
    shapes = next(s for pattern, s in INPUTS if re.match(pattern, name))
    inputs = [f'input {{ name: "x{i}" shape: {s} }}' for i, s in enumerate(shapes)]
    names = ', '.join(f'"x{i}"' for i in range(len(shapes)))
    return (f'model {{ {" ".join(inputs)} layer {{ name: "net" input: [{names}] '
            f'block {{ use: "{name}" }} }} }}\n')


def networks(work, *only):
    count = Count()
    listed = subprocess.run(['pd-train', '--networks'], check=True, text=True,
                            capture_output=True).stdout
    for line in listed.splitlines():
        name = line.split()[0]
        if only and name not in only:
            continue
        job = f'{work}/{name}.pbtxt'
        with open(job, 'w') as file:
            file.write(zoo_job(name))
        network(name, job, f'{work}/{name}', count)
    return count.end()


if __name__ == '__main__':
    sys.exit({'operators': operators, 'jobs': jobs,
              'networks': networks}[sys.argv[1]](*sys.argv[2:]))

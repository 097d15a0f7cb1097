#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What pd-profile costs. Called by scripts/bench --profile.

One process per job runs cycles of steps that are not recorded and steps that
are, in turn, so both see the same machine; medians are compared. A limit is a
share of the step. resnet18_cifar gets pictures of noise: time does not depend
on what is in them.
"""
import json
import os
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BIN = os.path.join(os.environ.get('BUILD_DIR', os.path.join(ROOT, 'build')), 'bin')
LIMITS = {'lenet_mnist': 0.05, 'resnet18_cifar': 0.02}
STEPS = {'lenet_mnist': (50, 20), 'resnet18_cifar': (2, 10)}  # a part of a cycle, cycles


def median(values):
    values = sorted(values)
    half = len(values) // 2
    return values[half] if len(values) % 2 else (values[half - 1] + values[half]) / 2


def noise(folder):
    """Pictures in CIFAR-10's binary form: a label and 3072 bytes each."""
    path = os.path.join(folder, 'noise.bin')
    with open(path, 'wb') as out:
        for i in range(1024):
            out.write(bytes([i % 10]) + os.urandom(3072))
    return path


def measure(job, folder):
    path = job if os.path.exists(job) else os.path.join(ROOT, 'testdata', 'jobs', job + '.pbtxt')
    part, cycles = STEPS.get(job, (10, 10))
    data = ['-o', 'data.train.cifar10.data_file=' + noise(folder)] if job == 'resnet18_cifar' else []
    out = subprocess.run(
        [os.path.join(BIN, 'pd-profile'), '-q', '-c', path, '-o', 'train.epochs=1000000', *data, '--roofline', '0',
         '--scheduler', f'skip_first=10,closed={part},record={part},repeat={cycles}', '--format', 'json'],
        stdout=subprocess.PIPE, check=True).stdout
    result = json.loads(out)
    windows = result['windows']
    recorded = median([w['perf']['batch_cost_s']['median'] for w in windows])
    plain = result['unrecorded']['batch_cost_s']['median']
    covered = median([1 - w['coverage']['rest_ms'] / w['coverage']['steps_ms'] for w in windows])
    events = len(windows[0]['ops'])
    return plain, recorded, covered, events


def main(jobs):
    print('| job | ops a step | step, not recorded | recorded | cost | limit | of the step covered |')
    print('|---|---|---|---|---|---|---|')
    missed = False
    for job in jobs or list(LIMITS):
        with tempfile.TemporaryDirectory() as folder:
            plain, recorded, covered, events = measure(job, folder)
        limit = LIMITS.get(job)
        cost = recorded / plain - 1
        missed |= limit is not None and (cost > limit or covered < 0.97)
        print(f'| {job} | {events} | {plain * 1e3:.3f} ms | {recorded * 1e3:.3f} ms | {cost * 100:+.2f} % | '
              f'{"-" if limit is None else f"{limit * 100:g} %"} | {covered * 100:.1f} % |', flush=True)
    return 1 if missed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Records a small trace with PaddlePaddle's profiler: its protobuf, and the
tables that it prints of it.

    profile_goldens.py testdata/profile     (paddlepaddle 2.6.2)
"""
import contextlib
import glob
import gzip
import io
import os
import sys
import tempfile

import numpy
import paddle
from paddle import nn, profiler


class Rows(paddle.io.Dataset):
    def __getitem__(self, i):
        return numpy.full([8], i, 'float32'), numpy.array([i % 4], 'int64')

    def __len__(self):
        return 64


def main(folder):
    def ready(prof):
        with tempfile.TemporaryDirectory() as scratch:
            profiler.export_protobuf(scratch)(prof)
            trace = open(glob.glob(scratch + '/*.pb')[0], 'rb').read()
        with open(os.path.join(folder, 'paddle_trace.pb.gz'), 'wb') as out:
            out.write(gzip.compress(trace, 9, mtime=0))
        tables = io.StringIO()
        with contextlib.redirect_stdout(tables):
            prof.summary(sorted_by=profiler.SortedKeys.CPUTotal, op_detail=False)
        with open(os.path.join(folder, 'paddle_tables.txt'), 'w') as out:
            out.write(tables.getvalue())

    paddle.seed(0)
    net = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    opt = paddle.optimizer.Adam(parameters=net.parameters())
    prof = profiler.Profiler(targets=[profiler.ProfilerTarget.CPU],
                             scheduler=[2, 5], on_trace_ready=ready)
    prof.start()
    for x, y in paddle.io.DataLoader(Rows(), batch_size=8):
        with profiler.RecordEvent('my range'):
            logits = net(x)
        with profiler.RecordEvent('my memcpy'):
            x.numpy()
        loss = nn.functional.cross_entropy(logits, y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        prof.step()
    prof.stop()


if __name__ == '__main__':
    main(sys.argv[1])

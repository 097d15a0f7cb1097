#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PaddlePaddle's WeightQuantization makes of a small network.

  weight_goldens.py OUT_DIR

OUT_DIR gets float.pdmodel and float.pdiparams, the same network with weights of
8 and 16 bits and a scale for each channel or one (int8_channels, ...), and
answers.npz: x, and what PaddlePaddle answers with the dequantized weights, by
the name of the network. Needs paddlepaddle 2.6.2.
"""
import pathlib
import shutil
import sys
import tempfile

import numpy as np
import paddle
from paddle.static.quantization import WeightQuantization

OPS = ['conv2d', 'depthwise_conv2d', 'mul']


def network(exe, folder):
    paddle.seed(5)
    program, startup = paddle.static.Program(), paddle.static.Program()
    with paddle.static.program_guard(program, startup):
        x = paddle.static.data('x', [-1, 2, 8, 8], 'float32')
        h = paddle.static.nn.conv2d(x, 4, 3, act='relu')
        weight = paddle.static.create_parameter([4, 1, 3, 3], 'float32',
                                                name='depthwise.w')
        h = paddle.nn.functional.conv2d(h, weight, groups=4)
        y = paddle.static.nn.fc(h, 5)
    exe.run(startup)
    paddle.static.save_inference_model(f'{folder}/m', [x], [y], exe,
                                       program=program)


def answer(exe, prefix, x):
    with paddle.static.scope_guard(paddle.static.Scope()):
        program, feeds, fetches = paddle.static.load_inference_model(prefix, exe)
        return exe.run(program, feed={feeds[0]: x}, fetch_list=fetches)[0]


def main(out):
    paddle.enable_static()
    out.mkdir(parents=True, exist_ok=True)
    exe = paddle.static.Executor(paddle.CPUPlace())
    answers = {'x': np.random.default_rng(7).normal(
        size=(3, 2, 8, 8)).astype('float32')}
    with tempfile.TemporaryDirectory() as work:
        network(exe, work)

        def keep(prefix, name):
            shutil.copyfile(prefix + '.pdiparams', out / (name + '.pdiparams'))
            program = paddle.static.Program.parse_from_string(
                pathlib.Path(prefix + '.pdmodel').read_bytes())
            for op in program.global_block().ops:
                op._remove_attr('op_callstack')
            (out / (name + '.pdmodel')).write_bytes(
                program.desc.serialize_to_string())

        keep(f'{work}/m', 'float')
        for bits in (8, 16):
            for kind, scales in (('channel_wise_abs_max', 'channels'),
                                 ('abs_max', 'whole')):
                name = f'int{bits}_{scales}'
                WeightQuantization(work, 'm.pdmodel', 'm.pdiparams') \
                    .quantize_weight_to_int(
                        f'{work}/{name}', 'm.pdmodel', 'm.pdiparams', OPS, bits,
                        kind, generate_test_model=True)
                keep(f'{work}/{name}/quantized_model/m', name)
                answers[name] = answer(exe, f'{work}/{name}/test_model/m',
                                       answers['x'])
    np.savez(out / 'answers.npz', **answers)


if __name__ == '__main__':
    main(pathlib.Path(sys.argv[1]))

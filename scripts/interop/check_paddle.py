# SPDX-License-Identifier: Apache-2.0
"""Real PaddlePaddle reads what pdkit wrote. Run by scripts/check_interop.

  answer PREFIX FEED OUT     runs an inference model on FEED.npz, which is made
                             when it is not there, and writes the answers
  legacy FOLDER FEED OUT     the same for the older form
  weights PREFIX FEED OUT    the same for weights of integers with their scales in
                             attributes, after what Paddle Lite does to them
  checkpoint PREFIX          loads .pdparams, .pdopt and .pdmodel, both as
                             paddle.load and as paddle.static.load do, and
                             trains one more step
  profile TRACE SUMMARY      loads a trace as paddle.profiler does; what it adds
                             up to is what SUMMARY, of pd-profile --format json,
                             says
"""
import json
import os
import sys

import numpy as np
import paddle

paddle.enable_static()
EXECUTOR = paddle.static.Executor(paddle.CPUPlace())


def random_feed(program, names, batch=3):
    """Pictures for floats, small numbers for integers."""
    random = np.random.RandomState(7)
    feed = {}
    for name in names:
        var = program.global_block().var(name)
        shape = [batch if extent < 0 else extent for extent in var.shape]
        if var.dtype in (paddle.int32, paddle.int64):
            dtype = 'int32' if var.dtype == paddle.int32 else 'int64'
            feed[name] = random.randint(0, 2, shape).astype(dtype)
        else:
            feed[name] = random.standard_normal(shape).astype('float32')
    return feed


def answer(program, feeds, fetches, feed_path, out_path):
    if not os.path.exists(feed_path):
        np.savez(feed_path, **random_feed(program, feeds))
    feed = dict(np.load(feed_path))
    answers = EXECUTOR.run(program, feed=feed, fetch_list=fetches)
    np.savez(out_path, **{f.name: a for f, a in zip(fetches, answers)})


def check_inference(prefix, feed_path, out_path):
    answer(*paddle.static.load_inference_model(prefix, EXECUTOR),
           feed_path, out_path)


def check_legacy(folder, feed_path, out_path):
    answer(*paddle.static.load_inference_model(
        folder, EXECUTOR, model_filename='__model__'), feed_path, out_path)


def check_weights(prefix, feed_path, out_path):
    program, feeds, fetches = paddle.static.load_inference_model(prefix,
                                                                 EXECUTOR)
    done = set()
    for op in program.global_block().ops:
        if not op.has_attr('quantize_weight_bits'):
            continue
        for name in op.input_arg_names:
            if name in done or not op.has_attr(name + '_quant_scale'):
                continue
            done.add(name)
            tensor = paddle.static.global_scope().find_var(name).get_tensor()
            integers = np.array(tensor)
            bits = op.attr('quantize_weight_bits')
            assert integers.dtype == np.dtype(f'int{bits}'), integers.dtype
            scales = np.array(op.attr(name + '_quant_scale'), 'float32')
            shape = [1] * integers.ndim
            if len(scales) > 1:
                shape[1 if op.type == 'mul' else 0] = -1
            tensor.set(integers.astype('float32') * scales.reshape(shape),
                       paddle.CPUPlace())
    assert done, 'no weight is an integer'
    answer(program, feeds, fetches, feed_path, out_path)


def check_profile(trace, summary):
    from paddle import profiler
    from paddle.profiler.profiler_statistic import StatisticData
    result = profiler.load_profiler_result(trace)
    events = StatisticData(result.get_data(), result.get_extra_info()).event_summary
    with open(summary) as file:
        ours = json.load(file)['windows'][0]
    for items, rows in ((events.items, ours['operators']),
                        (events.model_perspective_items, ours['model'])):
        assert len(items) == len(rows) > 0, (sorted(items), rows)
        for row in rows:
            item = items[row['name']]
            assert item.call == row['calls'], row
            for theirs, key in ((item.cpu_time, 'cpu_total_ms'), (item.max_cpu_time, 'cpu_max_ms'),
                                (item.min_cpu_time, 'cpu_min_ms')):
                assert abs(theirs / 1e6 - row[key]) < 1e-6, (row, theirs)


def check_checkpoint(prefix):
    with open(prefix + '.pdmodel', 'rb') as file:
        program = paddle.static.deserialize_program(file.read())
    stored = {}
    for suffix in ('.pdparams', '.pdopt'):
        stored.update(paddle.load(prefix + suffix, return_numpy=True))
    # Missing or misshapen values are errors of static.load.
    paddle.static.load(program, prefix, EXECUTOR)
    scope = paddle.static.global_scope()
    compared = 0
    for name, value in stored.items():
        var = scope.find_var(name)
        if var is None or not isinstance(value, np.ndarray):
            continue
        np.testing.assert_array_equal(np.array(var.get_tensor()), value, name)
        compared += 1
    parameters = len(program.all_parameters())
    if compared < parameters or parameters == 0:
        sys.exit(f'{prefix}: {compared} of {len(stored)} values were loaded; '
                 f'the program has {parameters} parameters')
    made = {name for op in program.global_block().ops
            for name in op.output_arg_names}
    feeds = sorted({name for op in program.global_block().ops
                    for name in op.input_arg_names if name not in made and
                    not program.global_block().var(name).persistable})
    # The backward pass starts at the loss's own gradient.
    start = next(op for op in program.global_block().ops
                 if op.attr('op_role') & 1)
    loss = start.output_arg_names[0].removesuffix('@GRAD')
    before = {p.name: np.array(scope.find_var(p.name).get_tensor())
              for p in program.all_parameters()}
    got = EXECUTOR.run(program, feed=random_feed(program, feeds),
                       fetch_list=[loss])
    moved = [name for name, value in before.items() if not np.array_equal(
        value, np.array(scope.find_var(name).get_tensor()))]
    if not np.isfinite(got[0]).all() or not moved:
        sys.exit(f'{prefix}: a step of training gave loss {got[0]} and changed '
                 f'{len(moved)} parameters')
    print(f'{compared} values loaded, one step trained: loss {got[0].item():.4f}')


if __name__ == '__main__':
    {'answer': check_inference, 'legacy': check_legacy, 'weights': check_weights,
     'checkpoint': check_checkpoint, 'profile': check_profile}[sys.argv[1]](*sys.argv[2:])

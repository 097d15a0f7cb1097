#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what PaddlePaddle's operators save and save_combine write.

  file_goldens.py OUT_DIR

Needs paddlepaddle 2.6. tests/ops/test_file_ops.cc saves the same numbers and
loads these files.
"""
import os
import sys

import numpy as np
import paddle
from paddle import static

FEED = {"x": np.arange(6, dtype="float32").reshape(2, 3) / 4, "y": np.array([7, -8], "int64")}


def write(type, names, path, **attrs):
    program = static.Program()
    with static.program_guard(program, static.Program()):
        given = [static.data(name, FEED[name].shape, str(FEED[name].dtype)) for name in names]
        given = [paddle.assign(variable) for variable in given]
        block = program.global_block()
        kept = {"Y": [block.create_var(type=paddle.base.core.VarDesc.VarType.RAW, name="kept", persistable=True)]}
        block.append_op(type=type, inputs={"X": given}, outputs=kept if type == "save_combine" else {}, attrs=dict(attrs, file_path=path))
    static.Executor(paddle.CPUPlace()).run(program, feed={name: FEED[name] for name in names})


def main(arguments):
    if len(arguments) != 1:
        print(__doc__)
        return 2
    paddle.enable_static()
    write("save", ["x"], os.path.join(arguments[0], "save.bin"))
    write("save", ["x"], os.path.join(arguments[0], "save_fp16.bin"), save_as_fp16=True)
    write("save_combine", ["y", "x"], os.path.join(arguments[0], "save_combine.bin"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes cases of the collectives by their newer names.

  newer_collectives.py

Needs paddlepaddle 2.6, for its protobuf. Takes cases of c_allgather,
c_allreduce_sum, ... in testdata/fleet/ops, whose answers are PaddlePaddle's, and
renames op and slots: all_gather computes what c_allgather does.
"""
import json
import os
import zipfile

from paddle.base.proto import framework_pb2

FOLDER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "fleet", "ops")
KINDS = ["sum", "max", "min", "prod"]
NEWER = {"all_gather": {"c_allgather": None}, "all_to_all": {"alltoall": None}, "broadcast": {"c_broadcast": None},
         "reduce_scatter": {"c_reducescatter": None},
         "all_reduce": {"c_allreduce_" + kind: k for k, kind in enumerate(KINDS)},
         "reduce": {"c_reduce_" + kind: k for k, kind in enumerate(KINDS)}}


def renamed(data, older, newer, kind):
    program = framework_pb2.ProgramDesc.FromString(data)
    for block in program.blocks:
        for op in block.ops:
            if op.type != older:
                continue
            op.type = newer
            for slots, name in ((op.inputs, "x"), (op.outputs, "out")):
                kept = [slot for slot in slots if slot.parameter.lower() == name]
                del slots[:]
                slots.extend(kept)
                slots[0].parameter = name
            if kind is not None:
                op.attrs.add(name="reduce_type", type=framework_pb2.INT, i=kind)
    return program.SerializeToString()


def main():
    for newer, olders in NEWER.items():
        with zipfile.ZipFile(os.path.join(FOLDER, newer + ".zip"), "w", zipfile.ZIP_DEFLATED) as out:
            for older, kind in olders.items():
                with zipfile.ZipFile(os.path.join(FOLDER, older + ".zip")) as archive:
                    cases = sorted({name.split("/")[0] for name in archive.namelist()})
                    chosen = [next(c for c in cases if c.endswith(world)) for world in ("_w2", "_w4")
                              if any(c.endswith(world) for c in cases)]
                    for name in archive.namelist():
                        case, rest = name.split("/", 1)
                        if case not in chosen or not rest:
                            continue
                        data = archive.read(name)
                        if rest == "case.json":
                            about = json.loads(data)
                            about["op"] = newer
                            about["ops"] = [[newer if o == older else o for o in ops] for ops in about["ops"]]
                            data = json.dumps(about, indent=1).encode()
                        elif rest.endswith(".pdmodel"):
                            data = renamed(data, older, newer, kind)
                        folder = case if kind is None else KINDS[kind] + "_" + case
                        entry = zipfile.ZipInfo(folder + "/" + rest, (2023, 1, 1, 0, 0, 0))
                        out.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()

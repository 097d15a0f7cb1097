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
         "reduce_scatter": {"c_reducescatter": None}, "dist_concat": {"c_concat": None},
         "p_send_recv": {"send_recv_v2": None}, "comm_init": {"c_allgather": None},
         "all_reduce": {"c_allreduce_" + kind: k for k, kind in enumerate(KINDS)},
         "reduce": {"c_reduce_" + kind: k for k, kind in enumerate(KINDS)}}
# Cases of several types, and one whose programs begin with the operators that set a ring up.
TYPES = {"p_send_recv": {"send_v2": "p_send", "recv_v2": "p_recv"}, "comm_init": {}}


def set_up_ring(program, rank, world):
    """Puts the operators before those of a program of ring 0."""
    block = program.blocks[0]
    block.vars.add(name="xccl_id", type=framework_pb2.VarType(type=framework_pb2.VarType.RAW))
    made = []
    for type, strings, ints in (("c_gen_xccl_id", dict(endpoint="127.0.0.1:6170"), dict(rank=rank, ring_id=0)),
                                ("c_comm_init_multitrainer", {}, dict(ntrainers=world, trainer_id=rank, ring_id=0)),
                                ("c_comm_init_all", {}, dict(ring_id=0))):
        op = framework_pb2.OpDesc(type=type)
        for name, value in strings.items():
            op.attrs.add(name=name, type=framework_pb2.STRING, s=value)
        for name, value in ints.items():
            op.attrs.add(name=name, type=framework_pb2.INT, i=value)
        if type != "c_gen_xccl_id":
            op.attrs.add(name="devices", type=framework_pb2.INTS, ints=[0])
        if type != "c_comm_init_all":
            slots = op.outputs if type == "c_gen_xccl_id" else op.inputs
            slots.add(parameter="Out" if type == "c_gen_xccl_id" else "X", arguments=["xccl_id"])
        made.append(op)
    made += block.ops
    del block.ops[:]
    block.ops.extend(made)


def renamed(data, older, newer, kind):
    program = framework_pb2.ProgramDesc.FromString(data)
    for block in program.blocks:
        for op in block.ops:
            newest = TYPES.get(newer, {older: newer}).get(op.type)
            if newest is None:
                continue
            op.type = newest
            for slots, name in ((op.inputs, "x"), (op.outputs, "out")):
                kept = [slot for slot in slots if slot.parameter.lower() == name]
                del slots[:]
                slots.extend(kept)
                for slot in slots:
                    slot.parameter = name
            if kind is not None:
                op.attrs.add(name="reduce_type", type=framework_pb2.INT, i=kind)
    return program


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
                            types = TYPES.get(newer, {older: newer})
                            about["ops"] = [[types.get(o, o) for o in ops] for ops in about["ops"]]
                            data = json.dumps(about, indent=1).encode()
                        elif rest.endswith(".pdmodel"):
                            program = renamed(data, older, newer, kind)
                            if newer == "comm_init":
                                set_up_ring(program, int(rest.split("/")[0][4:]), int(case.rsplit("_w", 1)[1]))
                            data = program.SerializeToString()
                        folder = case if kind is None else KINDS[kind] + "_" + case
                        entry = zipfile.ZipInfo(folder + "/" + rest, (2023, 1, 1, 0, 0, 0))
                        out.writestr(entry, data, zipfile.ZIP_DEFLATED, 9)


if __name__ == "__main__":
    main()

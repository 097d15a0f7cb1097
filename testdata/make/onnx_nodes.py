#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""onnx_nodes.py FOLDER [ZIP]: ONNX's own node tests as files.

Writes those of the installed package `onnx` (1.23.2) to FOLDER, one folder
each, for scripts/check_onnx_nodes. With ZIP (testdata/onnx/newer_node_tests.zip)
the ones that node_tests.zip lacks and that are small, without the bodies of
functions, become that zip too.
"""

import os
import pathlib
import sys
import zipfile

import onnx
from onnx import TensorProto, numpy_helper
from onnx.backend.test.loader import load_model_tests

HERE = pathlib.Path(__file__).resolve().parent
LARGEST = 16384  # bytes of a test in the zip


def serialized(value, declared):
    kind = declared.type
    if kind.HasField("map_type"):
        return numpy_helper.from_dict(value, declared.name)
    if kind.HasField("sequence_type"):
        return numpy_helper.from_list(value, declared.name)
    if kind.HasField("optional_type"):
        return numpy_helper.from_optional(value, declared.name)
    if isinstance(value, TensorProto):
        return value
    return numpy_helper.from_array(value, declared.name)


def files(case):
    """Names and bytes of a test's files."""
    yield "model.onnx", case.model.SerializeToString()
    for number, data in enumerate(case.data_sets):
        graph = case.model.graph
        for kind, values, declared in zip(
                ("input", "output"), data, (graph.input, graph.output)):
            for i, (value, one) in enumerate(zip(values, declared)):
                yield (f"test_data_set_{number}/{kind}_{i}.pb",
                       serialized(value, one).SerializeToString())


# uint16 to uint64 are there, 8-bit floats, strings and smaller numbers not.
OURS = {1, 2, 3, 4, 5, 6, 7, 9, 10, 11, 12, 13, 16}


def is_ours(case):
    graph = case.model.graph
    return all(
        value.type.HasField("tensor_type")
        and value.type.tensor_type.elem_type in OURS
        for value in (*graph.input, *graph.output)) and all(
            node.domain in ("", "ai.onnx.ml") for node in graph.node)


def main():
    cases = sorted(load_model_tests(kind="node"), key=lambda case: case.name)
    for case in cases:
        for name, data in files(case):
            path = pathlib.Path(sys.argv[1]) / case.name / name
            os.makedirs(path.parent, exist_ok=True)
            path.write_bytes(data)
    print(f"{len(cases)} tests of ONNX {onnx.__version__}")
    if len(sys.argv) < 3:
        return
    old = zipfile.ZipFile(HERE / "../onnx/node_tests.zip").namelist()
    known = {name.split("/")[0] for name in old}
    count = 0
    with zipfile.ZipFile(sys.argv[2], "w", zipfile.ZIP_DEFLATED,
                         compresslevel=9) as out:
        for case in cases:
            if case.name in known or "_expanded" in case.name or not is_ours(case):
                continue
            all_files = list(files(case))
            if sum(len(data) for _, data in all_files) > LARGEST:
                continue
            count += 1
            for name, data in all_files:
                out.writestr(zipfile.ZipInfo(f"{case.name}/{name}"), data,
                             zipfile.ZIP_DEFLATED, 9)
    print(f"{count} of them in {sys.argv[2]}")


if __name__ == "__main__":
    main()

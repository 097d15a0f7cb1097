#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints testdata/api/functions.txt: the operator types that PaddlePaddle 2.6.2's functions and classes append to a
program, read off their sources: words that are operator types where an operator's type is said (`type=`, `op_type`,
LayerHelper's name, `_C_ops`); of a function that says none, those of the functions of PaddlePaddle that it calls.
Needs paddlepaddle 2.6.2; OP_SCHEMAS has a line of JSON with "op" for each type.

    testdata/make/api_ops.py OP_SCHEMAS > testdata/api/functions.txt
"""
import ast
import importlib
import inspect
import json
import sys
import textwrap
import types

SPACES = ("paddle paddle.linalg paddle.fft paddle.signal paddle.sparse paddle.sparse.nn paddle.sparse.nn.functional "
          "paddle.distribution paddle.vision.ops paddle.geometric paddle.incubate paddle.incubate.nn "
          "paddle.incubate.nn.functional paddle.distributed").split()
# Modules whose functions check, make variables or begin programs.
NO_OPERATORS = ("paddle.base.data_feeder", "paddle.base.framework", "paddle.base.layer_helper", "paddle.framework",
                "paddle.utils", "paddle.static", "paddle.nn.layer", "paddle.tensor.creation", "paddle.nn.initializer", "paddle.base.dygraph")


class Reader:
    def __init__(self, types_of_operators, tensor_functions):
        self.types = types_of_operators
        self.tensor_functions = tensor_functions
        self.known = {}

    def of(self, thing):
        """The types that a function, or the methods of a class, name."""
        if inspect.isclass(thing):
            found = set()
            for method in vars(thing).values():
                if isinstance(method, types.FunctionType):
                    found |= self.of(method)
            return found
        thing = inspect.unwrap(thing)
        if id(thing) not in self.known:
            self.known[id(thing)] = set()  # a function that calls itself
            self.known[id(thing)] = self.read(thing)
        return self.known[id(thing)]

    def read(self, function):
        try:
            tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
        except (OSError, TypeError, SyntaxError):
            return set()
        words, called, callees = set(), set(), set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
                if getattr(node.targets[0], "id", "") in ("op_type", "op"):
                    words.add(node.value.value)
            if not isinstance(node, ast.Call):
                continue
            words |= {k.value.value for k in node.keywords
                      if k.arg in ("type", "op_type", "op_name") and isinstance(k.value, ast.Constant)}
            name = ast.unparse(node.func)
            if name == "LayerHelper" and node.args and isinstance(node.args[0], ast.Constant):
                words.add(node.args[0].value)
            if name.startswith("_C_ops."):
                called.add(name[len("_C_ops."):])
            callees.add(name)
        # The names of _C_ops are not always types.
        found = words & self.types or called & self.types
        if not found:
            for name in callees:
                found |= self.callee(name, function.__globals__)
        return found

    def callee(self, name, scope):
        """The types of the function of PaddlePaddle that is called by this name."""
        first, *rest = name.split(".")
        target = scope.get(first)
        for part in rest:
            target = getattr(target, part, None)
        if not isinstance(target, types.FunctionType):
            target = self.tensor_functions.get(rest[-1]) if rest and first not in scope else None
        if target is None or not target.__module__.startswith("paddle.") or target.__module__.startswith(NO_OPERATORS):
            return set()
        return self.of(target)


def main():
    import paddle
    with open(sys.argv[1]) as schemas:
        operators = {json.loads(line)["op"] for line in schemas}
    tensor_functions = {n: f for n, f in vars(paddle.tensor).items() if isinstance(f, types.FunctionType)}
    reader = Reader(operators, tensor_functions)
    print("# Operator types that PaddlePaddle 2.6.2's functions append, by testdata/make/api_ops.py.")
    for space in SPACES:
        module = importlib.import_module(space)
        for name in sorted(set(module.__all__)):
            # A name with _ at its end changes its argument in place: the same operators.
            thing = getattr(module, name.rstrip("_"), None) or getattr(module, name)
            is_code = inspect.isclass(thing) or isinstance(thing, types.FunctionType)
            found = reader.of(thing) if is_code else set()
            if not found and space == "paddle.sparse":
                found = {"sparse_" + name} & operators
            if found:
                print(f"{space}.{name}", *sorted(found))


main()

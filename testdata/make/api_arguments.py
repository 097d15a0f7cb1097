#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints testdata/api/arguments.txt: the parameters of PaddlePaddle 1.8.5's functions and classes and those of their
successors in 2.6.2, in pairs of lines, for the names that libcore/convert/api_names.cc replaces. 1.8.5 is read as
source (its wheel, unpacked anywhere), 2.6.2 is asked (needs paddlepaddle 2.6.2).

    testdata/make/api_arguments.py FOLDER_OF_1.8.5/paddle/fluid > testdata/api/arguments.txt
"""
import ast
import inspect
import pathlib
import re
import sys


def parameters_of(function, method):
    """[(name, default or None)], as written in the source."""
    arguments = function.args
    names = [a.arg for a in arguments.args][1 if method else 0:]
    defaults = [None] * (len(names) - len(arguments.defaults)) + [ast.unparse(d) for d in arguments.defaults]
    found = list(zip(names, defaults))
    if arguments.vararg:
        found.append(("*" + arguments.vararg.arg, None))
    found += [(a.arg, d and ast.unparse(d)) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults)]
    if arguments.kwarg:
        found.append(("**" + arguments.kwarg.arg, None))
    return found


def old_definitions(fluid):
    """{name: [(module, parameters)]} of the package's modules, functions without attributes and aliases included."""
    found = {}
    for path in sorted(fluid.rglob("*.py")):
        module = ".".join(path.relative_to(fluid).with_suffix("").parts)
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.FunctionDef):
                found.setdefault(node.name, []).append((module, parameters_of(node, False)))
            elif isinstance(node, ast.ClassDef):
                init = [m for m in node.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"]
                if init:
                    found.setdefault(node.name, []).append((module, parameters_of(init[0], True)))
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if isinstance(node.value, ast.Name) and node.value.id in found:
                    found.setdefault(name, []).extend(d for d in found[node.value.id] if d[0] == module)
                elif name in ("__activations_noattr__", "__unary_func__"):
                    for element in node.value.elts:
                        found.setdefault(element.value, []).append((module, [("x", None), ("name", "None")]))
    return found


def new_parameters(name):
    import paddle
    target = paddle
    for part in name.split("."):
        target = getattr(target, part, None)
    if target is None:
        return None  # gone since 2.0
    try:
        found = inspect.signature(target.__init__ if inspect.isclass(target) else target).parameters.values()
    except (TypeError, ValueError):
        return None  # a class of the C++ core
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    return [(stars.get(p.kind, "") + p.name, None if p.default is p.empty else repr(p.default)) for p in found
            if p.name != "self"]


def text(parameters):
    return ", ".join(name if default is None else name + "=" + re.sub(r"\s+", " ", default)
                     for name, default in parameters)


def main():
    definitions = old_definitions(pathlib.Path(sys.argv[1]))
    table = pathlib.Path(__file__).parents[2] / "libcore/convert/api_names.cc"
    print("# PaddlePaddle 1.8.5's parameters, and those of 2.6.2 below, by testdata/make/api_arguments.py.")
    for old, new in re.findall(r'\{"([^"]+)",\s*"([^",]+)[^"]*",\s*true\}', table.read_text()):
        parts = old.split(".")
        package = parts[1] if len(parts) > 2 else ""
        found = definitions.get(parts[-1], [])
        found = [d for d in found if d[0].startswith(package)] or found
        new_ones = new_parameters(new)
        if found and new_ones is not None:
            print(f"{old}({text(found[0][1])})\n  {new}({text(new_ones)})")


main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints testdata/plugin/kernel_parameters.txt: how many tensors, attributes and outputs the kernels of PaddlePaddle
2.6.2 have, as the headers in its wheel declare them (needs paddlepaddle 2.6.2 installed; it is not imported).

    testdata/make/kernel_parameters.py > testdata/plugin/kernel_parameters.txt
"""
import importlib.util
import pathlib
import re

DECLARATION = re.compile(r"template\s*<typename T,\s*typename Context>\s*void\s+(\w+)Kernel\s*\(([^;{]*?)\)\s*[;{]")


def split(text):
    """The parameters of a list; commas within <> and () do not part them."""
    parameters, depth, word = [], 0, ""
    for letter in text:
        depth += letter in "<("
        depth -= letter in ">)"
        if letter == "," and depth == 0:
            parameters.append(word)
            word = ""
        else:
            word += letter
    return [" ".join(parameter.split()) for parameter in parameters + [word]]


def kind(parameter):
    if re.search(r"\bContext\b", parameter):
        return "context"
    if "DenseTensor" not in parameter:
        return "other tensor" if re.search(r"SelectedRows|TensorArray|TensorBase|Sparse", parameter) else "attribute"
    one = re.match(r"(phi::)?DenseTensor ?\*", parameter)
    return "output" if one or parameter.startswith("std::vector<DenseTensor*>") else "input"


def main():
    spec = importlib.util.find_spec("paddle")
    headers = pathlib.Path(spec.origin).parent / "include/paddle/phi/kernels"
    lines = set()
    for header in headers.glob("*.h"):
        for name, text in DECLARATION.findall(re.sub(r"//.*", "", header.read_text())):
            kinds = [kind(parameter) for parameter in split(text)]
            if "other tensor" in kinds:
                continue
            counts = [str(kinds.count(which)) for which in ("input", "attribute", "output")]
            lines.add(" ".join([name.lower(), *counts]))
    print("# Kernels of PaddlePaddle 2.6.2, without case and underscores: tensors, attributes, outputs.")
    print("# Written by testdata/make/kernel_parameters.py.")
    print("\n".join(sorted(lines)))


if __name__ == "__main__":
    main()

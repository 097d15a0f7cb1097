# SPDX-License-Identifier: Apache-2.0
"""What the parts of scripts/bench share. Standard library only."""
import json
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BUILD = os.environ.get("BUILD_DIR", os.path.join(ROOT, "build"))


def fail(message):
    print(f"bench: error: {message} (see the head of scripts/bench)", file=sys.stderr)
    sys.exit(2)


def tool(name):
    """The path of a built tool."""
    path = os.path.join(BUILD, "bin", name)
    if not os.path.exists(path):
        fail(f"no {path}: build first, or set BUILD_DIR")
    return path


def job_path(workload):
    path = os.path.join(ROOT, "testdata/jobs/bench", workload + ".pbtxt")
    if not os.path.exists(path):
        fail(f"no job for workload '{workload}' in testdata/jobs/bench")
    return path


def table(header, rows):
    """A Markdown table."""
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(str(cell) for cell in line) + " |" for line in lines)

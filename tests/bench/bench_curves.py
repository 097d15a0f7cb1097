# SPDX-License-Identifier: Apache-2.0
"""How the time of a step grows. Standard library only. See scripts/bench.

Each curve is a list of (size, times the work of the first, ms). A step that grows as its work does, or slower, stays
at or below 1 in the column "to linear": its time over the first one's, by its work over the first one's.
"""
import argparse
import math
import os
import sys
import tempfile

from bench_lib import RESULTS, THREADS, digits, fail, ours, table

BATCHES = [2 ** i for i in range(8)]
MLP = """name: "mlp"
model {{
  input {{ name: "x" shape: [-1, {width}] }}
{layers}}}
loss {{ cross_entropy {{}} }}
optimizer {{ sgd {{ learning_rate: 0.001 }} }}
data {{ train {{ npz {{ path: "unused.npz" }} batch_size: 1 }} }}
"""


def mlp(depth, width):
    """A job: `depth` layers as wide as what comes in."""
    return MLP.format(width=width, layers=f"  layer {{ linear {{ out_features: {width} }} }}\n  layer {{ relu {{}} }}\n" * depth)


def chain(size):
    """A job: three elementwise layers of `size` numbers."""
    return MLP.format(width=size, layers="  layer { relu {} }\n  layer { tanh {} }\n  layer { hardswish {} }\n")


def step_ms(workload, mode, batch, threads, seconds):
    """The time of a workload, or of a job's text."""
    with tempfile.NamedTemporaryFile("w", suffix=".pbtxt") as f:
        if "\n" in workload:
            f.write(workload)
            f.flush()
            workload = f.name
        line = ours(workload, mode, batch, threads, seconds)
    if line is None:
        fail("a point of the curve could not be measured")
    return line["step_ms_median"]


def curve(title, axis, points):
    """points: (size, work, how to measure it)."""
    print(f"bench: {title}", file=sys.stderr, flush=True)
    found = [(size, work, step_ms(*how)) for size, work, how in points]
    work = found[0][1]
    return {"title": title, "axis": axis, "points": [(size, w / work, ms) for size, w, ms in found]}


def measure(seconds):
    threads = [2 ** i for i in range(int(math.log2(2 * THREADS)) + 1)]
    depths, widths, sizes = [2, 4, 8, 16, 32], [2 ** i for i in range(6, 13)], [2 ** i for i in range(12, 27, 2)]
    return [
        curve("lenet_mnist, training step", "batch",
              [(b, b, ("lenet_mnist", "train", b, THREADS, seconds)) for b in BATCHES]),
        curve("mobilenetv2_imagenet, inference", "batch",
              [(b, b, ("mobilenetv2_imagenet", "infer", b, THREADS, seconds)) for b in BATCHES]),
        curve("perceptron of 512 wide layers, batch 128, training step", "layers",
              [(d, d, (mlp(d, 512), "train", 128, THREADS, seconds)) for d in depths]),
        curve("perceptron of 3 layers, batch 64, training step: work is width squared", "width",
              [(w, w * w, (mlp(3, w), "train", 64, THREADS, seconds)) for w in widths]),
        curve("relu, tanh and hardswish of a tensor, inference", "KB",
              [(s // 256, s, (chain(s), "infer", 1, THREADS, seconds)) for s in sizes]),
        curve("resnet18_cifar, batch 64, training step: work is a thread's share", "threads",
              [(t, 1 / min(t, THREADS), ("resnet18_cifar", "train", 64, t, seconds)) for t in threads]),
    ]


def markdown(curves):
    out = []
    for c in curves:
        first = c["points"][0][2]
        rows = [[size, digits(ms, 4), digits(ms / work, 4), f"{ms / first / work:.2f}"] for size, work, ms in c["points"]]
        out += [f"### {c['title']}", "",
                table([c["axis"], "step ms", "ms for the work of the first", "to linear"], rows), ""]
    return "\n".join(out)


WIDE, HIGH, LEFT, TOP = 340, 250, 62, 34  # of a panel, and its margins


def ticks(low, high):
    """Powers of ten, or of two where there are few of those, from low to high."""
    base = 10 if high / low >= 100 else 2
    first, last = math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9)
    return [base ** i for i in range(first, max(last, first + 1) + 1)]


def panel(c, x, y):
    """One curve with both axes logarithmic, and beside it, dashed, growth as the work's."""
    points = c["points"]
    linear = [(size, points[0][2] * work) for size, work, _ in points]
    sizes = [p[0] for p in points]
    down = ticks(min(v for _, v in linear + [(0, p[2]) for p in points]), max(v for _, v in linear + [(0, p[2]) for p in points]))
    left, right, top, bottom = x + LEFT, x + WIDE - 14, y + TOP, y + HIGH - 44

    def at(size, ms):
        across = math.log(size / sizes[0]) / math.log(sizes[-1] / sizes[0])
        up = math.log(ms / down[0]) / math.log(down[-1] / down[0])
        return f"{left + across * (right - left):.1f},{bottom - up * (bottom - top):.1f}"

    out = [f'<text x="{x + WIDE / 2}" y="{y + 18}" class="t">{c["title"].split(":")[0]}</text>']
    for v in down:
        height = at(sizes[0], v).split(",")[1]
        out.append(f'<line x1="{left}" x2="{right}" y1="{height}" y2="{height}" class="g"/>'
                   f'<text x="{left - 5}" y="{float(height) + 4}" class="y">{v:g}</text>')
    for size in sizes[::max(1, math.ceil(len(sizes) / 6))]:
        across = at(size, down[0]).split(",")[0]
        out.append(f'<text x="{across}" y="{bottom + 16}" class="x">{size}</text>')
    out.append(f'<text x="{(left + right) / 2}" y="{bottom + 34}" class="x">{c["axis"]}</text>')
    out.append(f'<polyline points="{" ".join(at(*p) for p in linear)}" class="d"/>')
    out.append(f'<polyline points="{" ".join(at(size, ms) for size, _, ms in points)}" class="m"/>')
    for size, _, ms in points:
        across, height = at(size, ms).split(",")
        out.append(f'<circle cx="{across}" cy="{height}" r="3" fill="#1f6feb"/>')
    return out


def svg(curves):
    rows = math.ceil(len(curves) / 2)
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{2 * WIDE}" height="{rows * HIGH + 24}" '
           'font-family="sans-serif" font-size="11">',
           "<style>.t{text-anchor:middle;font-size:12px}.x{text-anchor:middle;fill:#555}.y{text-anchor:end;fill:#555}"
           ".g{stroke:#ddd}.m{fill:none;stroke:#1f6feb;stroke-width:2}"
           ".d{fill:none;stroke:#999;stroke-dasharray:5 4}</style>",
           f'<rect width="{2 * WIDE}" height="{rows * HIGH + 24}" fill="white"/>']
    for i, c in enumerate(curves):
        out += panel(c, i % 2 * WIDE, i // 2 * HIGH)
    out.append(f'<text x="{WIDE}" y="{rows * HIGH + 12}" class="x">milliseconds of a step; dashed: as the work grows</text></svg>')
    return "\n".join(out) + "\n"


def main():
    p = argparse.ArgumentParser(prog="bench --curves")
    p.add_argument("--seconds", type=float, default=1, help="for each point")
    p.add_argument("--to", default=os.path.join(os.path.dirname(RESULTS), "curves.svg"), help="the picture")
    args = p.parse_args()
    curves = measure(args.seconds)
    with open(args.to, "w") as f:
        f.write(svg(curves))
    print(markdown(curves))
    print(f"written: {args.to}", file=sys.stderr)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Generation with a cache beside ONNX Runtime's step with a cache.

  bench_generate.py [--rounds N] [--seconds S] [--threads N]

The network is that of testdata/jobs/bench/transformer_small.pbtxt: six layers of
256 features, four heads, 8000 words. Ours goes on with four words for sixty by
`generate {}`, one run of pd-eval --bench. ONNX Runtime gets the decoder with its
keys and values as inputs and outputs and computes the same words, sixty calls
with bound inputs and outputs, whose caches stay in its memory. Both have the
same weights; before anything is measured the words that they write are compared.
Rounds go to both in turn. The time of a word is that of the whole by sixty.
ONNX_PYTHON is a Python that has onnxruntime; BUILD_DIR names the build folder.
"""
import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

BIN = pathlib.Path(os.environ.get("BUILD_DIR", pathlib.Path(__file__).resolve().parents[2] / "build")) / "bin"
LAYERS, WORDS, PROMPT = 6, 60, [11, 12, 13, 14]

# One decoder in two jobs: CACHE names its keys and values.
DECODER = """
  block {
    name: "gpt"
    INPUTS
    layer { name: "at" input: "ids" positions { cache: FIRST } }
    layer { name: "where" embedding { num_embeddings: 64 embedding_dim: 256 } }
    layer { name: "words" input: "ids" embedding { num_embeddings: 8000 embedding_dim: 256 } }
    layer { name: "x" input: ["words", "where"] add {} }
    layer { name: "mask" input: "ids" square_subsequent_mask { cache: FIRST } }
    layer {
      name: "decoder"
      input: "x"
      transformer_encoder {
        encoder_layer {
          nhead: 4
          dim_feedforward: 1024
          dropout: 0
          activation: "gelu"
          normalize_before: true
          weight_attr { initializer { normal { std: 0.05 } } }
        }
        num_layers: 6
        norm {}
        src_mask: "mask"
        cache: CACHE
      }
    }
    layer {
      name: "head"
      linear { out_features: 8000 bias: false weight_attr { initializer { normal { std: 0.1 } } } }
    }
    output: ["head", OUTPUTS]
  }
"""

# What ONNX Runtime writes and how long it takes: JSON {words, ms}.
RUNTIME = """
import json, sys, time
import numpy as np, onnxruntime as ort
path, words, seconds, threads = sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), int(sys.argv[4])
prompt = np.array([json.loads(sys.argv[5])], 'int64')
o = ort.SessionOptions(); o.log_severity_level = 3; o.intra_op_num_threads = threads
s = ort.InferenceSession(path, o, providers=['CPUExecutionProvider'])
caches = [i.name for i in s.get_inputs()][1:]
outputs = [i.name for i in s.get_outputs()]
empty = {c: ort.OrtValue.ortvalue_from_numpy(np.zeros((1, 4, 0, 64), 'float32')) for c in caches}
def write():
    ids, cache, made = prompt, empty, []
    for _ in range(words):
        b = s.io_binding()
        b.bind_cpu_input('ids', ids)
        for c in caches:
            b.bind_ortvalue_input(c, cache[c])
        for out in outputs:
            b.bind_output(out, 'cpu')
        s.run_with_iobinding(b)
        got = b.get_outputs()
        ids = got[0].numpy()[:, -1].argmax(-1)[:, None]
        cache = dict(zip(caches, got[1:]))
        made.append(int(ids[0, 0]))
    return made
made, times, until = write(), [], time.perf_counter() + seconds
write()
while len(times) < 3 or time.perf_counter() < until:
    begin = time.perf_counter()
    write()
    times.append((time.perf_counter() - begin) * 1000)
print(json.dumps({'words': made, 'ms': sorted(times)[len(times) // 2], 'version': ort.__version__}))
"""


def block(inputs, first, cache, outputs):
    text = DECODER
    for name, value in (("INPUTS", inputs), ("FIRST", first), ("CACHE", cache), ("OUTPUTS", outputs)):
        text = text.replace(name, value)
    return text


def quoted(names):
    return ", ".join(f'"{name}"' for name in names)


def generating():
    return ('model {\n  input { name: "input" shape: [-1, -1] dtype: int64 }\n' +
            block('input: "ids"\n    optional_input: "cache"', '"cache"', '"cache"', '"decoder:cache"') +
            '  layer { name: "text" input: "input" generate {\n'
            f'    decoder {{ name: "net" block {{ use: "gpt" }} }} max_length: {WORDS} }} }}\n'
            '  output: "text"\n}\n')


def stepping():
    caches = [f"{part}{layer}" for layer in range(LAYERS) for part in "kv"]
    made = [f"decoder:{cache}" for cache in caches]
    inputs = "".join(f'  input {{ name: "{cache}" shape: [-1, 4, -1, 64] }}\n' for cache in caches)
    return ('model {\n  input { name: "ids" shape: [-1, -1] dtype: int64 }\n' + inputs +
            block(f"input: [{quoted(['ids'] + caches)}]", '"k0"', f"[{quoted(caches)}]", quoted(made)) +
            f'  layer {{ name: "net" input: [{quoted(["ids"] + caches)}] block {{ use: "gpt" }} }}\n'
            f'  output: ["net", {quoted("net:" + one for one in made)}]\n}}\n')


def run(*command):
    done = subprocess.run([str(part) for part in command], stdout=subprocess.PIPE, check=False)
    if done.returncode != 0:
        sys.exit(f"bench_generate: {' '.join(str(part) for part in command[:4])} failed")
    return done.stdout.decode()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    python = os.environ.get("ONNX_PYTHON", sys.executable)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "text.pbtxt").write_text(generating())
        (folder / "step.pbtxt").write_text(stepping())
        run(BIN / "pd-export", "-q", "-c", folder / "text.pbtxt", "-o", folder / "text")
        run(BIN / "pd-convert", "-q", folder / "text", folder / "net.pdparams")
        run(BIN / "pd-export", "-q", "-m", folder / "net.pdparams", "-c", folder / "step.pbtxt", "--to", "onnx",
            "-o", folder / "step.onnx")
        (folder / "runtime.py").write_text(RUNTIME)

        def theirs(seconds):
            return json.loads(run(python, folder / "runtime.py", folder / "step.onnx", WORDS, seconds,
                                  options.threads, json.dumps(PROMPT)))

        def ours(seconds):
            line = run(BIN / "pd-eval", "-q", "-m", folder / "text", "--threads", options.threads, "--bench",
                       seconds, "--shape", f"input=1,{len(PROMPT)}")
            return json.loads(line.strip().splitlines()[-1])["step_ms_median"]

        want = theirs(0)
        run(python, "-c", "import json, sys, numpy; numpy.savez(sys.argv[1], input=numpy.array("
            "[json.loads(sys.argv[2])], 'int64')); numpy.savez(sys.argv[3], text=numpy.array("
            "[json.loads(sys.argv[2]) + json.loads(sys.argv[4])], 'int64'))",
            folder / "feed.npz", json.dumps(PROMPT), folder / "want.npz", json.dumps(want["words"]))
        run(BIN / "pd-eval", "-q", "-m", folder / "text", "--feed", folder / "feed.npz", "--expect",
            folder / "want.npz", "--rtol", "0", "--atol", "0")
        print(f"both write {len(set(want['words']))} different words of {WORDS}, the same ones")
        times = {"ours": [], "onnxruntime": []}
        for _ in range(options.rounds):
            times["ours"].append(ours(options.seconds) / WORDS)
            times["onnxruntime"].append(theirs(options.seconds)["ms"] / WORDS)
        for name, all_of in times.items():
            print(f"{name:12} {statistics.median(all_of):.3f} ms a word "
                  f"(rounds: {', '.join(f'{ms:.3f}' for ms in all_of)})")
        ratio = statistics.median(times["onnxruntime"]) / statistics.median(times["ours"])
        print(f"times as fast as ONNX Runtime {want['version']}, {options.threads} threads: {ratio:.2f}")


if __name__ == "__main__":
    main()

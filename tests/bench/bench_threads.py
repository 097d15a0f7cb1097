#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_threads.py BIN MODEL MODEL.onnx SHAPE [ROUNDS]: predictors of one model,
one for each of 1, 2 and 4 threads, beside ONNX Runtime and OpenVINO.

    PADDLE_PYTHON=PYTHON scripts/bench --threads MODEL MODEL.onnx 1,3,224,224

MODEL.pdmodel and MODEL.pdiparams are run by libpaddle_inference's C API, the
.onnx file, the same network, by those of the peers that PYTHON has. SHAPE is
that of the only input, float32. Every call computes in the thread that makes it,
and its input stays where it is. Library after library runs for two seconds, in
ROUNDS (5) rounds; a figure is the median of rounds."""
import ctypes
import os
import statistics
import sys
import threading
import time

import numpy as np

SECONDS, THREADS = 2, (1, 2, 4)


class Pdkit:
    """Clones of one predictor, by the C API; ctypes leaves Python's lock."""
    name = "pdkit"

    def __init__(self, bin_folder, model, x):
        folder = os.path.join(bin_folder, "..", "lib")
        self.api = ctypes.CDLL(os.path.join(folder, "libpaddle_inference.so"))
        for function in ("PD_ConfigCreate", "PD_PredictorCreate", "PD_PredictorClone",
                         "PD_PredictorGetInputNames", "PD_PredictorGetInputHandle"):
            getattr(self.api, function).restype = ctypes.c_void_p
        config = ctypes.c_void_p(self.api.PD_ConfigCreate())
        self.api.PD_ConfigSetModel(config, f"{model}.pdmodel".encode(), f"{model}.pdiparams".encode())
        self.api.PD_ConfigSetCpuMathLibraryNumThreads(config, 1)
        self.first = ctypes.c_void_p(self.api.PD_PredictorCreate(config))
        if not self.first:
            sys.exit(f"pdkit does not read {model}.pdmodel")
        self.x = x

    def caller(self):
        predictor = ctypes.c_void_p(self.api.PD_PredictorClone(self.first))

        class Names(ctypes.Structure):
            _fields_ = [("size", ctypes.c_size_t), ("data", ctypes.POINTER(ctypes.c_char_p))]
        names = Names.from_address(self.api.PD_PredictorGetInputNames(predictor))
        tensor = ctypes.c_void_p(self.api.PD_PredictorGetInputHandle(predictor, names.data[0]))
        shape = (ctypes.c_int32 * self.x.ndim)(*self.x.shape)
        self.api.PD_TensorReshape(tensor, ctypes.c_size_t(self.x.ndim), shape)
        self.api.PD_TensorCopyFromCpuFloat(tensor, self.x.ctypes.data_as(ctypes.c_void_p))
        run = self.api.PD_PredictorRun
        run.restype = ctypes.c_byte
        if not run(predictor):
            sys.exit("pdkit's predictor does not run")
        return lambda: run(predictor)


class OnnxRuntime:
    def __init__(self, model, x):
        import onnxruntime
        self.name = f"ONNX Runtime {onnxruntime.__version__}"
        self.lib, self.model, self.x = onnxruntime, model, x

    def caller(self):
        options = self.lib.SessionOptions()
        options.log_severity_level = 3
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        session = self.lib.InferenceSession(self.model, options, providers=["CPUExecutionProvider"])
        feed = {session.get_inputs()[0].name: self.x}
        return lambda: session.run(None, feed)


class OpenVino:
    def __init__(self, model, x):
        import openvino
        self.name = f"OpenVINO {openvino.__version__.split('-')[0]}"
        self.core, self.x = openvino.Core(), x
        self.model = self.core.read_model(model)
        self.model.reshape(list(x.shape))

    def caller(self):
        compiled = self.core.compile_model(self.model, "CPU", {
            "INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1, "INFERENCE_PRECISION_HINT": "f32"})
        request = compiled.create_infer_request()
        request.infer([self.x])
        return lambda: request.infer()


def rate(callers):
    """Calls a second of all threads together."""
    counts, barrier = [0] * len(callers), threading.Barrier(len(callers) + 1)

    def work(i):
        barrier.wait()
        end = time.perf_counter() + SECONDS
        while time.perf_counter() < end:
            callers[i]()
            counts[i] += 1
    workers = [threading.Thread(target=work, args=(i,)) for i in range(len(callers))]
    for worker in workers:
        worker.start()
    barrier.wait()
    begin = time.perf_counter()
    for worker in workers:
        worker.join()
    return sum(counts) / (time.perf_counter() - begin)


def main(bin_folder, model, onnx, shape, rounds="5"):
    x = np.linspace(0, 1, int(np.prod(shape := [int(n) for n in shape.split(",")])), dtype=np.float32).reshape(shape)
    engines = [Pdkit(bin_folder, model, x)]
    for peer in (OnnxRuntime, OpenVino):
        try:
            engines.append(peer(onnx, x))
        except ImportError as missing:
            print(f"left out: {missing}", file=sys.stderr)
    callers = {engine: [engine.caller() for _ in range(max(THREADS))] for engine in engines}
    for ready in callers.values():
        for call in ready:
            call()
    rates = {(engine, n): [] for engine in engines for n in THREADS}
    for _ in range(int(rounds)):
        for n in THREADS:
            for engine in engines:
                rates[engine, n].append(rate(callers[engine][:n]))
    print("| calls a second | " + " | ".join(f"{n} thread{'s' * (n > 1)}" for n in THREADS) + " |")
    print("|---" * (len(THREADS) + 1) + "|")
    for engine in engines:
        print(f"| {engine.name} | " + " | ".join(f"{statistics.median(rates[engine, n]):.4g}" for n in THREADS) + " |")


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    main(*sys.argv[1:])

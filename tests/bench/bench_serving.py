#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""bench_serving.py BIN MODEL MODEL.onnx [RATE...]: pd-eval --serve beside a plain
ONNX Runtime server (uvicorn and a pool of threads) at fixed rates.

    PADDLE_PYTHON=PYTHON scripts/bench --serving MODEL MODEL.onnx [RATE...]

The first MODEL is served by pd-eval, the second, the same network, by ONNX
Runtime. PYTHON has numpy, onnxruntime and uvicorn. Requests of one row, as
bytes of the KServe v2 protocol, come at RATE a second for ten seconds from
sixteen kept connections, to each server in turn, twice. A request's time counts from when it
was due, so waiting for a connection counts as well. Both servers run as many
requests side by side as there are CPUs, each in one thread; the clients share
the CPUs with them."""
import asyncio
import concurrent.futures
import http.client
import json
import os
import subprocess
import sys
import threading
import time

SECONDS, CONNECTIONS = 10, 16


def serve_onnx(model, port):
    """The peer: one session, which uvicorn's threads run."""
    import numpy as np
    import onnxruntime
    import uvicorn
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = 1
    pool = concurrent.futures.ThreadPoolExecutor(os.cpu_count())
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name

    def answer(body, length):
        entry = json.loads(body[:length])["inputs"][0]
        values = np.frombuffer(body[length:], np.float32).reshape(entry["shape"])
        outputs = session.run(None, {name: values})
        head = json.dumps({"model_name": "m", "outputs": [
            {"name": o.name, "datatype": "FP32", "shape": v.shape, "parameters": {"binary_data_size": v.nbytes}}
            for o, v in zip(session.get_outputs(), outputs)]}).encode()
        return head, head + b"".join(v.tobytes() for v in outputs)

    async def app(scope, receive, send):
        if scope["type"] != "http":
            return
        body, more = b"", True
        while more:
            message = await receive()
            body, more = body + message.get("body", b""), message.get("more_body", False)
        length = dict(scope["headers"]).get(b"inference-header-content-length")
        head, content = b"", b"{}"
        if length is not None:
            head, content = await asyncio.get_running_loop().run_in_executor(pool, answer, body, int(length))
        await send({"type": "http.response.start", "status": 200, "headers": [
            (b"content-length", str(len(content)).encode()),
            (b"inference-header-content-length", str(len(head)).encode())]})
        await send({"type": "http.response.body", "body": content})
    uvicorn.run(app, host="127.0.0.1", port=port, log_level="error", lifespan="off")


def question(model):
    """The body and headers of a request of one row."""
    import numpy as np
    import onnxruntime
    it = onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"]).get_inputs()[0]
    shape = [extent if isinstance(extent, int) and extent > 0 else 1 for extent in it.shape]
    values = np.random.default_rng(1).random(shape, np.float32)
    head = json.dumps({"inputs": [{"name": it.name, "datatype": "FP32", "shape": shape,
                                   "parameters": {"binary_data_size": values.nbytes}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return head + values.tobytes(), {"Inference-Header-Content-Length": str(len(head))}


def load(port, body, headers, rate):
    """Milliseconds of each request, and how many failed."""
    count = int(rate * SECONDS)
    begin, lock, times, failed, following = time.perf_counter() + 0.2, threading.Lock(), [], [0], [0]

    def client():
        connection = http.client.HTTPConnection("127.0.0.1", port)
        while True:
            with lock:
                i = following[0]
                following[0] += 1
            if i >= count:
                return
            due = begin + i / rate
            time.sleep(max(0, due - time.perf_counter()))
            connection.request("POST", "/v2/models/m/infer", body, headers)
            response = connection.getresponse()
            response.read()
            with lock:
                times.append(1e3 * (time.perf_counter() - due))
                failed[0] += response.status != 200
    threads = [threading.Thread(target=client) for _ in range(CONNECTIONS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(times), failed[0]


def wait_for(port):
    for _ in range(600):
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request("GET", "/v2/health/ready")
            connection.getresponse().read()
            return
        except OSError:
            time.sleep(0.1)
    sys.exit("bench_serving: a server does not answer")


def main():
    if sys.argv[1] == "--peer":
        return serve_onnx(sys.argv[2], int(sys.argv[3]))
    tool, own, model = os.path.join(sys.argv[1], "pd-eval"), sys.argv[2], sys.argv[3]
    rates = [float(text) for text in sys.argv[4:]] or [50, 100, 200]
    body, headers = question(model)
    commands = {
        "pdkit": [tool, "-q", "--serve", "127.0.0.1:18431", "-m", "m=" + own,
                  "--workers", str(os.cpu_count())],
        "ONNX Runtime": [sys.executable, os.path.abspath(__file__), "--peer", model, "18432"],
    }
    servers = [subprocess.Popen(command, stdout=subprocess.DEVNULL) for command in commands.values()]
    try:
        for port in (18431, 18432):
            wait_for(port)
            load(port, body, headers, 20)
        print("| requests/s | server | p50 ms, rounds | p99 ms, rounds | failed |\n|---|---|---|---|---|")
        for rate in rates:
            rounds = {name: [] for name in commands}
            for _ in range(2):
                for name, port in zip(commands, (18431, 18432)):
                    rounds[name].append(load(port, body, headers, rate))
            for name, results in rounds.items():
                def at(share):
                    return ", ".join(f"{times[int(share * (len(times) - 1))]:.1f}" for times, _ in results)
                print(f"| {rate:g} | {name} | {at(0.5)} | {at(0.99)} | {sum(f for _, f in results)} |", flush=True)
    finally:
        for server in servers:
            server.terminate()
            server.wait()
    return 0


if __name__ == "__main__":
    sys.exit(main())

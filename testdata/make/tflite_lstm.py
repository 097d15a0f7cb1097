#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An LSTM of Keras 2 as one operator of TFLite's: lstm.tflite and lstm.tflite.npz of testdata/tflite.

    tflite_lstm.py OUT

Needs TensorFlow and tf_keras (made with 2.21.0).
"""
import os
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
import tf_keras

rng = np.random.default_rng(5)
x = tf_keras.layers.Input((7, 3), name="steps")
model = tf_keras.Model(x, tf_keras.layers.LSTM(4, return_sequences=True, name="first")(x))
model.set_weights([rng.normal(0, 0.5, w.shape).astype(np.float32) for w in model.get_weights()])
function = tf.function(lambda x: model(x)).get_concrete_function(tf.TensorSpec([1, 7, 3], tf.float32))
lite = tf.lite.TFLiteConverter.from_concrete_functions([function], model).convert()
path = os.path.join(sys.argv[1], "lstm.tflite")
with open(path, "wb") as file:
    file.write(lite)
run = tf.lite.Interpreter(model_content=lite)
run.allocate_tensors()
steps = rng.normal(0, 1, (1, 7, 3)).astype(np.float32)
(given,), (made,) = run.get_input_details(), run.get_output_details()
run.set_tensor(given["index"], steps)
run.invoke()
np.savez_compressed(path + ".npz", **{given["name"]: steps, "out." + made["name"]: run.get_tensor(made["index"])})
print([op["op_name"] for op in run._get_ops_details()], given["name"], made["name"])

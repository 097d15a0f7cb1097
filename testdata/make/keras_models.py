#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks in the shapes of Keras' applications and examples with random weights, as Keras 2 (.h5), Keras 3 (.keras)
and TFLite save them: testdata/keras and testdata/tflite.

    keras_models.py KERAS TFLITE [NAME...]

Needs TensorFlow, tf_keras and Keras (made with 2.21.0, 2.21.0 and 3.15.1). KERAS/NAME.h5 and KERAS/NAME.keras have the same
network with weights of their own; NAME.h5.npz and NAME.keras.npz have arrays of the inputs and, as "out.LAYER", of the
answers; of TFLITE/NAME.tflite those of TFLite's interpreter, by the names of its tensors. Archives are deflated afterwards.
Networks that are channels_first, which TensorFlow does not compute on CPUs, get the answers of the same network with channels
last.
"""
import os
import sys
import zipfile

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
os.environ["CUDA_VISIBLE_DEVICES"] = ""
import keras
import numpy as np
import tensorflow as tf
import tf_keras

rng = np.random.default_rng(7)


def cnn(K):
    L = K.layers
    return K.Sequential([
        K.Input((15, 13, 3), name="image"), L.Conv2D(6, 3, activation="relu", name="conv1"), L.BatchNormalization(name="bn"),
        L.MaxPooling2D(2, name="pool1"), L.Conv2D(8, (3, 5), strides=2, padding="same", use_bias=False, name="conv2"),
        L.Activation("tanh", name="tanh"), L.AveragePooling2D(3, strides=2, padding="same", name="pool2"),
        L.Flatten(name="flat"), L.Dropout(0.5, name="drop"), L.Dense(10, activation="elu", name="fc1"),
        L.Dense(5, activation="softmax", name="fc2")], name="cnn")


def resnet(K):
    L = K.layers
    x = image = K.Input((17, 17, 3), name="image")
    x = L.ZeroPadding2D(((1, 2), (2, 1)), name="pad")(x)
    x = L.Conv2D(6, 5, strides=2, use_bias=False, name="stem")(x)
    x = L.ReLU(name="relu0")(L.BatchNormalization(epsilon=1.1e-5, name="bn0")(x))
    for i, (width, stride) in enumerate([(6, 1), (8, 2)]):
        y = L.Conv2D(width, 3, strides=stride, padding="same", name=f"a{i}")(x)
        y = L.Activation("relu", name=f"act{i}")(L.BatchNormalization(scale=False, name=f"bna{i}")(y))
        y = L.BatchNormalization(center=False, name=f"bnb{i}")(L.Conv2D(width, 3, padding="same", dilation_rate=2, name=f"b{i}")(y))
        if stride == 2:
            x = L.Conv2D(width, 1, strides=2, name=f"short{i}")(x)
        x = L.ReLU(name=f"out{i}")(L.Add(name=f"add{i}")([x, y]))
    x = L.GlobalAveragePooling2D(name="pool")(x)
    return K.Model(image, L.Dense(7, name="logits")(x), name="resnet")


def mobile(K):
    L = K.layers
    x = image = K.Input((14, 14, 3), name="image")
    x = L.Rescaling(1 / 127.5, offset=-1.0, name="scale")(x)
    x = L.Conv2D(8, 3, strides=2, padding="same", name="stem")(x)
    x = L.ReLU(6.0, name="relu6")(x)
    x = L.ZeroPadding2D(((0, 1), (0, 1)), name="pad")(x)
    x = L.DepthwiseConv2D(3, strides=2, depth_multiplier=2, name="depth")(x)
    x = L.BatchNormalization(name="bn")(x)
    x = x * (L.ReLU(6.0, name="gate")(x + 3.0) * (1 / 6))
    y = L.GlobalAveragePooling2D(keepdims=True, name="squeeze")(x)
    y = L.Conv2D(4, 1, activation="swish", name="down")(y)
    y = L.Conv2D(16, 1, activation="sigmoid", name="up")(y)
    x = L.Multiply(name="excite")([x, y])
    x = L.SeparableConv2D(10, 3, padding="same", activation="gelu", name="separable")(x)
    x = L.Activation("softplus", name="softplus")(x)
    x = L.GlobalMaxPooling2D(name="pool")(x)
    x = L.Reshape((1, 1, 10), name="reshape")(x)
    return K.Model(image, L.Flatten(name="flat")(L.Conv2D(5, 1, name="last")(x)), name="mobile")


def inception(K):
    L = K.layers
    x = image = K.Input((12, 11, 4), name="image")
    a = L.LeakyReLU(0.1, name="leaky")(L.Conv2D(3, 1, name="one")(x))
    b = L.PReLU(shared_axes=[1, 2], name="prelu")(L.Conv2D(3, 3, padding="same", name="three")(x))
    c = L.ELU(0.7, name="elu")(L.Conv2D(3, 5, padding="same", name="five")(x))
    d = L.Conv2D(3, 1, activation="selu", name="proj")(L.MaxPooling2D(3, strides=1, padding="same", name="max")(x))
    x = L.Concatenate(name="concat")([a, b, c, d])
    y = [L.Average(name="mean")([a, b, c]), L.Maximum(name="most")([a, d]), L.Minimum(name="least")([b, d, a]),
         L.Subtract(name="minus")([c, d])]
    x = L.Concatenate(axis=3, name="join")([x] + y)
    x = L.BatchNormalization(name="bn")(x)
    x = L.PReLU(name="wide")(L.AveragePooling2D(3, name="pool")(x))
    x = L.Permute((3, 1, 2), name="permute")(x)
    x = L.Softmax(axis=1, name="soft")(x)
    return K.Model(image, [x, L.Flatten(name="flat")(d)], name="inception")


def text(K):
    L = K.layers
    ids = K.Input((9,), dtype="int32", name="ids")
    x = L.Embedding(20, 6, name="words")(ids)
    x = L.SpatialDropout1D(0.2, name="drop")(x)
    x = L.Bidirectional(L.LSTM(5, return_sequences=True), name="both")(x)
    y = L.GRU(4, return_sequences=True, name="gru")(x)
    z = L.TimeDistributed(L.Dense(3, activation="relu"), name="each")(y)
    a = L.SimpleRNN(4, name="rnn")(z)
    b = L.LSTM(3, go_backwards=True, name="back")(x)
    c = L.Bidirectional(L.GRU(3), merge_mode="sum", name="ends")(x)
    d = L.GRU(3, reset_after=False, use_bias=False, return_sequences=True, go_backwards=True, name="old")(x)
    d, state = L.Flatten(name="flat")(d), L.LSTM(4, return_state=True, name="stateful")(z)
    x = L.Concatenate(name="join")([a, b, c, d, state[1], state[2]])
    return K.Model(ids, L.Dense(2, activation="log_softmax" if K is keras else "softmax", name="out")(x), name="text")


def masks(K):
    L = K.layers
    ids, frames = K.Input((9,), dtype="int32", name="ids"), K.Input((7, 5), name="frames")
    x = L.Embedding(20, 6, mask_zero=True, name="words")(ids)
    x = L.Bidirectional(L.LSTM(5, return_sequences=True), name="both")(x)
    y = L.GRU(4, return_sequences=True, name="gru")(L.LayerNormalization(name="norm")(x))
    a = L.SimpleRNN(4, name="rnn")(L.TimeDistributed(L.Dense(3, activation="relu"), name="each")(y))
    b = L.LSTM(3, go_backwards=True, name="back")(x)
    c = L.GlobalAveragePooling1D(name="pool")(L.MultiHeadAttention(2, 4, name="mix")(x, x))
    z = L.Masking(0.5, name="filled")(frames)
    z = L.Add(name="sum")([L.LSTM(3, return_sequences=True, name="steps")(z), L.Dense(3, name="wide")(z)])
    d = L.GRU(3, reset_after=False, name="last")(L.Concatenate(name="wider")([z, z]))
    x = L.Concatenate(name="join")([a, b, c, d])
    return K.Model([ids, frames], L.Dense(2, name="out")(x), name="masks")


def transformer(K):
    L = K.layers
    ids, at = K.Input((8,), dtype="int32", name="ids"), K.Input((8,), dtype="int32", name="positions")
    x = L.Add(name="embed")([L.Embedding(15, 8, name="words")(ids), L.Embedding(8, 8, name="places")(at)])
    y = L.MultiHeadAttention(2, 4, name="attention")(x, x)
    x = L.LayerNormalization(epsilon=1e-6, name="norm1")(L.Add(name="add1")([x, L.Dropout(0.1, name="drop")(y)]))
    y = L.Dense(16, activation="gelu", name="grow")(x)
    x = L.LayerNormalization(name="norm2")(L.Add(name="add2")([x, L.Dense(8, name="shrink")(y)]))
    memory = L.Dense(6, name="memory")(x)
    y = L.MultiHeadAttention(3, 2, value_dim=5, output_shape=7, use_bias=False, name="cross")(x, memory)
    x = L.Concatenate(name="join")([x, y])
    pooled = L.GlobalAveragePooling1D(name="pool")(x)
    return K.Model([ids, at], [L.Dense(3, name="class")(pooled), L.Dense(2, name="tags")(x)], name="transformer")


def unet(K):
    L = K.layers
    x = image = K.Input((12, 16, 2), name="image")
    a = L.Conv2D(4, 3, padding="same", activation="relu", name="down1")(x)
    b = L.Conv2D(6, 3, padding="same", activation="relu", name="down2")(L.MaxPooling2D(name="pool1")(a))
    c = L.Conv2D(8, 3, padding="same", activation="relu", name="middle")(L.MaxPooling2D(name="pool2")(b))
    x = L.Concatenate(name="join1")([L.Conv2DTranspose(6, 3, strides=2, padding="same", name="up1")(c), b])
    y = L.Conv2DTranspose(3, 2, strides=3, name="wide")(c)
    x = L.Conv2D(4, 3, padding="same", name="conv")(x)
    x = L.Concatenate(name="join2")([L.UpSampling2D(2, name="nearest")(x), a, L.UpSampling2D(4, interpolation="bilinear", name="linear")(c)])
    x = L.Cropping2D(((1, 0), (2, 3)), name="crop")(x)
    return K.Model(image, [L.Conv2D(1, 1, activation="sigmoid", name="mask")(x), L.Conv2DTranspose(2, 4, strides=1, use_bias=False, name="plain")(y)],
                   name="unet")


def nested(K):
    L = K.layers
    tower = K.Sequential([K.Input((6, 5, 2)), L.Conv2D(3, 3, name="conv"), L.BatchNormalization(name="bn"),
                          K.Sequential([K.Input((4, 3, 3)), L.Conv2D(4, 2, name="deep"), L.ReLU(name="relu")], name="inner"),
                          L.Flatten(name="flat"), L.Dense(4, name="dense")], name="tower")
    left, right = K.Input((6, 5, 2), name="left"), K.Input((6, 5, 2), name="right")
    a, b = tower(left), tower(right)
    x = inside = K.Input((4,), name="inside")
    head = K.Model(inside, [L.Dense(3, name="first")(x), L.Dense(2, name="second")(x)], name="head")
    first, second = head(L.Subtract(name="minus")([a, b]))
    score = L.Dot(axes=-1, normalize=True, name="cosine")([a, b])
    return K.Model([left, right], [score, L.Activation("softsign", name="soft")(first), L.Concatenate(name="join")([second, first])], name="nested")


def heads(K):
    L = K.layers
    x = wave = K.Input((20, 3), name="wave")
    table = K.Input((4,), name="table")
    norm = L.Normalization(mean=[0.1, 0.2, -0.3, 0.4], variance=[1.0, 2.0, 0.5, 1.5], name="normal")
    x = L.Conv1D(5, 3, padding="causal", dilation_rate=2, activation="relu", name="causal")(x)
    x = L.Conv1D(6, 3, strides=2, padding="same", name="conv")(L.ZeroPadding1D((1, 2), name="pad")(x))
    y = L.Concatenate(axis=1, name="pools")([L.MaxPooling1D(3, padding="same", name="max")(x), L.AveragePooling1D(2, name="mean")(x)])
    y = L.LayerNormalization(axis=[1, 2], name="norm")(y)
    z = L.RepeatVector(3, name="repeat")(L.Dense(4, activation="exponential", name="table_fc")(norm(table)))
    z = L.Permute((2, 1), name="permute")(z)
    z = L.Dot(axes=(1, 2), name="dot")([z, L.Reshape((3, 4), name="square")(L.Dense(12, name="wide")(table))])
    pooled = L.GlobalMaxPooling1D(name="top")(y)
    return K.Model([wave, table], [L.Dense(2, name="class")(pooled), z, L.UpSampling1D(2, name="up")(L.Cropping1D((1, 2), name="crop")(y))],
                   name="heads")


def first(K, data_format="channels_first"):
    """Channels first; `data_format` makes its twin."""
    L = K.layers
    front = data_format == "channels_first"
    axis, d = (1 if front else -1), {"data_format": data_format}
    x = image = K.Input((3, 10, 9) if front else (10, 9, 3), name="image")
    x = L.BatchNormalization(axis=axis, name="bn")(L.Conv2D(4, 3, padding="same", name="conv", **d)(x))
    x = L.MaxPooling2D(2, name="pool", **d)(L.PReLU(shared_axes=[2, 3] if front else [1, 2], name="prelu")(x))
    x = L.Concatenate(axis=axis, name="join")([L.DepthwiseConv2D(3, padding="same", name="depth", **d)(x), x])
    x = L.Conv2DTranspose(3, 3, strides=2, padding="same", name="up", **d)(x)
    x = L.ZeroPadding2D(1, name="pad", **d)(L.UpSampling2D(2, name="nearest", **d)(x))
    pooled = L.GlobalAveragePooling2D(name="mean", **d)(x)
    y = L.Dense(4, name="fc")(L.Flatten(name="flat", **d)(L.AveragePooling2D(4, name="pool2", **d)(x)))
    return K.Model(image, [L.Dense(2, name="class")(pooled), y], name="first")


def randomise(model, K):
    for w in model.weights:
        name, shape = w.name, tuple(w.shape)
        if "seed" in name or name.split(":")[0] == "count" or str(w.dtype).find("int") >= 0:
            continue
        if "variance" in name:
            value = rng.uniform(0.5, 2, shape)
        elif "gamma" in name:
            value = rng.uniform(0.5, 1.5, shape)
        elif "/mean" in w.name or name.split(":")[0] == "mean":
            value = rng.normal(0, 0.5, shape)
        else:
            value = rng.normal(0, 0.4 if len(shape) < 4 else 0.25, shape)
        w.assign(value.astype("float32"))


NETWORKS = [cnn, resnet, mobile, inception, text, masks, transformer, unet, nested, heads, first]
TFLITE = ["cnn", "resnet", "mobile", "inception", "transformer", "unet", "nested", "heads"]


def inputs_of(model, batch):
    feeds = {}
    for x in model.inputs:
        name, shape = x.name.split(":")[0], (batch,) + tuple(x.shape[1:])
        feeds[name] = rng.integers(0, 8, shape).astype("int32") if "int" in str(x.dtype) else rng.normal(0, 1, shape).astype("float32")
    return feeds


def names_of(model):
    return [t._keras_history[0].name for t in model.outputs]


def deflate(path):
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in entries.items():
            archive.writestr(zipfile.ZipInfo(name), data, zipfile.ZIP_DEFLATED)


def save(build, K, path):
    model = build(K)
    randomise(model, K)
    feeds = inputs_of(model, 3)
    if build is masks:  # steps that do not count at both ends and between others
        for name, value in (("ids", 0), ("frames", 0.5)):
            feeds[name][0, 5:] = feeds[name][1, :2] = feeds[name][1, 4] = value
    if build is first:
        twin = first(K, "channels_last")
        twin.set_weights([w.reshape(t.shape) for w, t in zip(model.get_weights(), twin.weights)])
        answers = twin([np.transpose(v, (0, 2, 3, 1)) for v in feeds.values()])
    else:
        answers = model(list(feeds.values()) if len(feeds) > 1 else list(feeds.values())[0])
    answers = answers if isinstance(answers, (list, tuple)) else [answers]
    model.save(path)
    if path.endswith(".keras"):
        deflate(path)
    outs = {"out." + n: np.asarray(a) for n, a in zip(names_of(model), answers)}
    np.savez_compressed(path + ".npz", **feeds, **outs)
    print(path, os.path.getsize(path), {n: a.shape for n, a in outs.items()}, flush=True)
    return model


def lite(model, path, half=False, integer=False):
    converter = (tf.lite.TFLiteConverter.from_keras_model(model) if isinstance(model, keras.Model) else
                 tf.lite.TFLiteConverter.from_concrete_functions([model.get_concrete_function()], model))
    if half:
        converter.optimizations, converter.target_spec.supported_types = [tf.lite.Optimize.DEFAULT], [tf.float16]
    if integer:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
        converter.representative_dataset = lambda: ([a[:1] for a in inputs_of(model, 1).values()] for _ in range(20))
        converter.target_spec.supported_ops = [tf.lite.OpsSet.TFLITE_BUILTINS_INT8]
    with open(path, "wb") as f:
        f.write(converter.convert())
    ask(path)


def ask(path):
    interpreter = tf.lite.Interpreter(model_path=path, experimental_op_resolver_type=tf.lite.experimental.OpResolverType.BUILTIN_WITHOUT_DEFAULT_DELEGATES)
    interpreter.allocate_tensors()
    arrays = {}
    for t in interpreter.get_input_details():
        shape = tuple(t["shape"])
        arrays[t["name"]] = (rng.integers(0, 8, shape).astype(t["dtype"]) if np.issubdtype(t["dtype"], np.integer)
                             else rng.normal(0, 1, shape).astype(t["dtype"]))
        interpreter.set_tensor(t["index"], arrays[t["name"]])
    interpreter.invoke()
    for t in interpreter.get_output_details():
        arrays["out." + t["name"]] = interpreter.get_tensor(t["index"])
    np.savez_compressed(path + ".npz", **arrays)
    print(path, os.path.getsize(path), {n: a.shape for n, a in arrays.items()}, sorted({op["op_name"] for op in interpreter._get_ops_details()}), flush=True)


MAPS = tf.TensorSpec([2, 4, 6, 4], tf.float32)


@tf.function(input_signature=[MAPS, MAPS])
def elementwise(x, y):
    a = tf.floor(x * 3) + tf.math.ceil(y) + tf.round(x * 2) + tf.sin(x) * tf.cos(y) + tf.sign(x)
    b = tf.exp(-tf.abs(x)) + tf.math.log(tf.abs(y) + 1) + tf.sqrt(tf.abs(x)) + tf.math.rsqrt(y * y + 1)
    c = tf.pow(tf.abs(x) + 0.5, y) - tf.square(y) + tf.math.squared_difference(x, y) / (tf.abs(y) + 2)
    d = tf.nn.relu6(x * 3) + tf.nn.leaky_relu(y, 0.3) + tf.nn.elu(x) + tf.nn.gelu(y) + tf.nn.gelu(x, approximate=True)
    e = tf.where((x > 0) & (y <= 0.2), tf.maximum(x, y), tf.minimum(x, -y)) + tf.sigmoid(x) * tf.tanh(y) - tf.nn.relu(y)
    f = tf.cast((x < y) | ~(x >= -0.5), tf.float32) * tf.math.floordiv(x * 5, tf.abs(y) + 0.5)
    g = tf.nn.log_softmax(x) + tf.nn.l2_normalize(y, axis=-1) + tf.add_n([x, y, a]) + x * tf.nn.relu6(x + 3) * (1 / 6)
    return a, b, c, d, e, f, g, tf.nn.softmax(x[:, 0] * 0.5), tf.cast(tf.equal(tf.round(x), tf.round(y)), tf.int32)


@tf.function(input_signature=[MAPS, tf.TensorSpec([3, 2], tf.int32)])
def shapes(x, i):
    parts, sizes = tf.split(x, 2, axis=2), tf.split(x, [1, 3], axis=1)
    best, place = tf.math.top_k(x, 2)
    return (x[:, 1:, ::2, -1], x[0, ::-1, 2:-1] * 2, tf.slice(x, [0, 1, 2, 0], [-1, 2, 3, -1]), parts[0] * parts[1], sizes[1] + 1,
            tf.stack([x[:, 0], x[:, 1]], axis=2), tf.add_n(tf.unstack(x, axis=3)), tf.squeeze(x[:, :1], [1]) - 1,
            tf.transpose(x, [0, 3, 1, 2]), tf.pad(x, [[0, 0], [1, 2], [0, 1], [0, 0]], constant_values=0.5),
            tf.pad(x, [[0, 0], [1, 1], [2, 0], [0, 0]], mode="REFLECT"), tf.tile(x, [1, 2, 1, 3]), tf.gather(x, [2, 0, 5], axis=2),
            tf.gather_nd(x, i * 0 + 1), tf.one_hot(i[:, 0], 4, 2.0, -1.0), best, place, tf.argmax(x, 1), tf.argmin(x, -1, tf.int32),
            tf.cumsum(x, 2, exclusive=True), tf.reverse(x, [1]), tf.fill(tf.shape(x), 1.5) + x, tf.cast(tf.range(4), tf.float32) * x)


@tf.function(input_signature=[MAPS])
def maps(x):
    small, odd = (3, 5), (7, 9)
    return (tf.image.resize(x, odd), tf.image.resize(x, odd, "nearest"), tf.compat.v1.image.resize_bilinear(x, odd, align_corners=True),
            tf.compat.v1.image.resize_bilinear(x, small), tf.compat.v1.image.resize_nearest_neighbor(x, odd),
            tf.nn.depth_to_space(x, 2), tf.nn.space_to_depth(x, 2), tf.batch_to_space(x, [2, 1], [[1, 0], [0, 0]]),
            tf.space_to_batch(x, [2, 3], [[1, 1], [0, 3]]), tf.reduce_sum(x, [0, 3]), tf.reduce_prod(x, 1, True),
            tf.reduce_max(x, [1, 2]), tf.reduce_min(x, -1, True), tf.reduce_mean(x), tf.matmul(x, x, transpose_b=True),
            tf.matmul(x, x, transpose_a=True), tf.broadcast_to(x[:1], [5, 4, 6, 4]) + 1)


@tf.function(input_signature=[tf.TensorSpec([3, 4], tf.float32), tf.TensorSpec([], tf.int32)])
def control(x, n):
    w = tf.constant(rng.normal(0, 0.6, (4, 4)).astype(np.float32))

    def round_of(i, y):
        y = tf.cond(tf.reduce_sum(y) > 0.5, lambda: tf.tanh(tf.matmul(y, w)), lambda: y + 0.75)
        return i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 2, z * 1.25), [0, y])[1]
    i, y = tf.while_loop(lambda i, y: (i < n) & (tf.reduce_max(y) < 100.0), round_of, [0, x])
    a, b = tf.cond(n > 2, lambda: (x * 2.0, y), lambda: (y - 1.0, x))
    return y, i, a, b


if __name__ == "__main__":
    to_keras, to_tflite, wanted = sys.argv[1], sys.argv[2], sys.argv[3:]
    for folder in (to_keras, to_tflite):
        os.makedirs(folder, exist_ok=True)
    for build in NETWORKS:
        name = build.__name__
        if wanted and name not in wanted:
            continue
        if build is not inception:  # nothing in it that the others lack, and large
            save(build, tf_keras, os.path.join(to_keras, name + ".h5"))
        model = save(build, keras, os.path.join(to_keras, name + ".keras"))
        if name == "nested":
            save(build, keras, os.path.join(to_keras, name + "_keras3.h5"))
        if name in ("transformer", "text"):
            save(build, tf_keras, os.path.join(to_keras, name + "_keras2.keras"))
        if name in TFLITE:
            lite(model, os.path.join(to_tflite, name + ".tflite"))
        if name == "mobile":
            lite(model, os.path.join(to_tflite, name + "_fp16.tflite"), half=True)
        if name == "cnn":
            lite(model, os.path.join(to_tflite, name + "_int8.tflite"), integer=True)
    for function in (elementwise, shapes, maps, control):
        name = function.__name__ if hasattr(function, "__name__") else function.python_function.__name__
        if not wanted or name in wanted:
            lite(function, os.path.join(to_tflite, name + ".tflite"))

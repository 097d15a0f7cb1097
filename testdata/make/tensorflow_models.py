#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Small networks in the shapes of TensorFlow's zoos with random weights, saved by TensorFlow: testdata/tensorflow.

    tensorflow_models.py OUT [NAME...]

Needs TensorFlow (made with 2.21.0). For each NAME: the SavedModel NAME/, the same network frozen as NAME.pb, and NAME.npz with
the arrays of the inputs and, as "out.NAME", what TensorFlow answers. Of `nchw`, which a CPU of TensorFlow does not run, the
answers are those of the same network in NHWC. `v1` and those of SESSIONS are saved as TensorFlow 1 did, whose loops and
branches are frames and switches; so are those of loops.pb. `two` has two signatures and no NAME.pb, nor has `tables`;
`resnet` is frozen alone.
"""
import os
import shutil
import sys

os.environ["CUDA_VISIBLE_DEVICES"] = ""
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import numpy as np
import tensorflow as tf
from tensorflow.python.framework.convert_to_constants import convert_variables_to_constants_v2

rng = np.random.default_rng(7)


def weight(*shape, scale=None):
    scale = scale or 1.4 / np.sqrt(max(1, np.prod(shape[:-1])))
    return tf.Variable((rng.standard_normal(shape) * scale).astype(np.float32), name="w%d" % rng.integers(1 << 20))


def numbers(*shape):
    return rng.standard_normal(shape).astype(np.float32)


def spec(name, dtype, *shape):
    return tf.TensorSpec(shape, dtype, name=name)


class Norm(tf.Module):
    def __init__(self, channels):
        super().__init__()
        self.gamma = tf.Variable(rng.uniform(0.5, 1.5, channels).astype(np.float32), name="gamma")
        self.beta = tf.Variable(numbers(channels), name="beta")
        self.mean = tf.Variable(numbers(channels), name="mean")
        self.var = tf.Variable(rng.uniform(0.5, 1.5, channels).astype(np.float32), name="var")

    def __call__(self, x, data_format="NHWC"):
        return tf.compat.v1.nn.fused_batch_norm(x, self.gamma, self.beta, self.mean, self.var, epsilon=1e-3,
                                                data_format=data_format, is_training=False)[0]


class Convnet(tf.Module):
    specs = [spec("image", tf.float32, None, 20, 17, 3)]
    feeds = {"image": numbers(2, 20, 17, 3)}

    def __init__(self, nchw=False):
        super().__init__()
        self.w1, self.n1, self.w2, self.b2 = weight(3, 3, 3, 8), Norm(8), weight(3, 3, 8, 12), weight(12)
        self.w3, self.w4, self.b4 = weight(3, 2, 12, 10), weight(60, 7), weight(7)

    def __call__(self, image):
        x = tf.nn.relu(self.n1(tf.nn.conv2d(image, self.w1, 2, "SAME")))
        x = tf.nn.max_pool2d(x, 2, 2, "VALID")
        x = tf.nn.bias_add(tf.nn.conv2d(x, self.w2, 1, "SAME", dilations=2), self.b2)
        x = tf.nn.avg_pool2d(tf.nn.leaky_relu(x, 0.1), 3, 2, "SAME")
        x = tf.nn.elu(tf.nn.conv2d(x, self.w3, 1, [[0, 0], [1, 1], [0, 1], [0, 0]]))
        x = tf.reshape(x, [-1, 60])
        return {"probabilities": tf.nn.softmax(tf.matmul(x, self.w4) + self.b4)}


class Nchw(tf.Module):
    specs = [spec("image", tf.float32, None, 3, 12, 11)]
    feeds = {"image": numbers(2, 3, 12, 11)}

    def __init__(self):
        super().__init__()
        self.w1, self.n1, self.w2, self.b2 = weight(3, 3, 3, 8), Norm(8), weight(3, 3, 8, 2), weight(16)

    def layers(self, x, f):
        at = (lambda a, b: [1, a, b, 1]) if f == "NHWC" else (lambda a, b: [1, 1, a, b])
        x = tf.raw_ops.Conv2D(input=x, filter=self.w1, strides=at(2, 2), padding="SAME", data_format=f)
        x = tf.nn.relu(self.n1(x, f))
        x = tf.raw_ops.DepthwiseConv2dNative(input=x, filter=self.w2, strides=at(1, 1), padding="VALID", data_format=f)
        x = tf.raw_ops.BiasAdd(value=x, bias=self.b2, data_format=f)
        return tf.raw_ops.AvgPool(value=x, ksize=at(2, 2), strides=at(2, 1), padding="SAME", data_format=f)

    def __call__(self, image):
        return {"out": self.layers(image, "NCHW")}

    def answers(self, image):
        return {"out": tf.transpose(self.layers(tf.transpose(image, [0, 2, 3, 1]), "NHWC"), [0, 3, 1, 2])}


def mobile():
    """As Keras exports its applications."""
    layers = tf.keras.layers
    x = image = layers.Input((16, 18, 3), name="image")
    x = layers.Rescaling(1 / 127.5, offset=-1)(x)
    x = layers.ZeroPadding2D(((0, 1), (0, 1)))(x)
    x = layers.ReLU(6.0)(layers.BatchNormalization()(layers.Conv2D(8, 3, 2, use_bias=False)(x)))
    for stride in (1, 2):
        x = layers.DepthwiseConv2D(3, stride, padding="same", use_bias=False)(x)
        x = layers.ReLU(6.0)(layers.BatchNormalization()(x))
        x = layers.BatchNormalization()(layers.Conv2D(12, 1, use_bias=False)(x))
    gate = layers.GlobalAveragePooling2D(keepdims=True)(x)
    gate = layers.Conv2D(12, 1, activation="hard_sigmoid")(layers.Conv2D(4, 1, activation="swish")(gate))
    x = layers.Multiply()([x, gate])
    x = layers.SeparableConv2D(10, 3, activation="gelu")(x)
    x = layers.Dropout(0.3)(layers.GlobalAveragePooling2D()(x))
    return shaken(tf.keras.Model(image, layers.Dense(5, activation="softmax")(x))), {"image": numbers(3, 16, 18, 3) * 60}


def resnet():
    layers = tf.keras.layers
    x = image = layers.Input((33, 31, 3), name="image")
    x = layers.BatchNormalization()(layers.Conv2D(8, 7, 2, padding="same")(x))
    x = layers.MaxPooling2D(3, 2, padding="same")(layers.ReLU()(x))
    for filters, stride in ((8, 1), (12, 2)):
        y = layers.ReLU()(layers.BatchNormalization()(layers.Conv2D(filters, 3, stride, padding="same")(x)))
        y = layers.BatchNormalization()(layers.Conv2D(filters, 3, padding="same")(y))
        if stride > 1:
            x = layers.BatchNormalization()(layers.Conv2D(filters, 1, stride)(x))
        x = layers.ReLU()(layers.Add()([x, y]))
    return shaken(tf.keras.Model(image, layers.Dense(10)(layers.Flatten()(layers.AveragePooling2D(2)(x))))), {
        "image": numbers(2, 33, 31, 3)}


def shaken(model):
    """Statistics that are not those of a beginning."""
    for v in model.weights:
        if "moving" in v.path:
            v.assign(rng.uniform(0.5, 1.5, v.shape))
        else:
            v.assign(v + 0.1 * rng.standard_normal(v.shape))
    return model


class Inception(tf.Module):
    specs = [spec("image", tf.float32, 2, 14, 15, 3)]
    feeds = {"image": numbers(2, 14, 15, 3)}

    def __init__(self):
        super().__init__()
        self.w = [weight(3, 3, 3, 6), weight(1, 1, 6, 4), weight(1, 5, 4, 5), weight(5, 1, 5, 4), weight(1, 1, 6, 3), weight(11, 6)]
        self.mean = tf.constant([0.1, 0.2, 0.3])

    def __call__(self, image):
        w = self.w
        x = tf.nn.relu(tf.nn.conv2d((image - self.mean) / 0.25, w[0], 1, "VALID"))
        a = tf.nn.relu(tf.nn.conv2d(tf.nn.conv2d(tf.nn.conv2d(x, w[1], 1, "SAME"), w[2], 1, "SAME"), w[3], 1, "SAME"))
        b = tf.nn.conv2d(tf.nn.avg_pool2d(x, 3, 1, "SAME"), w[4], 1, "SAME")
        c = tf.nn.max_pool2d(x, 3, 1, "SAME")[..., 2:]
        x = tf.concat([a, b, c], -1)
        x = tf.pad(x, [[0, 0], [1, 0], [2, 1], [0, 0]], constant_values=0.5)
        x = x * tf.sigmoid(tf.reduce_max(x, [1, 2], keepdims=True))
        x, y = tf.split(x, [4, 7], axis=3)
        x = tf.reduce_mean(tf.concat([y, tf.square(x)], 3), [1, 2])
        return {"logits": tf.matmul(x, w[5])}


class Encoder(tf.Module):
    specs = [spec("ids", tf.int32, None, None), spec("mask", tf.int32, None, None)]
    feeds = {"ids": rng.integers(0, 30, (2, 6)).astype(np.int32), "mask": np.array([[1] * 6, [1] * 4 + [0] * 2], np.int32)}
    width, heads = 16, 4

    def __init__(self):
        super().__init__()
        n, h = self.width, self.heads
        self.words, self.places = weight(30, n, scale=1), weight(12, n, scale=1)
        self.qkv = [weight(n, h, n // h) for _ in range(3)]
        self.bias = [weight(h, n // h, scale=0.1) for _ in range(3)]
        self.out, self.up, self.down, self.pool = weight(h, n // h, n), weight(n, 24), weight(24, n), weight(n, n)
        self.scale = [tf.Variable(rng.uniform(0.5, 1.5, n).astype(np.float32), name="scale") for _ in range(2)]
        self.shift = [tf.Variable(numbers(n), name="shift") for _ in range(2)]

    def norm(self, x, i):
        mean, var = tf.nn.moments(x, [-1], keepdims=True)
        return tf.nn.batch_normalization(x, mean, var, self.shift[i], self.scale[i], 1e-6)

    def __call__(self, ids, mask):
        shape = tf.shape(ids)
        x = tf.gather(self.words, ids) + tf.gather(self.places, tf.range(shape[1]))
        q, k, v = [tf.einsum("abc,cde->abde", x, w) + b for w, b in zip(self.qkv, self.bias)]
        scores = tf.einsum("aecd,abcd->acbe", k, q) / np.float32(np.sqrt(self.width // self.heads))
        scores += (1.0 - tf.cast(mask[:, tf.newaxis, tf.newaxis, :], tf.float32)) * -10000.0
        y = tf.einsum("acbe,aecd->abcd", tf.nn.softmax(scores), v)
        x = self.norm(x + tf.einsum("abcd,cde->abe", y, self.out), 0)
        # A second head by reshapes and batches of products.
        flat = tf.reshape(x, [shape[0], shape[1], self.heads, self.width // self.heads])
        rows = tf.transpose(flat, [0, 2, 1, 3])
        y = tf.matmul(tf.nn.softmax(tf.matmul(rows, rows, transpose_b=True)), rows)
        x += tf.reshape(tf.transpose(y, [0, 2, 1, 3]), [shape[0], shape[1], self.width])
        y = tf.matmul(tf.reshape(x, [-1, self.width]), self.up)
        y = 0.5 * y * (1.0 + tf.math.erf(y / np.float32(np.sqrt(2.0))))
        x = self.norm(x + tf.reshape(tf.matmul(y, self.down), tf.shape(x)), 1)
        return {"pooled": tf.tanh(tf.matmul(x[:, 0], self.pool)), "sequence": x}


class Text(tf.Module):
    specs = [spec("ids", tf.int64, None, 9)]
    feeds = {"ids": rng.integers(0, 20, (3, 9)).astype(np.int64)}

    def __init__(self):
        super().__init__()
        self.table, self.w, self.last = weight(20, 6, scale=1), weight(3, 6, 8), weight(14, 4)

    def __call__(self, ids):
        x = tf.nn.embedding_lookup(self.table, ids)
        known = tf.cast(tf.not_equal(ids, 0), tf.float32)[:, :, None]
        mean = tf.reduce_sum(x * known, 1) / tf.maximum(tf.reduce_sum(known, 1), 1.0)
        most = tf.reduce_max(tf.nn.relu(tf.nn.conv1d(x, self.w, 1, "SAME")), 1)
        scores = tf.concat([mean, most], 1) @ self.last
        values, indices = tf.math.top_k(scores, 2)
        return {"class": tf.argmax(scores, 1), "indices": indices, "logs": tf.nn.log_softmax(scores), "values": values}


class Unet(tf.Module):
    specs = [spec("image", tf.float32, None, 16, 12, 2)]
    feeds = {"image": numbers(2, 16, 12, 2)}

    def __init__(self):
        super().__init__()
        self.w = [weight(3, 3, 2, 6), weight(3, 3, 6, 8), weight(2, 2, 5, 8), weight(3, 3, 4, 11), weight(1, 1, 10, 3)]

    def __call__(self, image):
        w, n = self.w, tf.shape(image)[0]
        a = tf.nn.swish(tf.nn.conv2d(image, w[0], 1, "SAME"))
        b = tf.nn.relu(tf.nn.conv2d(tf.nn.max_pool2d(a, 2, 2, "SAME"), w[1], 1, "SAME"))
        up = tf.nn.conv2d_transpose(b, w[2], [n, 16, 12, 5], 2, "VALID")
        c = tf.concat([up, a], 3)
        d = tf.nn.conv2d_transpose(c, w[3], tf.stack([n, 31, 24, 4]), 2, "SAME")
        d = tf.image.resize(d, [16, 12])
        e = tf.compat.v1.image.resize_nearest_neighbor(tf.image.resize(a, [8, 6], "nearest"), [16, 12], align_corners=True)
        f = tf.compat.v1.image.resize_bilinear(b, [16, 12], align_corners=True)[..., :2]
        x = tf.concat([d, e, tf.compat.v1.image.resize_bilinear(f, [32, 24])[:, ::2, 1::2, :] * 0.5], 3)
        x = x[..., :10]
        x = tf.nn.conv2d(x, w[4], 1, "SAME")
        return {"small": tf.nn.space_to_depth(x, 2), "big": tf.nn.depth_to_space(tf.concat([x, x[..., :1]], 3), 2),
                "mask": tf.nn.sigmoid(x)}


class Arithmetic(tf.Module):
    specs = [spec("x", tf.float32, None, 7), spec("n", tf.int32, 7)]
    feeds = {"x": numbers(3, 7) * 2, "n": np.array([-7, -3, -1, 1, 2, 5, 9], np.int32)}

    def __call__(self, x, n):
        p = tf.abs(x) + 0.1
        one = [tf.exp(x), tf.math.log(p), tf.sqrt(p), tf.math.rsqrt(p), tf.square(x), -x, tf.floor(x), tf.math.ceil(x),
               tf.round(x * 2), tf.sign(x), tf.nn.selu(x), tf.nn.softplus(x), tf.nn.softsign(x), tf.nn.relu6(x * 4), tf.sin(x),
               tf.cos(x), tf.math.erf(x), tf.math.reciprocal(p), tf.math.log1p(p), tf.math.expm1(x), tf.atan(x), tf.tan(x * 0.5),
               tf.clip_by_value(x, -1.0, 1.5)]
        two = [x ** 2.0, p ** x, x + 1.0, x - p, x * p, x / p, x // 0.7, tf.math.floormod(x, 0.7), tf.maximum(x, p),
               tf.minimum(x, 0.3), tf.math.squared_difference(x, p), tf.add_n([x, p, x]), tf.math.divide_no_nan(x, tf.nn.relu(x)),
               tf.math.xlogy(tf.nn.relu(x), p)]
        test = [x > 0.1, x >= p, x < 0.5, x <= p, tf.equal(n, 2), tf.not_equal(n, 5), tf.logical_and(x > 0.0, x < 1.0),
                tf.logical_or(x > 1.0, x < 0.0), tf.logical_not(x > 0.0), tf.math.is_finite(x)]
        test = [tf.cast(t, tf.float32) + tf.zeros_like(x) for t in test]
        whole = [n + 3, n - 2, n * n, n // 3, tf.math.floormod(n, 3), tf.maximum(n, 1), -n, tf.abs(n), tf.sign(n),
                 tf.truncatediv(n, 3), tf.math.mod(n, -4)]
        chosen = tf.where(x > 0.0, x, p * 2.0) + tf.where(tf.cast(n, tf.bool), 1.0, 2.0)
        return {"chosen": chosen, "one": tf.stack(one), "test": tf.add_n(test), "two": tf.stack(two, 1), "whole": tf.stack(whole)}


class Shapes(tf.Module):
    specs = [spec("x", tf.float32, None, 4, 6), spec("i", tf.int32, 3)]
    feeds = {"x": numbers(2, 4, 6), "i": np.array([2, 0, 3], np.int32)}

    def __init__(self):
        super().__init__()
        self.table = tf.constant(numbers(5, 3, 2))

    def __call__(self, x, i):
        b = tf.shape(x)[0]
        s = {"s0": x[:, 1:3, ::2], "s1": x[..., -1], "s2": x[:, tf.newaxis, ::-1, 2], "s3": x[0, ..., tf.newaxis, 1:-1],
             "s4": x[:, :tf.shape(x)[1] - 1, -3::-1], "s5": x[-1], "s6": tf.strided_slice(x, [0, 3, 5], [9, -9, 0], [1, -2, -1])}
        s["gather"] = tf.gather(x, i, axis=1)
        s["gather_batch"] = tf.gather(self.table, [[2, 0], [1, 1], [0, 0], [2, 2], [0, 1]], axis=1, batch_dims=1)
        s["gather_nd"] = tf.gather_nd(self.table, [[4, 2], [0, 1]])
        s["scatter_nd"] = tf.scatter_nd(i[:, None], x[0, :3], [5, 6])
        s["tile"] = tf.tile(x, [1, 2, 1]) + tf.fill([b, 8, 6], 2.0)
        s["range"] = tf.cast(tf.range(1, 9, 3), tf.float32) * tf.ones([3])
        s["pad"] = tf.pad(x, [[0, 0], [2, 1], [1, 2]], "REFLECT") + tf.reduce_sum(tf.pad(x, [[0, 0], [1, 0], [1, 1]], "SYMMETRIC"))
        s["one_hot"] = tf.one_hot(i, 4, on_value=2.0, off_value=-1.0, axis=0)
        s["arg"] = tf.stack([tf.argmax(x, 2, tf.int32), tf.argmin(x, 2, tf.int32)])
        s["cumsum"] = tf.cumsum(x, 1, exclusive=True) + tf.cumsum(x, 2, reverse=True)
        s["reduce"] = tf.reduce_prod(x, 2) + tf.reduce_min(x, [0, 2], keepdims=True)[..., 0] + tf.reduce_sum(x)
        s["truth"] = tf.stack([tf.reduce_all(x > -1.0, 2), tf.reduce_any(x > 1.0, 2)])
        u = tf.unstack(x, axis=2)
        s["stack"] = tf.stack([u[1], u[0]], 1) + tf.squeeze(tf.split(x[:, :2, None], 6, 3)[3], [2, 3])[..., None, :2, None][:, :, 0]
        s["size"] = tf.cast(tf.size(x), tf.float32) + tf.cast(tf.rank(x), tf.float32)[None]
        s["turn"] = tf.reshape(tf.transpose(x), [6, -1]) - tf.expand_dims(tf.reduce_mean(tf.transpose(x), [1, 2]), 1)
        s["broadcast"] = tf.broadcast_to(x[:, :1], [b, 4, 6]) + tf.reverse(x, [2])
        t = tf.space_to_batch_nd(x[..., None], [2, 3], [[0, 0], [0, 0]])
        s["batches"] = t
        s["space"] = tf.batch_to_space(t, [2, 3], [[1, 0], [0, 2]])
        s["slice"] = tf.slice(x, [0, 1, 2], [-1, 2, -1])
        s["diag"] = tf.linalg.band_part(x, 1, 2)
        return s


class Heads(tf.Module):
    specs = [spec("left", tf.float32, None, 5), spec("right", tf.float32, None, 5), spec("training", tf.bool)]
    feeds = {"left": numbers(3, 5), "right": numbers(3, 5), "training": np.array(False)}

    def __init__(self):
        super().__init__()
        self.w, self.b = weight(5, 4), weight(4)

    def __call__(self, left, right, training):
        a, b = [tf.nn.relu(tf.matmul(x, self.w) + self.b) for x in (left, right)]
        near = tf.reduce_sum(a * b, 1) / tf.norm(a + 0.1, axis=1)
        kept = tf.where(training, a * 2.0, a)
        return {"a": kept, "b": tf.identity(b), "near": near, "other": tf.matmul(a, b, transpose_b=True),
                "third": tf.matmul(a, b, transpose_a=True)}


def recurrent():
    """Layers of Keras as loops, with steps that do not count."""
    layers = tf.keras.layers
    ids = layers.Input((None,), dtype="int32", name="ids")
    x = layers.Embedding(20, 6, mask_zero=True)(ids)
    x = layers.Bidirectional(layers.LSTM(5, return_sequences=True))(x)
    x = layers.GRU(4, return_sequences=True)(x)
    x = layers.Concatenate()([layers.SimpleRNN(3)(x), layers.LSTM(4, go_backwards=True)(x)])
    return shaken(tf.keras.Model(ids, layers.Dense(2)(x))), {
        "ids": np.array([[3, 4, 0, 5, 19, 0, 0], [1, 2, 3, 4, 5, 6, 7], [9, 0, 0, 0, 0, 0, 8]], np.int32)}


class Loops(tf.Module):
    specs = [spec("x", tf.float32, None, 4), spec("n", tf.int32), spec("which", tf.int32)]
    feeds = {"x": numbers(3, 4), "n": np.array(3, np.int32), "which": np.array(2, np.int32)}

    def __init__(self):
        super().__init__()
        self.w = weight(4, 4)

    def __call__(self, x, n, which):
        w = self.w
        once, i = x, tf.constant(0)
        while i < n:  # a branch and a loop in a loop
            if tf.reduce_sum(once) > 0.5:
                once = tf.tanh(tf.matmul(once, w))
            else:
                once = once + 0.75
            j = tf.constant(0)
            while j < i:
                once = once * 1.25
                j += 2
            i += 1
        grown = tf.TensorArray(tf.float32, size=0, dynamic_size=True, element_shape=[None, 4])
        y = x
        for k in tf.range(n + 1):
            y = tf.nn.relu(tf.matmul(y, w) + tf.cast(k, tf.float32))
            grown = grown.write(k, y)
        rows = tf.TensorArray(tf.float32, size=4).unstack(tf.transpose(x))
        most = tf.while_loop(lambda k, m: tf.logical_and(k < 4, tf.reduce_max(m) < 100.0),
                             lambda k, m: (k + 1, tf.maximum(m, rows.read(k)) + 1.0), [0, x[:, 0]])
        chosen = tf.switch_case(which, [lambda: x + 1.0, lambda: x * 2.0, lambda: tf.matmul(x, w), lambda: -x])
        a, b = tf.cond(n > 2, lambda: (x[:1], tf.constant(1)), lambda: (x, n))
        return {"a": a, "b": b, "chosen": chosen, "grown": grown.stack(), "most": most[1], "once": once, "rounds": most[0]}


class Cell:
    """An LSTM as TensorFlow 1 calls its cells."""
    state_size, output_size = (4, 4), 4

    def __init__(self):
        self.w, self.b = [tf.compat.v1.get_variable(name, initializer=numbers(*shape) * 0.5, use_resource=False)
                          for name, shape in (("cell/w", (9, 16)), ("cell/b", (16,)))]

    def zero_state(self, batch, dtype):
        return tf.zeros((batch, 4), dtype), tf.zeros((batch, 4), dtype)

    def __call__(self, x, state, scope=None):
        c, h = state
        i, g, f, o = tf.split(tf.matmul(tf.concat([x, h], 1), self.w) + self.b, 4, axis=1)
        c = tf.sigmoid(f) * c + tf.sigmoid(i) * tf.tanh(g)
        h = tf.sigmoid(o) * tf.tanh(c)
        return h, (c, h)


def frames():
    """Loops and branches in each other, as a session of TensorFlow 1 has them."""
    v1 = tf.compat.v1
    x, n = v1.placeholder(tf.float32, [None, 4], "x"), v1.placeholder(tf.int32, [], "n")
    w = v1.get_variable("w", initializer=numbers(4, 4), use_resource=False)

    def round_of(i, y):
        y = v1.cond(tf.reduce_sum(y) > 0.5, lambda: tf.tanh(tf.matmul(y, w)), lambda: y + 0.75)
        y = v1.while_loop(lambda j, z: j < i, lambda j, z: (j + 2, z * 1.25 + tf.cast(i, tf.float32)), [0, y])[1]
        return i + 1, y
    i, once = v1.while_loop(lambda i, y: tf.logical_and(i < n, tf.reduce_max(y) < 1e6), round_of, [0, x])
    a, b = v1.cond(n > 2, lambda: (once[:1], tf.constant(1)), lambda: (x, n))
    deep = v1.cond(n > 5, lambda: tf.constant(7.0),
                   lambda: v1.cond(n > 1, lambda: tf.reduce_sum(once), lambda: tf.constant(2.0)))
    plain = v1.cond(n > 2, lambda: tf.constant(3.0), lambda: tf.constant(4.0))
    outs = {"a": a, "b": b, "deep": deep, "once": once, "plain": plain, "rounds": i}
    return {"x": numbers(3, 4), "n": np.array(4, np.int32)}, outs


def arrays():
    """TensorArrays: written in a loop, scattered, gathered, their sizes."""
    v1 = tf.compat.v1
    x = v1.placeholder(tf.float32, [None, 3], "x")
    count = tf.shape(x)[0]
    rows = tf.TensorArray(tf.float32, size=count, clear_after_read=False).unstack(x)
    kept = tf.TensorArray(tf.float32, size=0, dynamic_size=True, clear_after_read=False, element_shape=[3])

    def round_of(i, kept, total):
        row = rows.read(i) + total
        return i + 1, kept.write(i, row * 2.0), total + row
    i, kept, total = v1.while_loop(lambda i, kept, total: i < rows.size(), round_of, [0, kept, tf.zeros(3)])
    fixed = tf.TensorArray(tf.float32, size=3, clear_after_read=False).write(1, total).write(0, total * 2.0).write(2, total - 1.0)
    shuffled = tf.TensorArray(tf.float32, size=3, clear_after_read=False).scatter([2, 0, 1], x[:3])
    outs = {"fixed": fixed.stack(), "kept": kept.stack(), "picked": kept.gather([2, 0]), "size": fixed.size(),
            "shuffled": shuffled.stack(), "third": shuffled.read(2)}
    return {"x": numbers(4, 3)}, outs


def rnn():
    """dynamic_rnn over sequences of their own lengths."""
    v1 = tf.compat.v1
    x, length = v1.placeholder(tf.float32, [None, 6, 5], "x"), v1.placeholder(tf.int32, [None], "length")
    y, (c, h) = v1.nn.dynamic_rnn(Cell(), x, sequence_length=length, dtype=tf.float32)
    return {"x": numbers(3, 6, 5), "length": np.array([4, 6, 2], np.int32)}, {"y": y, "c": c, "h": h}


def tables():
    """Tables of integers, and of texts that are looked up by integers."""
    v1 = tf.compat.v1
    ids = v1.placeholder(tf.int64, [None, 3], "ids")

    def table(keys, values, default, kinds):
        init = tf.lookup.KeyValueTensorInitializer(keys, values, *kinds)
        return tf.lookup.StaticHashTable(init, default).lookup(ids)
    outs = {"ids_out": table([3, 70000000000, -5], [10, 20, 30], -1, (tf.int64, tf.int64)),
            "weights": table([3, 4], [0.5, -1.25], 9.0, (tf.int64, tf.float32))}
    return {"ids": np.array([[3, 4, -5], [70000000000, 0, 3]])}, outs


def session_of(maker, folder, name):
    """A session's network: NAME/ with its variables and tables and, where it has no tables, NAME.pb frozen."""
    v1 = tf.compat.v1
    v1.disable_control_flow_v2()
    graph = tf.Graph()
    with graph.as_default(), v1.Session() as session:
        feeds, outs = maker()
        outs = {key: tf.identity(value, name="out/" + key) for key, value in outs.items()}
        session.run([v1.global_variables_initializer(), v1.tables_initializer()])
        answers = session.run(outs, {key + ":0": value for key, value in feeds.items()})
        inputs = {key: graph.get_tensor_by_name(key + ":0") for key in feeds}
        v1.saved_model.simple_save(session, folder, inputs, outs, legacy_init_op=v1.tables_initializer())
        frozen = v1.graph_util.convert_variables_to_constants(
            session, graph.as_graph_def(), ["out/" + key for key in outs])
        if name != "tables":
            with open(folder + ".pb", "wb") as file:
                file.write(frozen.SerializeToString())
        v1.enable_control_flow_v2()
        return feeds, answers


def as_v1(folder, feeds):
    """A session's graph with reference and resource variables."""
    graph = tf.Graph()
    with graph.as_default(), tf.compat.v1.Session() as session:
        v1 = tf.compat.v1
        x = v1.placeholder(tf.float32, [None, 6], "x")
        w = v1.get_variable("dense/kernel", initializer=numbers(6, 8), use_resource=False)
        b = v1.get_variable("dense/bias", initializer=numbers(8), use_resource=True)
        y = tf.nn.relu(tf.nn.bias_add(tf.matmul(x, w), b))
        y = tf.reduce_mean(tf.reshape(y, [-1, 2, 4]), 1, name="answer")
        session.run(v1.global_variables_initializer())
        v1.saved_model.simple_save(session, folder, {"x": x}, {"answer": y})
        frozen = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["answer"])
        return frozen.SerializeToString(), {"answer": session.run(y, {x: feeds["x"]})}


def tidy(folder):
    for name in os.listdir(folder):
        if name not in ("saved_model.pb", "variables"):
            path = os.path.join(folder, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)


def frozen(function, folder, lower=False):
    graph = convert_variables_to_constants_v2(function, lower_control_flow=lower).graph.as_graph_def()
    with open(folder + ".pb", "wb") as out:
        out.write(graph.SerializeToString())


def save(out, name, module):
    folder = os.path.join(out, name)
    shutil.rmtree(folder, ignore_errors=True)
    answers = None
    if name == "v1":
        feeds = {"x": numbers(4, 6)}
        graph, answers = as_v1(folder, feeds)
        with open(folder + ".pb", "wb") as file:
            file.write(graph)
    elif name in SESSIONS:
        feeds, answers = session_of(SESSIONS[name], folder, name)
    elif isinstance(module, tuple):
        model, feeds = module
        if name in ("mobile", "recurrent"):
            model.export(folder, verbose=False)
        (feed, array), = feeds.items()
        call = tf.function(lambda **x: {"output_0": model(x[feed], training=False)})
        function = call.get_concrete_function(**{feed: tf.TensorSpec([None] + list(array.shape[1:]), array.dtype, feed)})
        frozen(function, folder)
        answers = function(**{k: tf.constant(v) for k, v in feeds.items()})
    else:
        feeds = module.feeds
        call = tf.function(module.__call__)
        function = call.get_concrete_function(*module.specs)
        signatures = {"serving_default": function}
        if name == "two":
            signatures = {"encode": function, "decode": function}
        tf.saved_model.save(module, folder, signatures=signatures)
        if name != "two":
            frozen(function, folder, lower=name == "loops")
        run = getattr(module, "answers", module)
        answers = run(**{k: tf.constant(v) for k, v in feeds.items()})
    if os.path.isdir(folder):
        tidy(folder)
    np.savez_compressed(folder + ".npz", **feeds, **{"out." + k: np.asarray(v) for k, v in answers.items()})
    print(name)


SESSIONS = {"arrays": arrays, "frames": frames, "rnn": rnn, "tables": tables}


def main():
    out = sys.argv[1]
    os.makedirs(out, exist_ok=True)
    makers = {
        "arithmetic": Arithmetic, "convnet": Convnet, "encoder": Encoder, "heads": Heads, "inception": Inception, "loops": Loops,
        "mobile": mobile, "nchw": Nchw, "recurrent": recurrent, "resnet": resnet, "shapes": Shapes, "text": Text, "two": Heads, "unet": Unet, "v1": lambda: None,
        **{name: lambda: None for name in SESSIONS}}
    for name, make in makers.items():
        if len(sys.argv) < 3 or name in sys.argv[2:]:
            save(out, name, make())


main()

# SPDX-License-Identifier: Apache-2.0
"""Networks of the zoo that paddle.vision.models does not have, written with
paddle.nn for testdata/make/zoo_goldens.py: NETWORKS[name] is (function that makes
it, the shape of its picture, the argument that the job gives)."""
import paddle
from paddle import nn
from paddle.vision.ops import ConvNormActivation


def conv(ins, outs, kernel=3, padding=None, activation=nn.ReLU):
    return ConvNormActivation(ins, outs, kernel, padding=padding, activation_layer=activation)


class Double(nn.Layer):
    def __init__(self, ins, channels):
        super().__init__()
        self.conv1, self.conv2 = conv(ins, channels), conv(channels, channels)

    def forward(self, x):
        return self.conv2(self.conv1(x))


class Up(nn.Layer):
    def __init__(self, channels):
        super().__init__()
        self.up = nn.Conv2DTranspose(2 * channels, channels, 2, 2)
        self.double = Double(2 * channels, channels)

    def forward(self, below, beside):
        return self.double(paddle.concat([beside, self.up(below)], axis=1))


class UNet(nn.Layer):
    def __init__(self, channels):
        super().__init__()
        sizes = [3] + [channels * 2**i for i in range(5)]
        for i in range(5):
            setattr(self, f"down{i}", Double(sizes[i], sizes[i + 1]))
        for i in range(4):
            setattr(self, f"up{i}", Up(sizes[i + 1]))
        self.head = nn.Conv2D(channels, 10, 1)

    def forward(self, x):
        seen = [self.down0(x)]
        for i in range(1, 5):
            seen.append(getattr(self, f"down{i}")(nn.functional.max_pool2d(seen[-1], 2, 2)))
        x = seen.pop()
        for i in reversed(range(4)):
            x = getattr(self, f"up{i}")(x, seen.pop())
        return self.head(x)


class Crnn(nn.Layer):
    def __init__(self):
        super().__init__()
        sizes = [1, 64, 128, 256, 256, 512, 512]
        for i in range(1, 7):
            setattr(self, f"conv{i}", conv(sizes[i - 1], sizes[i]))
        self.conv7 = conv(512, 512, 2, 0)
        self.rnn = nn.LSTM(512, 256, num_layers=2, direction="bidirect")
        self.fc = nn.Linear(512, 10)

    def forward(self, x):
        pools = {1: (2, 2), 2: (2, 2), 4: (2, 1), 6: (2, 1)}
        for i in range(1, 8):
            x = getattr(self, f"conv{i}")(x)
            if i in pools:
                x = nn.functional.max_pool2d(x, pools[i], pools[i])
        return self.fc(self.rnn(x.squeeze(2).transpose([0, 2, 1]))[0])


class YoloTiny(nn.Layer):
    def __init__(self):
        super().__init__()
        leaky = lambda ins, outs, kernel=3: conv(ins, outs, kernel, activation=nn.LeakyReLU)
        sizes = [3, 16, 32, 64, 128, 256, 512, 1024]
        for i in range(1, 8):
            setattr(self, f"conv{i}", leaky(sizes[i - 1], sizes[i]))
        self.conv8, self.conv9 = leaky(1024, 256, 1), leaky(256, 512)
        self.out0 = nn.Conv2D(512, 24, 1)
        self.route, self.up = leaky(256, 128, 1), nn.Upsample(scale_factor=2)
        self.conv10, self.out1 = leaky(384, 256), nn.Conv2D(256, 24, 1)

    def forward(self, x):
        for i in range(1, 6):
            half = getattr(self, f"conv{i}")(x)
            x = nn.functional.max_pool2d(half, 2, 2)
        x = nn.functional.max_pool2d(self.conv6(x), 3, 1, padding=1)
        x = self.conv8(self.conv7(x))
        fine = paddle.concat([self.up(self.route(x)), half], axis=1)
        return self.out0(self.conv9(x)), self.out1(self.conv10(fine))


NETWORKS = {
    "crnn": (Crnn, [1, 1, 32, 24], "num_classes=10"),
    "unet_small": (lambda: UNet(16), [1, 3, 16, 16], "num_classes=10"),
    "yolov3_tiny": (YoloTiny, [1, 3, 64, 64], "filters=24"),
}

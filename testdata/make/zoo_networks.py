# SPDX-License-Identifier: Apache-2.0
"""Networks of the zoo that paddle.vision.models does not have, written with
paddle.nn for testdata/make/zoo_goldens.py: NETWORKS[name] is (function that makes
it, the shape of its picture, the argument that the job gives)."""
import paddle
from paddle import nn
from paddle.vision.models import MobileNetV1
from paddle.vision.ops import ConvNormActivation, prior_box


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


class SsdExtra(nn.Layer):
    def __init__(self, ins, half, channels):
        super().__init__()
        self.conv1 = conv(ins, half, 1)
        self.conv2 = ConvNormActivation(half, channels, 3, stride=2)

    def forward(self, x):
        return self.conv2(self.conv1(x))


class SsdHead(nn.Layer):
    """fluid.layers.multi_box_head. max_sizes has a list for each feature map."""

    def __init__(self, classes, channels, min_sizes, max_sizes, ratios):
        super().__init__()
        self.classes, self.priors = classes, list(zip(min_sizes, max_sizes, ratios))
        for i, (ins, (_, larger, shapes)) in enumerate(zip(channels, self.priors)):
            boxes = 1 + len(larger) + 2 * len(shapes)
            setattr(self, f"loc{i}", nn.Conv2D(ins, 4 * boxes, 1))
            setattr(self, f"conf{i}", nn.Conv2D(ins, classes * boxes, 1))

    def forward(self, maps, image):
        parts = [[], [], [], []]
        for i, (x, (size, larger, shapes)) in enumerate(zip(maps, self.priors)):
            for part, name, width in ((parts[0], "loc", 4), (parts[1], "conf", self.classes)):
                y = getattr(self, f"{name}{i}")(x)
                part.append(y.transpose([0, 2, 3, 1]).reshape([x.shape[0], -1, width]))
            for part, made in zip(parts[2:], prior_box(x.detach(), image, [size], larger, shapes, flip=True)):
                part.append(made.reshape([-1, 4]))
        return [paddle.concat(part, 1 if k < 2 else 0) for k, part in enumerate(parts)]


class SsdMobileNetV1(MobileNetV1):
    def __init__(self):
        super().__init__(num_classes=0, with_pool=False)
        sizes = [512, 1024, 512, 256, 256, 128]
        for i, half in enumerate([256, 128, 128, 64]):
            setattr(self, f"extra{i + 1}", SsdExtra(sizes[i + 1], half, sizes[i + 2]))
        self.head = SsdHead(10, sizes, [60., 105., 150., 195., 240., 285.],
                            [[], [150.], [195.], [240.], [285.], [300.]], [[2.]] + [[2., 3.]] * 5)

    def forward(self, image):
        x, maps = self.conv1(image), []
        for i, block in enumerate(self.dwsl):
            x = block(x)
            if i in (10, 12):  # conv5_5, conv6
                maps.append(x)
        for i in range(1, 5):
            maps.append(getattr(self, f"extra{i}")(maps[-1]))
        return self.head(maps, image)


NETWORKS = {
    "crnn": (Crnn, [1, 1, 32, 24], "num_classes=10"),
    "ssd_mobilenet_v1": (SsdMobileNetV1, [1, 3, 96, 96], "num_classes=10"),
    "unet_small": (lambda: UNet(16), [1, 3, 16, 16], "num_classes=10"),
    "yolov3_tiny": (YoloTiny, [1, 3, 64, 64], "filters=24"),
}

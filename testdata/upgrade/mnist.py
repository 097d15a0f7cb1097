# SPDX-License-Identifier: Apache-2.0
"""A training script of PaddlePaddle 1.8, as pd-convert --upgrade reads it: names under several imports, in strings
and comments, names that 2.0 has changed otherwise, and names that it does not have."""
import paddle.fluid as fluid
import paddle.fluid.layers as layers
from paddle.fluid.dygraph import (Linear, Pool2D,
                                  to_variable as as_tensor)
from paddle.fluid.optimizer import AdamOptimizer


class Net(fluid.dygraph.Layer):
    def __init__(self):
        super().__init__()
        self.pool = Pool2D(pool_size=2, pool_stride=2)
        self.fc = Linear(196, 10)

    def forward(self, images):
        hidden = self.pool(images)
        hidden = layers.reshape(hidden, [-1, 196])
        return layers.softmax(self.fc(fluid.layers.relu(hidden)))


def train(data, layers=1):  # the argument is another `layers`
    with fluid.dygraph.guard():
        net = Net()
        # fluid.layers.relu in a comment stays, and so does "fluid.layers.relu"
        adam = AdamOptimizer(learning_rate=1e-3, parameter_list=net.parameters())
        for images, labels in data:
            probabilities = net(as_tensor(images))
            loss = fluid.layers.mean(fluid.layers.cross_entropy(probabilities, as_tensor(labels)))
            loss.backward()
            adam.minimize(loss)
            net.clear_gradients()
            print(f"loss {loss.numpy()}", 'fluid.layers.relu')
    fluid.dygraph.save_dygraph(net.state_dict(), "mnist")

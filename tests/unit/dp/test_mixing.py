"""Trying a network away from where its training starts."""

import mxnet as mx
import numpy as np
from mxnet.gluon import nn

from edp_mx.dp.mixing import away_from_start


def test_weights_that_a_prediction_reordered_come_back():
    """oneDNN keeps the weight of a convolution with 16 filters in an order of its own from then."""
    net = nn.Conv1D(16, 3, in_channels=30)
    net.initialize()
    net.hybridize()
    start = net.weight.data().asnumpy()
    for _ in range(2):
        net(mx.nd.ones((4, 30, 8))).wait_to_read()
        with away_from_start(net):
            assert np.abs(net.weight.data().asnumpy() - start).min() > 0
            net(mx.nd.ones((4, 30, 8))).wait_to_read()
        np.testing.assert_array_equal(net.weight.data().asnumpy(), start)

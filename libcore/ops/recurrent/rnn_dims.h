// SPDX-License-Identifier: Apache-2.0
// The extents of the rnn op, the order of its weights, and where its forward
// pass leaves what its gradient needs.
#ifndef PD_LIBCORE_OPS_RECURRENT_RNN_DIMS_H_
#define PD_LIBCORE_OPS_RECURRENT_RNN_DIMS_H_

#include <cstddef>
#include <cstdint>

namespace pd {

enum class RnnMode { kTanh, kRelu, kLstm, kGru };

struct RnnDims {
  RnnMode mode = RnnMode::kTanh;
  int64_t time = 0, batch = 0, input = 0, hidden = 0;
  int64_t layers = 1, directions = 1;

  int64_t gates() const {
    return mode == RnnMode::kLstm ? 4 : mode == RnnMode::kGru ? 3 : 1;
  }
  /// PreState and State: h, and the cells of an LSTM.
  size_t states() const { return mode == RnnMode::kLstm ? 2 : 1; }
  int64_t gate_width() const { return gates() * hidden; }
  int64_t out_width() const { return directions * hidden; }
  int64_t input_width(int64_t layer) const {
    return layer == 0 ? input : out_width();
  }
  int64_t rows() const { return time * batch; }
  /// Elements of one layer's output, and of its dropout mask.
  int64_t layer_out() const { return rows() * out_width(); }

  // WeightList: the input and the recurrent weights of each layer and
  // direction, then the biases in the same order.
  size_t pairs() const { return static_cast<size_t>(layers * directions); }
  size_t weights() const { return 4 * pairs(); }
  size_t pair(int64_t layer, int64_t direction) const {
    return static_cast<size_t>(layer * directions + direction);
  }
  size_t w_ih(size_t pair) const { return 2 * pair; }
  size_t w_hh(size_t pair) const { return 2 * pair + 1; }
  size_t b_ih(size_t pair) const { return 2 * pairs() + 2 * pair; }
  size_t b_hh(size_t pair) const { return 2 * pairs() + 2 * pair + 1; }

  // Reserve, in elements. For each layer and direction the activated gates
  // [time, batch, gates, hidden] and, for LSTM, the cells, for GRU the
  // recurrent part of the candidate, [time, batch, hidden]; then the outputs
  // [time, batch, directions, hidden] of all layers but the last.
  int64_t gate_size() const { return rows() * gate_width(); }
  int64_t extra_size() const { return gates() > 1 ? rows() * hidden : 0; }
  int64_t gates_at(size_t pair) const {
    return static_cast<int64_t>(pair) * (gate_size() + extra_size());
  }
  int64_t extra_at(size_t pair) const { return gates_at(pair) + gate_size(); }
  int64_t out_at(int64_t layer) const {
    return gates_at(pairs()) + layer * layer_out();
  }
  int64_t reserve() const { return out_at(layers - 1); }
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_RNN_DIMS_H_

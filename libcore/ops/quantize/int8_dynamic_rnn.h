// SPDX-License-Identifier: Apache-2.0
// int8_dynamic_rnn: the rnn op in evaluation (rnn.cc) with 8-bit weights. The
// products with the inputs and with the last state are those of
// int8_dynamic.h, a row of each batch record and step with a scale of its own;
// biases, cells and states are float32.
//   WeightList   as rnn's: int8 matrices [gates * hidden, n], then biases
//   WeightScale  for each matrix: one number or one for each of its rows
#ifndef PD_LIBCORE_OPS_QUANTIZE_INT8_DYNAMIC_RNN_H_
#define PD_LIBCORE_OPS_QUANTIZE_INT8_DYNAMIC_RNN_H_

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "libcore/base/parallel.h"
#include "libcore/ops/quantize/int8.h"
#include "libcore/ops/recurrent/rnn_bind.h"

namespace pd {

/// The matrices of WeightList in their order, which must be constant.
absl::StatusOr<std::vector<Int8Weights>> ReadDynamicRnnWeights(
    BindContext* context, const RnnDims& dims);

/// One run. Math has
///   Product(matrix, x, rows, out): out = x * the matrix of WeightList
///   Cell, as RnnCell
template <typename Math>
class DynamicRnnLayers {
 public:
  /// Elements of scratch memory.
  static int64_t Scratch(const RnnDims& d) {
    return 2 * d.layer_out() + d.gate_size() +
           d.batch * (d.gate_width() + 3 * d.hidden);
  }

  DynamicRnnLayers(const RnnDims& dims, RnnData<float> data, const Math& math,
                   float* scratch)
      : d_(dims), p_(std::move(data)), math_(math) {
    const auto take = [&](int64_t elements) {
      return std::exchange(scratch, scratch + elements);
    };
    between_[0] = take(d_.layer_out());
    between_[1] = take(d_.layer_out());
    gates_ = take(d_.gate_size());
    from_h_ = take(d_.batch * d_.gate_width());
    h_ = take(d_.batch * d_.hidden);
    c_ = take(d_.batch * d_.hidden);
    extra_ = take(d_.batch * d_.hidden);
  }

  void Forward() {
    const float* x = p_.x;
    for (int64_t layer = 0; layer < d_.layers; ++layer) {
      float* out = layer == d_.layers - 1 ? p_.out : between_[layer % 2];
      for (int64_t direction = 0; direction < d_.directions; ++direction)
        ForwardOne(d_.pair(layer, direction), direction, x,
                   out + direction * d_.hidden);
      x = out;
    }
  }

 private:
  void AddBias(int64_t rows, const float* bias, float* to) const {
    const int64_t width = d_.gate_width();
    ParallelFor(rows, 4096 / width + 1, [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t k = 0; k < width; ++k) to[r * width + k] += bias[k];
    });
  }

  void ForwardOne(size_t pair, int64_t direction, const float* x, float* out) {
    const int64_t n = d_.hidden, width = d_.gate_width(), batch = d_.batch;
    const int64_t state = static_cast<int64_t>(pair) * batch * n;
    std::copy_n(p_.pre_states[0] + state, batch * n, h_);
    if (d_.states() > 1) std::copy_n(p_.pre_states[1] + state, batch * n, c_);
    math_.Product(d_.w_ih(pair), x, d_.rows(), gates_);
    AddBias(d_.rows(), p_.weights[d_.b_ih(pair)], gates_);
    for (int64_t s = 0; s < d_.time; ++s) {
      const int64_t t = direction == 0 ? s : d_.time - 1 - s;
      math_.Product(d_.w_hh(pair), h_, batch, from_h_);
      AddBias(batch, p_.weights[d_.b_hh(pair)], from_h_);
      ParallelFor(batch, 1024 / n + 1, [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t row = t * batch + b;
          float* to = out + row * d_.out_width();
          if (!p_.lengths.empty() && t >= p_.lengths[static_cast<size_t>(b)]) {
            std::fill_n(to, n, 0.0f);
            continue;
          }
          math_.Cell(d_.mode, n, from_h_ + b * width, gates_ + row * width,
                     extra_ + b * n, h_ + b * n, c_ + b * n);
          std::copy_n(h_ + b * n, n, to);
        }
      });
    }
    const float* states[] = {h_, c_};
    for (size_t i = 0; i < d_.states(); ++i)
      if (p_.states[i] != nullptr)
        std::copy_n(states[i], batch * n, p_.states[i] + state);
  }

  const RnnDims d_;
  const RnnData<float> p_;
  const Math& math_;
  float *between_[2], *gates_, *from_h_, *h_, *c_, *extra_;
};

/// The step, with the products of `math`, a copyable pointer to a Math.
template <typename MathPtr>
absl::StatusOr<Step> BindDynamicRnnWith(BindContext* context,
                                        const RnnInputs& inputs, MathPtr math) {
  using Layers = DynamicRnnLayers<typename MathPtr::element_type>;
  Tensor* out = context->Output("Out");
  std::vector<Tensor*> states;
  for (size_t i = 0; i < inputs.dims.states(); ++i)
    states.push_back(context->Output("State", i));
  Tensor* scratch = context->Scratch(
      sizeof(float) * static_cast<size_t>(Layers::Scratch(inputs.dims)));
  return Step([=](const RunContext&) {
    RnnData<float> data;
    data.x = inputs.x->data<float>();
    for (Tensor* t : inputs.pre_states)
      data.pre_states.push_back(t->data<float>());
    data.weights.assign(2 * inputs.dims.pairs(), nullptr);
    for (size_t i = data.weights.size(); i < inputs.weights.size(); ++i)
      data.weights.push_back(inputs.weights[i]->data<float>());
    data.lengths = inputs.Lengths();
    data.out = out->data<float>();
    data.states = RnnPointers<float>(states);
    Layers(inputs.dims, std::move(data), *math, scratch->data<float>())
        .Forward();
    return absl::OkStatus();
  });
}

}  // namespace pd

#endif  // PD_LIBCORE_OPS_QUANTIZE_INT8_DYNAMIC_RNN_H_

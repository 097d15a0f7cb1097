// SPDX-License-Identifier: Apache-2.0
// The layers of the rnn op, forward and backward. The inputs of all steps are
// multiplied by the weights in one product, so are the gates' gradients; only
// the product with the last state is done step by step.
//
// Steps at or after a sequence's length leave its state alone and give zeros.
// The arithmetic is an argument: kernels bring a faster one than the reference.
#ifndef PD_LIBCORE_OPS_RECURRENT_RNN_LAYERS_H_
#define PD_LIBCORE_OPS_RECURRENT_RNN_LAYERS_H_

#include <algorithm>
#include <cstdint>
#include <vector>

#include "libcore/base/parallel.h"
#include "libcore/ops/common/gemm.h"
#include "libcore/ops/recurrent/rnn_cell.h"
#include "libcore/ops/recurrent/rnn_data.h"
#include "libcore/ops/recurrent/rnn_dims.h"

namespace pd {

/// Math has static functions
///   Product(const GemmShape&, const T* a, const T* b, T* c): c = op(a) op(b)
///   Cell and CellGrad, as RnnCell and RnnCellGrad
template <typename T, typename Math>
class RnnLayers {
 public:
  RnnLayers(const RnnDims& dims, const RnnData<T>& data, T* scratch)
      : d_(dims), p_(data), scratch_(scratch) {}

  /// Elements of scratch memory for Forward and for Backward.
  static int64_t ForwardScratch(const RnnDims& d) {
    return d.layer_out() + d.batch * (d.gate_width() + 2 * d.hidden) +
           d.gate_width() * d.hidden;
  }
  static int64_t BackwardScratch(const RnnDims& d) {
    const int64_t widest = std::max(d.input, d.out_width());
    return 2 * d.layer_out() + 2 * d.rows() * widest + 2 * d.gate_size() +
           d.rows() * d.hidden + 3 * d.batch * d.hidden;
  }

  void Forward() {
    T* dropped = scratch_;
    scratch_ += d_.layer_out();
    for (int64_t layer = 0; layer < d_.layers; ++layer) {
      const T* x = LayerInput(layer, dropped);
      for (int64_t direction = 0; direction < d_.directions; ++direction)
        ForwardOne(layer, direction, x);
    }
  }

  void Backward() {
    T* dropped = Take(d_.layer_out());
    T* dout = Take(d_.layer_out());
    const int64_t widest = std::max(d_.input, d_.out_width());
    T* dx = Take(d_.rows() * widest);
    T* part = Take(d_.rows() * widest);
    if (p_.dout != nullptr)
      std::copy_n(p_.dout, d_.layer_out(), dout);
    else
      std::fill_n(dout, d_.layer_out(), T(0));
    for (int64_t layer = d_.layers; layer-- > 0;) {
      const T* x = LayerInput(layer, dropped);
      const int64_t size = d_.rows() * d_.input_width(layer);
      const bool wants_dx = layer > 0 || p_.dx != nullptr;
      for (int64_t direction = 0; direction < d_.directions; ++direction) {
        T* to = direction == 0 ? dx : part;
        T* mark = scratch_;
        BackwardOne(layer, direction, x, dout, wants_dx ? to : nullptr);
        scratch_ = mark;
        if (direction > 0 && wants_dx)
          for (int64_t i = 0; i < size; ++i) dx[i] += part[i];
      }
      if (layer > 0)
        Drop(dx, layer - 1, dout);
      else if (p_.dx != nullptr)
        std::copy_n(dx, size, p_.dx);
    }
  }

 private:
  T* Take(int64_t elements) {
    T* at = scratch_;
    scratch_ += elements;
    return at;
  }

  // Rows that are worth a thread.
  static int64_t RowGrain(int64_t width) {
    return 1024 / std::max<int64_t>(width, 1) + 1;
  }

  bool Valid(int64_t t, int64_t b) const {
    return t >= 0 && t < d_.time &&
           (p_.lengths.empty() || t < p_.lengths[static_cast<size_t>(b)]);
  }
  /// Step s of a direction.
  int64_t TimeOf(int64_t s, int64_t direction) const {
    return direction == 0 ? s : d_.time - 1 - s;
  }

  T* LayerOut(int64_t layer) {
    return layer == d_.layers - 1 ? p_.out : p_.reserve + d_.out_at(layer);
  }

  // to = from, or its elements that the mask after `layer` keeps, scaled.
  void Drop(const T* from, int64_t layer, T* to) {
    const int64_t n = d_.layer_out();
    if (p_.mask == nullptr) {
      std::copy_n(from, n, to);
      return;
    }
    const uint8_t* mask = p_.mask + layer * n;
    for (int64_t i = 0; i < n; ++i)
      to[i] = mask[i] != 0 ? from[i] * p_.keep_factor : T(0);
  }

  const T* LayerInput(int64_t layer, T* dropped) {
    if (layer == 0) return p_.x;
    if (p_.mask == nullptr) return LayerOut(layer - 1);
    Drop(LayerOut(layer - 1), layer - 1, dropped);
    return dropped;
  }

  void ForwardOne(int64_t layer, int64_t direction, const T* x) {
    const size_t pair = d_.pair(layer, direction);
    const int64_t n = d_.hidden, width = d_.gate_width(), batch = d_.batch;
    const int64_t state = static_cast<int64_t>(pair) * batch * n;
    T* gates = p_.reserve + d_.gates_at(pair);
    T* extra = p_.reserve + d_.extra_at(pair);
    T* out = LayerOut(layer) + direction * n;
    T* mark = scratch_;
    T* from_h = Take(batch * width);
    T* h = Take(batch * n);
    T* c = Take(batch * n);
    // Products of more than a few rows want the weights as they are multiplied.
    const bool turned = batch >= 4;
    T* turned_w_hh = Take(n * width);
    if (turned) Transpose(p_.weights[d_.w_hh(pair)], width, n, turned_w_hh);
    const T* w_hh = turned ? turned_w_hh : p_.weights[d_.w_hh(pair)];
    std::copy_n(p_.pre_states[0] + state, batch * n, h);
    if (d_.states() > 1) std::copy_n(p_.pre_states[1] + state, batch * n, c);
    Math::Product({d_.rows(), width, d_.input_width(layer), false, true}, x,
                  p_.weights[d_.w_ih(pair)], gates);
    AddBias(d_.rows(), p_.weights[d_.b_ih(pair)], gates);
    for (int64_t s = 0; s < d_.time; ++s) {
      const int64_t t = TimeOf(s, direction);
      Math::Product({batch, width, n, false, !turned}, h, w_hh, from_h);
      AddBias(batch, p_.weights[d_.b_hh(pair)], from_h);
      ParallelFor(batch, RowGrain(n), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t row = t * batch + b;
          T* to = out + row * d_.out_width();
          if (!Valid(t, b)) {
            std::fill_n(to, n, T(0));
            continue;
          }
          Math::Cell(d_.mode, n, from_h + b * width, gates + row * width,
                     extra + row * n, h + b * n, c + b * n);
          std::copy_n(h + b * n, n, to);
        }
      });
    }
    if (p_.states[0] != nullptr)
      std::copy_n(h, batch * n, p_.states[0] + state);
    if (d_.states() > 1 && p_.states[1] != nullptr)
      std::copy_n(c, batch * n, p_.states[1] + state);
    scratch_ = mark;
  }

  // to[columns, rows] is from[rows, columns] transposed.
  static void Transpose(const T* from, int64_t rows, int64_t columns, T* to) {
    constexpr int64_t kTile = 16;
    ParallelFor((columns + kTile - 1) / kTile, 4,
                [&](int64_t begin, int64_t end) {
                  for (int64_t r0 = 0; r0 < rows; r0 += kTile)
                    for (int64_t c = begin * kTile;
                         c < std::min(columns, end * kTile); ++c)
                      for (int64_t r = r0; r < std::min(rows, r0 + kTile); ++r)
                        to[c * rows + r] = from[r * columns + c];
                });
  }

  void AddBias(int64_t rows, const T* bias, T* gates) {
    const int64_t width = d_.gate_width();
    ParallelFor(rows, RowGrain(width), [&](int64_t begin, int64_t end) {
      for (int64_t r = begin; r < end; ++r)
        for (int64_t k = 0; k < width; ++k) gates[r * width + k] += bias[k];
    });
  }

  // The state before step t: what the step before it left, else PreState.
  const T* Before(int64_t t, int64_t b, int64_t direction, const T* values,
                  int64_t stride, const T* pre) const {
    const int64_t before = direction == 0 ? t - 1 : t + 1;
    return Valid(before, b) ? values + (before * d_.batch + b) * stride
                            : pre + b * d_.hidden;
  }

  // Gates' gradients of all steps, from the last to the first.
  void BackwardOne(int64_t layer, int64_t direction, const T* x, const T* dout,
                   T* dx) {
    const size_t pair = d_.pair(layer, direction);
    const int64_t n = d_.hidden, width = d_.gate_width(), batch = d_.batch;
    const int64_t state = static_cast<int64_t>(pair) * batch * n;
    const bool gru = d_.mode == RnnMode::kGru;
    T* dgx = Take(d_.gate_size());
    T* dgh = Take(d_.gate_size());
    if (!gru) dgh = dgx;
    T* last_h = Take(d_.rows() * n);
    T* dh = Take(batch * n);
    T* dc = Take(batch * n);
    T* through = Take(batch * n);
    StartState(0, state, dh);
    StartState(1, state, dc);
    const T* out = LayerOut(layer) + direction * n;
    const T* w_hh = p_.weights[d_.w_hh(pair)];
    for (int64_t s = d_.time; s-- > 0;) {
      const int64_t t = TimeOf(s, direction);
      ParallelFor(batch, RowGrain(n), [&](int64_t begin, int64_t end) {
        for (int64_t b = begin; b < end; ++b) {
          const int64_t row = t * batch + b;
          const T* h0 = p_.pre_states[0] + state;
          std::copy_n(Before(t, b, direction, out, d_.out_width(), h0), n,
                      last_h + row * n);
          if (!Valid(t, b)) {
            std::fill_n(dgx + row * width, width, T(0));
            std::fill_n(dgh + row * width, width, T(0));
            continue;
          }
          const T* dy = dout + row * d_.out_width() + direction * n;
          for (int64_t k = 0; k < n; ++k) dh[b * n + k] += dy[k];
          RnnCellState<T> cell;
          cell.gates = p_.reserve + d_.gates_at(pair) + row * width;
          cell.extra = p_.reserve + d_.extra_at(pair) + row * n;
          cell.h = last_h + row * n;
          cell.c = d_.states() > 1
                       ? Before(t, b, direction, p_.reserve + d_.extra_at(pair),
                                n, p_.pre_states[1] + state)
                       : nullptr;
          Math::CellGrad(d_.mode, n, cell, dh + b * n, dc + b * n,
                         dgx + row * width, dgh + row * width);
        }
      });
      Math::Product({batch, n, width}, dgh + t * batch * width, w_hh, through);
      for (int64_t i = 0; i < batch * n; ++i) dh[i] += through[i];
    }
    EndState(0, state, dh);
    EndState(1, state, dc);
    WeightGrads(layer, pair, x, last_h, dgx, dgh);
    if (dx != nullptr)
      Math::Product({d_.rows(), d_.input_width(layer), width}, dgx,
                    p_.weights[d_.w_ih(pair)], dx);
  }

  void StartState(size_t which, int64_t state, T* gradient) {
    const int64_t n = d_.batch * d_.hidden;
    if (which < p_.dstates.size() && p_.dstates[which] != nullptr)
      std::copy_n(p_.dstates[which] + state, n, gradient);
    else
      std::fill_n(gradient, n, T(0));
  }
  void EndState(size_t which, int64_t state, const T* gradient) {
    if (which < p_.dpre_states.size() && p_.dpre_states[which] != nullptr)
      std::copy_n(gradient, d_.batch * d_.hidden,
                  p_.dpre_states[which] + state);
  }

  void WeightGrads(int64_t layer, size_t pair, const T* x, const T* last_h,
                   const T* dgx, const T* dgh) {
    const int64_t width = d_.gate_width(), rows = d_.rows();
    if (T* dw = p_.dweights[d_.w_ih(pair)])
      Math::Product({width, d_.input_width(layer), rows, true, false}, dgx, x,
                    dw);
    if (T* dw = p_.dweights[d_.w_hh(pair)])
      Math::Product({width, d_.hidden, rows, true, false}, dgh, last_h, dw);
    SumRows(dgx, p_.dweights[d_.b_ih(pair)]);
    SumRows(dgh, p_.dweights[d_.b_hh(pair)]);
  }

  void SumRows(const T* gates, T* sum) {
    if (sum == nullptr) return;
    const int64_t width = d_.gate_width();
    ParallelFor(width, 64, [&](int64_t begin, int64_t end) {
      std::fill(sum + begin, sum + end, T(0));
      for (int64_t r = 0; r < d_.rows(); ++r)
        for (int64_t k = begin; k < end; ++k) sum[k] += gates[r * width + k];
    });
  }

  const RnnDims& d_;
  const RnnData<T>& p_;
  T* scratch_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_RNN_LAYERS_H_

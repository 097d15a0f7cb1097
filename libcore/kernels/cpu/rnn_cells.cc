// SPDX-License-Identifier: Apache-2.0
#include "libcore/kernels/cpu/rnn_cells.h"

#include <algorithm>

#include "libcore/kernels/cpu/targets.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "libcore/kernels/cpu/rnn_cells.cc"
#include "hwy/foreach_target.h"
// foreach_target.h comes first.
#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace pd {
namespace cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

const hn::ScalableTag<float> kTag;
using V = hn::Vec<decltype(kTag)>;

// Elements [i, i + lanes) of arrays of n; what lies behind is neither read nor
// written.
class Slice {
 public:
  Slice(int64_t i, int64_t n)
      : i_(i), mask_(hn::FirstN(kTag, static_cast<size_t>(n - i))) {}
  HWY_INLINE V Load(const float* from) const {
    return hn::MaskedLoad(mask_, kTag, from + i_);
  }
  HWY_INLINE void Store(V v, float* to) const {
    hn::BlendedStore(v, mask_, kTag, to + i_);
  }

 private:
  int64_t i_;
  hn::Mask<decltype(kTag)> mask_;
};

HWY_INLINE V One() { return hn::Set(kTag, 1.0f); }

HWY_INLINE V Sigmoid(V x) {
  // Beyond 80 the float is 0 or 1 to its last bit but some.
  const V near =
      hn::Max(hn::Min(x, hn::Set(kTag, 80.0f)), hn::Set(kTag, -80.0f));
  const V y = hn::Div(One(), hn::Add(One(), hn::Exp(kTag, hn::Neg(near))));
  return hn::IfThenElse(hn::IsNaN(x), x, y);
}

HWY_INLINE V Tanh(V x) {
  const V near =
      hn::Max(hn::Min(x, hn::Set(kTag, 20.0f)), hn::Set(kTag, -20.0f));
  return hn::IfThenElse(hn::IsNaN(x), x, hn::Tanh(kTag, near));
}

// y (1 - y) and 1 - y^2: slopes of the two by their values.
HWY_INLINE V SigmoidSlope(V y) { return hn::NegMulAdd(y, y, y); }
HWY_INLINE V TanhSlope(V y) { return hn::NegMulAdd(y, y, One()); }

void LstmCell(int64_t n, const float* from_h, float* gates, float* extra,
              float* h, float* c) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(kTag))) {
    const Slice w(i, n);
    const auto sum = [&](int64_t gate) {
      return hn::Add(w.Load(gates + gate * n), w.Load(from_h + gate * n));
    };
    const V in = Sigmoid(sum(0)), forget = Sigmoid(sum(1));
    const V cell = Tanh(sum(2)), out = Sigmoid(sum(3));
    w.Store(in, gates);
    w.Store(forget, gates + n);
    w.Store(cell, gates + 2 * n);
    w.Store(out, gates + 3 * n);
    const V next = hn::MulAdd(forget, w.Load(c), hn::Mul(in, cell));
    w.Store(next, c);
    w.Store(next, extra);
    w.Store(hn::Mul(out, Tanh(next)), h);
  }
}

void GruCell(int64_t n, const float* from_h, float* gates, float* extra,
             float* h) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(kTag))) {
    const Slice w(i, n);
    const V r = Sigmoid(hn::Add(w.Load(gates), w.Load(from_h)));
    const V z = Sigmoid(hn::Add(w.Load(gates + n), w.Load(from_h + n)));
    const V recurrent = w.Load(from_h + 2 * n);
    const V candidate = Tanh(hn::MulAdd(r, recurrent, w.Load(gates + 2 * n)));
    w.Store(r, gates);
    w.Store(z, gates + n);
    w.Store(candidate, gates + 2 * n);
    w.Store(recurrent, extra);
    w.Store(hn::MulAdd(hn::Sub(One(), z), candidate, hn::Mul(z, w.Load(h))), h);
  }
}

void SimpleCell(bool tanh, int64_t n, const float* from_h, float* gates,
                float* h) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(kTag))) {
    const Slice w(i, n);
    const V sum = hn::Add(w.Load(gates), w.Load(from_h));
    const V y =
        tanh ? Tanh(sum) : hn::IfThenZeroElse(hn::Lt(sum, hn::Zero(kTag)), sum);
    w.Store(y, gates);
    w.Store(y, h);
  }
}

void Cell(RnnMode mode, int64_t n, const float* from_h, float* gates,
          float* extra, float* h, float* c) {
  if (mode == RnnMode::kLstm)
    LstmCell(n, from_h, gates, extra, h, c);
  else if (mode == RnnMode::kGru)
    GruCell(n, from_h, gates, extra, h);
  else
    SimpleCell(mode == RnnMode::kTanh, n, from_h, gates, h);
}

void LstmGrad(int64_t n, const RnnCellState<float>& s, float* dh, float* dc,
              float* dx) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(kTag))) {
    const Slice w(i, n);
    const V in = w.Load(s.gates), forget = w.Load(s.gates + n);
    const V g = w.Load(s.gates + 2 * n), out = w.Load(s.gates + 3 * n);
    const V tanh_c = Tanh(w.Load(s.extra)), above = w.Load(dh);
    const V cell =
        hn::MulAdd(hn::Mul(above, out), TanhSlope(tanh_c), w.Load(dc));
    w.Store(hn::Mul(hn::Mul(cell, g), SigmoidSlope(in)), dx);
    w.Store(hn::Mul(hn::Mul(cell, w.Load(s.c)), SigmoidSlope(forget)), dx + n);
    w.Store(hn::Mul(hn::Mul(cell, in), TanhSlope(g)), dx + 2 * n);
    w.Store(hn::Mul(hn::Mul(above, tanh_c), SigmoidSlope(out)), dx + 3 * n);
    w.Store(hn::Mul(cell, forget), dc);
    w.Store(hn::Zero(kTag), dh);
  }
}

void GruGrad(int64_t n, const RnnCellState<float>& s, float* dh, float* dx,
             float* dgh) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(kTag))) {
    const Slice w(i, n);
    const V r = w.Load(s.gates), z = w.Load(s.gates + n);
    const V m = w.Load(s.gates + 2 * n), above = w.Load(dh);
    const V candidate =
        hn::Mul(hn::Mul(above, hn::Sub(One(), z)), TanhSlope(m));
    const V dr = hn::Mul(hn::Mul(candidate, w.Load(s.extra)), SigmoidSlope(r));
    const V dz =
        hn::Mul(hn::Mul(above, hn::Sub(w.Load(s.h), m)), SigmoidSlope(z));
    w.Store(dr, dx);
    w.Store(dr, dgh);
    w.Store(dz, dx + n);
    w.Store(dz, dgh + n);
    w.Store(candidate, dx + 2 * n);
    w.Store(hn::Mul(candidate, r), dgh + 2 * n);
    w.Store(hn::Mul(above, z), dh);
  }
}

void SimpleGrad(bool tanh, int64_t n, const RnnCellState<float>& s, float* dh,
                float* dx) {
  for (int64_t i = 0; i < n; i += static_cast<int64_t>(hn::Lanes(kTag))) {
    const Slice w(i, n);
    const V y = w.Load(s.gates), above = w.Load(dh);
    w.Store(tanh ? hn::Mul(above, TanhSlope(y))
                 : hn::IfThenElseZero(hn::Gt(y, hn::Zero(kTag)), above),
            dx);
    w.Store(hn::Zero(kTag), dh);
  }
}

void CellGrad(RnnMode mode, int64_t n, const RnnCellState<float>& s, float* dh,
              float* dc, float* dx, float* dgh) {
  if (mode == RnnMode::kLstm)
    LstmGrad(n, s, dh, dc, dx);
  else if (mode == RnnMode::kGru)
    GruGrad(n, s, dh, dx, dgh);
  else
    SimpleGrad(mode == RnnMode::kTanh, n, s, dh, dx);
}

}  // namespace HWY_NAMESPACE
}  // namespace cpu
}  // namespace pd
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pd {
namespace cpu {

HWY_EXPORT(Cell);
HWY_EXPORT(CellGrad);

void VectorRnnCell(RnnMode mode, int64_t n, const float* from_h, float* gates,
                   float* extra, float* h, float* c) {
  HWY_DYNAMIC_DISPATCH(Cell)(mode, n, from_h, gates, extra, h, c);
}

void VectorRnnCellGrad(RnnMode mode, int64_t n, const RnnCellState<float>& s,
                       float* dh, float* dc, float* dx, float* dgh) {
  HWY_DYNAMIC_DISPATCH(CellGrad)(mode, n, s, dh, dc, dx, dgh);
}

}  // namespace cpu
}  // namespace pd
#endif  // HWY_ONCE

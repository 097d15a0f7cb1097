// SPDX-License-Identifier: Apache-2.0
// Convolutions by plain loops over what descriptors describe.
#ifndef PD_TESTS_DEVICE_FAKE_CONVOLUTION_H_
#define PD_TESTS_DEVICE_FAKE_CONVOLUTION_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/base/half.h"

namespace fake {

constexpr int kFloat32 = 0, kFloat16 = 2, kBFloat16 = 9;

struct Tensor {
  int type = -1;
  std::vector<int> dims, strides;
};
struct Work {
  std::vector<int> paddings, strides, dilations;
  int groups = 1;
};
inline float Load(int type, const void* data, int64_t i) {
  if (type == kFloat32) return static_cast<const float*>(data)[i];
  if (type == kFloat16) return static_cast<const pd::Float16*>(data)[i];
  return static_cast<const pd::BFloat16*>(data)[i];
}
inline void Store(int type, void* data, int64_t i, double value) {
  const float v = static_cast<float>(value);
  if (type == kFloat32)
    static_cast<float*>(data)[i] = v;
  else if (type == kFloat16)
    static_cast<pd::Float16*>(data)[i] = pd::Float16(v);
  else
    static_cast<pd::BFloat16*>(data)[i] = pd::BFloat16(v);
}

inline int64_t SizeOf(const Tensor& t) {
  int64_t size = 1;
  for (int extent : t.dims) size *= extent;
  return size;
}
inline bool Next(const std::vector<int>& dims, std::vector<int>* index) {
  for (size_t d = dims.size(); d-- > 0;) {
    if (++(*index)[d] < dims[d]) return true;
    (*index)[d] = 0;
  }
  return false;
}
inline int64_t Place(const Tensor& t, const std::vector<int>& index) {
  int64_t at = 0;
  for (size_t d = 0; d < index.size(); ++d)
    at += int64_t{index[d]} * t.strides[d];
  return at;
}

// One behind the other in memory, row-major or with channels last.
inline bool Lies(const Tensor& t, bool last) {
  int step = last ? t.dims[1] : 1;
  for (size_t d = t.dims.size(); d-- > 0;) {
    if (d == 1 && last) continue;
    if (t.dims[d] != 1 && t.strides[d] != step) return false;
    step *= t.dims[d];
  }
  return !last || t.dims[1] == 1 || t.strides[1] == 1;
}
// The engines are for data and filters in one order.
inline bool LieAlike(const Tensor& x, const Tensor& w, const Tensor& y) {
  for (const bool last : {false, true})
    if (Lies(x, last) && Lies(w, last) && Lies(y, last)) return true;
  return false;
}

inline bool Fits(const Tensor& x, const Tensor& w, const Tensor& y,
                 const Work& work) {
  const size_t rank = x.dims.size();
  if (rank < 4 || w.dims.size() != rank || y.dims.size() != rank ||
      work.paddings.size() != rank - 2 || x.type != w.type ||
      x.type != y.type || x.dims[0] != y.dims[0] || y.dims[1] != w.dims[0] ||
      x.dims[1] != w.dims[1] * work.groups || y.dims[1] % work.groups != 0)
    return false;
  for (size_t d = 0; d + 2 < rank; ++d) {
    const int window = work.dilations[d] * (w.dims[d + 2] - 1) + 1;
    const int space = x.dims[d + 2] + 2 * work.paddings[d] - window;
    if (space < 0 || y.dims[d + 2] != space / work.strides[d] + 1) return false;
  }
  return true;
}

// body(place in x, in w, in y) for every product of the convolution.
template <typename Body>
void ForEachProduct(const Tensor& x, const Tensor& w, const Tensor& y,
                    const Work& work, const Body& body) {
  std::vector<int> out(y.dims.size(), 0);
  const int group_out = y.dims[1] / work.groups;
  do {
    std::vector<int> tap(w.dims.size(), 0);
    std::vector<int> taps = w.dims;
    taps[0] = 1;
    do {
      std::vector<int> in = {out[0], out[1] / group_out * w.dims[1] + tap[1]};
      bool inside = true;
      for (size_t d = 2; d < out.size(); ++d) {
        in.push_back(out[d] * work.strides[d - 2] - work.paddings[d - 2] +
                     tap[d] * work.dilations[d - 2]);
        inside = inside && in[d] >= 0 && in[d] < x.dims[d];
      }
      if (!inside) continue;
      std::vector<int> at = tap;
      at[0] = out[1];
      body(Place(x, in), Place(w, at), Place(y, out));
    } while (Next(taps, &tap));
  } while (Next(y.dims, &out));
}

}  // namespace fake

#endif  // PD_TESTS_DEVICE_FAKE_CONVOLUTION_H_

// SPDX-License-Identifier: Apache-2.0
// The results of the fake cuDNN's graphs: one operation after the other, in
// double, each result rounded to the type it is stored as.
#ifndef PD_TESTS_DEVICE_FAKE_GRAPH_H_
#define PD_TESTS_DEVICE_FAKE_GRAPH_H_

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "libcore/device/cudnn_graph.h"
#include "tests/device/fake_convolution.h"

namespace fake {

namespace numbers = pd::cudnn_graph;

struct Named {
  Tensor tensor;
  int64_t id = 0;
  bool is_virtual = false, by_value = false;
};
struct Operation {
  int kind = 0;  // of its descriptor
  Work work;
  int mode = 0;  // of a function, of a reduction
  double top = 0;
  // Two that are read, and the result. `other`: the filter or, of a gradient,
  // that of the output; what is added; the second matrix. x of the input's
  // gradient is the filter.
  Named x, other, y;

  bool Is(int of_kind, int of_mode = 0) const {
    return kind == of_kind && mode == of_mode;
  }
  bool IsConvolution() const {
    return kind == numbers::kConvolutionForward ||
           kind == numbers::kConvolutionBackwardData ||
           kind == numbers::kConvolutionBackwardFilter;
  }
};
using Program = std::vector<Operation>;

// Numbers of a tensor, where its strides say.
using Numbers = std::vector<double>;

// Of virtual tensors and single numbers; those in memory are read there.
class Values {
 public:
  Values(const std::map<int64_t, void*>& memory,
         const std::map<int64_t, double>& single)
      : memory_(memory), single_(single) {}

  double At(const Named& named, int64_t i) const {
    if (named.by_value) return single_.at(named.id);
    if (named.is_virtual) return made_.at(named.id)[static_cast<size_t>(i)];
    return Load(named.tensor.type, memory_.at(named.id), i);
  }
  // At an index of a tensor that this one is broadcast to.
  double Met(const Named& named, std::vector<int> index) const {
    for (size_t d = 0; d < index.size(); ++d)
      if (named.tensor.dims[d] == 1) index[d] = 0;
    return At(named, Place(named.tensor, index));
  }
  // Rounded to what it is stored as.
  void Put(const Named& named, Numbers numbers) {
    if (!named.is_virtual) {
      for (size_t i = 0; i < numbers.size(); ++i)
        Store(named.tensor.type, memory_.at(named.id), static_cast<int64_t>(i),
              numbers[i]);
      return;
    }
    for (double& number : numbers) {
      float bytes = 0;
      Store(named.tensor.type, &bytes, 0, number);
      number = Load(named.tensor.type, &bytes, 0);
    }
    made_[named.id] = std::move(numbers);
  }

 private:
  const std::map<int64_t, void*>& memory_;
  const std::map<int64_t, double>& single_;
  std::map<int64_t, Numbers> made_;
};

// Sums by place, stored where the result's elements lie.
inline void Convolve(const Operation& op, const Values& values, Numbers* to) {
  const bool data = op.kind == numbers::kConvolutionBackwardData;
  const bool filter = op.kind == numbers::kConvolutionBackwardFilter;
  const Tensor& x = data ? op.y.tensor : op.x.tensor;
  const Tensor& w = data ? op.x.tensor : filter ? op.y.tensor : op.other.tensor;
  const Tensor& y = data || filter ? op.other.tensor : op.y.tensor;
  ForEachProduct(x, w, y, op.work, [&](int64_t i, int64_t j, int64_t k) {
    const int64_t first = data ? j : i, second = data || filter ? k : j,
                  result = data     ? i
                           : filter ? j
                                    : k;
    (*to)[static_cast<size_t>(result)] +=
        values.At(op.x, first) * values.At(op.other, second);
  });
}

inline double Function(const Operation& op, double x, double other) {
  switch (op.mode) {
    case numbers::kAdd:
      return x + other;
    case numbers::kMultiply:
      return x * other;
    case numbers::kSubtract:
      return x - other;
    case numbers::kDivide:
      return x / other;
    case numbers::kExp:
      return std::exp(x);
    default:
      if (x < 0) x = 0;
      return op.top > 0 && x > op.top ? op.top : x;
  }
}

inline void Apply(const Operation& op, const Values& values, Numbers* to) {
  std::vector<int> index(op.y.tensor.dims.size(), 0);
  do {
    const double other = op.other.id == 0 ? 0 : values.Met(op.other, index);
    (*to)[static_cast<size_t>(Place(op.y.tensor, index))] =
        Function(op, values.Met(op.x, index), other);
  } while (Next(op.y.tensor.dims, &index));
}

inline void Multiply(const Operation& op, const Values& values, Numbers* to) {
  std::vector<int> index(op.y.tensor.dims.size(), 0);
  const size_t row = index.size() - 2, column = index.size() - 1;
  do {
    double sum = 0;
    std::vector<int> a = index, b = index;
    for (int k = 0; k < op.x.tensor.dims[column]; ++k) {
      a[column] = b[row] = k;
      sum += values.At(op.x, Place(op.x.tensor, a)) *
             values.At(op.other, Place(op.other.tensor, b));
    }
    (*to)[static_cast<size_t>(Place(op.y.tensor, index))] = sum;
  } while (Next(op.y.tensor.dims, &index));
}

inline void Reduce(const Operation& op, const Values& values, Numbers* to) {
  if (op.mode == numbers::kReduceMax) to->assign(to->size(), -HUGE_VAL);
  std::vector<int> index(op.x.tensor.dims.size(), 0);
  do {
    std::vector<int> at = index;
    for (size_t d = 0; d < at.size(); ++d)
      if (op.y.tensor.dims[d] == 1) at[d] = 0;
    double& result = (*to)[static_cast<size_t>(Place(op.y.tensor, at))];
    const double x = values.At(op.x, Place(op.x.tensor, index));
    result = op.mode == numbers::kReduceMax ? std::max(result, x) : result + x;
  } while (Next(op.x.tensor.dims, &index));
}

inline void Run(const Program& program, const std::map<int64_t, void*>& memory,
                const std::map<int64_t, double>& single) {
  Values values(memory, single);
  for (const Operation& op : program) {
    Numbers result(static_cast<size_t>(SizeOf(op.y.tensor)), 0.0);
    if (op.IsConvolution())
      Convolve(op, values, &result);
    else if (op.kind == numbers::kMatmulOperation)
      Multiply(op, values, &result);
    else if (op.kind == numbers::kReductionOperation)
      Reduce(op, values, &result);
    else
      Apply(op, values, &result);
    values.Put(op.y, std::move(result));
  }
}

}  // namespace fake

#endif  // PD_TESTS_DEVICE_FAKE_GRAPH_H_

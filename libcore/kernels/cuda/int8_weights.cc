// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <map>
#include <string>

#include "libcore/kernels/cuda/int8_bindings.h"

namespace pd::cuda {

Int8Finish FinishOf(const Int8Epilogue& e) {
  static_assert(static_cast<int>(Int8Act::Kind::kNone) ==
                    static_cast<int>(Int8Activation::kNone) &&
                static_cast<int>(Int8Act::Kind::kHardSigmoid) ==
                    static_cast<int>(Int8Activation::kHardSigmoid));
  return {static_cast<Int8Activation>(e.act.kind),
          e.act.a,
          e.act.b,
          e.act.c,
          e.out.factor,
          e.out.zero,
          e.out.low,
          e.out.high,
          e.y.scale,
          e.y.zero};
}

absl::StatusOr<Int8Constants> ReadConstants(BindContext* context,
                                            DeviceBinding* binding) {
  std::vector<const char*> slots = Int8ChannelSlots();
  slots.insert(slots.end(), {"Filter", "FilterScale", "FilterZero"});
  std::map<std::string, const Tensor*> values;
  for (const char* slot : slots) {
    const Tensor* tensor = context->Input(slot);
    if (tensor == nullptr) continue;
    PD_ASSIGN_OR_RETURN(const Tensor* value, binding->ValueOf(tensor));
    if (value == nullptr || !context->IsConstant(tensor))
      return Unimplemented("'%s' is not constant", slot);
    values[slot] = value;
  }
  const auto take = [&](const char* slot) {
    const auto it = values.find(slot);
    if (it == values.end()) return static_cast<const Tensor*>(nullptr);
    const Tensor* value = it->second;
    values.erase(it);
    return value;
  };
  const Tensor *filter = take("Filter"), *scale = take("FilterScale"),
               *zero = take("FilterZero");
  if (filter == nullptr) return Unimplemented("no 'Filter'");
  Int8Constants c;
  PD_ASSIGN_OR_RETURN(c.weights,
                      ReadInt8Weights(context->op(), *filter, scale, zero));
  PD_ASSIGN_OR_RETURN(c.channels,
                      ReadInt8Channels(context->op(), values, c.weights));
  return c;
}

std::vector<int8_t> PackWeights(const Int8Weights& w, int64_t groups,
                                int64_t width, int64_t depth) {
  std::vector<int8_t> packed(static_cast<size_t>(groups * width * depth), 0);
  const int64_t size = w.taps * w.channels, outputs = w.outputs / groups;
  for (int64_t o = 0; o < w.outputs; ++o) {
    const int64_t row = o / outputs * width + o % outputs;
    std::memcpy(packed.data() + row * depth, w.values.data() + o * size,
                static_cast<size_t>(size));
  }
  return packed;
}

std::vector<int32_t> SumsOfWeights(const Int8Weights& w, int64_t factor) {
  std::vector<int32_t> sums;
  const int64_t size = w.taps * w.channels;
  for (int64_t o = 0; o < w.outputs; ++o) {
    int64_t sum = 0;
    for (int64_t i = 0; i < size; ++i)
      sum += w.values[static_cast<size_t>(o * size + i)];
    sums.push_back(static_cast<int32_t>(factor * sum));
  }
  return sums;
}

absl::StatusOr<std::shared_ptr<const BoundProduct>> BindBytes(
    CudaDevice* device, int64_t rows, int64_t width, int64_t depth,
    int64_t batch) {
  MatrixProduct product;
  product.dtype = DType::kInt8;
  product.m = rows;
  product.n = width;
  product.k = depth;
  product.trans_b = true;
  product.batch = batch;
  return BindProduct(device, product);
}

}  // namespace pd::cuda

// SPDX-License-Identifier: Apache-2.0
#include "libcore/deploy/onnx/window.h"

#include "libcore/base/error.h"

namespace pd {
namespace {

std::vector<int64_t> FirstToLast(size_t spatial, bool back) {
  std::vector<int64_t> perm = {0};
  const auto n = static_cast<int64_t>(spatial);
  if (!back) perm.push_back(n + 1);
  for (int64_t i = 1; i <= n; ++i) perm.push_back(back ? i + 1 : i);
  if (back) perm.push_back(1);
  return perm;
}

}  // namespace

OnnxWindow ReadWindow(OnnxOp* op, const char* slot) {
  const int64_t rank = op->Rank(slot);
  const size_t n = rank > 2 ? static_cast<size_t>(rank) - 2 : 1;
  OnnxWindow window;
  window.strides = op->Ints("strides");
  // max_pool2d_with_index has neither layouts nor algorithms.
  const bool plain = !op->HasAttr("data_format");
  const std::string format = plain ? "NCHW" : op->Str("data_format");
  window.channels_last = !format.empty() && format.back() == 'C';
  const std::string algorithm =
      plain ? "EXPLICIT" : op->Str("padding_algorithm");
  window.same = algorithm == "SAME";
  window.pads.assign(2 * n, 0);
  const auto paddings = op->Ints("paddings");
  if (window.strides.size() != n ||
      (paddings.size() != n && paddings.size() != 2 * n)) {
    op->Fail(InvalidArgument(
        "%d strides and %d paddings for an input of rank %d; expected %d "
        "strides and %d or %d paddings",
        window.strides.size(), paddings.size(), rank, n, n, 2 * n));
    window.strides.assign(n, 1);
    return window;
  }
  if (algorithm != "EXPLICIT") return window;
  for (size_t i = 0; i < n; ++i) {
    const bool pairs = paddings.size() == 2 * n;  // begin, end by dimension
    window.pads[i] = paddings[pairs ? 2 * i : i];
    window.pads[n + i] = paddings[pairs ? 2 * i + 1 : i];
  }
  return window;
}

std::string ToChannelsFirst(OnnxOp* op, const OnnxWindow& window,
                            const std::string& x) {
  if (!window.channels_last) return x;
  return op->Transpose(x, FirstToLast(window.strides.size(), false));
}

void GiveChannelsFirst(OnnxOp* op, const OnnxWindow& window, const char* slot,
                       const char* op_type, const OnnxValues& inputs,
                       const OnnxAttrs& attrs) {
  if (!window.channels_last) {
    op->Give(slot, op_type, inputs, attrs);
    return;
  }
  op->Give(slot, "Transpose", {op->Emit(op_type, inputs, attrs)},
           {{"perm", FirstToLast(window.strides.size(), true)}});
}

}  // namespace pd

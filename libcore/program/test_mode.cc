// SPDX-License-Identifier: Apache-2.0
#include "libcore/program/test_mode.h"

#include <algorithm>
#include <string>

namespace pd {
namespace {

// Op types with `is_test`, for programs that leave attributes at their default.
constexpr absl::string_view kOpsWithTestMode[] = {
    "batch_norm", "sync_batch_norm", "inplace_abn",
    "dropout",    "dropout_nd",      "lrn",
    "rnn",        "cudnn_lstm"};

// Op types on which `is_test` changes nothing; PaddlePaddle leaves it as it is.
constexpr absl::string_view kIgnoresTestMode[] = {"conv2d", "depthwise_conv2d",
                                                  "conv3d", "conv2d_transpose",
                                                  "pool2d", "pool3d"};

template <size_t n>
bool IsOneOf(const std::string& type, const absl::string_view (&types)[n]) {
  return std::find(types, types + n, type) != types + n;
}

}  // namespace

bool HasTestMode(const OpDesc& op) {
  if (op.FindAttr("is_test") != nullptr)
    return !IsOneOf(op.type, kIgnoresTestMode);
  return IsOneOf(op.type, kOpsWithTestMode);
}

}  // namespace pd

// SPDX-License-Identifier: Apache-2.0
// Attributes of convolutions and pools: strides, paddings, layout of the data.
#ifndef PD_LIBCORE_DEPLOY_ONNX_WINDOW_H_
#define PD_LIBCORE_DEPLOY_ONNX_WINDOW_H_

#include <string>
#include <vector>

#include "libcore/deploy/onnx/op.h"

namespace pd {

struct OnnxWindow {
  std::vector<int64_t> strides;
  std::vector<int64_t> pads;  ///< as ONNX: all beginnings, then all ends
  bool same = false;          ///< padding_algorithm SAME: pads are unknown
  bool channels_last = false;
};

/// Reads strides, paddings, padding_algorithm and data_format of `op`, whose
/// data is in `slot`.
OnnxWindow ReadWindow(OnnxOp* op, const char* slot);

/// [N, H, W, C] to [N, C, H, W] where the window says so.
std::string ToChannelsFirst(OnnxOp* op, const OnnxWindow& window,
                            const std::string& x);

/// A node on channels-first data whose output, back in the data's layout, is
/// the variable in `slot`.
void GiveChannelsFirst(OnnxOp* op, const OnnxWindow& window, const char* slot,
                       const char* op_type, const OnnxValues& inputs,
                       const OnnxAttrs& attrs);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_WINDOW_H_

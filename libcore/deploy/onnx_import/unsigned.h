// SPDX-License-Identifier: Apache-2.0
// Rules of operators for unsigned integers of 16 to 64 bits; an operator that
// has none refuses them.
#ifndef PD_LIBCORE_DEPLOY_ONNX_IMPORT_UNSIGNED_H_
#define PD_LIBCORE_DEPLOY_ONNX_IMPORT_UNSIGNED_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "libcore/deploy/onnx_import/node.h"

namespace pd {

struct OnnxUnsignedRule {
  /// In place of the operator's own importer; null: that one serves.
  void (*import)(OnnxNode* node);
  bool same;          ///< all inputs are of one type
  int from;           ///< outputs are of this input's type; -1: of their own
  size_t outputs;     ///< the first so many
  int32_t most_bits;  ///< numbers of more bits are refused
};

/// Null for operators that do not know such numbers.
const OnnxUnsignedRule* FindOnnxUnsignedRule(const OnnxFileNode& node);

/// 1, 2, ... 2^62, the factors of shifts.
std::vector<int64_t> PowersOfTwo();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_IMPORT_UNSIGNED_H_

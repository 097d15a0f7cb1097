// SPDX-License-Identifier: Apache-2.0
// The table of converters: an op type of the program -> the function that
// writes its ONNX nodes. Each family of ops is a file with its part of it.
#ifndef PD_LIBCORE_DEPLOY_ONNX_CONVERTERS_H_
#define PD_LIBCORE_DEPLOY_ONNX_CONVERTERS_H_

#include <string>
#include <vector>

#include "libcore/deploy/onnx/op.h"

namespace pd {

struct OnnxConverter {
  const char* op_type;
  /// Errors go to OnnxOp::Fail.
  void (*convert)(OnnxOp* op);
  /// For functions that serve several ops: the ONNX operator.
  const char* onnx_type = "";
};

/// Null when there is none for the type.
const OnnxConverter* FindOnnxConverter(const std::string& op_type);

/// Writes the ops of a block of the program as nodes of the current graph.
/// OnnxGraph::failures tells which ops cannot be written.
void ConvertBlock(int32_t block, OnnxGraph* graph);

using OnnxConverters = std::vector<OnnxConverter>;

// The parts, by family.
OnnxConverters ActivationConverters();
OnnxConverters ControlFlowConverters();
OnnxConverters ConvConverters();
OnnxConverters DetectionConverters();
OnnxConverters ElementwiseConverters();
OnnxConverters IndexConverters();
OnnxConverters MatmulConverters();
OnnxConverters NormConverters();
OnnxConverters PoolConverters();
OnnxConverters ProposalConverters();
OnnxConverters QuantizeConverters();
OnnxConverters RandomConverters();
OnnxConverters RecurrentConverters();
OnnxConverters ReduceConverters();
OnnxConverters ResizeConverters();
OnnxConverters ScatterConverters();
OnnxConverters ShapeConverters();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_CONVERTERS_H_

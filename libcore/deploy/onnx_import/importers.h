// SPDX-License-Identifier: Apache-2.0
// The table of importers: an ONNX operator -> the function that appends the
// ops that compute it. Each family of operators is a file with its part.
#ifndef PD_LIBCORE_DEPLOY_ONNX_IMPORT_IMPORTERS_H_
#define PD_LIBCORE_DEPLOY_ONNX_IMPORT_IMPORTERS_H_

#include <string>
#include <vector>

#include "libcore/deploy/onnx_import/node.h"

namespace pd {

struct OnnxImportEntry {
  const char* onnx_type;  ///< "domain:Name" outside of ONNX's own domain
  /// Errors go to OnnxNode::Fail.
  void (*import)(OnnxNode* node);
  /// For functions that serve several operators: PaddlePaddle's op.
  const char* op_type = "";
  /// Gives other numbers in each run, so it is never computed beforehand.
  bool random = false;
};

using OnnxImportEntries = std::vector<OnnxImportEntry>;

/// Null when there is none for the operator.
const OnnxImportEntry* FindOnnxImport(const std::string& domain,
                                      const std::string& type);

// The parts, by family.
OnnxImportEntries ActivationImports();
OnnxImportEntries AttentionImports();
OnnxImportEntries CaffeBoxImports();
OnnxImportEntries CaffeNetworkImports();
OnnxImportEntries CaffeTensorImports();
OnnxImportEntries ControlFlowImports();
OnnxImportEntries ConvImports();
OnnxImportEntries ElementwiseImports();
OnnxImportEntries IndexImports();
OnnxImportEntries LinearAttentionImports();
OnnxImportEntries LossImports();
OnnxImportEntries MatmulImports();
OnnxImportEntries NormImports();
OnnxImportEntries PadImports();
OnnxImportEntries PoolImports();
OnnxImportEntries QuantizeImports();
OnnxImportEntries RandomImports();
OnnxImportEntries RecurrentImports();
OnnxImportEntries ReduceImports();
OnnxImportEntries ResizeImports();
OnnxImportEntries ScatterImports();
OnnxImportEntries SequenceImports();
OnnxImportEntries ShapeImports();
OnnxImportEntries SignalImports();
OnnxImportEntries TensorflowImports();
OnnxImportEntries TensorflowListImports();
OnnxImportEntries TextImports();
OnnxImportEntries TrainingImports();
OnnxImportEntries VisionImports();

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_ONNX_IMPORT_IMPORTERS_H_

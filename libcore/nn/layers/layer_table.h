// SPDX-License-Identifier: Apache-2.0
// Which function builds which kind of layer. A family of layers adds its own
// lines, in its own file. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_LAYER_TABLE_H_
#define PD_LIBCORE_NN_LAYERS_LAYER_TABLE_H_

#include <climits>
#include <map>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/nn/layers/layer_context.h"

namespace pd {

/// Builds one layer; gives the variable that holds its result.
using LayerFn = absl::StatusOr<std::string> (*)(LayerContext*);

struct LayerSpec {
  LayerFn build;
  /// How many inputs it takes. With at most 0 it does not read the layer before
  /// it either.
  int min_inputs = 1;
  int max_inputs = 1;
  /// Whether a layer that names no input reads the one before it; null: where
  /// it takes inputs.
  bool (*takes_last)(const job::Layer&, const OpRegistry&) = nullptr;
};
constexpr int kAnyInputs = INT_MAX;

/// By field number of job::Layer's oneof `kind`.
using LayerTable = std::map<int, LayerSpec>;

void AddActivations(LayerTable* table);
void AddAttentionLayers(LayerTable* table);
void AddBeamSearchLayers(LayerTable* table);
void AddControlFlowLayers(LayerTable* table);
void AddConvLayers(LayerTable* table);
void AddDropoutLayers(LayerTable* table);
void AddDecodeLayers(LayerTable* table);
void AddDetectionLayers(LayerTable* table);
void AddLinearLayers(LayerTable* table);
void AddFunctionLayers(LayerTable* table);
void AddGenerateLayers(LayerTable* table);
void AddGradientLayers(LayerTable* table);
void AddNormLayers(LayerTable* table);
void AddOpLayers(LayerTable* table);
void AddPaddingLayers(LayerTable* table);
void AddPoolLayers(LayerTable* table);
void AddProposalLayers(LayerTable* table);
void AddRandomLayers(LayerTable* table);
void AddRecurrentLayers(LayerTable* table);
void AddRegionLayers(LayerTable* table);
void AddRnnLayers(LayerTable* table);
void AddSavedModelLayers(LayerTable* table);
void AddSequenceLayers(LayerTable* table);
void AddShapeLayers(LayerTable* table);
void AddValueLayers(LayerTable* table);
void AddTransformerLayers(LayerTable* table);
void AddVisionLayers(LayerTable* table);

/// Null when there is none.
const LayerSpec* FindLayer(int kind);

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_LAYER_TABLE_H_

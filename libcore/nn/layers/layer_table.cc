// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/layer_table.h"

namespace pd {

const LayerSpec* FindLayer(int kind) {
  static const LayerTable* const kTable = [] {
    auto* table = new LayerTable;
    AddActivations(table);
    AddAttentionLayers(table);
    AddBeamSearchLayers(table);
    AddControlFlowLayers(table);
    AddConvLayers(table);
    AddDropoutLayers(table);
    AddDecodeLayers(table);
    AddDetectionLayers(table);
    AddLinearLayers(table);
    AddFunctionLayers(table);
    AddGenerateLayers(table);
    AddGradientLayers(table);
    AddNormLayers(table);
    AddOpLayers(table);
    AddPaddingLayers(table);
    AddPoolLayers(table);
    AddProposalLayers(table);
    AddRandomLayers(table);
    AddRecurrentLayers(table);
    AddRegionLayers(table);
    AddRnnLayers(table);
    AddSavedModelLayers(table);
    AddSequenceLayers(table);
    AddShapeLayers(table);
    AddValueLayers(table);
    AddTransformerLayers(table);
    AddVisionLayers(table);
    return table;
  }();
  const auto it = kTable->find(kind);
  return it == kTable->end() ? nullptr : &it->second;
}

}  // namespace pd

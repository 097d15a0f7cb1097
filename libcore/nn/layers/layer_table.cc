// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/layers/layer_table.h"

namespace pd {

const LayerSpec* FindLayer(int kind) {
  static const LayerTable* const kTable = [] {
    auto* table = new LayerTable;
    AddActivations(table);
    AddConvLayers(table);
    AddLinearLayers(table);
    AddNormLayers(table);
    AddRnnLayers(table);
    AddShapeLayers(table);
    return table;
  }();
  const auto it = kTable->find(kind);
  return it == kTable->end() ? nullptr : &it->second;
}

}  // namespace pd

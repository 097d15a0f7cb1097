// SPDX-License-Identifier: Apache-2.0
// Inputs of gru, fusion_gru, gru_grad (gru.cc), gru_unit and gru_unit_grad
// (gru_unit.cc), read for every kernel.
#ifndef PD_LIBCORE_OPS_RECURRENT_GRU_H_
#define PD_LIBCORE_OPS_RECURRENT_GRU_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/recurrent/gru_cell.h"
#include "libcore/ops/recurrent/sequence_batch.h"

namespace pd {

struct Gru {
  GruCell cell;
  SequenceBatches batches;
  Tensor *x = nullptr, *h0 = nullptr, *weight = nullptr, *bias = nullptr;
  Tensor* weight_x = nullptr;  ///< of fusion_gru
  int64_t gates = 0, rows = 0;
};

/// InvalidArgument for inputs that do not fit.
absl::StatusOr<Gru> ReadGru(BindContext* context);

struct GruUnit {
  GruCell cell;
  int64_t batch = 0;
  Tensor *x = nullptr, *h = nullptr, *weight = nullptr, *bias = nullptr;
};

/// InvalidArgument for inputs that do not fit.
absl::StatusOr<GruUnit> ReadGruUnit(BindContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_GRU_H_

// SPDX-License-Identifier: Apache-2.0
// Inputs of lstm, fusion_lstm and lstm_grad (lstm.cc), read for every kernel.
#ifndef PD_LIBCORE_OPS_RECURRENT_LSTM_H_
#define PD_LIBCORE_OPS_RECURRENT_LSTM_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/recurrent/lstm_cell.h"
#include "libcore/ops/recurrent/sequence_batch.h"

namespace pd {

struct Lstm {
  LstmCell cell;
  bool peepholes = false;
  SequenceBatches batches;
  Tensor *x = nullptr, *h0 = nullptr, *c0 = nullptr;
  Tensor *weight = nullptr, *bias = nullptr;
  Tensor* weight_x = nullptr;  ///< of fusion_lstm
  int64_t gates = 0, rows = 0;

  /// Null without them.
  template <typename T>
  const T* Peepholes() const {
    return peepholes ? bias->data<T>() + gates : nullptr;
  }
};

/// InvalidArgument for inputs that do not fit.
absl::StatusOr<Lstm> ReadLstm(BindContext* context);

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_LSTM_H_

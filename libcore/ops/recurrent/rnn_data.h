// SPDX-License-Identifier: Apache-2.0
// Buffers that the layers of the rnn op read and write in one run.
#ifndef PD_LIBCORE_OPS_RECURRENT_RNN_DATA_H_
#define PD_LIBCORE_OPS_RECURRENT_RNN_DATA_H_

#include <cstdint>
#include <vector>

namespace pd {

/// Pointers of one run. Null: absent or not wanted.
template <typename T>
struct RnnData {
  const T* x = nullptr;              ///< [time, batch, input]
  std::vector<const T*> pre_states;  ///< [layers * directions, batch, hidden]
  std::vector<const T*> weights;
  std::vector<int64_t> lengths;   ///< of each sequence; empty: all are whole
  const uint8_t* mask = nullptr;  ///< dropout, [layers - 1, time, batch, out]
  T keep_factor = T(1);           ///< the factor of kept elements
  T* reserve = nullptr;
  T* out = nullptr;  ///< [time, batch, out_width]
  std::vector<T*> states;

  // Of the gradient.
  const T* dout = nullptr;
  std::vector<const T*> dstates;
  T* dx = nullptr;
  std::vector<T*> dpre_states, dweights;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_RECURRENT_RNN_DATA_H_

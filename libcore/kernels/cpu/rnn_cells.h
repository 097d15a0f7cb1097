// SPDX-License-Identifier: Apache-2.0
// A time step of the rnn op for one sequence, in vectors: what RnnCell and
// RnnCellGrad of libcore/ops/recurrent/rnn_cell.h say, for floats.
#ifndef PD_LIBCORE_KERNELS_CPU_RNN_CELLS_H_
#define PD_LIBCORE_KERNELS_CPU_RNN_CELLS_H_

#include <cstdint>

#include "libcore/ops/recurrent/rnn_cell.h"

namespace pd {
namespace cpu {

void VectorRnnCell(RnnMode mode, int64_t n, const float* from_h, float* gates,
                   float* extra, float* h, float* c);
void VectorRnnCellGrad(RnnMode mode, int64_t n, const RnnCellState<float>& s,
                       float* dh, float* dc, float* dx, float* dgh);

}  // namespace cpu
}  // namespace pd

#endif  // PD_LIBCORE_KERNELS_CPU_RNN_CELLS_H_

// SPDX-License-Identifier: Apache-2.0
// hierarchical_sigmoid and the slopes of its gradient; the formulas are those
// of libcore/ops/loss/hierarchical_sigmoid.cc.
#include <cmath>
#include <cstdint>

#include "libcore/kernels/cuda/block.h"
#include "libcore/kernels/cuda/linear_rows_arguments.h"
#include "libcore/kernels/cuda/integer_at.h"

namespace pd::cuda {
namespace {

struct Node {
  int64_t row;
  bool there, bit;
};

// Node j of a sample's path. Where it is not there: a row that the path has.
PD_DEVICE Node NodeAt(const HsigmoidArgs& p, int64_t sample, int64_t j) {
  if (p.table == nullptr) {
    int64_t label = WholeAt(p.label, p.label_wide, sample);
    if (label < 0 || label >= p.classes) {
      *p.bad = 1;
      label = 0;
    }
    const int64_t c = label + p.classes, above = c >> (j + 1);
    if (above == 0) return {(c >> 1) - 1, false, false};
    return {above - 1, true, ((c >> j) & 1) != 0};
  }
  const int64_t first = sample * p.depth;
  Node node = {0, true, false};
  for (int64_t i = 0; i <= j && node.there; ++i) {
    const int64_t row = WholeAt(p.table, p.table_wide, first + i);
    if (row < 0)
      node = {i == 0 ? 0 : WholeAt(p.table, p.table_wide, first), false, false};
    else
      node.row = row;
  }
  if (node.row >= p.nodes) {
    *p.bad = 1;
    node.row = 0;
  }
  if (node.there) node.bit = WholeAt(p.code, p.code_wide, first + j) != 0;
  return node;
}

struct HsigmoidNodes {
  PD_DEVICE static void Run(const Block& block, const HsigmoidArgs& p) {
    block.Spread(p.samples * p.depth, [&](int64_t i) {
      const int64_t sample = i / p.depth;
      const Node node = NodeAt(p, sample, i % p.depth);
      float z = 0;
      if (node.there) {
        z = LinearRow(p.x + sample * p.width, p.w + node.row * p.width, p.width,
                      p.bias != nullptr ? p.bias[node.row] : 0.0f);
        z = z < -40 ? -40.0f : z > 40 ? 40.0f : z;
      }
      p.z[i] = node.bit ? z : 0.0f;
      p.pre_out[i] = logf(1 + expf(z));
    });
  }
};

struct HsigmoidOut {
  PD_DEVICE static void Run(const Block& block, const HsigmoidArgs& p) {
    block.Spread(p.samples, [&](int64_t sample) {
      float sum = 0;
      for (int64_t i = sample * p.depth; i < (sample + 1) * p.depth; ++i) {
        sum -= p.z[i];
        sum += p.pre_out[i];
      }
      p.out[sample] = sum;
    });
  }
};

struct HsigmoidSlopes {
  PD_DEVICE static void Run(const Block& block, const HsigmoidArgs& p) {
    block.Spread(p.samples * p.depth, [&](int64_t i) {
      const int64_t sample = i / p.depth;
      const Node node = NodeAt(p, sample, i % p.depth);
      const float slope = 1 - expf(-p.pre_out[i]) - (node.bit ? 1.0f : 0.0f);
      p.rows[i] = node.row;
      p.dz[i] = node.there ? p.dout[sample] * slope : 0.0f;
    });
  }
};

}  // namespace
}  // namespace pd::cuda

using namespace pd::cuda;  // NOLINT: kernels have no namespace

PD_KERNEL(hsigmoid_nodes, HsigmoidNodes, HsigmoidArgs)
PD_KERNEL(hsigmoid_out, HsigmoidOut, HsigmoidArgs)
PD_KERNEL(hsigmoid_slopes, HsigmoidSlopes, HsigmoidArgs)

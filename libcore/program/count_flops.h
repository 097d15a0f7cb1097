// SPDX-License-Identifier: Apache-2.0
// How much arithmetic a program asks for: two operations for each multiply-add
// of its convolutions and matrix products, which are nearly all of the work of
// most networks. Everything else counts nothing.
#ifndef PD_LIBCORE_PROGRAM_COUNT_FLOPS_H_
#define PD_LIBCORE_PROGRAM_COUNT_FLOPS_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>

#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

struct FlopCount {
  /// Nothing when an extent that it depends on is unknown.
  std::optional<int64_t> total;
  std::map<std::string, int64_t> by_type;  ///< op types that were counted
  std::string why_unknown;                 ///< when there is no total
  /// Inputs with an open extent other than the batch, as they were taken.
  std::map<std::string, Shape> assumed;
};

/// The assumed size of an open extent of an input, other than the batch: the
/// side of a picture, for want of anything better.
inline constexpr int64_t kOpenExtent = 224;

/// The shape of a variable; null where there is no such variable.
using ShapeOf = std::function<const Shape*(const std::string& name)>;

/// The operations of one op: 0 for types that count nothing, nothing when an
/// extent that it depends on is unknown.
std::optional<int64_t> OpFlops(const OpDesc& op, const ShapeOf& shape_of);

/// The operations of one run with a batch of 1 (an unknown first extent is 1;
/// others of an input are kOpenExtent).
/// Shapes are inferred; where an op is not known to `registry` or refuses them,
/// those that the program declares hold. Ops of sub-blocks are counted once; a
/// gradient op counts once for each gradient that it makes.
FlopCount CountFlops(const OpRegistry& registry, ProgramDesc program);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_COUNT_FLOPS_H_

// SPDX-License-Identifier: Apache-2.0
// The only control-flow macros of the tree: early return of a Status.
#ifndef PD_LIBCORE_BASE_STATUS_MACROS_H_
#define PD_LIBCORE_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

#define PD_MACRO_CONCAT_INNER(a, b) a##b
#define PD_MACRO_CONCAT(a, b) PD_MACRO_CONCAT_INNER(a, b)

/// Returns the Status of `expr` from this function unless it is OK.
#define PD_RETURN_IF_ERROR(expr)             \
  do {                                       \
    absl::Status pd_status_ = (expr);        \
    if (!pd_status_.ok()) return pd_status_; \
  } while (false)

#define PD_ASSIGN_OR_RETURN_INNER(result, lhs, expr)   \
  auto result = (expr);                                \
  if (!result.ok()) return std::move(result).status(); \
  lhs = *std::move(result)

/// `PD_ASSIGN_OR_RETURN(auto x, F());` assigns the value or returns the Status.
#define PD_ASSIGN_OR_RETURN(lhs, expr) \
  PD_ASSIGN_OR_RETURN_INNER(PD_MACRO_CONCAT(pd_statusor_, __LINE__), lhs, expr)

#endif  // PD_LIBCORE_BASE_STATUS_MACROS_H_

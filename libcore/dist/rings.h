// SPDX-License-Identifier: Apache-2.0
// The rings that startup programs declare.
#ifndef PD_LIBCORE_DIST_RINGS_H_
#define PD_LIBCORE_DIST_RINGS_H_

#include <vector>

#include "absl/status/status.h"
#include "libcore/dist/world.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Makes the rings of the c_comm_init ops in `programs`, with `claims` besides.
/// Every process calls it, with its own programs. Their endpoints are those of
/// the machine for which a program was written: an endpoint means the process
/// whose own it is, by its place in the lists. InvalidArgument where processes
/// contradict each other.
absl::Status DeclareRings(const std::vector<const ProgramDesc*>& programs,
                          std::vector<RingClaim> claims, World* world);

}  // namespace pd

#endif  // PD_LIBCORE_DIST_RINGS_H_

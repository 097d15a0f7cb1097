// SPDX-License-Identifier: Apache-2.0
// The two forms of a network whose layers say `when`: both are built, with one
// set of parameters. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_FORMS_H_
#define PD_LIBCORE_NN_FORMS_H_

#include "absl/status/status.h"
#include "libcore/nn/build.h"
#include "libcore/program/block_builder.h"

namespace pd {

/// Gives loss and outputs names that do not depend on what was built before
/// them, the same in both forms.
absl::Status NameResults(BuiltModel* built, BlockBuilder* main);

/// Makes `eval`'s main the test program of `built`, with its layers.
/// InvalidArgument when it has a parameter that training has not, or of another
/// shape.
absl::Status JoinForms(BuiltModel eval, BuiltModel* built);

/// An error with the form in which it arose: "training".
absl::Status InForm(const absl::Status& status, const char* form);

}  // namespace pd

#endif  // PD_LIBCORE_NN_FORMS_H_

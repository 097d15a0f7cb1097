// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/copy_runner.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {

absl::Status CopyRunner::Compile(const std::vector<CopyProgram>& copies,
                                 Session* session) {
  for (const CopyProgram& copy : copies) {
    PD_ASSIGN_OR_RETURN(auto plan,
                        session->Compile(copy.main, {}, {},
                                         absl::StrCat("copy", copies_.size())));
    copies_.push_back({std::move(plan), copy.every});
  }
  return absl::OkStatus();
}

absl::Status CopyRunner::Run(int64_t step) {
  for (const Copy& copy : copies_)
    if (step % copy.every == 0)
      PD_RETURN_IF_ERROR(Annotate(copy.plan->Run({}), "copy"));
  return absl::OkStatus();
}

}  // namespace pd

// SPDX-License-Identifier: Apache-2.0
#include "cmd/eval_session.h"

#include "cmd/common/amp_options.h"
#include "cmd/common/pass_options.h"

namespace pd {

void PrepareSession(const EvalOptions& options, Session* session) {
  session->set_pass_options(MakePassOptions(options.passes));
  session->set_mixed_precision(AmpSpecOf(options.amp));
  session->set_plan_options(InferencePlans());
}

}  // namespace pd

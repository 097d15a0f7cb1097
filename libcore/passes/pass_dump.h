// SPDX-License-Identifier: Apache-2.0
// Programs as text before and after passes, for whoever asks what a pass did.
#ifndef PD_LIBCORE_PASSES_PASS_DUMP_H_
#define PD_LIBCORE_PASSES_PASS_DUMP_H_

#include <string>
#include <vector>

#include "libcore/passes/pipeline.h"

namespace pd {

/// An observer that writes text (DumpProgram) to FOLDER/00-original.txt and,
/// after the second of `passes`, FOLDER/02-NAME.txt; with a label before it, as
/// in train-00-original.txt. The folder is made. A label that comes again is
/// not written again; a pass that is off has no file, nor one of an earlier
/// run.
decltype(PassOptions::observer) DumpAfterPasses(
    const std::string& folder, const std::vector<std::string>& passes);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_PASS_DUMP_H_

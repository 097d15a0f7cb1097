// SPDX-License-Identifier: Apache-2.0
// The names of a model's classes in ONNX files, whose metadata are texts by
// key: "classes" is a JSON list, a name for each class number, and
// "classes_output" the output whose scores they name.
#ifndef PD_LIBCORE_DEPLOY_CLASS_NAMES_H_
#define PD_LIBCORE_DEPLOY_CLASS_NAMES_H_

#include <map>
#include <string>

#include "libcore/program/prune.h"

namespace pd {

/// The metadata for the first output whose classes are known; empty where none
/// is.
std::map<std::string, std::string> ClassMetadata(const FeedFetch& names);

/// Puts into `names` what ClassMetadata wrote. Metadata of others that are no
/// such list, or of an output that is not there, are passed over.
void TakeClassMetadata(const std::map<std::string, std::string>& metadata,
                       FeedFetch* names);

}  // namespace pd

#endif  // PD_LIBCORE_DEPLOY_CLASS_NAMES_H_

// SPDX-License-Identifier: Apache-2.0
// The parameters, inputs and first values of a program, for tools that run one
// as it is.
#ifndef PD_CMD_COMMON_FEED_OPTIONS_H_
#define PD_CMD_COMMON_FEED_OPTIONS_H_

#include <string>

#include "cmd/common/option_table.h"

namespace pd {

/// Adds --params_file, which goes with --model.
void BindParamsFile(OptionTable* table, std::string* params_file);

/// Adds --feed and --lod, which may be standard input.
void BindFeedOptions(OptionTable* table, std::string* feed, std::string* lod);

/// Adds --startup, which may be standard input.
void BindStartupOption(OptionTable* table, std::string* startup);

}  // namespace pd

#endif  // PD_CMD_COMMON_FEED_OPTIONS_H_

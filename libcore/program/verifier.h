// SPDX-License-Identifier: Apache-2.0
// Whether a program makes sense: every op is one that we know, is called as
// its schema says, and reads only what exists when it runs. Readers check the
// structure; this is asked before a program is compiled and after each rewrite.
#ifndef PD_LIBCORE_PROGRAM_VERIFIER_H_
#define PD_LIBCORE_PROGRAM_VERIFIER_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

/// OK, or the first thing that is wrong as "block 0, op 3 'relu': ...":
/// - Unimplemented: an op type that is not registered (feed and fetch are
///   known);
/// - InvalidArgument: slots or attributes that do not fit the schema, a
///   variable that two outputs of one op name, an input that a later op makes,
///   a structure that CheckProgramStructure refuses;
/// - NotFound: a variable that no block in sight declares.
/// A variable that no op makes must be fed: any is accepted, except in
/// `CheckFeeds`.
absl::Status VerifyProgram(const OpRegistry& registry,
                           const ProgramDesc& program);

/// Checks every op of a known type against its schema and gives it the schema's
/// defaults (OpDef::Normalize), so that passes, converters and everything else
/// that reads slots and attributes by name find all of them, each of its type.
/// InvalidArgument for the first op that is not called as its schema says,
/// Unimplemented for one with an attribute that a variable gives, both as
/// "block 0, op 3 'relu': ...". Ops of unknown types stay as they are: running
/// one is the error.
absl::Status NormalizeOps(const OpRegistry& registry, ProgramDesc* program);

/// InvalidArgument unless every variable that the program reads is persistable,
/// made by an op, or one of `feeds`; NotFound for a feed that is not declared.
/// The message names the op that reads it.
absl::Status CheckFeeds(const ProgramDesc& program,
                        const std::vector<std::string>& feeds);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_VERIFIER_H_

// SPDX-License-Identifier: Apache-2.0
// `.pdmodel` and `__model__`: a ProgramDesc in protobuf. Reading verifies the
// structure (blocks, sub-blocks, names, extents, attribute payloads), so that
// what comes out can be indexed without further checks; whether ops and slots
// make sense is the verifier's question. Writing a program that PaddlePaddle
// wrote gives its bytes back.
#ifndef PD_FORMATS_PDMODEL_H_
#define PD_FORMATS_PDMODEL_H_

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// Whether bytes may be a ProgramDesc: messages with the fields of one.
bool IsProgram(absl::string_view bytes);

/// The program in the bytes of a model file. DataLoss when they are not a
/// ProgramDesc, InvalidArgument when its structure is wrong (with the block
/// and the variable or op), Unimplemented for element types without a DType.
absl::StatusOr<ProgramDesc> ParseProgram(absl::string_view bytes);

/// The bytes of `program` as PaddlePaddle writes them. InvalidArgument when
/// its structure is wrong.
absl::StatusOr<std::string> SerializeProgram(const ProgramDesc& program);

/// ParseProgram on a file; messages name the path.
absl::StatusOr<ProgramDesc> ReadProgram(const std::string& path);

/// SerializeProgram into a file.
absl::Status WriteProgram(const std::string& path, const ProgramDesc& program);

/// InvalidArgument with the place unless: there is a block; block i has idx i
/// and an earlier block as its parent (block 0: none); names are not empty,
/// hold no NUL and are declared once a block; extents are -1 or more; an op's
/// sub-blocks come after its own block; feed and fetch columns are in range.
absl::Status CheckProgramStructure(const ProgramDesc& program);

}  // namespace pd

#endif  // PD_FORMATS_PDMODEL_H_

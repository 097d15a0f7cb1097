// SPDX-License-Identifier: Apache-2.0
// Automatic mixed precision: casts go into a forward program so that some of
// its ops compute in float16 or bfloat16, chosen by PaddlePaddle's white, black
// and gray lists (fp16_utils.py of paddle.static.amp). Parameters stay float32
// and are cast once a run: they are what PaddlePaddle calls master weights.
#ifndef PD_LIBCORE_PASSES_AMP_H_
#define PD_LIBCORE_PASSES_AMP_H_

#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/registry.h"

namespace pd {

/// PaddlePaddle's arguments.
struct AmpSpec {
  /// O1: what the white list names, and the gray list's ops behind it. O2:
  /// everything but the black list of O2.
  enum class Level { kO1, kO2 };
  Level level = Level::kO1;
  DType dtype = DType::kFloat16;  ///< or kBFloat16
  // Op types; a custom list overrides the built-in ones.
  std::set<std::string> custom_white_list, custom_black_list;
  /// Ops that read or write one of these variables stay float32.
  std::set<std::string> custom_black_varnames;
};

/// Op types in three lists; an op in none computes in float32 under O1.
struct AmpLists {
  std::set<std::string> white, black, gray;
};

/// Whether the op simulates quantization: it rounds to integers in floating
/// point, or measures the range for that. Such ops compute in float32 at every
/// level, since the steps of fp16 and bf16 are as large as those of 8 bits.
bool FindsRanges(absl::string_view op_type);

/// PaddlePaddle 2.3's lists for this level, changed by the custom lists.
/// InvalidArgument for an op in both custom lists, or for one that simulates
/// quantization in the white one; NotFound for an op that does not exist.
absl::StatusOr<AmpLists> ListsFor(const AmpSpec& spec,
                                  const OpRegistry& registry);

/// Rewrites block 0 of a forward program: inserts casts named as PaddlePaddle
/// names them ("x.cast_bf16", "y.cast_fp32") and gives the variables their
/// dtypes. An op with sub-blocks stays as it is, and what these read stays
/// float32. Casts round to nearest, which use_mkldnn on the ops asks for.
/// Errors as in ListsFor.
absl::Status MixPrecision(const OpRegistry& registry, const AmpSpec& spec,
                          ProgramDesc* program);

/// A cast of a variable that no op writes.
struct ParameterCast {
  std::string from, to;
  DType dtype = DType::kFloat32;
};

/// Takes the casts of parameters out of an inference program: the caller makes
/// each `to` from `from` once, as a persistable of this dtype.
std::vector<ParameterCast> TakeParameterCasts(ProgramDesc* program);

/// Float32 values as fp16 or bf16, rounded to nearest.
Array RoundedTo(DType dtype, const Array& value);

/// Makes variables float32 again that mixed precision made fp16 or bf16: the op
/// that writes one writes a new variable instead, and a cast follows.
void UpcastOutputs(const std::vector<std::string>& names, ProgramDesc* program);

/// A cast op of mixed precision: it rounds to nearest.
OpDesc CastOp(const std::string& from, DType from_dtype, const std::string& to,
              DType to_dtype);

}  // namespace pd

#endif  // PD_LIBCORE_PASSES_AMP_H_

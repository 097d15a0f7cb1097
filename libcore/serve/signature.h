// SPDX-License-Identifier: Apache-2.0
// Inputs and outputs of a model as its clients see them, with the names of
// types that the KServe v2 protocol has.
#ifndef PD_LIBCORE_SERVE_SIGNATURE_H_
#define PD_LIBCORE_SERVE_SIGNATURE_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"
#include "libcore/inference/shared_model.h"
#include "libcore/ir/array.h"

namespace pd {
namespace serve {

class PictureReader;

struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;             ///< an extent of -1 is open
  bool needed = true;      ///< of inputs: an output depends on it
  bool sequences = false;  ///< it has a LoD
  /// Reads files of pictures for an input that takes them; else null.
  std::shared_ptr<const PictureReader> pictures = nullptr;
};

struct Signature {
  std::vector<TensorInfo> inputs, outputs;

  /// Null when there is none of that name.
  const TensorInfo* Input(const std::string& name) const;
  const TensorInfo* Output(const std::string& name) const;
  /// Why requests cannot be joined along the first axis, by what the program
  /// declares; "" where nothing speaks against it.
  std::string why_alone;
};

/// Unimplemented names an input or output that the protocol has no type for.
absl::StatusOr<Signature> SignatureOf(const inference::SharedModel& model);

/// "FP32", "INT64", ...; "" for a type that the protocol does not have.
absl::string_view DatatypeName(DType dtype);
std::optional<DType> DatatypeFromName(absl::string_view name);

/// InvalidArgument unless the array has the input's type and shape.
absl::Status CheckInput(const TensorInfo& info, DType dtype,
                        const Shape& shape);

/// InvalidArgument names an input that is missing.
absl::Status CheckComplete(const Signature& signature,
                           const NamedArrays& inputs);

/// InvalidArgument: `list` has no tensor `name`; says which one is near it.
/// `kind` is "input" or "output".
absl::Status NoSuchTensor(const char* kind, const std::string& name,
                          const std::vector<TensorInfo>& list);

}  // namespace serve
}  // namespace pd

#endif  // PD_LIBCORE_SERVE_SIGNATURE_H_

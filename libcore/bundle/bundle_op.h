// SPDX-License-Identifier: Apache-2.0
// One op of the program on its way to nodes of a bundle: what a lowering reads
// from and writes with. The first error sticks, so that lowerings read as
// formulas; an input that a lowering did not ask for is an error.
#ifndef PD_LIBCORE_BUNDLE_BUNDLE_OP_H_
#define PD_LIBCORE_BUNDLE_BUNDLE_OP_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/bundle/bundle_graph.h"
#include "libcore/bundle/runtime/attributes.h"
#include "libcore/deploy/inference_model.h"

namespace pd {

/// The type in a bundle; Unimplemented where bundles have none like it.
absl::StatusOr<pd_run::DType> BundleType(DType dtype);

/// The graph in the making, and which value stands for a variable.
struct BundleBuilder {
  explicit BundleBuilder(const InferenceModel& from) : model(from) {}

  /// The value of a variable; a parameter's becomes a constant when it is first
  /// asked for. NotFound where nothing has made it.
  absl::StatusOr<uint32_t> ValueOf(const std::string& variable);
  /// Null where the variable is none.
  const Array* FindParam(const std::string& variable) const;

  const InferenceModel& model;
  BundleGraph graph;
  std::map<std::string, uint32_t> values;
  /// Parameters in other shapes, by the variables that are made of them.
  std::map<std::string, Array> reshaped;
  /// Parameters in another layout, by name and layout.
  std::map<std::string, uint32_t> packed;
};

class BundleOp {
 public:
  using Ints = std::vector<int64_t>;
  using Inputs = std::vector<uint32_t>;

  /// `word` is the table's, for lowerings that serve several ops.
  BundleOp(const OpDesc& desc, const char* word, BundleBuilder* builder)
      : desc_(desc), word_(word), builder_(builder) {}

  const OpDesc& desc() const { return desc_; }
  const std::string& type() const { return desc_.type; }
  const char* word() const { return word_; }

  // Inputs, by slot.

  bool Has(absl::string_view slot) const;
  /// The value of a slot's only variable.
  uint32_t In(absl::string_view slot);
  /// kNoValue where the slot is empty.
  uint32_t OptionalIn(absl::string_view slot);
  Inputs Ins(absl::string_view slot);
  /// The parameter in a slot; null, and an error, where it is something else.
  const Array* Param(absl::string_view slot);
  /// The parameters in a slot of several, float32; empty, and an error, where
  /// one is something else.
  std::vector<const Array*> Params(absl::string_view slot);
  bool IsParam(absl::string_view slot) const;
  const Shape& ShapeOf(absl::string_view slot);
  DType TypeOf(absl::string_view slot);
  void Ignore(absl::string_view slot) { asked_.insert(std::string(slot)); }
  /// Fails unless the input is float32.
  void ExpectFloat(absl::string_view slot);
  DType OutType(absl::string_view slot);
  /// The one-dimensional int64 values that slots of a tensor or of a list of
  /// tensors hold, kNoValue where both are empty.
  uint32_t IntVector(absl::string_view tensor, absl::string_view list);

  // Attributes, whatever integer or float type they were saved with.

  int64_t Int(const char* name);
  double Float(const char* name);
  bool Bool(const char* name) { return Int(name) != 0; }
  std::string Str(const char* name);
  Ints IntsOf(const char* name);

  // Nodes.

  uint32_t Constant(Array array);
  /// A constant that is made from parameter `name` once, in a layout that
  /// `layout` names, by `make`.
  template <typename Make>
  uint32_t Packed(const std::string& name, const std::string& layout,
                  const Make& make) {
    const auto [place, is_new] = builder_->packed.emplace(name + layout, 0);
    if (is_new) place->second = Constant(make());
    return place->second;
  }
  /// A node with one result, which is given.
  uint32_t Emit(const char* kernel, Inputs inputs, Ints ints = {},
                std::vector<float> floats = {});
  /// A node with `results` results.
  Inputs EmitAll(const char* kernel, size_t results, Inputs inputs, Ints ints);
  /// A node whose result is the variable in `slot`.
  void Give(absl::string_view slot, const char* kernel, Inputs inputs,
            Ints ints = {}, std::vector<float> floats = {});
  /// A node with the variables of `slot` as results.
  void GiveAll(absl::string_view slot, const char* kernel, Inputs inputs,
               Ints ints = {});
  /// The variable in `slot` is a value that there is.
  void Alias(absl::string_view slot, uint32_t value);
  /// The variable in `slot` is a parameter in another shape, and a parameter
  /// itself.
  void AliasParam(absl::string_view slot, Array param);
  /// The variables in `slot` are values that there are.
  void AliasAll(absl::string_view slot, const Inputs& values);
  /// Alias after a reshape to [1] where the program, as those before
  /// PaddlePaddle 2.5, has no rank 0.
  void AliasScalar(absl::string_view slot, uint32_t value, bool is_scalar);

  uint32_t Unary(pd_run::Function function, uint32_t x, float a = 0,
                 float b = 0, float c = 0);
  uint32_t BinaryOf(pd_run::Binary operation, uint32_t a, uint32_t b,
                    int64_t axis = -1);
  uint32_t Reshape(pd_run::ReshapeMode mode, uint32_t x, const Ints& dims);
  uint32_t Cast(uint32_t x, pd_run::DType to);

  void Fail(const absl::Status& status);
  /// Unimplemented, with the reason.
  void Refuse(const std::string& why);
  absl::Status Finish();

 private:
  const Attribute& At(const char* name);
  const VarDesc& Var(const std::string& name);
  BundleNode* AddNode(const char* kernel, Inputs inputs, Ints ints,
                      std::vector<float> floats);
  const Array* ParamNamed(const std::string& name, absl::string_view slot);
  std::string Layer() const;

  const OpDesc& desc_;
  const char* word_;
  BundleBuilder* builder_;
  absl::Status status_;
  std::set<std::string> asked_;
};

/// The numbers of a node with a function: none.
inline std::vector<float> NoFunction() { return {0, 0, 0}; }

}  // namespace pd

#endif  // PD_LIBCORE_BUNDLE_BUNDLE_OP_H_

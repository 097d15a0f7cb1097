// SPDX-License-Identifier: Apache-2.0
// PaddlePaddle's ProgramDesc as plain structs. This is the Program that the
// whole tree works on: read from a .pdmodel, built from a job, rewritten by
// passes, compiled by the executor, written back.
#ifndef PD_LIBCORE_IR_PROGRAM_DESC_H_
#define PD_LIBCORE_IR_PROGRAM_DESC_H_

#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>
#include "absl/strings/string_view.h"

#include "libcore/base/dtype.h"
#include "libcore/base/error.h"
#include "libcore/base/shape.h"

namespace pd {

/// OpDesc.Attr.type, numbered as in the file.
enum class AttrType : int32_t {
  kInt = 0,
  kFloat = 1,
  kString = 2,
  kInts = 3,
  kFloats = 4,
  kStrings = 5,
  kBoolean = 6,
  kBooleans = 7,
  kBlock = 8,
  kLong = 9,
  kBlocks = 10,
  kLongs = 11,
  kFloat64s = 12,
  kVar = 13,
  kVars = 14,
  kFloat64 = 15,
  kScalar = 16,
  kScalars = 17,
};

/// "int", "floats", "boolean", ...: as in messages and text dumps.
absl::string_view Name(AttrType type);

/// A sub-block of the program, by index.
struct BlockRef {
  int32_t index = 0;
  bool operator==(const BlockRef& o) const { return index == o.index; }
};
struct BlockRefs {
  std::vector<int32_t> indices;
  bool operator==(const BlockRefs& o) const { return indices == o.indices; }
};
/// Names of variables whose values are the attribute.
struct VarRef {
  std::string name;
  bool operator==(const VarRef& o) const { return name == o.name; }
};
struct VarRefs {
  std::vector<std::string> names;
  bool operator==(const VarRefs& o) const { return names == o.names; }
};
/// A number that keeps its own kind.
struct ScalarAttr {
  std::variant<bool, int64_t, double, std::complex<double>> value;
  bool operator==(const ScalarAttr& o) const { return value == o.value; }
};

/// The alternatives stand in the order of AttrType, so index() is the type.
using AttributeValue =
    std::variant<int32_t, float, std::string, std::vector<int32_t>,
                 std::vector<float>, std::vector<std::string>, bool,
                 std::vector<bool>, BlockRef, int64_t, BlockRefs,
                 std::vector<int64_t>, std::vector<double>, VarRef, VarRefs,
                 double, ScalarAttr, std::vector<ScalarAttr>>;

/// An attribute's value. Copying, moving and destroying a variant of so many
/// types is slow to compile, so those functions are compiled once.
struct Attribute : AttributeValue {
  using AttributeValue::AttributeValue;
  Attribute();
  Attribute(const Attribute& other);
  Attribute(Attribute&& other) noexcept;
  Attribute& operator=(const Attribute& other);
  Attribute& operator=(Attribute&& other) noexcept;
  ~Attribute();
};

inline AttrType TypeOf(const Attribute& a) {
  return static_cast<AttrType>(a.index());
}

/// Names of variables per slot, in the file's order.
using SlotList = std::vector<std::pair<std::string, std::vector<std::string>>>;

/// One operator call. Its copies and its end are compiled once, as those of the
/// types below.
struct OpDesc {
  OpDesc();
  OpDesc(const OpDesc& other);
  OpDesc(OpDesc&& other) noexcept;
  OpDesc& operator=(const OpDesc& other);
  OpDesc& operator=(OpDesc&& other) noexcept;
  ~OpDesc();

  std::string type;
  SlotList inputs, outputs;
  std::map<std::string, Attribute> attrs;
  bool is_target = false;
  /// Names of attributes that the file lists ahead of the others, as
  /// PaddlePaddle 2.4 and later do with those that do not change the result.
  /// It only orders the bytes written: names without an attribute are skipped,
  /// one that is here twice is written again in its usual place.
  std::vector<std::string> leading_attrs;

  /// The names in a slot; empty when the slot is absent.
  const std::vector<std::string>& Input(absl::string_view slot) const;
  const std::vector<std::string>& Output(absl::string_view slot) const;
  /// The only name in a slot; "" when the slot is absent or empty.
  const std::string& In(absl::string_view slot) const;
  const std::string& Out(absl::string_view slot) const;
  void SetInput(absl::string_view slot, std::vector<std::string> names);
  void SetOutput(absl::string_view slot, std::vector<std::string> names);

  const Attribute* FindAttr(absl::string_view name) const;
  /// An attribute of the schema of an op that OpDef::Normalize has filled in; T
  /// must be its type.
  template <typename T>
  const T& Attr(absl::string_view name) const {
    const Attribute* a = FindAttr(name);
    const T* value = a != nullptr ? std::get_if<T>(a) : nullptr;
    PD_INVARIANT(value != nullptr);
    return *value;
  }
  /// The attribute as T, or `otherwise` when it is absent or of another type:
  /// for attributes that no schema has, as op_role, and for ops of programs
  /// that are only looked at.
  template <typename T>
  T AttrOr(absl::string_view name, T otherwise) const {
    const Attribute* a = FindAttr(name);
    const T* value = a != nullptr ? std::get_if<T>(a) : nullptr;
    return value != nullptr ? *value : otherwise;
  }
};

/// VarType.Type codes that are not element types.
enum class VarKind : int32_t {
  kLodTensor = 7,
  kSelectedRows = 8,
  kFeedMinibatch = 9,
  kFetchList = 10,
  kStepScopes = 11,
  kLodRankTable = 12,
  kLodTensorArray = 13,
  kPlaceList = 14,
  kReader = 15,
  kRaw = 17,
  kTuple = 18,
  kString = 25,
  kStrings = 26,
  kVocab = 27,
  kFeedList = 28,
  kPstring = 29,
  kSparseCoo = 30,
  kSparseCsr = 31,
};

struct VarDesc {
  VarDesc();
  VarDesc(const VarDesc& other);
  VarDesc(VarDesc&& other) noexcept;
  VarDesc& operator=(const VarDesc& other);
  VarDesc& operator=(VarDesc&& other) noexcept;
  ~VarDesc();

  std::string name;
  VarKind kind = VarKind::kLodTensor;
  DType dtype = DType::kFloat32;  ///< tensors, SelectedRows, tensor arrays
  Shape shape;                    ///< -1: known when it runs
  int32_t lod_level = 0;
  bool persistable = false;
  bool need_check_feed = false;
  bool is_parameter = false;
  bool stop_gradient = false;
  std::map<std::string, Attribute> attrs;  ///< int, string, ints
  /// A serialized VarType for kinds that are more than a tensor (readers,
  /// tuples); "" otherwise.
  std::string raw_type;
  /// Bits of VarOmitted: fields at their default that the file left out. It
  /// only shapes the bytes written.
  uint8_t omitted = 0;
};

/// Bits of VarDesc::omitted.
enum VarOmitted : uint8_t {
  kOmitsPersistable = 1,
  kOmitsStopGradient = 2,
  kOmitsLodLevel = 4,
  kOmitsTensor = 8,
};

/// Where the variables of a large block stand, for BlockDesc::FindVar. Others
/// change the list as they like: what is found is looked at, and where nothing
/// is found the list itself is asked. A copy knows nothing yet.
class VarIndex {
 public:
  VarIndex() = default;
  VarIndex(const VarIndex&) noexcept {}
  VarIndex& operator=(const VarIndex&) noexcept {
    places_.clear();
    known_ = 0;
    return *this;
  }

  /// The position of `name` in `vars`, or vars.size(). Several threads may ask
  /// while nobody changes the list.
  size_t Find(const std::vector<VarDesc>& vars, absl::string_view name);

 private:
  std::mutex mutex_;
  std::map<std::string, size_t, std::less<>> places_;
  size_t known_ = 0;  // variables that places_ was made of
};

struct BlockDesc {
  BlockDesc();
  BlockDesc(const BlockDesc& other);
  BlockDesc(BlockDesc&& other) noexcept;
  BlockDesc& operator=(const BlockDesc& other);
  BlockDesc& operator=(BlockDesc&& other) noexcept;
  ~BlockDesc();

  int32_t idx = 0;
  int32_t parent_idx = -1;
  int32_t forward_block_idx = -1;
  std::vector<VarDesc> vars;
  std::vector<OpDesc> ops;

  VarDesc* FindVar(absl::string_view name);
  const VarDesc* FindVar(absl::string_view name) const;

 private:
  mutable VarIndex index_;
};

struct ProgramDesc {
  ProgramDesc();
  ProgramDesc(const ProgramDesc& other);
  ProgramDesc(ProgramDesc&& other) noexcept;
  ProgramDesc& operator=(const ProgramDesc& other);
  ProgramDesc& operator=(ProgramDesc&& other) noexcept;
  ~ProgramDesc();

  std::vector<BlockDesc> blocks;
  int64_t version = 0;  ///< 2003000 for 2.3.0
  /// op type -> version, as PaddlePaddle stores it.
  std::vector<std::pair<std::string, int32_t>> op_versions;

  BlockDesc& global() { return blocks.front(); }
  const BlockDesc& global() const { return blocks.front(); }
  /// The variable as an op of `block` sees it: its own block's, else the
  /// parents'. Null when there is none.
  const VarDesc* FindVar(int32_t block, absl::string_view name) const;
};

// PaddlePaddle's names for the role of an op and for gradients.
inline constexpr absl::string_view kGradSuffix = "@GRAD";
inline constexpr absl::string_view kEmptyVar = "@EMPTY@";
inline constexpr absl::string_view kOpRoleAttr = "op_role";
inline constexpr absl::string_view kOpRoleVarAttr = "op_role_var";

/// Bits of `op_role`.
enum OpRole : int32_t {
  kRoleForward = 0x0000,
  kRoleBackward = 0x0001,
  kRoleOptimize = 0x0002,
  kRoleLRSched = 0x0010,
  kRoleLoss = 0x0100,
};

/// "x" -> "x@GRAD".
std::string GradName(absl::string_view name);

}  // namespace pd

// Compiled once, in program_desc.cc.
extern template class std::map<std::string, pd::Attribute>;
extern template class std::vector<pd::OpDesc>;

#endif  // PD_LIBCORE_IR_PROGRAM_DESC_H_

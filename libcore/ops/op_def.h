// SPDX-License-Identifier: Apache-2.0
// An operator's definition: its schema, its inference, its gradient, and its
// implementations. One OpDef per op type, filled in by the op's own file.
#ifndef PD_LIBCORE_OPS_OP_DEF_H_
#define PD_LIBCORE_OPS_OP_DEF_H_

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "libcore/ir/program_desc.h"
#include "libcore/ops/bind_context.h"
#include "libcore/ops/infer_context.h"

namespace pd {

class DeviceBinding;

/// One input or output slot.
struct SlotDef {
  std::string name;
  bool duplicable = false;    ///< holds a list of variables
  bool optional = false;      ///< may be absent
  bool intermediate = false;  ///< an output only the gradient reads
};

/// One attribute. Without a default it must be given.
struct AttrDef {
  std::string name;
  AttrType type = AttrType::kInt;
  std::optional<Attribute> default_value;
};

/// The usual gradient op, in words: which forward values it keeps, which
/// gradients come in and go out. Slots are the forward op's own names; the
/// gradient op reads slot "Out@GRAD" and writes slot "X@GRAD". Its functions
/// are compiled once: each op makes one.
struct GradSpec {
  using Names = std::initializer_list<absl::string_view>;
  GradSpec(absl::string_view type, Names inputs, Names outputs, Names out_grads,
           Names in_grads);
  GradSpec(const GradSpec& other);
  GradSpec(GradSpec&& other) noexcept;
  ~GradSpec();

  std::string type;                         ///< "softmax_grad"
  std::vector<std::string> inputs = {};     ///< forward inputs it reads
  std::vector<std::string> outputs = {};    ///< forward outputs it reads
  std::vector<std::string> out_grads = {};  ///< outputs whose gradients come in
  std::vector<std::string> in_grads = {};   ///< inputs whose gradients go out
};

/// The arguments of a hand-written gradient maker.
struct GradRequest {
  const OpDesc& op;  ///< its attributes are normalized
  /// False: the variable stops the gradient; its gradient must not be made.
  std::function<bool(const std::string& variable)> needs_grad;
};
/// The gradient ops of one forward op. Gradients of outputs are named
/// GradName(output); gradients to make GradName(input). kEmptyVar stands for
/// one that is not needed.
using GradMaker =
    std::function<absl::StatusOr<std::vector<OpDesc>>(const GradRequest&)>;

using InferFn = absl::Status (*)(InferContext*);

/// The ops that an op consists of, and the values between them; other names are
/// those of the op's variables.
struct Expansion {
  std::vector<OpDesc> parts;
  std::vector<std::pair<std::string, TensorMeta>> inside;
};
/// The meta of a variable; null where it is not known.
using FindMetaFn = std::function<const TensorMeta*(const std::string& name)>;
using ExpandFn = absl::StatusOr<Expansion> (*)(const OpDesc& op,
                                               const FindMetaFn& find);

/// Reads attributes and shapes of an op, once per compiled plan, and returns
/// the step that is run many times. A status of kUnimplemented is a refusal
/// with its reason, and the next implementation is asked.
using BindFn = absl::StatusOr<Step> (*)(BindContext*);
/// The same for a GPU. Tensors have their bytes in the device's memory: a step
/// hands Tensor::raw() to kernels and never follows it; it starts work on the
/// device's stream and waits for nothing.
using DeviceBindFn = absl::StatusOr<Step> (*)(BindContext*, DeviceBinding*);

/// The memory that an implementation reads and writes.
enum class Place { kHost, kDevice };

/// One way to compute an op: a label, a place with its function to bind, and
/// capabilities, all false at first. An implementation sees and makes dense
/// row-major tensors unless it says that it takes others.
struct Implementation {
  Implementation(absl::string_view label, BindFn bind);
  Implementation(absl::string_view label, DeviceBindFn bind);

  Implementation& TakesLayouts();
  Implementation& TakesSelectedRows();
  Implementation& FollowsInputs();
  Implementation& AskedFirst();
  Implementation& AskedLast();

  std::string label;  ///< "reference", "onednn", "cpu:batch_inner", "cublaslt"
  Place place = Place::kHost;
  BindFn bind = nullptr;                  ///< Place::kHost
  DeviceBindFn bind_on_device = nullptr;  ///< Place::kDevice
  /// It asks for layouts itself (BindContext::In, Out). On a device these are
  /// permutations of dimensions, without padding.
  bool takes_layouts = false;
  bool takes_selected_rows = false;
  /// The reference takes every kind of variable that its op has, and is asked
  /// last.
  bool is_reference = false;
  /// Of a plug-in: asked before all others of its place, or after the
  /// reference.
  enum class Turn { kFirst, kUsual, kLast };
  Turn turn = Turn::kUsual;
  /// Of a device: asked only where an input is there already. It moves few
  /// bytes or makes integers, so it is not worth a copy.
  bool follows_inputs = false;
};

/// Facts about an op type that plans ask for.
enum class Trait : uint32_t {
  /// Small results of known inputs are computed while the plan is made: the
  /// arithmetic of shapes.
  kShapeArithmetic = 1u << 0,
  /// It reads the shapes of its inputs and none of their elements.
  kReadsShapesOnly = 1u << 1,
  /// It hands values on as they are, by BlockRunner::values, wherever their
  /// bytes lie: branches, and ops on arrays.
  kMovesValues = 1u << 2,
  /// The same where an input is a tensor array.
  kMovesArrays = 1u << 3,
  /// It computes from the elements of a tensor array.
  kReadsArrays = 1u << 4,
  /// An input may have no value: a branch that was not taken.
  kReadsUnwritten = 1u << 5,
  /// It reads a few rows of its first input, as many as it writes.
  kReadsSomeRows = 1u << 6,
  /// It converts between dtypes, so that its tensors are never upcast for it.
  kConvertsDtype = 1u << 7,
  /// It works together with other processes or writes files, so it runs even
  /// where nobody here reads what it makes.
  kCommunicates = 1u << 8,
  /// The step calls Tensor::Resize on outputs, as with ShapeFromData, where
  /// inference leaves extents open though all inputs are known. Where no other
  /// op reads the outputs, their shapes may differ from the inferred ones too.
  kMayResizeOutputs = 1u << 9,
  /// Inputs may be sparse tensors.
  kReadsSparse = 1u << 10,
};

class OpDef {
 public:
  explicit OpDef(absl::string_view type);
  OpDef(const OpDef& other);
  OpDef(OpDef&& other) noexcept;
  ~OpDef();

  OpDef& Input(absl::string_view name);
  OpDef& OptionalInput(absl::string_view name);
  OpDef& Inputs(absl::string_view name);  ///< a list
  OpDef& OptionalInputs(absl::string_view name);
  OpDef& Output(absl::string_view name);
  OpDef& OptionalOutput(absl::string_view name);
  OpDef& Outputs(absl::string_view name);
  OpDef& OptionalOutputs(absl::string_view name);
  OpDef& IntermediateOutput(absl::string_view name);  ///< optional too
  /// The default's C++ type is the attribute's type: int32_t, int64_t, float,
  /// bool, std::string, std::vector of those.
  OpDef& Attr(absl::string_view name, Attribute default_value);
  OpDef& RequiredAttr(absl::string_view name, AttrType type);

  OpDef& Infer(InferFn infer);
  OpDef& Grad(GradSpec spec);
  OpDef& Grad(GradMaker maker);
  OpDef& NoGrad();  ///< says that there is none
  /// The shape of an output depends on the elements of an input (where_index,
  /// unique): inference sets -1 for such an extent, and the step calls
  /// Tensor::Resize (and set_lod) on every output before it writes it. Such an
  /// op, like every op that reads its outputs, is bound when it runs: the bytes
  /// of its inputs are there already in `bind`.
  OpDef& ShapeFromData();
  /// The op runs blocks of the program through BindContext::blocks(), which
  /// read and write variables around it; it infers nothing.
  OpDef& RunsBlocks();
  OpDef& With(Trait trait);
  OpDef& Reference(BindFn bind);
  /// Other ops may take the place of the op, which have fast kernels where it
  /// has none (the pass expand_fused). `op` is normalized.
  OpDef& Expand(ExpandFn expand);
  /// Adds an implementation that is asked before the reference and after those
  /// added earlier.
  void AddImplementation(Implementation implementation);

  const std::string& type() const { return type_; }
  const std::vector<SlotDef>& inputs() const { return inputs_; }
  const std::vector<SlotDef>& outputs() const { return outputs_; }
  const std::vector<AttrDef>& attrs() const { return attrs_; }
  bool infers() const { return infer_ != nullptr; }
  /// Infers the outputs of an op of this type, normalized, and checks the sizes
  /// of what it found: no caller sees a shape whose size overflows.
  absl::Status InferOutputs(InferContext* context) const;
  bool shape_from_data() const { return shape_from_data_; }
  bool runs_blocks() const { return runs_blocks_; }
  bool Has(Trait trait) const {
    return (traits_ & static_cast<uint32_t>(trait)) != 0;
  }
  bool has_grad() const { return grad_ != nullptr; }
  bool says_about_grad() const { return grad_ != nullptr || no_grad_; }
  const GradMaker& grad() const { return grad_; }
  /// In the order in which they are asked; the reference is last.
  const std::vector<Implementation>& implementations() const {
    return implementations_;
  }
  bool HasImplementation(Place place) const;
  ExpandFn expand() const { return expand_; }  ///< null: it stays
  const SlotDef* FindInput(absl::string_view name) const;
  const SlotDef* FindOutput(absl::string_view name) const;

  /// Checks an op against the schema and fills in defaults: unknown or missing
  /// slots, several variables where one is expected, variables without a name,
  /// lists with gaps, an op without outputs or with one variable in two of
  /// them, missing attributes, and
  /// attributes of another type (an int where a long is expected is widened)
  /// are InvalidArgument. Attributes that the schema does not know stay.
  absl::Status Normalize(OpDesc* op) const;
  /// The part of Normalize that is about attributes: for ops in the making,
  /// whose slots are not all there.
  absl::Status NormalizeAttrs(OpDesc* op) const;

 private:
  absl::Status CheckVariables(const OpDesc& op) const;
  OpDef& AddSlot(std::vector<SlotDef>* slots, SlotDef slot);

  std::string type_;
  std::vector<SlotDef> inputs_, outputs_;
  std::vector<AttrDef> attrs_;
  InferFn infer_ = nullptr;
  ExpandFn expand_ = nullptr;
  GradMaker grad_;
  bool no_grad_ = false;
  bool shape_from_data_ = false;
  bool runs_blocks_ = false;
  uint32_t traits_ = 0;  // bits of Trait
  std::vector<Implementation> implementations_;
};

}  // namespace pd

#endif  // PD_LIBCORE_OPS_OP_DEF_H_

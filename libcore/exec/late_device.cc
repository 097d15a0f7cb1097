// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/late_device.h"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/status_macros.h"
#include "libcore/exec/late_binder.h"
#include "libcore/exec/offer.h"
#include "libcore/ops/common/int_tensors.h"
#include "libcore/ops/common/selected_rows.h"

namespace pd {
namespace {

constexpr size_t kRowAlignment = 256;

size_t OffsetOfRows(const Tensor& selected) {
  return (selected.bytes() + kRowAlignment - 1) / kRowAlignment * kRowAlignment;
}

// The same bytes as rows of a matrix, which the tensor outlives.
Tensor AsRows(const Tensor& tensor, int64_t outer) {
  Tensor rows(tensor.dtype(), {outer, tensor.size() / outer});
  rows.Attach(tensor.raw());
  return rows;
}

// A tensor without bytes that is otherwise `like`.
Tensor Empty(const Tensor& like) {
  Tensor tensor(like.dtype(), like.shape());
  tensor.set_lod(like.lod());
  tensor.set_kind(like.kind());
  tensor.set_height(like.height());
  tensor.rows().resize(like.rows().size());
  return tensor;
}

}  // namespace

// The DeviceBinding of one run of a late op, which owns the memory that the
// implementation keeps.
class LateDevice::Binding : public DeviceBinding {
 public:
  explicit Binding(LateDevice* late) : late_(late) {}

  Device* device() override { return late_->plan_->device(); }
  absl::StatusOr<int32_t*> ErrorFlag(std::string message) override {
    return late_->plan_->ErrorFlag(std::move(message));
  }
  absl::StatusOr<void*> Keep(size_t bytes) override {
    PD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, late_->pool_.Take(bytes));
    kept_.push_back(memory);
    return memory.get();
  }
  absl::StatusOr<const Tensor*> ValueOf(const Tensor*) override {
    return nullptr;
  }
  absl::StatusOr<const uint64_t*> SeedAndStep() override {
    return late_->plan_->SeedAndStep();
  }
  absl::StatusOr<int64_t*> RowsOf(const Tensor* selected) override {
    return late_->RowsOf(*selected);
  }

 private:
  LateDevice* late_;
  std::vector<std::shared_ptr<void>> kept_;
};

struct LateDevice::Call {
  const LateOp& op;
  const RunContext& context;
  const LateOp::Variables& inputs;
  const LateOp::Variables& outputs;
  const Metas& metas;
};

// A call as one implementation has bound it. `sent`: copies of the host's
// inputs; `made`: outputs, and the variables that get them.
struct LateDevice::Work {
  Work(LateDevice* late, const OpDesc& op) : op(op), binding(late) {}

  const OpDesc& op;
  Binding binding;
  std::map<const Tensor*, Tensor> sent;
  std::deque<std::pair<Tensor*, Tensor>> made;
  std::unique_ptr<LateBinder> binder;
  Step step;
};

absl::Status LateDevice::Allocate(Tensor* tensor) {
  PD_RETURN_IF_ERROR(
      CheckedBytes(tensor->shape(), SizeOf(tensor->dtype())).status());
  size_t bytes = tensor->bytes();
  if (IsSelectedRows(tensor))
    bytes = OffsetOfRows(*tensor) + tensor->rows().size() * sizeof(int64_t);
  PD_ASSIGN_OR_RETURN(std::shared_ptr<void> memory, pool_.Take(bytes));
  void* const address = memory.get();
  tensor->Attach(address, std::move(memory));
  return absl::OkStatus();
}

absl::StatusOr<int64_t*> LateDevice::RowsOf(const Tensor& selected) {
  if (!pool_.Holds(selected.raw())) {
    int64_t* const planned = plan_->FindRows(&selected);
    if (planned == nullptr)
      return Internal("the row numbers of selected rows are not known");
    return planned;
  }
  return reinterpret_cast<int64_t*>(static_cast<char*>(selected.raw()) +
                                    OffsetOfRows(selected));
}

absl::Status LateDevice::Send(const Tensor& from, const Tensor& to) {
  PD_RETURN_IF_ERROR(
      plan_->device()->ToDevice(to.raw(), from.raw(), from.bytes()));
  if (!IsSelectedRows(&from)) return absl::OkStatus();
  PD_ASSIGN_OR_RETURN(int64_t* const rows, RowsOf(to));
  return plan_->device()->ToDevice(rows, from.rows().data(),
                                   from.rows().size() * sizeof(int64_t));
}

absl::StatusOr<Tensor> LateDevice::OnHost(const Tensor& value) {
  if (value.is_array()) {
    Tensor array = value;
    for (Tensor& element : array.elements()) {
      PD_ASSIGN_OR_RETURN(element, OnHost(element));
    }
    return array;
  }
  if (!Holds(value)) return value;
  Tensor here = Empty(value);
  PD_RETURN_IF_ERROR(here.Allocate());
  Device* device = plan_->device();
  PD_RETURN_IF_ERROR(device->ToHost(here.raw(), value.raw(), value.bytes()));
  if (IsSelectedRows(&value)) {
    PD_ASSIGN_OR_RETURN(const int64_t* const rows, RowsOf(value));
    PD_RETURN_IF_ERROR(device->ToHost(here.rows().data(), rows,
                                      here.rows().size() * sizeof(int64_t)));
  }
  PD_RETURN_IF_ERROR(device->Synchronize());
  return here;
}

absl::StatusOr<Tensor> LateDevice::Clone(const Tensor& value) {
  if (!Holds(value)) return CloneOf(value);
  if (pool_.Holds(value.raw())) return value;
  Tensor copy = Empty(value);
  PD_RETURN_IF_ERROR(Allocate(&copy));
  Device* device = plan_->device();
  PD_RETURN_IF_ERROR(device->Copy(copy.raw(), value.raw(), value.bytes()));
  if (!IsSelectedRows(&value)) return copy;
  PD_ASSIGN_OR_RETURN(int64_t* const to, RowsOf(copy));
  PD_ASSIGN_OR_RETURN(const int64_t* const from, RowsOf(value));
  PD_RETURN_IF_ERROR(
      device->Copy(to, from, value.rows().size() * sizeof(int64_t)));
  return copy;
}

absl::Status LateDevice::CopyBytes(const Tensor& from, Tensor* to) {
  const bool there = Holds(*to);
  if (!there) {
    PD_ASSIGN_OR_RETURN(const Tensor here, OnHost(from));
    CopyElements(here, to);
    return absl::OkStatus();
  }
  if (!Holds(from)) return Send(from, *to);
  return plan_->device()->Copy(to->raw(), from.raw(), to->bytes());
}

absl::StatusOr<Tensor> LateDevice::Zeros(const Tensor& like) {
  Tensor zeros(like.dtype(), like.shape());
  if (Holds(like)) {
    PD_RETURN_IF_ERROR(Allocate(&zeros));
    PD_RETURN_IF_ERROR(plan_->device()->Clear(zeros.raw(), zeros.bytes()));
  } else {
    PD_RETURN_IF_ERROR(zeros.Allocate());
  }
  return zeros;
}

absl::Status LateDevice::Compute(
    const OpDesc& op, const std::map<std::string, Frame::Variable>& variables) {
  PD_ASSIGN_OR_RETURN(const LateOp late,
                      LateOp::Make(*registry_, op, version_));
  LateOp::Variables inputs, outputs;
  for (const std::string& name : late.inputs())
    inputs.Add(name, variables.at(name));
  for (const std::string& name : late.outputs())
    outputs.Add(name, variables.at(name));
  return late.Run({}, inputs, outputs, nullptr, this);
}

absl::Status LateDevice::Add(const Tensor& part, Tensor* sum) {
  OpDesc op;
  op.type = "sum";
  op.SetInput("X", {"sum", "part"});
  op.SetOutput("Out", {"out"});
  Tensor more = part, out;
  PD_RETURN_IF_ERROR(
      Compute(op, {{"sum", {sum}}, {"part", {&more}}, {"out", {&out}}}));
  out.set_lod(sum->lod());
  *sum = std::move(out);
  return absl::OkStatus();
}

absl::StatusOr<Tensor> LateDevice::Append(const Tensor& a, const Tensor& b) {
  OpDesc op;
  op.type = "sum";
  op.SetInput("X", {"a", "b"});
  op.SetOutput("Out", {"both"});
  Tensor first = a, second = b, both;
  PD_RETURN_IF_ERROR(
      Compute(op, {{"a", {&first}}, {"b", {&second}}, {"both", {&both}}}));
  return both;
}

absl::StatusOr<Tensor> LateDevice::Join(const std::vector<Tensor>& parts,
                                        int64_t outer, const Shape& shape) {
  bool here = false;
  for (const Tensor& part : parts) here = here || Holds(part);
  Tensor whole(parts.front().dtype(), shape);
  if (!here || whole.size() == 0)
    return HostValues()->Join(parts, outer, shape);
  PD_RETURN_IF_ERROR(Allocate(&whole));
  Tensor joined = AsRows(whole, outer);
  OpDesc op;
  op.type = "concat";
  op.attrs["axis"] = int32_t{1};
  std::vector<std::string> names;
  std::deque<Tensor> rows;
  std::map<std::string, Frame::Variable> variables = {
      {"whole", {&joined, true}}};
  for (const Tensor& part : parts) {
    names.push_back(absl::StrCat("part", names.size()));
    rows.push_back(AsRows(part, outer));
    variables[names.back()] = {&rows.back(), true};
  }
  op.SetInput("X", names);
  op.SetOutput("Out", {"whole"});
  PD_RETURN_IF_ERROR(Compute(op, variables));
  return whole;
}

absl::StatusOr<std::vector<Tensor>> LateDevice::Split(
    const Tensor& whole, int64_t outer, const std::vector<Tensor>& like) {
  if (!Holds(whole) || whole.size() == 0)
    return HostValues()->Split(whole, outer, like);
  Tensor joined = AsRows(whole, outer);
  std::vector<Tensor> parts;
  std::vector<std::string> names;
  std::vector<int32_t> sections;
  std::deque<Tensor> rows;
  std::map<std::string, Frame::Variable> variables = {
      {"whole", {&joined, true}}};
  for (const Tensor& one : like) {
    parts.push_back(Empty(one));
    PD_RETURN_IF_ERROR(Allocate(&parts.back()));
    rows.push_back(AsRows(parts.back(), outer));
    sections.push_back(static_cast<int32_t>(rows.back().dim(1)));
    names.push_back(absl::StrCat("part", names.size()));
    variables[names.back()] = {&rows.back(), true};
  }
  OpDesc op;
  op.type = "split";
  op.attrs["axis"] = int32_t{1};
  op.attrs["sections"] = sections;
  op.SetInput("X", {"whole"});
  op.SetOutput("Out", names);
  PD_RETURN_IF_ERROR(Compute(op, variables));
  return parts;
}

absl::Status LateDevice::Run(const LateOp& op, const RunContext& context,
                             const LateOp::Variables& inputs,
                             const LateOp::Variables& outputs,
                             const Metas& metas) {
  const Call call = {op, context, inputs, outputs, metas};
  for (const auto& [name, variable] : outputs)
    if (metas.count(name) == 0)
      return InvalidArgument(
          "output '%s' follows from an input that is missing", name);
  if (IsWanted(call)) {
    PD_ASSIGN_OR_RETURN(const bool ran, RunHere(call));
    if (ran) {
      ++placed_.here;
      return absl::OkStatus();
    }
  }
  for (const auto& [name, variable] : outputs)
    if (IsFloating(metas.at(name).dtype)) {
      ++placed_.on_host;
      break;
    }
  return RunOnHost(call);
}

bool LateDevice::IsWanted(const Call& call) const {
  bool wanted = false;
  for (const auto& [name, variable] : call.outputs) {
    const TensorMeta& meta = call.metas.at(name);
    if (variable.fixed && !Holds(*variable.tensor)) return false;
    if (IsDynamic(meta.shape) || IsSparse(meta.kind)) return false;
    wanted = wanted || IsDeviceFloat(meta.dtype);
  }
  for (const auto& [name, variable] : call.inputs)
    wanted = wanted || Holds(*variable.tensor);
  return wanted && !call.op.def().shape_from_data();
}

absl::StatusOr<bool> LateDevice::RunHere(const Call& call) {
  const OpDesc op = WithIntsAsAttrs(
      call.op.op(), [&](const std::string& name) -> const Tensor* {
        const Frame::Variable* input = call.inputs.Find(name);
        return input == nullptr || Holds(*input->tensor) ? nullptr
                                                         : input->tensor;
      });
  OfferTerms terms;
  terms.place = Place::kDevice;
  for (const auto& [name, variable] : call.inputs) {
    const Tensor& tensor = *variable.tensor;
    terms.input_there |= Holds(tensor);
    terms.Add(tensor.dtype(), tensor.kind());
  }
  for (const auto& [name, variable] : call.outputs) {
    const TensorMeta& meta = call.metas.at(name);
    terms.Add(meta.dtype, meta.kind);
  }
  // Kernels read and write fp16 and bf16 themselves; a late op that no kernel
  // takes runs on the host.
  terms.low_precision = false;
  std::unique_ptr<Work> work;
  std::string label;
  std::vector<std::string> refusals;
  PD_ASSIGN_OR_RETURN(const bool bound,
                      Offer(
                          call.op.def(), terms,
                          [&](const Implementation& implementation, bool) {
                            work = std::make_unique<Work>(this, op);
                            label = implementation.label;
                            return Bind(implementation, call, work.get());
                          },
                          &refusals));
  if (!bound) return false;
  call.op.set_choice(std::make_shared<const LateOp::Choice>(
      LateOp::Choice{std::move(label), std::move(refusals)}));
  for (const auto& [from, to] : work->sent)
    if (work->binder->Reads(&to)) PD_RETURN_IF_ERROR(Send(*from, to));
  if (work->step != nullptr) PD_RETURN_IF_ERROR(work->step(call.context));
  for (const auto& [from, to] : work->binder->aliases())
    PD_RETURN_IF_ERROR(
        plan_->device()->Copy(to->raw(), from->raw(), to->bytes()));
  for (auto& [tensor, value] : work->made) *tensor = std::move(value);
  return true;
}

absl::Status LateDevice::Bind(const Implementation& implementation,
                              const Call& call, Work* work) {
  TensorMap in, out;
  std::set<std::string> reads;
  for (const auto& [slot, names] : work->op.inputs)
    reads.insert(names.begin(), names.end());
  for (const auto& [name, variable] : call.inputs) {
    if (reads.count(name) == 0) continue;
    in[name] = variable.tensor;
    if (Holds(*variable.tensor)) continue;
    const auto [copy, fresh] =
        work->sent.try_emplace(variable.tensor, Empty(*variable.tensor));
    if (fresh) PD_RETURN_IF_ERROR(Allocate(&copy->second));
    in[name] = &copy->second;
  }
  for (const auto& [name, variable] : call.outputs) {
    const TensorMeta& meta = call.metas.at(name);
    out[name] = variable.tensor;
    if (variable.fixed) {
      PD_RETURN_IF_ERROR(CheckFixed(name, meta, *variable.tensor));
      continue;
    }
    work->made.emplace_back(variable.tensor, Tensor(meta.dtype, meta.shape));
    Tensor* const made = &work->made.back().second;
    out[name] = made;
    SetMeta(meta, made);
    PD_RETURN_IF_ERROR(Allocate(made));
  }
  work->binder = std::make_unique<LateBinder>(work->op, std::move(in),
                                              std::move(out), nullptr);
  const absl::StatusOr<Step> step = Guarded([&] {
    return implementation.bind_on_device(work->binder.get(), &work->binding);
  });
  PD_RETURN_IF_ERROR(step.status());
  work->step = *step;
  return work->binder->AllocateScratch(
      [this](Tensor* tensor) { return Allocate(tensor); });
}

absl::Status LateDevice::RunOnHost(const Call& call) {
  LateOp::Variables in = call.inputs, out = call.outputs;
  std::map<Tensor*, Tensor> brought;
  for (auto& [name, variable] : in) {
    Tensor* const tensor = variable.tensor;
    if (!Holds(*tensor) && !tensor->is_array()) continue;
    if (brought.count(tensor) == 0) {
      PD_ASSIGN_OR_RETURN(brought[tensor], OnHost(*tensor));
    }
    variable.tensor = &brought[tensor];
  }
  std::map<Tensor*, Tensor*> written;
  for (auto& [name, variable] : out) {
    Tensor* const tensor = variable.tensor;
    if (!variable.fixed || !Holds(*tensor)) continue;
    if (brought.count(tensor) == 0) {
      Tensor& here = brought[tensor] = Empty(*tensor);
      PD_RETURN_IF_ERROR(here.Allocate());
    }
    variable.tensor = &brought[tensor];
    written[tensor] = variable.tensor;
  }
  PD_RETURN_IF_ERROR(call.op.Run(call.context, in, out, nullptr));
  for (const auto& [tensor, value] : written)
    PD_RETURN_IF_ERROR(Send(*value, *tensor));
  return absl::OkStatus();
}

}  // namespace pd

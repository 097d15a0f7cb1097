// SPDX-License-Identifier: Apache-2.0
#include "libcore/exec/plan_builder.h"

#include <algorithm>
#include <cstring>
#include <set>

#include "absl/container/flat_hash_set.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/flags.h"
#include "libcore/base/guarded.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/zeroed.h"
#include "libcore/exec/block_executor.h"
#include "libcore/exec/memory_planner.h"
#include "libcore/exec/nan_check.h"
#include "libcore/exec/offer.h"
#include "libcore/exec/op_binder.h"
#include "libcore/exec/plan_device.h"
#include "libcore/ir/op_names.h"
#include "libcore/ops/gradient_inputs.h"
#include "libcore/program/count_flops.h"

namespace pd {
namespace {

std::string FirstOutput(const OpDesc& op) {
  for (const auto& [slot, names] : op.outputs)
    for (const std::string& name : names)
      if (name != kEmptyVar) return name;
  return "";
}

// Buffers of such sizes lie at multiples of 256 bytes: workspaces must.
size_t RoundedOnDevice(size_t bytes) {
  constexpr size_t kAlignment = 256;
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

// The share of a plan's bytes that later steps use again, as flags say.
double ReusedShare() {
  return GetFlag<double>("FLAGS_eager_delete_tensor_gb") < 0
             ? 0
             : GetFlag<double>("FLAGS_memory_fraction_of_eager_deletion");
}

absl::Status CheckLoD(const std::string& name, const LoD& lod,
                      const Shape& shape) {
  for (size_t level = 0; level < lod.size(); ++level) {
    const auto& offsets = lod[level];
    const int64_t end = level + 1 < lod.size()
                            ? static_cast<int64_t>(lod[level + 1].size()) - 1
                            : (shape.empty() ? 0 : shape[0]);
    if (offsets.empty() || offsets.front() != 0 ||
        !std::is_sorted(offsets.begin(), offsets.end()) ||
        static_cast<int64_t>(offsets.back()) != end)
      return InvalidArgument(
          "the sequences of '%s' at level %d end at %d; expected offsets that "
          "rise from 0 to %d",
          name, level, offsets.empty() ? 0 : offsets.back(), end);
  }
  return absl::OkStatus();
}

template <typename Body>
void ForEachName(const SlotList& slots, const Body& body) {
  for (const auto& [slot, names] : slots)
    for (const std::string& name : names)
      if (name != kEmptyVar) body(name);
}

// The largest of the buffers, for an error message.
absl::Status ArenaError(const absl::Status& status,
                        const std::vector<PlannedBuffer>& buffers) {
  const auto largest = std::max_element(
      buffers.begin(), buffers.end(),
      [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  if (largest == buffers.end()) return status;
  return Annotate(
      status,
      absl::StrCat(
          "memory of a run (", buffers.size(), " tensors, the largest ",
          largest->name.empty() ? "a step's scratch"
                                : absl::StrCat("'", largest->name, "'"),
          " of ", MemoryText(static_cast<int64_t>(largest->bytes)), ")"));
}

}  // namespace

StepInfo MoveInfo(const char* kind, std::string output, const Tensor& from,
                  const Tensor& to) {
  const bool reorder = absl::string_view(kind) == "reorder";
  StepInfo info{kind, std::move(output), reorder ? "layout" : "reference", {}};
  info.bytes_read = static_cast<int64_t>(from.bytes());
  info.bytes_written = static_cast<int64_t>(to.bytes());
  return info;
}

PlanBuilder::PlanBuilder(const OpRegistry& registry, const ProgramDesc& program,
                         Scope* scope, const PlanOptions& options)
    : registry_(registry),
      program_(program),
      block_(program.global()),
      scope_(scope),
      options_(options),
      plan_(new Plan),
      tensors_(&plan_->tensors_, &plan_->pinned_) {
  plan_->world_ = registry.world();
  if (options.place != nullptr) {
    plan_->device_ = std::make_unique<PlanDevice>(options.place);
    residency_ = std::make_unique<Residency>(&tensors_, plan_->device_.get());
  }
  vars_.reserve(block_.vars.size());
  for (const VarDesc& var : block_.vars) vars_[var.name] = &var;
  for (size_t i = 0; i < block_.ops.size(); ++i)
    ForEachName(block_.ops[i].outputs, [&](const std::string& name) {
      if (IsPersistable(name)) last_write_[name] = i;
    });
}

absl::StatusOr<std::unique_ptr<Plan>> PlanBuilder::Build(
    const std::vector<FeedSpec>& feeds,
    const std::vector<std::string>& fetches) {
  PD_RETURN_IF_ERROR(AddFeeds(feeds));
  const std::vector<bool> needed = NeededOps(fetches);
  for (size_t i = 0; i < block_.ops.size(); ++i)
    if (needed[i] && IsGradientOp(block_.ops[i].type)) training_ = true;
  for (size_t i = 0; i < block_.ops.size(); ++i) {
    if (!needed[i]) continue;
    const OpDesc& op = block_.ops[i];
    const absl::Status status = AddOp(op, i);
    if (!status.ok()) return Annotate(status, DescribeOp(op));
  }
  PD_RETURN_IF_ERROR(AddFetches(fetches));
  ShareBuffers();
  PD_RETURN_IF_ERROR(PlaceBuffers());
  CollectFeedAliases();
  if (options_.check_nan_inf) {
    PD_ASSIGN_OR_RETURN(plan_->check_,
                        NanCheck::Create(plan_.get(), options_.nan_rules));
  }
  return std::move(plan_);
}

std::vector<bool> PlanBuilder::NeededOps(
    const std::vector<std::string>& fetches) const {
  absl::flat_hash_set<std::string> wanted(fetches.begin(), fetches.end());
  std::vector<bool> needed(block_.ops.size(), false);
  std::vector<const std::string*> reads, writes;  // of an op
  for (size_t i = block_.ops.size(); i-- > 0;) {
    const OpDesc& op = block_.ops[i];
    if (IsFeedOrFetch(op)) continue;
    OuterNames outer;
    reads.clear();
    writes.clear();
    if (HasBlocks(op)) {
      outer = OuterNamesOf(program_, op);
      for (const std::string& name : outer.reads) reads.push_back(&name);
      for (const std::string& name : outer.writes) writes.push_back(&name);
    } else {
      const auto add_to = [](std::vector<const std::string*>* names) {
        return [names](const std::string& name) { names->push_back(&name); };
      };
      ForEachName(op.inputs, add_to(&reads));
      ForEachName(op.outputs, add_to(&writes));
    }
    const OpDef* def = registry_.Find(op.type);
    // It is there for what it does: assert, send_v2.
    needed[i] =
        writes.empty() || (def != nullptr && def->Has(Trait::kCommunicates));
    for (const std::string* name : writes)
      if (wanted.count(*name) > 0 || IsPersistable(*name)) needed[i] = true;
    if (!needed[i]) continue;
    // A block or an array op may leave an output as it was before.
    if (def == nullptr || !def->runs_blocks())
      for (const std::string* name : writes)
        if (!IsArray(*name)) wanted.erase(*name);
    for (const std::string* name : reads) wanted.insert(*name);
  }
  return needed;
}

absl::Status PlanBuilder::AddFeeds(const std::vector<FeedSpec>& feeds) {
  for (const FeedSpec& feed : feeds) {
    if (IsDynamic(feed.shape))
      return InvalidArgument(
          "feed '%s' has shape %s; every extent must be known", feed.name,
          ToString(feed.shape));
    PD_RETURN_IF_ERROR(Annotate(CheckTensorSize(feed.dtype, feed.shape),
                                absl::StrCat("feed '", feed.name, "'")));
    Tensor* tensor = tensors_.New(feed.dtype, feed.shape, Kind::kFeed);
    PD_RETURN_IF_ERROR(CheckLoD(feed.name, feed.lod, feed.shape));
    tensor->set_lod(feed.lod);
    current_[feed.name] = tensor;
    plan_->feeds_.push_back({{tensor}});
    if (plan_->device_ != nullptr)
      PD_RETURN_IF_ERROR(plan_->device_->AddFeed(tensor->bytes()));
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddOp(const OpDesc& original, size_t index) {
  PD_ASSIGN_OR_RETURN(const OpDef* def, registry_.Get(original.type));
  if (def->runs_blocks()) return AddLateOp(original, index);
  OpDesc op = original;
  PD_RETURN_IF_ERROR(def->Normalize(&op));
  TensorMap inputs, outputs;
  for (const auto& [slot, names] : op.inputs) {
    for (const std::string& name : names) {
      if (name == kEmptyVar) continue;
      PD_ASSIGN_OR_RETURN(inputs[name], ResolveInput(name));
    }
  }
  if (MustBeLate(*def, inputs) ||
      (def->Has(Trait::kMayResizeOutputs) && !IsReadByOps(op)))
    return AddLateOp(original, index);
  std::map<std::string, TensorMeta> metas;
  PD_RETURN_IF_ERROR(InferOutputs(*def, op, &metas));
  for (const auto& [name, meta] : metas)
    if (IsDynamic(meta.shape) || HasParts(meta.kind))
      return AddLateOp(original, index);
  for (const auto& [slot, names] : op.outputs) {
    for (const std::string& name : names) {
      if (name == kEmptyVar) continue;
      const auto meta = metas.find(name);
      if (meta == metas.end())
        return InvalidArgument(
            "output '%s' ('%s') follows from an input that is missing", slot,
            name);
      PD_ASSIGN_OR_RETURN(outputs[name], MakeOutput(name, meta->second));
    }
  }
  PD_RETURN_IF_ERROR(LearnValues(*def, op, inputs, outputs));
  PD_RETURN_IF_ERROR(BindOp(*def, op, index, inputs, outputs));
  for (const auto& [name, tensor] : outputs) current_[name] = NewestOf(tensor);
  return absl::OkStatus();
}

bool PlanBuilder::IsReadByOps(const OpDesc& op) const {
  std::set<absl::string_view> made;
  for (const auto& [slot, names] : op.outputs)
    made.insert(names.begin(), names.end());
  for (const BlockDesc& block : program_.blocks)
    for (const OpDesc& reader : block.ops)
      for (const auto& [slot, names] : reader.inputs)
        for (const std::string& name : names)
          if (name != kEmptyVar && made.count(name) > 0) return true;
  return false;
}

absl::Status PlanBuilder::InferOutputs(
    const OpDef& def, const OpDesc& op,
    std::map<std::string, TensorMeta>* outputs) {
  std::map<std::string, TensorMeta> metas;
  ForEachName(op.inputs, [&](const std::string& name) {
    Tensor* tensor = current_[name];
    TensorMeta& meta = metas[name] = MetaOf(*tensor);
    meta.value = KnownValue(tensor);
  });
  PD_ASSIGN_OR_RETURN(*outputs, InferOp(def, ForwardOf(registry_, op.type), op,
                                        program_.version, metas));
  return absl::OkStatus();
}

absl::StatusOr<Tensor*> PlanBuilder::ResolveInput(const std::string& name) {
  const auto it = current_.find(name);
  if (it != current_.end()) return it->second;
  if (!IsPersistable(name))
    return FailedPrecondition(
        "variable '%s' is read, but nothing has written it: feed it", name);
  Scope::Entry* entry = scope_->Peek(name);
  if (entry == nullptr || !entry->tensor.has_value())
    return FailedPrecondition(
        "variable '%s' is persistable but has no value: run the startup "
        "program or load its parameters first",
        name);
  Tensor* tensor = &entry->tensor;
  const Shape& declared = vars_[name]->shape;
  // PaddlePaddle declares some helper variables with shape [] whatever they
  // hold.
  if (!IsDynamic(declared) && !declared.empty() &&
      declared != tensor->shape() && NumElements(declared) != tensor->size())
    return InvalidArgument("variable '%s' has shape %s; the program expects %s",
                           name, ToString(tensor->shape()), ToString(declared));
  tensors_.AddPersistable(name, entry);
  current_[name] = tensor;
  return tensor;
}

absl::StatusOr<Tensor*> PlanBuilder::MakeOutput(const std::string& name,
                                                const TensorMeta& meta) {
  PD_RETURN_IF_ERROR(Annotate(CheckTensorSize(meta.dtype, meta.shape),
                              absl::StrCat("variable '", name, "'")));
  if (!IsPersistable(name)) {
    Tensor* tensor = tensors_.New(meta.dtype, meta.shape, Kind::kArena);
    tensors_.InfoOf(tensor).name = name;
    tensor->set_lod(meta.lod);
    tensor->set_kind(meta.kind);
    tensor->set_height(meta.height);
    if (meta.kind == VarKind::kSelectedRows && !meta.shape.empty())
      tensor->rows().resize(static_cast<size_t>(meta.shape[0]));
    return tensor;
  }
  PD_ASSIGN_OR_RETURN(Scope::Entry * entry,
                      scope_->GetOrCreate(name, meta.dtype, meta.shape));
  tensors_.AddPersistable(name, entry);
  return &entry->tensor;
}

absl::Status PlanBuilder::BindOp(const OpDef& def, const OpDesc& op,
                                 size_t index, const TensorMap& inputs,
                                 const TensorMap& outputs) {
  StepInfo info = Describe(op);
  info.output = FirstOutput(op);
  const auto shape_of = [&](const std::string& name) -> const Shape* {
    const auto in = inputs.find(name), out = outputs.find(name);
    if (in != inputs.end()) return &in->second->shape();
    return out != outputs.end() ? &out->second->shape() : nullptr;
  };
  info.flops = OpFlops(op, shape_of).value_or(0);
  const auto bind_at = [&](Place place) {
    OfferTerms terms = TermsOf(place, inputs, outputs);
    for (const auto& [name, tensor] : inputs)
      terms.input_there |=
          residency_ != nullptr && residency_->OnDevice(tensor);
    return Offer(
        def, terms,
        [&](const Implementation& implementation, bool upcast) {
          OpBinder binder(this, op, index, inputs, outputs);
          const absl::Status bound =
              Bind(implementation, upcast, &binder, &info);
          if (!bound.ok()) binder.Refuse();
          return bound;
        },
        &info.refusals);
  };
  if (plan_->device_ != nullptr) {
    PD_ASSIGN_OR_RETURN(const bool bound, bind_at(Place::kDevice));
    if (bound) return absl::OkStatus();
    PD_ASSIGN_OR_RETURN(const bool constant,
                        MakeConstants(def, inputs, outputs));
    if (constant) return absl::OkStatus();
  }
  PD_ASSIGN_OR_RETURN(const bool bound, bind_at(Place::kHost));
  return bound ? absl::OkStatus() : NoneAccepted(info.refusals);
}

absl::Status PlanBuilder::Bind(const Implementation& implementation,
                               bool upcast, OpBinder* binder, StepInfo* info) {
  const bool device = implementation.place == Place::kDevice;
  if (plan_->device_ != nullptr) {
    // Host tensors in a plan with a device are row-major.
    if (!device && implementation.takes_layouts)
      return Unimplemented("the plan is for a GPU");
    if (device && !binder->CanMoveToDevice())
      return Unimplemented("an input has a layout of the host's");
    if (!device) PD_RETURN_IF_ERROR(binder->MakeRowMajor());
    PD_RETURN_IF_ERROR(binder->MoveTo(device));
    if (!implementation.takes_layouts)
      PD_RETURN_IF_ERROR(binder->MakeRowMajor());
  }
  if (upcast) {
    PD_ASSIGN_OR_RETURN(const bool done, binder->Upcast());
    if (!done) return Unimplemented("a tensor must stay in fp16 or bf16");
  }
  if (!implementation.takes_layouts) PD_RETURN_IF_ERROR(binder->MakeRowMajor());
  absl::StatusOr<Step> step = Guarded([&] {
    return device ? implementation.bind_on_device(binder, plan_->device_.get())
                  : implementation.bind(binder);
  });
  PD_RETURN_IF_ERROR(binder->sizes());
  PD_RETURN_IF_ERROR(step.status());
  info->implementation = implementation.label;
  info->on_device = device;
  binder->Accept(*std::move(step), std::move(*info));
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddFetches(const std::vector<std::string>& fetches) {
  for (const std::string& name : fetches) {
    if (vars_.find(name) == vars_.end() && current_.count(name) == 0)
      return NotFound("variable '%s' to fetch does not exist", name);
    PD_ASSIGN_OR_RETURN(Tensor * tensor, ResolveInput(name));
    const auto var = vars_.find(name);
    if (var != vars_.end() && HasParts(var->second->kind))
      return InvalidArgument("variable '%s' to fetch is no dense tensor", name);
    if (tensor->layout() != nullptr) {
      Tensor* plain =
          tensors_.New(tensor->dtype(), tensor->shape(), Kind::kArena);
      const bool device = tensors_.InfoOf(tensor).device;
      tensors_.InfoOf(plain).device = device;
      PD_ASSIGN_OR_RETURN(Step step, Reorder(tensor, plain));
      StepInfo info = MoveInfo("reorder", name, *tensor, *plain);
      info.on_device = device;
      const int at = AddStep(std::move(step), std::move(info));
      tensors_.Touch(tensor, at);
      tensors_.Touch(plain, at);
      tensor = plain;
    }
    if (plan_->device_ != nullptr) {
      PD_ASSIGN_OR_RETURN(tensor, FetchedOnHost(name, tensor));
    }
    tensors_.InfoOf(tensors_.Root(tensor)).keep = true;
    plan_->fetches_.push_back(tensor);
  }
  return absl::OkStatus();
}

StepInfo PlanBuilder::Describe(const OpDesc& op) const {
  StepInfo info;
  info.op_type = op.type;
  info.role = RoleOf(op);
  info.layer = NameScopeOf(op);
  return info;
}

int PlanBuilder::AddStep(Step step, StepInfo info) {
  plan_->steps_.push_back(std::move(step));
  plan_->infos_.push_back(std::move(info));
  plan_->variables_.emplace_back();
  return static_cast<int>(plan_->steps_.size()) - 1;
}

void PlanBuilder::SetVariables(int step, StepVariables variables) {
  plan_->variables_[static_cast<size_t>(step)] = std::move(variables);
}

absl::StatusOr<Step> PlanBuilder::Reorder(Tensor* from, Tensor* to) {
  if (tensors_.InfoOf(to).device)
    return plan_->device_->place().reorder(plan_->device_.get(), from, to);
  if (registry_.reorder() != nullptr) {
    absl::StatusOr<Step> step = registry_.reorder()(from, to);
    if (step.status().code() != absl::StatusCode::kUnimplemented) return step;
  }
  return Step([from, to](const RunContext&) {
    CopyElements(*from, to);
    return absl::OkStatus();
  });
}

absl::StatusOr<Step> PlanBuilder::Cast(Tensor* from, Tensor* to) {
  PD_ASSIGN_OR_RETURN(const OpDef* def, registry_.Get("cast"));
  OpDesc op;
  op.type = "cast";
  op.SetInput("X", {"from"});
  op.SetOutput("Out", {"to"});
  op.attrs["in_dtype"] = static_cast<int32_t>(from->dtype());
  op.attrs["out_dtype"] = static_cast<int32_t>(to->dtype());
  op.attrs["use_mkldnn"] = true;
  const TensorMap inputs = {{"from", from}}, outputs = {{"to", to}};
  const bool device = tensors_.InfoOf(to).device;
  OfferTerms terms =
      TermsOf(device ? Place::kDevice : Place::kHost, inputs, outputs);
  terms.input_there = device;
  Step step;
  std::vector<std::string> refusals;
  PD_ASSIGN_OR_RETURN(
      const bool bound,
      Offer(
          *def, terms,
          [&](const Implementation& implementation, bool) -> absl::Status {
            if (!device && from->layout() != nullptr &&
                !implementation.takes_layouts)
              return Unimplemented("it takes row-major tensors");
            OpBinder binder(this, op, 0, inputs, outputs);
            PD_ASSIGN_OR_RETURN(step, device
                                          ? implementation.bind_on_device(
                                                &binder, plan_->device_.get())
                                          : implementation.bind(&binder));
            return absl::OkStatus();
          },
          &refusals));
  if (!bound) return NoneAccepted(refusals);
  return step;
}

void PlanBuilder::Link(Tensor* in, Tensor* out, size_t op_index) {
  const bool copies = tensors_.InfoOf(out).entry != nullptr ||
                      (tensors_.InfoOf(tensors_.Root(in)).entry != nullptr &&
                       WrittenLater(tensors_.Root(in), op_index));
  if (!copies) {
    tensors_.InfoOf(out).root = tensors_.Root(in);
    plan_->views_[out] = in;
    return;
  }
  StepInfo info = MoveInfo("copy", tensors_.InfoOf(out).name, *in, *out);
  info.on_device = tensors_.InfoOf(out).device;
  Step copy = [in, out](const RunContext&) {
    std::memcpy(out->raw(), in->raw(), out->bytes());
    return absl::OkStatus();
  };
  if (info.on_device) copy = residency_->CopyOnDevice(in, out);
  const int at = AddStep(std::move(copy), std::move(info));
  tensors_.Touch(in, at);
  tensors_.Touch(out, at);
}

bool PlanBuilder::IsPersistable(const std::string& name) const {
  const auto it = vars_.find(name);
  return it != vars_.end() && it->second->persistable;
}

bool PlanBuilder::WrittenLater(const Tensor* tensor, size_t op_index) const {
  const std::string* name = tensors_.PersistableName(tensor);
  if (name == nullptr) return false;
  const auto write = last_write_.find(*name);
  return write != last_write_.end() && write->second >= op_index;
}

void PlanBuilder::ShareBuffers() {
  if (options_.separate) return;
  for (const Sharing& sharing : sharings_) {
    Tensor* in = tensors_.Root(sharing.in);
    Tensor* out = tensors_.Root(sharing.out);
    Info& from = tensors_.InfoOf(in);
    Info& to = tensors_.InfoOf(out);
    if (in == out || from.kind != Kind::kArena || to.kind != Kind::kArena ||
        from.device != to.device || from.keep || from.last != sharing.step ||
        to.first != sharing.step || out->bytes() > in->bytes())
      continue;
    bool twice = false;  // the same bytes under another shape in this op
    for (Tensor* tensor : *sharing.touched)
      twice = twice || (tensor != sharing.in && tensors_.Root(tensor) == in);
    if (twice) continue;
    to.root = in;
    from.last = to.last;
    from.keep = to.keep;
  }
}

absl::Status PlanBuilder::PlaceBuffers() {
  plan_->stats_.persistable_bytes = scope_->bytes();
  PD_RETURN_IF_ERROR(PlaceBuffers(false));
  if (plan_->device_ == nullptr) return absl::OkStatus();
  PD_RETURN_IF_ERROR(CompleteDevice());
  PD_RETURN_IF_ERROR(PlaceBuffers(true));
  return plan_->device_->StageFeeds();
}

absl::Status PlanBuilder::PlaceBuffers(bool device) {
  std::vector<BufferRequest> requests;
  std::vector<PlannedBuffer> buffers;
  absl::flat_hash_map<const Tensor*, size_t> numbers;
  const int end = static_cast<int>(plan_->steps_.size());
  for (Tensor& tensor : plan_->tensors_) {
    Info& info = tensors_.InfoOf(&tensor);
    if (info.kind != Kind::kArena || info.device != device) continue;
    if (info.first >= 0) plan_->stats_.unplanned_bytes += tensor.bytes();
    if (info.root != &tensor || info.first < 0) continue;
    numbers[&tensor] = requests.size();
    requests.push_back(
        {device ? RoundedOnDevice(tensor.bytes()) : tensor.bytes(), info.first,
         info.keep ? end : info.last});
    buffers.push_back(
        {info.name, tensor.bytes(), info.first, requests.back().last});
  }
  KeepToTheEnd(ReusedShare(), end, &requests);
  const size_t total = PlanMemory(&requests);
  constexpr size_t kAlignment = 4096;
  constexpr size_t kTail = 256;  // whole-vector reads past the last buffer
  void* arena = nullptr;
  if (device) {
    plan_->stats_.device_bytes = total;
    PD_ASSIGN_OR_RETURN(arena, plan_->device_->AllocateArena(total, buffers));
  } else {
    plan_->stats_.arena_bytes = total;
    auto memory = ZeroedBytes(total + kTail, kAlignment);
    if (!memory.ok()) return ArenaError(memory.status(), buffers);
    plan_->arena_ = *std::move(memory);
    arena = plan_->arena_.get();
    PreferLargePages(arena, total);
    if (options_.poison) std::memset(arena, 0xff, total + kTail);
  }
  plan_->buffers_.insert(plan_->buffers_.end(), buffers.begin(), buffers.end());
  for (Tensor& tensor : plan_->tensors_) {
    Tensor* root = tensors_.Root(&tensor);
    const auto number = numbers.find(root);
    if (number != numbers.end())
      tensor.Attach(static_cast<char*>(arena) +
                    requests[number->second].offset);
    else if (tensors_.InfoOf(root).kind == Kind::kPersistable ||
             (tensors_.InfoOf(root).kind == Kind::kConstant && root != &tensor))
      tensor.Attach(root->raw());
  }
  return absl::OkStatus();
}

void PlanBuilder::CollectFeedAliases() {
  for (Plan::Feed& feed : plan_->feeds_) {
    Tensor* fed = feed.tensors.front();
    for (Tensor& tensor : plan_->tensors_)
      if (&tensor != fed && tensors_.Root(&tensor) == fed)
        feed.tensors.push_back(&tensor);
  }
}

}  // namespace pd

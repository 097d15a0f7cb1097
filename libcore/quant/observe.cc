// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/observe.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"
#include "libcore/train/plan_cache.h"

namespace pd {
namespace {

constexpr char kObserve[] = "observe";

struct Watch {
  const ObserveFn* whole = nullptr;
  StretchObserver* by_stretches = nullptr;
};

// A bind function is a plain pointer: the op says by a number who looks.
class Observers {
 public:
  static Observers& Get() {
    static auto* const observers = new Observers;
    return *observers;
  }
  int64_t Add(const Watch& watch) {
    const std::lock_guard<std::mutex> lock(mutex_);
    observers_[++last_] = watch;
    return last_;
  }
  void Remove(int64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    observers_.erase(number);
  }
  absl::StatusOr<Watch> Find(int64_t number) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = observers_.find(number);
    if (it == observers_.end())
      return FailedPrecondition("nobody observes any more");
    return it->second;
  }

 private:
  std::mutex mutex_;
  std::map<int64_t, Watch> observers_;
  int64_t last_ = 0;
};

absl::StatusOr<Step> BindObserve(BindContext* context) {
  PD_ASSIGN_OR_RETURN(
      const Watch watch,
      Observers::Get().Find(context->Attr<int64_t>("observer")));
  std::vector<const Tensor*> values;
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    values.push_back(context->Input("X", i));
  const auto sight = static_cast<size_t>(context->Attr<int64_t>("sight"));
  return Step([=](const RunContext&) { return (*watch.whole)(sight, values); });
}

absl::StatusOr<Step> BindChain(BindContext* context) {
  PD_ASSIGN_OR_RETURN(
      const Watch watch,
      Observers::Get().Find(context->Attr<int64_t>("observer")));
  return BindObserveChain(context, watch.by_stretches);
}

// Whether records lie one after the other, without padding.
bool LiesByRecords(const Tensor& tensor) {
  const LayoutPtr& layout = tensor.layout();
  if (layout == nullptr) return true;
  const int64_t all = layout->Elements();
  return all == tensor.size() && layout->strides[0] * tensor.dim(0) == all &&
         std::none_of(layout->blocks.begin(), layout->blocks.end(),
                      [](const auto& block) { return block.dim == 0; });
}

absl::StatusOr<Step> BindObserveAsItLies(BindContext* context) {
  if (!context->Attr<bool>("as_it_lies"))
    return Unimplemented("who looks wants rows");
  for (size_t i = 0; i < context->InputCount("X"); ++i)
    if (!LiesByRecords(*context->Input("X", i)))
      return Unimplemented("records do not lie one after the other");
  return BindObserve(context);
}

absl::Status AddObserveOps(OpRegistry* registry) {
  if (registry->Find(kObserve) != nullptr) return absl::OkStatus();
  OpDef op(kObserve);
  op.Inputs("X").Attr("observer", int64_t{0}).Attr("sight", int64_t{0});
  op.Attr("as_it_lies", false);
  op.Infer([](InferContext*) { return absl::OkStatus(); });
  op.NoGrad().Reference(BindObserve);
  op.AddImplementation(
      Implementation("as it lies", BindObserveAsItLies).TakesLayouts());
  PD_RETURN_IF_ERROR(registry->Add(std::move(op)));
  OpDef chain = ObserveChainDef();
  chain.Reference(BindChain).AddImplementation(
      Implementation("as it lies", BindChain).TakesLayouts());
  PD_RETURN_IF_ERROR(registry->Add(std::move(chain)));
  return registry->Add(ObserveChainEndDef());
}

// Puts an op behind the last writer of each sight.
absl::Status AddSights(const ObservedRun& run, int64_t number,
                       ProgramDesc* program) {
  const std::vector<Sight>& sights = run.sights;
  std::set<size_t> shown;
  if (run.by_stretches != nullptr) {
    std::map<std::string, size_t> of;
    for (size_t s = 0; s < sights.size(); ++s)
      if (sights[s].size() == 1) of[sights[s][0]] = s;
    shown = ChainSights(run.model, number, run.by_stretches, of, program);
  }
  BlockDesc& block = program->global();
  std::map<std::string, size_t> made;  // one more than the op's number
  for (const std::string& feed : run.model.names.feeds) made[feed] = 0;
  for (size_t i = 0; i < block.ops.size(); ++i)
    for (const auto& [slot, names] : block.ops[i].outputs)
      for (const std::string& name : names) made[name] = i + 1;
  std::vector<std::vector<OpDesc>> behind(block.ops.size() + 1);
  for (size_t s = 0; s < sights.size(); ++s) {
    if (shown.count(s) > 0) continue;
    size_t last = 0;
    for (const std::string& name : sights[s]) {
      const auto it = made.find(name);
      if (it == made.end())
        return NotFound("the model does not compute '%s'", name);
      last = std::max(last, it->second);
    }
    OpDesc op;
    op.type = kObserve;
    op.SetInput("X", sights[s]);
    op.attrs = {{"observer", number},
                {"sight", static_cast<int64_t>(s)},
                {"as_it_lies", run.as_they_lie}};
    behind[last].push_back(std::move(op));
  }
  std::vector<OpDesc> ops = std::move(behind[0]);
  for (size_t i = 0; i < block.ops.size(); ++i) {
    ops.push_back(std::move(block.ops[i]));
    for (OpDesc& op : behind[i + 1]) ops.push_back(std::move(op));
  }
  block.ops = std::move(ops);
  return absl::OkStatus();
}

// Whether records of this field fit the input; what is not known fits all.
bool Fits(const FeedSpec& feed, const BatchField& field) {
  if (feed.dtype != field.dtype || feed.shape.size() != field.shape.size())
    return false;
  for (size_t i = 1; i < feed.shape.size(); ++i)
    if (feed.shape[i] >= 0 && field.shape[i] >= 0 &&
        feed.shape[i] != field.shape[i])
      return false;
  return true;
}

// The fields as the inputs call them: an input that no field is named after
// takes the first one that fits and that no other input takes.
std::vector<BatchField> NamedAs(const std::vector<FeedSpec>& feeds,
                                std::vector<BatchField> fields) {
  std::set<std::string> inputs;
  for (const FeedSpec& feed : feeds) inputs.insert(feed.name);
  for (const FeedSpec& feed : feeds) {
    const auto named = [&](const BatchField& f) { return f.name == feed.name; };
    if (std::any_of(fields.begin(), fields.end(), named)) continue;
    for (BatchField& field : fields) {
      if (inputs.count(field.name) > 0 || !Fits(feed, field)) continue;
      field.name = feed.name;
      break;
    }
  }
  return fields;
}

}  // namespace

std::vector<FeedSpec> FeedsOf(const InferenceModel& model) {
  std::vector<FeedSpec> feeds;
  for (const std::string& name : model.names.feeds) {
    const VarDesc* var = model.program.global().FindVar(name);
    FeedSpec feed{name, DType::kFloat32, {}};
    if (var != nullptr) feed.dtype = var->dtype, feed.shape = var->shape;
    feeds.push_back(std::move(feed));
  }
  return feeds;
}

absl::StatusOr<std::unique_ptr<ObservedModel>> ObservedModel::Create(
    OpRegistry* registry, const ObservedRun& run) {
  PD_RETURN_IF_ERROR(AddObserveOps(registry));
  std::unique_ptr<ObservedModel> observed(new ObservedModel);
  observed->number_ =
      Observers::Get().Add({&observed->observe_, run.by_stretches});
  observed->program_ = run.model.program;
  observed->feeds_ = FeedsOf(run.model);
  observed->most_batches_ = run.most_batches;
  PD_RETURN_IF_ERROR(AddSights(run, observed->number_, &observed->program_));
  observed->session_ = std::make_unique<Session>(registry);
  for (const auto& [name, value] : run.model.params)
    PD_RETURN_IF_ERROR(observed->session_->scope().Set(name, value));
  return observed;
}

ObservedModel::~ObservedModel() { Observers::Get().Remove(number_); }

absl::StatusOr<int64_t> ObservedModel::Pass(Loader* loader,
                                            const ObserveFn& observe,
                                            const BatchProgress& progress) {
  observe_ = observe;
  PD_ASSIGN_OR_RETURN(
      PlanCache plans,
      PlanCache::Create(session_.get(), &program_, feeds_, {},
                        NamedAs(feeds_, loader->fields()), "calibration"));
  PD_RETURN_IF_ERROR(loader->StartEpoch(0));
  int64_t batches = 0, records = 0;
  while (most_batches_ == 0 || batches < most_batches_) {
    PD_ASSIGN_OR_RETURN(const Batch* batch, loader->Next());
    if (batch == nullptr) break;
    PD_ASSIGN_OR_RETURN(Plan * plan, plans.Feed(batch->fields));
    RunContext context;
    PD_RETURN_IF_ERROR(plan->Run(context));
    records += batch->size;
    ++batches;
    if (progress != nullptr && !progress(batches, records))
      return absl::CancelledError("stopped");
  }
  if (records == 0)
    return FailedPrecondition("the set holds no records; expected some");
  return records;
}

}  // namespace pd

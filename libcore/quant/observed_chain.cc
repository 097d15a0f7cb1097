// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/observed_chain.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/infer_context.h"
#include "libcore/quant/thresholds.h"

namespace pd {
namespace {

constexpr int64_t kNoSight = -1;

struct Chain {
  std::vector<size_t> ops;  // numbers, in order
  std::string x, bias, residual, out;
  std::string biased, sum;  // variables between; "" for none
  bool relu = false;
};

class ChainFinder {
 public:
  explicit ChainFinder(const InferenceModel& model)
      : model_(model), block_(model.program.global()) {
    for (size_t i = 0; i < block_.ops.size(); ++i) {
      for (const auto& [slot, names] : block_.ops[i].inputs)
        for (const std::string& name : names) readers_[name].push_back(i);
      for (const auto& [slot, names] : block_.ops[i].outputs)
        for (const std::string& name : names) ++writers_[name];
    }
  }

  std::vector<Chain> Find() {
    std::vector<Chain> chains;
    for (size_t i = 0; i < block_.ops.size(); ++i) {
      Chain chain;
      if (!Begins(i, &chain)) continue;
      while (Goes(&chain)) {
      }
      taken_.insert(chain.ops.begin(), chain.ops.end());
      chains.push_back(std::move(chain));
    }
    return chains;
  }

 private:
  // An activation that is made once: ops may read it later than they do.
  const VarDesc* Floats(const std::string& name) const {
    const VarDesc* var = block_.FindVar(name);
    const auto writers = writers_.find(name);
    const bool fits = writers != writers_.end() && writers->second == 1 &&
                      var != nullptr && var->dtype == DType::kFloat32 &&
                      var->kind == VarKind::kLodTensor &&
                      var->shape.size() >= 2 && model_.params.count(name) == 0;
    return fits ? var : nullptr;
  }

  // The sum of an activation and a bias along its second axis.
  bool Begins(size_t i, Chain* chain) const {
    const OpDesc& op = block_.ops[i];
    if (op.type != "elementwise_add") return false;
    const VarDesc* const x = Floats(op.In("X"));
    const auto bias = model_.params.find(op.In("Y"));
    if (x == nullptr || bias == model_.params.end()) return false;
    const auto axis = op.Attr<int32_t>("axis");
    const bool second = axis == 1 || (axis == -1 && x->shape.size() == 2);
    if (!second || x->shape[1] < 1 || bias->second.dtype != DType::kFloat32 ||
        bias->second.shape != Shape{x->shape[1]} || op.Out("Out") == op.In("X"))
      return false;
    chain->ops = {i};
    chain->x = op.In("X");
    chain->bias = op.In("Y");
    chain->out = chain->biased = op.Out("Out");
    return true;
  }

  // Takes the only reader of what the chain makes, if it is one of its kind.
  bool Goes(Chain* chain) const {
    const auto readers = readers_.find(chain->out);
    const auto& fetches = model_.names.fetches;
    if (chain->relu || readers == readers_.end() ||
        readers->second.size() != 1 || taken_.count(readers->second[0]) > 0 ||
        std::count(fetches.begin(), fetches.end(), chain->out) > 0)
      return false;
    const size_t i = readers->second[0];
    const OpDesc& op = block_.ops[i];
    const std::string out =
        op.type == "relu" || op.type == "elementwise_add" ? op.Out("Out") : "";
    if (out.empty() || out == chain->out || i < chain->ops.back()) return false;
    if (op.type == "elementwise_add") {
      const std::string other =
          op.In("X") == chain->out ? op.In("Y") : op.In("X");
      const VarDesc *const mine = Floats(chain->out), *const y = Floats(other);
      if (!chain->residual.empty() || mine == nullptr || y == nullptr ||
          mine->shape != y->shape || other == chain->x)
        return false;
      chain->residual = other;
      chain->sum = out;
    }
    chain->relu = op.type == "relu";
    chain->ops.push_back(i);
    chain->out = out;
    return true;
  }

  const InferenceModel& model_;
  const BlockDesc& block_;
  std::map<std::string, std::vector<size_t>> readers_;
  std::map<std::string, int> writers_;
  std::set<size_t> taken_;
};

// Takes the sights that it shows out of `of`.
OpDesc OpOf(const Chain& chain, int64_t observer, StretchObserver* observes,
            std::map<std::string, size_t>* of) {
  const auto take = [of](const std::string& name) {
    const auto it = of->find(name);
    if (name.empty() || it == of->end()) return kNoSight;
    const auto sight = static_cast<int64_t>(it->second);
    of->erase(it);
    return sight;
  };
  OpDesc op;
  op.type = kObserveChain;
  op.SetInput("X", {chain.x});
  op.SetInput("Bias", {chain.bias});
  if (!chain.residual.empty()) op.SetInput("Residual", {chain.residual});
  op.SetOutput("Out", {chain.out});
  const int64_t x = take(chain.x), biased = take(chain.biased);
  const int64_t sum = take(chain.sum);
  const int64_t before = chain.residual.empty() ? biased : sum;
  // ReLU's values follow from those before it.
  const int64_t relu =
      chain.relu && before != kNoSight ? take(chain.out) : kNoSight;
  if (relu != kNoSight)
    observes->IsReluOf(static_cast<size_t>(relu), static_cast<size_t>(before));
  op.attrs = {{"observer", observer},
              {"sights", std::vector<int64_t>{x, biased, sum}},
              {"relu", chain.relu}};
  return op;
}

// How a tensor lies: runs of `lanes` channels, `inner` of them, and that for
// each of `blocks` parts of the channels, again and again.
struct Channels {
  int64_t blocks = 1, inner = 1, lanes = 1;
};

absl::StatusOr<Channels> ChannelsOf(const Tensor& x) {
  Channels channels;
  const int64_t count = x.dim(1);
  for (size_t i = 2; i < x.rank(); ++i) channels.inner *= x.dim(i);
  channels.blocks = count;
  const LayoutPtr& layout = x.layout();
  if (layout == nullptr) return channels;
  const bool whole = layout->Elements() == x.size() &&
                     layout->strides[0] * x.dim(0) == x.size();
  if (whole && layout->blocks.empty() && layout->strides[1] == 1)
    return Channels{1, channels.inner, count};
  if (whole && layout->blocks.size() == 1 && layout->blocks[0].dim == 1) {
    const int64_t lanes = layout->blocks[0].size;
    if (layout->strides[1] == channels.inner * lanes)
      return Channels{count / lanes, channels.inner, lanes};
  }
  return Unimplemented("channels lie otherwise");
}

// to[i] = x[i] + the bias of its channel, for elements [begin, end).
void AddBias(const Channels& channels, const float* bias, const float* x,
             int64_t begin, int64_t end, float* to) {
  const int64_t run = channels.inner * channels.lanes;
  for (int64_t at = begin; at < end;) {
    const int64_t in_run = at % run;
    const float* const b = bias + (at / run) % channels.blocks * channels.lanes;
    const int64_t stop = std::min(end, at - in_run + run);
    if (channels.lanes == 1) {
      const float same = *b;
#pragma omp simd
      for (int64_t i = at; i < stop; ++i) to[i - begin] = x[i] + same;
      at = stop;
      continue;
    }
    for (int64_t lane = in_run % channels.lanes; at < stop; lane = 0) {
      const int64_t some = std::min(channels.lanes - lane, stop - at);
#pragma omp simd
      for (int64_t i = 0; i < some; ++i)
        to[at - begin + i] = x[at + i] + b[lane + i];
      at += some;
    }
  }
}

struct ChainStep {
  StretchObserver* observer;
  Tensor *x, *bias, *residual, *out;
  Channels channels;
  std::vector<int64_t> sights;
  bool relu;

  absl::Status operator()(const RunContext&) const {
    const int64_t n = x->size();
    for (const int64_t sight : sights)
      if (sight != kNoSight) observer->Begin(static_cast<size_t>(sight), n);
    ForStretches(n, [this](int part, int64_t begin, int64_t end) {
      Make(part, begin, end);
    });
    for (const int64_t sight : sights)
      if (sight != kNoSight)
        PD_RETURN_IF_ERROR(observer->End(static_cast<size_t>(sight)));
    return absl::OkStatus();
  }

  void Make(int part, int64_t begin, int64_t end) const {
    alignas(64) float values[kStretch];
    const int64_t n = end - begin;
    const auto show = [&](size_t i, const float* v) {
      if (sights[i] != kNoSight)
        observer->See(static_cast<size_t>(sights[i]), part, v, n);
    };
    show(0, x->data<float>() + begin);
    AddBias(channels, bias->data<float>(), x->data<float>(), begin, end,
            values);
    show(1, values);
    if (residual != nullptr) {
      const float* const y = residual->data<float>() + begin;
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) values[i] += y[i];
      show(2, values);
    }
    float* const to = out->data<float>() + begin;
    if (relu) {
#pragma omp simd
      for (int64_t i = 0; i < n; ++i) to[i] = std::max(values[i], 0.0f);
    } else {
      std::copy(values, values + n, to);
    }
  }
};

}  // namespace

std::set<size_t> ChainSights(const InferenceModel& model, int64_t observer,
                             StretchObserver* observes,
                             std::map<std::string, size_t> of,
                             ProgramDesc* program) {
  if (program->blocks.size() != 1) return {};
  std::set<size_t> shown;
  for (const auto& [name, sight] : of) shown.insert(sight);
  const std::vector<Chain> chains = ChainFinder(model).Find();
  // The last op of a chain becomes all of it.
  std::map<size_t, const Chain*> ends;
  std::set<size_t> gone;
  for (const Chain& chain : chains) {
    ends[chain.ops.back()] = &chain;
    gone.insert(chain.ops.begin(), chain.ops.end());
  }
  std::vector<OpDesc> ops;
  std::vector<OpDesc>& all = program->global().ops;
  for (size_t i = 0; i < all.size(); ++i) {
    const auto end = ends.find(i);
    if (end != ends.end()) {
      ops.push_back(OpOf(*end->second, observer, observes, &of));
      ops.emplace_back();
      ops.back().type = kObserveChainEnd;
      ops.back().SetInput("X", {end->second->out});
    } else if (gone.count(i) == 0) {
      ops.push_back(std::move(all[i]));
    }
  }
  all = std::move(ops);
  for (const auto& [name, sight] : of) shown.erase(sight);
  return shown;
}

OpDef ObserveChainDef() {
  OpDef op(kObserveChain);
  op.Input("X").Input("Bias").OptionalInput("Residual").Output("Out");
  op.Attr("observer", int64_t{0}).Attr("sights", std::vector<int64_t>{});
  op.Attr("relu", false);
  op.Infer([](InferContext* context) {
    context->Share("X", "Out");
    return absl::OkStatus();
  });
  op.NoGrad();
  return op;
}

OpDef ObserveChainEndDef() {
  const auto bind = [](BindContext* context) -> absl::StatusOr<Step> {
    context->NoBuffer(context->Input("X"));
    return Step();
  };
  OpDef op(kObserveChainEnd);
  op.Input("X").Infer([](InferContext*) { return absl::OkStatus(); });
  op.NoGrad().Reference(bind).AddImplementation(
      Implementation("as it lies", bind).TakesLayouts());
  return op;
}

absl::StatusOr<Step> BindObserveChain(BindContext* context,
                                      StretchObserver* observer) {
  ChainStep step;
  step.observer = observer;
  step.x = context->Input("X");
  step.bias = context->Input("Bias");
  step.residual = context->Input("Residual");
  step.sights = context->Attr<std::vector<int64_t>>("sights");
  step.relu = context->Attr<bool>("relu");
  PD_ASSIGN_OR_RETURN(step.channels, ChannelsOf(*step.x));
  const LayoutPtr layout = step.x->layout();
  if (step.residual != nullptr) {
    if (step.residual->shape() != step.x->shape())
      return Unimplemented("a sum of other shapes");
    PD_ASSIGN_OR_RETURN(step.residual, context->In(step.residual, layout));
    context->MayShare(step.residual, context->Output("Out"));
  }
  PD_ASSIGN_OR_RETURN(step.bias, context->In(step.bias, nullptr));
  PD_ASSIGN_OR_RETURN(step.out, context->Out(context->Output("Out"), layout));
  context->MayShare(step.x, step.out);
  return Step(std::move(step));
}

}  // namespace pd

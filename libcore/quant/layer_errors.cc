// SPDX-License-Identifier: Apache-2.0
#include "libcore/quant/layer_errors.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/parallel.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// A name of the quantized model, beside those of the other.
std::string Other(const std::string& name) {
  return absl::StrCat("quantized/", name);
}

// Both models in one program. The quantized ops stand behind the float ops
// whose results they make too, so that no result has to wait for its twin.
class Merger {
 public:
  Merger(const InferenceModel& model, const InferenceModel& quantized)
      : merged_(model), quantized_(quantized) {
    feeds_.insert(model.names.feeds.begin(), model.names.feeds.end());
  }

  InferenceModel Run() {
    BlockDesc& block = merged_.program.global();
    const BlockDesc& other = quantized_.program.global();
    for (VarDesc var : other.vars) {
      if (feeds_.count(var.name) > 0) continue;
      var.name = Other(var.name);
      block.vars.push_back(std::move(var));
    }
    for (const auto& [name, value] : quantized_.params)
      merged_.params[Other(name)] = value;
    std::map<std::string, size_t> makers;
    for (size_t i = 0; i < other.ops.size(); ++i)
      for (const auto& [slot, names] : other.ops[i].outputs)
        for (const std::string& name : names) makers[name] = i;
    std::vector<OpDesc> ops;
    for (OpDesc& op : block.ops) {
      size_t last = next_;
      for (const auto& [slot, names] : op.outputs)
        for (const std::string& name : names)
          if (makers.count(name) > 0) last = std::max(last, makers[name] + 1);
      ops.push_back(std::move(op));
      Take(last, &ops);
    }
    Take(other.ops.size(), &ops);
    block.ops = std::move(ops);
    return std::move(merged_);
  }

 private:
  void Take(size_t end, std::vector<OpDesc>* ops) {
    for (; next_ < end; ++next_) {
      OpDesc op = quantized_.program.global().ops[next_];
      for (SlotList* slots : {&op.inputs, &op.outputs})
        for (auto& [slot, names] : *slots)
          for (std::string& name : names)
            if (name != kEmptyVar && feeds_.count(name) == 0)
              name = Other(name);
      ops->push_back(std::move(op));
    }
  }

  InferenceModel merged_;
  const InferenceModel& quantized_;
  std::set<std::string> feeds_;
  size_t next_ = 0;
};

void AddErrors(const Tensor& x, const Tensor& q, ValueError* error) {
  constexpr int64_t kGrain = 1 << 15;
  const float* a = x.data<float>();
  const float* b = q.data<float>();
  const int64_t n = x.size();
  // Threads add up their parts, in their order.
  std::vector<ValueError> parts(static_cast<size_t>(Threads()));
  const auto add = [&](int64_t begin, int64_t end, ValueError* sums) {
    double signal = 0, noise = 0, other = 0, product = 0;
#pragma omp simd reduction(+ : signal, noise, other, product)
    for (int64_t i = begin; i < end; ++i) {
      const double u = a[i], v = b[i];
      signal += u * u;
      noise += (u - v) * (u - v);
      other += v * v;
      product += u * v;
    }
    sums->signal = signal;
    sums->noise = noise;
    sums->other = other;
    sums->product = product;
  };
  if (n < kGrain) {
    add(0, n, &parts[0]);
  } else {
    ParallelParts([&](int part, int of) {
      add(n * part / of, n * (part + 1) / of,
          &parts[static_cast<size_t>(part)]);
    });
  }
  for (const ValueError& part : parts) {
    error->signal += part.signal;
    error->noise += part.noise;
    error->other += part.other;
    error->product += part.product;
  }
}

// The quantization of one op of the plan.
Quantization Alone(const Quantization& all, size_t op) {
  Quantization one = all;
  one.plan.ops = {all.plan.ops[op]};
  return one;
}

}  // namespace

double ValueError::Sqnr() const {
  if (noise == 0) return std::numeric_limits<double>::infinity();
  return 10 * std::log10(std::max(signal, 1e-300) / noise);
}

double ValueError::Cosine() const {
  if (signal == 0 && other == 0) return 1;
  if (signal == 0 || other == 0) return 0;
  return product / std::sqrt(signal) / std::sqrt(other);
}

absl::StatusOr<std::vector<ValueError>> CompareModels(
    OpRegistry* registry, const InferenceModel& model,
    const InferenceModel& quantized, const std::vector<std::string>& variables,
    Loader* loader, int64_t most_batches, const BatchProgress& progress) {
  ObservedRun run;
  run.model = Merger(model, quantized).Run();
  run.most_batches = most_batches;
  std::vector<ValueError> errors(variables.size());
  for (size_t i = 0; i < variables.size(); ++i) {
    errors[i].variable = variables[i];
    run.sights.push_back({variables[i], Other(variables[i])});
  }
  PD_ASSIGN_OR_RETURN(const auto observed,
                      ObservedModel::Create(registry, run));
  const auto see = [&](size_t i, const std::vector<const Tensor*>& values) {
    AddErrors(*values[0], *values[1], &errors[i]);
    return absl::OkStatus();
  };
  PD_RETURN_IF_ERROR(observed->Pass(loader, see, progress).status());
  return errors;
}

absl::StatusOr<std::vector<Sensitivity>> MeasureSensitivity(
    OpRegistry* registry, const InferenceModel& model,
    const Quantization& quantization, Loader* loader, int64_t most_batches,
    const BatchProgress& progress) {
  std::vector<Sensitivity> sensitivities;
  for (size_t i = 0; i < quantization.plan.ops.size(); ++i) {
    const InferenceModel one =
        WithQuantizeLinear(model, Alone(quantization, i));
    PD_ASSIGN_OR_RETURN(const auto errors,
                        CompareModels(registry, model, one, model.names.fetches,
                                      loader, most_batches, nullptr));
    ValueError all;
    for (const ValueError& error : errors) {
      all.signal += error.signal;
      all.noise += error.noise;
    }
    const QuantOp& op = quantization.plan.ops[i];
    sensitivities.push_back(
        {model.program.global().ops[op.op].type, op.output, all.Sqnr()});
    const auto done = static_cast<int64_t>(i + 1);
    if (progress != nullptr && !progress(done, done))
      return absl::CancelledError("stopped");
  }
  std::stable_sort(
      sensitivities.begin(), sensitivities.end(),
      [](const auto& a, const auto& b) { return a.sqnr < b.sqnr; });
  return sensitivities;
}

}  // namespace pd

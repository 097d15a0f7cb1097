// SPDX-License-Identifier: Apache-2.0
// Our side of `scripts/bench --ops` (bench_ops.py, which speaks to this process
// in lines): builds a program of one operator, with its gradient by
// append_backward where asked, and runs it through Session and Plan as the
// tools do, on one thread.
//
//   case TYPE forward|train   begins a case
//   in SLOT VAR...            out SLOT VAR...          grad VAR...
//   attr NAME WORD...         data VAR DTYPE SHAPE feed|weight FILE
//   end       answers "ready", for each output and gradient a line "sums NAME
//             SUM WEIGHTED ABSOLUTE", for each step "step TYPE IMPLEMENTATION",
//             then "done"
//   run N     answers "time NANOSECONDS": of N runs, as the thread computes
//
// A case that cannot be is answered by "error WHY".
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/error.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/base/thread_count.h"
#include "libcore/base/zeroed.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/make_registry.h"
#include "libcore/nn/layers/op_attributes.h"
#include "libcore/program/block_builder.h"

namespace pd {
namespace {

using Words = std::vector<std::string>;

int64_t Nanoseconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return now.tv_sec * int64_t{1000000000} + now.tv_nsec;
}

// The numbers that PyTorch's side works out too: a cotangent, and the weights
// of a sum that notices a wrong order.
float Pattern(int64_t i) { return static_cast<float>(i * 7 % 13 - 6) / 8; }

template <typename T>
void PrintSums(const char* name, const Tensor& tensor) {
  double sum = 0, weighted = 0, absolute = 0;
  for (int64_t i = 0; i < tensor.size(); ++i) {
    const double value = static_cast<double>(tensor.data<T>()[i]);
    sum += value;
    weighted += value * static_cast<double>(Pattern(i));
    absolute += std::fabs(value);
  }
  std::printf("sums %s %.17g %.17g %.17g\n", name, sum, weighted, absolute);
}

void PrintSums(const char* name, const Tensor& tensor) {
  switch (tensor.dtype()) {
    case DType::kFloat32:
      return PrintSums<float>(name, tensor);
    case DType::kFloat64:
      return PrintSums<double>(name, tensor);
    case DType::kInt64:
      return PrintSums<int64_t>(name, tensor);
    case DType::kInt32:
      return PrintSums<int32_t>(name, tensor);
    case DType::kBool:
      return PrintSums<bool>(name, tensor);
    default:
      std::printf("sums %s - - -\n", name);
  }
}

// One operator as the lines describe it.
class OpCase {
 public:
  OpCase(const OpRegistry* registry, const std::string& type, bool train)
      : registry_(registry), train_(train), session_(registry) {
    op_.type = type;
    program_.blocks.resize(1);
  }

  absl::Status Add(const Words& line) {
    const std::string& what = line[0];
    const Words rest(line.begin() + 2, line.end());
    if (what == "in") {
      op_.SetInput(line[1], rest);
    } else if (what == "out") {
      op_.SetOutput(line[1], rest);
      fetches_.insert(fetches_.end(), rest.begin(), rest.end());
    } else if (what == "attr") {
      return AddAttribute(line[1], rest);
    } else if (what == "grad") {
      wrt_.assign(line.begin() + 1, line.end());
    } else if (what == "data" && line.size() == 6) {
      return AddData(line);
    } else {
      return InvalidArgument("cannot read '%s'", what);
    }
    return absl::OkStatus();
  }

  absl::Status Compile() {
    PD_RETURN_IF_ERROR(NameOutputs());
    BlockBuilder builder(registry_, &program_);
    PD_RETURN_IF_ERROR(builder.Append(op_));
    if (train_) PD_RETURN_IF_ERROR(Differentiate());
    PlanOptions options;
    options.frozen = !train_;
    session_.set_plan_options(options);
    std::vector<FeedSpec> specs;
    for (const auto& [name, array] : feeds_)
      specs.push_back({name, array.dtype, array.shape});
    PD_ASSIGN_OR_RETURN(plan_, session_.Compile(program_, specs, fetches_));
    size_t i = 0;
    for (const auto& [name, array] : feeds_)
      plan_->SetFeed(i++, array.bytes.get());
    return plan_->Run({});
  }

  absl::Status Run(int64_t count) {
    for (int64_t i = 0; i < count; ++i) PD_RETURN_IF_ERROR(plan_->Run({}));
    return absl::OkStatus();
  }

  void Describe() const {
    for (size_t i = 0; i < fetches_.size(); ++i)
      PrintSums(fetches_[i].c_str(), plan_->fetch(i));
    for (const StepInfo& step : plan_->steps())
      std::printf("step %s %s\n", step.op_type.c_str(),
                  step.implementation.c_str());
  }

 private:
  absl::Status AddAttribute(const std::string& name, const Words& words) {
    PD_ASSIGN_OR_RETURN(const OpDef* def, registry_->Get(op_.type));
    for (const AttrDef& attr : def->attrs()) {
      if (attr.name != name) continue;
      PD_ASSIGN_OR_RETURN(op_.attrs[name], ReadAttribute(attr, words));
      return absl::OkStatus();
    }
    return InvalidArgument("op '%s' has no attribute '%s'", op_.type, name);
  }

  absl::Status AddData(const Words& line) {
    Array array;
    const auto dtype = DTypeFromName(line[2]);
    if (!dtype) return InvalidArgument("no dtype '%s'", line[2]);
    array.dtype = *dtype;
    if (line[3] != "-")
      for (const auto extent : absl::StrSplit(line[3], 'x'))
        if (!absl::SimpleAtoi(extent, &array.shape.emplace_back()))
          return InvalidArgument("'%s' is no shape", line[3]);
    PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(line[5]));
    if (file.size != array.size_bytes())
      return DataLoss("'%s' has %d bytes; the shape needs %d", line[5],
                      file.size, array.size_bytes());
    // PyTorch's data lie in large pages, which those of a file are not.
    PD_ASSIGN_OR_RETURN(const auto bytes, ZeroedBytes(file.size, 4096));
    PreferLargePages(bytes.get(), file.size);
    std::memcpy(bytes.get(), file.data.get(), file.size);
    array.bytes = std::shared_ptr<const std::byte>(
        bytes, static_cast<const std::byte*>(bytes.get()));
    VarDesc var;
    var.name = line[1];
    var.dtype = array.dtype;
    var.shape = array.shape;
    if (line[4] == "weight") {
      var.persistable = var.is_parameter = true;
      PD_RETURN_IF_ERROR(session_.scope()
                             .GetOrCreate(var.name, var.dtype, var.shape)
                             .status());
      PD_RETURN_IF_ERROR(session_.scope().Set(var.name, array));
    } else {
      feeds_.emplace_back(var.name, std::move(array));
    }
    program_.global().vars.push_back(std::move(var));
    return absl::OkStatus();
  }

  // Every output that a program of PaddlePaddle's would have gets a name.
  absl::Status NameOutputs() {
    PD_ASSIGN_OR_RETURN(const OpDef* def, registry_->Get(op_.type));
    for (const SlotDef& slot : def->outputs())
      if (op_.Output(slot.name).empty() &&
          (!slot.optional || slot.intermediate))
        op_.SetOutput(slot.name, {"made_" + slot.name});
    return absl::OkStatus();
  }

  absl::Status Differentiate() {
    BackwardOptions options;
    options.wrt = wrt_;
    options.parameters = false;
    for (const std::string& name : fetches_) {
      const VarDesc* var = program_.FindVar(0, name);
      if (var == nullptr || var->dtype != DType::kFloat32) continue;
      const std::string cotangent = "cotangent_of_" + name;
      options.targets[name] = cotangent;
      std::byte* bytes = nullptr;
      PD_ASSIGN_OR_RETURN(Array array,
                          NewArray(var->dtype, var->shape, &bytes));
      for (int64_t i = 0; i < array.size(); ++i)
        reinterpret_cast<float*>(bytes)[i] = Pattern(i);
      VarDesc given = *var;
      given.name = cotangent;
      feeds_.emplace_back(cotangent, std::move(array));
      program_.global().vars.push_back(std::move(given));
    }
    PD_ASSIGN_OR_RETURN(const auto gradients,
                        AppendBackward(*registry_, options, &program_));
    for (const std::string& name : wrt_) {
      const auto it = gradients.find(name);
      if (it == gradients.end())
        return InvalidArgument("there is no gradient of '%s'", name);
      fetches_.push_back(it->second);
    }
    return absl::OkStatus();
  }

  const OpRegistry* registry_;
  const bool train_;
  Session session_;
  OpDesc op_;
  ProgramDesc program_;
  std::vector<std::pair<std::string, Array>> feeds_;
  Words fetches_, wrt_;
  std::unique_ptr<Plan> plan_;
};

class Server {
 public:
  explicit Server(const OpRegistry* registry) : registry_(registry) {}

  absl::Status Answer(const Words& line) {
    if (line[0] == "case" && line.size() == 3) {
      case_ = std::make_unique<OpCase>(registry_, line[1], line[2] == "train");
      return absl::OkStatus();
    }
    if (case_ == nullptr) return InvalidArgument("no case has begun");
    if (line[0] == "end") {
      PD_RETURN_IF_ERROR(case_->Compile());
      std::puts("ready");
      case_->Describe();
      std::puts("done");
      return absl::OkStatus();
    }
    int64_t count = 0;
    if (line[0] == "run" && absl::SimpleAtoi(line[1], &count)) {
      const int64_t begin = Nanoseconds();
      PD_RETURN_IF_ERROR(case_->Run(count));
      std::printf("time %lld\n", static_cast<long long>(Nanoseconds() - begin));
      return absl::OkStatus();
    }
    return case_->Add(line);
  }

  // A case is dropped by its first error; what follows of it is not answered.
  void Talk() {
    bool failed = false;
    for (std::string text; std::getline(std::cin, text);) {
      const Words line = absl::StrSplit(text, ' ', absl::SkipEmpty());
      if (line.size() < 2 && text != "end") continue;
      if (line[0] == "case") failed = false;
      if (failed) continue;
      if (const absl::Status status = Answer(line); !status.ok()) {
        failed = true;
        std::printf("error %s\n", std::string(status.message()).c_str());
      }
      std::fflush(stdout);
    }
  }

 private:
  const OpRegistry* registry_;
  std::unique_ptr<OpCase> case_;
};

}  // namespace
}  // namespace pd

int main() {
  const pd::ThreadCount one(1);
  auto registry = pd::MakeRegistry();
  if (!registry.ok()) {
    std::printf("error %s\n", std::string(registry.status().message()).c_str());
    return 1;
  }
  pd::Server(registry->get()).Talk();
  return 0;
}

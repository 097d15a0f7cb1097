// SPDX-License-Identifier: Apache-2.0
// A row is the gradient for a cotangent that is 1 at one element of the output,
// or of every record's output, and 0 elsewhere. One plan runs for all rows of
// an output; of a training program, only what the gradients need.
#include "cmd/derivative_matrix.h"

#include <cstddef>
#include <cstring>
#include <map>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cmd/common/exit_status.h"
#include "libcore/autodiff/backward.h"
#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/program/prune.h"
#include "libcore/tensor/tensor.h"

namespace pd {
namespace {

std::string TypeAndShapeOf(const Array& array) {
  return absl::StrCat(Name(array.dtype), ToString(array.shape));
}

class MatrixBuilder {
 public:
  explicit MatrixBuilder(const MatrixInput& input) : input_(input) {}

  absl::StatusOr<Array> Jacobian(const std::string& output) {
    PD_RETURN_IF_ERROR(Begin(output));
    PD_RETURN_IF_ERROR(MakeMatrix(output_.size() / records_));
    PD_RETURN_IF_ERROR(FillRows(input_.program, output, output_, 0));
    return std::move(matrix_);
  }

  absl::StatusOr<Array> Hessian(const std::string& output) {
    PD_RETURN_IF_ERROR(Begin(output));
    if (output_.size() != records_)
      return UsageError(InvalidArgument(
          "'%s' is %s; a Hessian is of an output of one element%s", output,
          TypeAndShapeOf(output_), input_.batched ? " for each record" : ""));
    PD_RETURN_IF_ERROR(MakeMatrix(columns_));
    ProgramDesc once = input_.program;
    BackwardOptions backward = Backward(output, "");
    PD_ASSIGN_OR_RETURN(const auto gradients,
                        AppendBackward(input_.registry, backward, &once));
    for (size_t i = 0; i < input_.wrt.size(); ++i) {
      const auto gradient = gradients.find(input_.wrt[i]);
      if (gradient == gradients.end()) continue;  // its rows are zeros
      PD_RETURN_IF_ERROR(
          FillRows(once, gradient->second, values_[i], offsets_[i]));
    }
    return std::move(matrix_);
  }

 private:
  BackwardOptions Backward(const std::string& target,
                           const std::string& cotangent) const {
    BackwardOptions options;
    options.targets[target] = cotangent;
    options.wrt = input_.wrt;
    options.parameters = false;
    return options;
  }

  // Values of the output and of what it is differentiated by, and whether they
  // fit each other.
  absl::Status Begin(const std::string& output) {
    PD_ASSIGN_OR_RETURN(output_, ValueOf(output));
    if (!IsFloating(output_.dtype))
      return UsageError(InvalidArgument(
          "'%s' is %s; matrices are of real floating-point numbers", output,
          TypeAndShapeOf(output_)));
    if (input_.batched) PD_RETURN_IF_ERROR(CountRecords(output));
    for (const std::string& name : input_.wrt) {
      PD_ASSIGN_OR_RETURN(Array value, ValueOf(name));
      if (value.dtype != output_.dtype)
        return UsageError(InvalidArgument(
            "'%s' is %s and '%s' is %s; expected one dtype in a matrix", output,
            TypeAndShapeOf(output_), name, TypeAndShapeOf(value)));
      if (input_.batched && (value.shape.empty() || value.shape[0] != records_))
        return UsageError(InvalidArgument(
            "'%s' is %s and '%s' is %s; expected one number of records", output,
            TypeAndShapeOf(output_), name, TypeAndShapeOf(value)));
      offsets_.push_back(columns_);
      columns_ += value.size() / records_;
      values_.push_back(std::move(value));
    }
    return absl::OkStatus();
  }

  absl::Status CountRecords(const std::string& output) {
    if (output_.shape.empty() || output_.shape[0] < 1)
      return UsageError(
          InvalidArgument("'%s' is %s; expected records along its first axis",
                          output, TypeAndShapeOf(output_)));
    records_ = output_.shape[0];
    return absl::OkStatus();
  }

  absl::StatusOr<Array> ValueOf(const std::string& name) const {
    const auto feed = input_.feeds.find(name);
    if (feed != input_.feeds.end()) return feed->second;
    const VarDesc* var = input_.program.global().FindVar(name);
    if (var != nullptr && var->persistable)
      return input_.session->scope().Get(name);
    PD_ASSIGN_OR_RETURN(const ProgramDesc needed,
                        Needed(input_.program, {}, {name}));
    PD_ASSIGN_OR_RETURN(const NamedArrays values,
                        input_.session->Run(needed, input_.feeds, {name}));
    return values.at(name);
  }

  // The part of a program that makes `names`, given the feeds and `fed`.
  absl::StatusOr<ProgramDesc> Needed(
      const ProgramDesc& program, std::vector<std::string> fed,
      const std::vector<std::string>& names) const {
    for (const auto& [name, array] : input_.feeds)
      if (program.global().FindVar(name) != nullptr) fed.push_back(name);
    return Prune(program, fed, names);
  }

  absl::Status MakeMatrix(int64_t rows) {
    Shape shape = {rows, columns_};
    if (input_.batched) shape.insert(shape.begin(), records_);
    rows_ = rows;
    auto made = NewArray(output_.dtype, shape, &bytes_);
    if (!made.ok())
      return UsageError(Annotate(
          made.status(), absl::StrCat("a matrix of shape ", ToString(shape))));
    matrix_ = *std::move(made);
    if (matrix_.size() > 0) std::memset(bytes_, 0, matrix_.size_bytes());
    return absl::OkStatus();
  }

  // The rows from `first` on: the gradients of the elements of `target`, a
  // variable of `program` with the dtype and shape of `like`.
  absl::Status FillRows(const ProgramDesc& program, const std::string& target,
                        const Array& like, int64_t first) {
    ProgramDesc twice = program;
    VarDesc cotangent;
    cotangent.name = absl::StrCat(target, "@COTANGENT");
    while (twice.global().FindVar(cotangent.name) != nullptr)
      absl::StrAppend(&cotangent.name, "@");
    cotangent.dtype = like.dtype;
    cotangent.shape = like.shape;
    cotangent.stop_gradient = true;
    twice.global().vars.push_back(cotangent);
    PD_ASSIGN_OR_RETURN(
        const auto gradients,
        AppendBackward(input_.registry, Backward(target, cotangent.name),
                       &twice));
    if (gradients.empty()) return absl::OkStatus();  // zeros
    std::vector<size_t> by;                          // of input_.wrt
    std::vector<std::string> fetches;
    for (size_t i = 0; i < input_.wrt.size(); ++i) {
      const auto gradient = gradients.find(input_.wrt[i]);
      if (gradient == gradients.end()) continue;
      by.push_back(i);
      fetches.push_back(gradient->second);
    }
    PD_ASSIGN_OR_RETURN(const ProgramDesc needed,
                        Needed(twice, {cotangent.name}, fetches));
    std::byte* one_hot = nullptr;
    PD_ASSIGN_OR_RETURN(const Array fed,
                        NewArray(like.dtype, like.shape, &one_hot));
    PD_ASSIGN_OR_RETURN(const std::unique_ptr<Plan> plan,
                        Compile(needed, cotangent.name, fed, fetches));
    RunContext context;
    context.seed = input_.session->seed();
    for (int64_t row = 0; row < like.size() / records_; ++row) {
      PD_RETURN_IF_ERROR(SetRow(row, fed, one_hot));
      PD_RETURN_IF_ERROR(plan->Run(context));
      for (size_t k = 0; k < by.size(); ++k)
        PD_RETURN_IF_ERROR(TakeRow(plan->fetch(k), by[k], first + row));
    }
    return absl::OkStatus();
  }

  // Feeds keep their bytes while the plan runs: the cotangent's change.
  absl::StatusOr<std::unique_ptr<Plan>> Compile(
      const ProgramDesc& program, const std::string& cotangent,
      const Array& fed, const std::vector<std::string>& fetches) const {
    std::vector<FeedSpec> specs;
    std::vector<const Array*> arrays;
    for (const auto& [name, array] : input_.feeds) {
      const VarDesc* var = input_.program.FindVar(0, name);
      if (var != nullptr && var->persistable) {
        PD_RETURN_IF_ERROR(input_.session->scope().Set(name, array));
        continue;
      }
      specs.push_back({name, array.dtype, array.shape, array.lod});
      arrays.push_back(&array);
    }
    specs.push_back({cotangent, fed.dtype, fed.shape, {}});
    arrays.push_back(&fed);
    PD_ASSIGN_OR_RETURN(std::unique_ptr<Plan> plan,
                        input_.session->Compile(program, specs, fetches));
    for (size_t i = 0; i < arrays.size(); ++i)
      plan->SetFeed(i, arrays[i]->bytes.get());
    return plan;
  }

  absl::Status SetRow(int64_t row, const Array& fed, std::byte* bytes) const {
    const int64_t rows = fed.size() / records_;
    return DispatchTypes<float, double, Float16, BFloat16>(
        fed.dtype, [&](auto tag) {
          using T = typename decltype(tag)::type;
          T* values = reinterpret_cast<T*>(bytes);
          for (int64_t i = 0; i < fed.size(); ++i)
            values[i] = T(i % rows == row ? 1.0f : 0.0f);
          return absl::OkStatus();
        });
  }

  // The gradient by variable `by` into its columns of one row.
  absl::Status TakeRow(const Tensor& gradient, size_t by, int64_t row) {
    const Array taken = ToArray(gradient);
    const Array& value = values_[by];
    if (taken.dtype != value.dtype || taken.size() != value.size())
      return Unimplemented("the gradient of '%s' is %s; expected %s",
                           input_.wrt[by], TypeAndShapeOf(taken),
                           TypeAndShapeOf(value));
    const size_t element = SizeOf(value.dtype);
    const int64_t width = value.size() / records_;
    if (width == 0) return absl::OkStatus();
    for (int64_t b = 0; b < records_; ++b) {
      const int64_t to = (b * rows_ + row) * columns_ + offsets_[by];
      std::memcpy(bytes_ + static_cast<size_t>(to) * element,
                  taken.bytes.get() + static_cast<size_t>(b * width) * element,
                  static_cast<size_t>(width) * element);
    }
    return absl::OkStatus();
  }

  const MatrixInput& input_;
  Array output_;
  std::vector<Array> values_;     // of input_.wrt
  std::vector<int64_t> offsets_;  // of their columns
  int64_t records_ = 1;           // 1 where rows are not batched
  int64_t columns_ = 0, rows_ = 0;
  Array matrix_;
  std::byte* bytes_ = nullptr;  // of matrix_
};

}  // namespace

absl::StatusOr<Array> JacobianOf(const std::string& output,
                                 const MatrixInput& input) {
  return MatrixBuilder(input).Jacobian(output);
}

absl::StatusOr<Array> HessianOf(const std::string& output,
                                const MatrixInput& input) {
  return MatrixBuilder(input).Hessian(output);
}

}  // namespace pd

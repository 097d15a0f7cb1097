// SPDX-License-Identifier: Apache-2.0
#include "libcore/nn/op_chain.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

#include "libcore/nn/output_names.h"

namespace pd {

std::string OpChain::Op(
    const char* type,
    const std::vector<std::pair<const char*, std::string>>& inputs,
    const std::vector<const char*>& outputs, Attrs attrs, size_t result) {
  if (!ok()) return "";
  OpDesc op;
  op.type = type;
  for (const auto& [slot, name] : inputs)
    if (!name.empty()) op.SetInput(slot, {name});
  const std::string first = main_->UniqueTemporary(type);
  for (size_t i = 0; i < outputs.size(); ++i)
    op.SetOutput(outputs[i], {TemporaryBeside(first, i)});
  op.attrs = std::move(attrs);
  Update(main_->Append(std::move(op)));
  return TemporaryBeside(first, result);
}

std::string OpChain::Scale(const std::string& x, double factor, double bias) {
  return Unary("scale", x,
               {{"scale", static_cast<float>(factor)},
                {"bias", static_cast<float>(bias)},
                {"bias_after_scale", true}});
}

std::string OpChain::Reduce(const char* type, const std::string& x,
                            std::vector<int32_t> axes, bool keepdim) {
  const bool all = axes.empty();
  return Unary(
      type, x,
      {{"dim", std::move(axes)}, {"keep_dim", keepdim}, {"reduce_all", all}});
}

std::string OpChain::Squeeze(const std::string& x, int axis) {
  return Op("squeeze2", {{"X", x}}, {"Out", "XShape"},
            {{"axes", std::vector<int32_t>{axis}}});
}

std::string OpChain::Unsqueeze(const std::string& x, int axis) {
  return Op("unsqueeze2", {{"X", x}}, {"Out", "XShape"},
            {{"axes", std::vector<int32_t>{axis}}});
}

std::string OpChain::Reshape(const std::string& x, std::vector<int32_t> shape) {
  return Op("reshape2", {{"X", x}}, {"Out", "XShape"},
            {{"shape", std::move(shape)}});
}

std::string OpChain::Cast(const std::string& x, DType dtype) {
  const DType from = Var(x).dtype;
  if (from == dtype) return x;
  return Unary("cast", x,
               {{"in_dtype", static_cast<int32_t>(from)},
                {"out_dtype", static_cast<int32_t>(dtype)}});
}

std::string OpChain::Extent(const std::string& x, int axis) {
  const std::string shape = Op("shape", {{"Input", x}}, {"Out"});
  return Op("slice", {{"Input", shape}}, {"Out"},
            {{"axes", std::vector<int32_t>{0}},
             {"starts", std::vector<int32_t>{axis}},
             {"ends", std::vector<int32_t>{axis + 1}},
             {"decrease_axis", std::vector<int32_t>{}},
             {"infer_flags", std::vector<int32_t>{1}}});
}

std::string OpChain::SequenceMask(const std::string& length,
                                  const std::string& x, int axis) {
  if (!ok()) return "";
  const int64_t extent = ShapeOf(x)[static_cast<size_t>(axis)];
  const std::string open = extent < 0 ? Extent(x, axis) : "";
  return Op("sequence_mask", {{"X", length}, {"MaxLenTensor", open}}, {"Y"},
            {{"maxlen", static_cast<int32_t>(extent)},
             {"out_dtype", static_cast<int32_t>(DType::kFloat32)}});
}

OpChain::Largest OpChain::TopK(const std::string& x, int k) {
  const std::string values = Op("top_k_v2", {{"X", x}}, {"Out", "Indices"},
                                {{"k", static_cast<int32_t>(k)},
                                 {"axis", int32_t{-1}},
                                 {"largest", true},
                                 {"sorted", true}});
  return {values, TemporaryBeside(values, 1)};
}

OpChain::Continuations OpChain::BestContinuations(const std::string& scores,
                                                  int beams, int words) {
  const Largest best = TopK(scores, beams);
  const std::string count = Full({1}, DType::kInt64, words);
  return {best.values, Binary("elementwise_floordiv", best.indices, count),
          Binary("elementwise_mod", best.indices, count)};
}

std::string OpChain::Full(const Shape& shape, DType dtype, double value) {
  return Op("fill_constant", {}, {"Out"},
            {{"shape", std::vector<int64_t>(shape)},
             {"dtype", static_cast<int32_t>(dtype)},
             {"value", static_cast<float>(value)},
             {"str_value", absl::StrFormat("%.17g", value)}});
}

std::string OpChain::Values(const Shape& shape, DType dtype,
                            const std::vector<double>& values) {
  Attrs attrs = {{"shape", std::vector<int32_t>(shape.begin(), shape.end())},
                 {"dtype", static_cast<int32_t>(dtype)}};
  if (dtype == DType::kInt64) {
    attrs["int64_values"] = std::vector<int64_t>(values.begin(), values.end());
  } else if (dtype == DType::kInt32) {
    attrs["int32_values"] = std::vector<int32_t>(values.begin(), values.end());
  } else {
    attrs["fp32_values"] = std::vector<float>(values.begin(), values.end());
  }
  return Op("assign_value", {}, {"Out"}, std::move(attrs));
}

const VarDesc& OpChain::Var(const std::string& name) const {
  static const VarDesc* const kNone = new VarDesc;
  const VarDesc* var = ok() ? main_->FindVar(name) : nullptr;
  return var == nullptr ? *kNone : *var;
}

void OpChain::Update(absl::Status status) {
  if (ok()) status_ = std::move(status);
}

absl::StatusOr<std::string> OpChain::Give(std::string result) const {
  if (!ok()) return status_;
  return result;
}

}  // namespace pd

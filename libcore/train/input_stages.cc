// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/input_stages.h"

#include <algorithm>
#include <array>
#include <optional>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/pipeline.h"
#include "libcore/data/step.h"
#include "libcore/data/transforms.h"
#include "libcore/nn/job.pb.h"
#include "libcore/train/open_data.h"
#include "libcore/train/prediction_data.h"

namespace pd {
namespace {

bool IsLast(const Transform& t) {
  return std::holds_alternative<transforms::ToTensor>(t) ||
         std::holds_alternative<transforms::Normalize>(t) ||
         std::holds_alternative<transforms::Transpose>(t);
}

// The operations of Finish on pixels, as steps. Pipeline::Create has checked
// that they fit each other.
class PictureSteps {
 public:
  explicit PictureSteps(int64_t channels) : channels_(channels) {}

  void Add(const Transform& transform) {
    if (const auto* t = std::get_if<transforms::ToTensor>(&transform))
      AddToTensor(*t);
    else if (const auto* n = std::get_if<transforms::Normalize>(&transform))
      AddNormalize(*n);
    else if (const auto* r = std::get_if<transforms::Transpose>(&transform))
      Reorder({r->order.begin(), r->order.end()});
  }
  void AddFit(const PictureFit& fit) {
    InputStep step;
    step.kind = InputStep::Kind::kFit;
    step.fit = fit;
    steps_.push_back(std::move(step));
  }
  std::vector<InputStep> Take() { return std::move(steps_); }

 private:
  void Push(InputStep::Kind kind, std::vector<float> numbers, Shape shape = {},
            std::vector<int32_t> axes = {}) {
    steps_.push_back(
        {kind, std::move(numbers), std::move(shape), std::move(axes), {}});
  }
  void Reorder(const std::vector<int>& order) {
    std::array<int, 3> axes;
    std::vector<int32_t> all = {0};
    for (size_t i = 0; i < 3; ++i) {
      axes[i] = axes_[static_cast<size_t>(order[i])];
      all.push_back(order[i] + 1);
    }
    axes_ = axes;
    started_ = true;
    Push(InputStep::Kind::kTranspose, {}, {}, std::move(all));
  }
  void AddToTensor(const transforms::ToTensor& t) {
    if (!is_float_)
      Push(InputStep::Kind::kScale, {static_cast<float>(1.0 / 255.0)});
    started_ = is_float_ = true;
    if (t.data_format == "CHW") Reorder({2, 0, 1});
  }
  void AddNormalize(const transforms::Normalize& t) {
    // A grey picture has no channel axis: one is put in front.
    if (!started_ && channels_ == 1) Reorder({2, 0, 1});
    started_ = is_float_ = true;
    if (t.to_rgb) Push(InputStep::Kind::kReverse, {}, {}, {3});
    const auto shape_of = [&](const std::vector<float>& numbers) -> Shape {
      const auto n = static_cast<int64_t>(numbers.size());
      return t.data_format == "CHW" ? Shape{n, 1, 1} : Shape{n};
    };
    Push(InputStep::Kind::kSubtract, t.mean, shape_of(t.mean));
    Push(InputStep::Kind::kDivide, t.std, shape_of(t.std));
  }

  const int64_t channels_;
  bool started_ = false, is_float_ = false;
  std::array<int, 3> axes_ = {0, 1, 2};
  std::vector<InputStep> steps_;
};

// Of the transforms [0, last) those at the end that operators compute: Resize,
// bilinear, and CenterCrop, where the result's extents are known. `begin` is
// the first of them, `last` where there are none.
std::optional<PictureFit> FitOf(const std::vector<Transform>& all, size_t last,
                                size_t* begin) {
  PictureFit fit;
  *begin = last;
  const auto extents = [](const std::vector<int>& size, PictureFit* to) {
    to->height = size.front();
    to->width = size.back();
  };
  if (*begin > 0) {
    const auto* crop = std::get_if<transforms::CenterCrop>(&all[*begin - 1]);
    if (crop != nullptr) {
      extents(crop->size, &fit);
      fit.crops = true;
      --*begin;
    }
  }
  if (*begin > 0) {
    const auto* resize = std::get_if<transforms::Resize>(&all[*begin - 1]);
    if (resize != nullptr && resize->interpolation == "bilinear" &&
        (fit.crops || resize->size.size() == 2)) {
      fit.size.assign(resize->size.begin(), resize->size.end());
      if (!fit.crops) extents(resize->size, &fit);
      --*begin;
    }
  }
  if (*begin == last) return std::nullopt;
  return fit;
}

// Why a transform of pictures is no operator.
std::string WhyOutside(const Transform& t) {
  const auto* resize = std::get_if<transforms::Resize>(&t);
  if (resize != nullptr && resize->interpolation != "bilinear")
    return absl::StrCat(
        "no operator computes Pillow's '", resize->interpolation,
        "' as the data pipeline does (only 'bilinear' is put into the model)");
  if (resize != nullptr && resize->size.size() == 1)
    return "it leaves the longer edge open (size: [height, width], or a "
           "CenterCrop behind it, says what the model gets)";
  if (resize != nullptr || std::holds_alternative<transforms::CenterCrop>(t))
    return "it stands before a transform that no operator computes";
  return "no operator computes it as the data pipeline does";
}

// Height and width of what the steps are fed where the network says them.
void FillExtents(const FeedSpec& input, const std::vector<InputStep>& steps,
                 Shape* picture) {
  std::vector<int32_t> axes = {0, 1, 2, 3};
  for (const InputStep& step : steps) {
    if (step.kind != InputStep::Kind::kTranspose) continue;
    std::vector<int32_t> moved;
    for (const int32_t axis : step.axes)
      moved.push_back(axes[static_cast<size_t>(axis)]);
    axes = std::move(moved);
  }
  if (input.shape.size() != axes.size()) return;
  for (size_t i = 1; i < axes.size(); ++i) {
    int64_t& extent = (*picture)[static_cast<size_t>(axes[i])];
    if (extent < 0) extent = input.shape[i];
  }
}

absl::Status AddPictures(const LoadedJob& job, const job::DataSet& set,
                         const job::DataSet& leaf,
                         const std::vector<FeedSpec>& inputs,
                         InputStages* out) {
  if (inputs.size() != 1)
    return job.At(InvalidArgument("the network has %d inputs; a picture is one",
                                  inputs.size()),
                  set);
  const std::vector<Transform> all = TransformsOf(set);
  if (std::any_of(all.begin(), all.end(), IsRandom))
    return job.At(
        InvalidArgument("this data set changes pictures at random; data.eval "
                        "with transforms that do not is needed"),
        set);
  const bool grey = leaf.has_mnist() || leaf.has_fashion_mnist();
  int64_t channels = grey ? 1 : PictureChannels(inputs[0].shape, all);
  PD_ASSIGN_OR_RETURN(const Pipeline pipeline,
                      Pipeline::Create({-1, -1, channels}, all));
  const auto last = static_cast<size_t>(
      std::find_if(all.begin(), all.end(), IsLast) - all.begin());
  size_t begin = last;
  const std::optional<PictureFit> fit = FitOf(all, last, &begin);
  std::vector<std::string> names;
  for (size_t i = 0; i < begin; ++i) names.push_back(TransformName(all[i]));
  channels = pipeline.picture_shape()[2];
  PictureSteps steps(channels);
  if (fit.has_value()) steps.AddFit(*fit);
  for (size_t i = last; i < all.size(); ++i) steps.Add(all[i]);
  InputStage stage;
  stage.input = inputs[0].name;
  stage.dtype = DType::kUInt8;
  stage.steps = steps.Take();
  stage.shape = pipeline.picture_shape();
  stage.shape.insert(stage.shape.begin(), -1);
  if (fit.has_value())
    stage.shape[1] = stage.shape[2] = -1;
  else
    FillExtents(inputs[0], stage.steps, &stage.shape);
  if (!names.empty())
    out->outside.push_back(absl::StrCat(
        "input '", stage.input, "' takes pictures as ",
        absl::StrJoin(names, ", "), names.size() > 1 ? " leave" : " leaves",
        " them; of ", names.back(), ": ", WhyOutside(all[begin - 1])));
  out->stages.push_back(std::move(stage));
  return absl::OkStatus();
}

// Of a field of rows.
struct Scaling {
  std::vector<double> mean, std;
  bool log1p = false;
  std::string text;  // why it is no number
};

template <typename Field>
std::string TextReason(const Field& field) {
  if (field.has_hash_buckets())
    return "its numbers are hashes of texts; PaddlePaddle's operator 'hash' is "
           "another hash, of integers, and ONNX has none (pd-job(5), "
           "hash_buckets, says how this one is computed)";
  if (field.has_categories())
    return "its numbers stand for names; PaddlePaddle's programs, which ONNX's "
           "are made of, take no texts (the run's classes/ and vocabularies/ "
           "say which)";
  if (field.has_text())
    return "its numbers are tokens of texts, and PaddlePaddle's programs take "
           "no texts (the run's vocabularies/ says which)";
  if (field.has_picture())
    return "it is a picture beside other inputs, transformed before the "
           "network";
  return "";
}

Scaling ScalingOf(const job::Column& field) {
  return {{field.mean().begin(), field.mean().end()},
          {field.std().begin(), field.std().end()},
          field.log1p(),
          TextReason(field)};
}

Scaling ScalingOf(const job::JsonField& field) {
  Scaling scaling;
  if (field.has_mean()) scaling.mean = {field.mean()};
  if (field.has_std()) scaling.std = {field.std()};
  scaling.log1p = field.log1p();
  scaling.text = TextReason(field);
  return scaling;
}

InputStep Constant(InputStep::Kind kind, const std::vector<double>& numbers) {
  InputStep step;
  step.kind = kind;
  for (const double n : numbers) step.numbers.push_back(static_cast<float>(n));
  step.shape = {static_cast<int64_t>(numbers.size())};
  return step;
}

void AddRows(const FeedSpec& input, const Scaling& scaling, InputStages* out) {
  if (!scaling.text.empty()) {
    out->outside.push_back(absl::StrCat("input '", input.name,
                                        "' stays as it is: ", scaling.text));
    return;
  }
  InputStage stage;
  stage.input = input.name;
  stage.shape = input.shape;
  const size_t width = std::max(scaling.mean.size(), scaling.std.size());
  // A number for each column, which follow each other in a record.
  if (width > 1) stage.shape = {-1, static_cast<int64_t>(width)};
  using Kind = InputStep::Kind;
  if (scaling.log1p) stage.steps.push_back({Kind::kLog1p});
  if (!scaling.mean.empty())
    stage.steps.push_back(Constant(Kind::kSubtract, scaling.mean));
  if (!scaling.std.empty())
    stage.steps.push_back(Constant(Kind::kDivide, scaling.std));
  if (!stage.steps.empty()) out->stages.push_back(std::move(stage));
}

// Whether rows name pictures in the field.
bool NamesPictures(const job::DataSet& leaf, const std::string& name) {
  const auto among = [&name](const auto& fields) {
    return std::any_of(fields.begin(), fields.end(), [&](const auto& field) {
      return field.name() == name && field.has_picture();
    });
  };
  return among(leaf.csv().field()) || among(leaf.tsv().field()) ||
         among(leaf.jsonl().field());
}

template <typename Fields>
void AddFields(const Fields& fields, const std::vector<FeedSpec>& inputs,
               InputStages* out) {
  for (const auto& field : fields)
    for (const FeedSpec& input : inputs)
      if (input.name == field.name()) AddRows(input, ScalingOf(field), out);
}

}  // namespace

absl::StatusOr<InputStages> InputStagesOf(const LoadedJob& job,
                                          const job::DataSet& set,
                                          const std::vector<FeedSpec>& inputs) {
  const job::DataSet& leaf = FirstPartOf(set);
  InputStages out;
  if (inputs.size() == 1 && NamesPictures(leaf, inputs[0].name)) {
    PD_RETURN_IF_ERROR(AddPictures(job, set, leaf, inputs, &out));
    return out;
  }
  switch (leaf.kind_case()) {
    case job::DataSet::kCsv:
      AddFields(leaf.csv().field(), inputs, &out);
      break;
    case job::DataSet::kTsv:
      AddFields(leaf.tsv().field(), inputs, &out);
      break;
    case job::DataSet::kJsonl:
      AddFields(leaf.jsonl().field(), inputs, &out);
      break;
    case job::DataSet::kMnist:
    case job::DataSet::kFashionMnist:
    case job::DataSet::kCifar10:
    case job::DataSet::kCifar100:
    case job::DataSet::kDatasetFolder:
    case job::DataSet::kImageFolder:
    case job::DataSet::kFlowers:
    case job::DataSet::kVoc2012:
    case job::DataSet::kImageMaskFolder:
    case job::DataSet::kVocDetection:
    case job::DataSet::kCocoDetection:
      PD_RETURN_IF_ERROR(AddPictures(job, set, leaf, inputs, &out));
      break;
    default:
      out.outside.push_back(
          "this data set feeds the network with what its files hold");
  }
  return out;
}

}  // namespace pd

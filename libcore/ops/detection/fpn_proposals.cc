// SPDX-License-Identifier: Apache-2.0
// Regions of interest over the levels of a feature pyramid (Lin et al. 2017).
//   distribute_fpn_proposals: a roi goes to level
//     floor(refer_level + log2(sqrt(area) / refer_scale)) within
//     [min_level, max_level]. MultiFpnRois, one a level, keep the order and are
//     by image (LoD, MultiLevelRoIsNum); RestoreIndex [n, 1] is where each roi
//     of FpnRois lies among all levels' one after the other.
//   collect_fpn_proposals: the post_nms_topN best rois of all levels and
//     images, by image, best first.
// Images are told by LoD or by numbers of rois. No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/detection/boxes.h"
#include "libcore/ops/detection/rois.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

absl::Status CheckRois(absl::string_view slot, const Shape& shape) {
  if (shape.size() == 2 && (shape[1] == 4 || shape[1] < 0))
    return absl::OkStatus();
  return InvalidArgument("'%s' has shape %s; expected [-1, 4]", slot,
                         ToString(shape));
}

struct Levels {
  int64_t first = 0, last = 0, refer = 0, scale = 1;
  bool pixels = true;

  size_t count() const { return static_cast<size_t>(last - first + 1); }

  template <typename T>
  size_t Of(const T* roi) const {
    const T side = std::sqrt(BoxArea(roi, !pixels));
    const T level =
        std::floor(std::log2(side / static_cast<T>(scale) + T(1e-6)) +
                   static_cast<T>(refer));
    if (!(level > static_cast<T>(first))) return 0;
    if (level >= static_cast<T>(last)) return count() - 1;
    return static_cast<size_t>(static_cast<int64_t>(level) - first);
  }
};

absl::StatusOr<Levels> ReadLevels(const OpDesc& op) {
  const auto number = [&op](const char* name) {
    return static_cast<int64_t>(std::get<int32_t>(*op.FindAttr(name)));
  };
  Levels levels;
  levels.first = number("min_level");
  levels.last = number("max_level");
  levels.refer = number("refer_level");
  levels.scale = number("refer_scale");
  levels.pixels = std::get<bool>(*op.FindAttr("pixel_offset"));
  if (levels.last < levels.first || levels.scale <= 0)
    return InvalidArgument(
        "levels go from %d to %d, and attr 'refer_scale' is %d", levels.first,
        levels.last, levels.scale);
  const auto have = static_cast<int64_t>(op.Output("MultiFpnRois").size());
  if (have != levels.last - levels.first + 1)
    return InvalidArgument("levels go from %d to %d; 'MultiFpnRois' has %d",
                           levels.first, levels.last, have);
  return levels;
}

struct Distribution {
  Tensor *rois, *counts, *restore;
  std::vector<Tensor*> outs, numbers;  // by level
  Levels levels;
};

template <typename T>
absl::Status Distribute(const Distribution& d) {
  PD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                      RowOffsets("FpnRois", *d.rois, d.counts));
  const size_t images = starts.size() - 1, levels = d.levels.count();
  const T* rois = d.rois->data<T>();
  std::vector<std::vector<int64_t>> rows(levels);
  std::vector<std::vector<uint64_t>> offsets(levels, {0});
  for (size_t i = 0; i < images; ++i) {
    for (int64_t r = starts[i]; r < starts[i + 1]; ++r)
      rows[d.levels.Of(rois + r * 4)].push_back(r);
    for (size_t l = 0; l < levels; ++l) offsets[l].push_back(rows[l].size());
  }
  PD_RETURN_IF_ERROR(d.restore->Resize(DType::kInt32, {starts.back(), 1}));
  int32_t place = 0;
  for (size_t l = 0; l < levels; ++l) {
    Tensor* out = d.outs[l];
    if (out != nullptr) {
      PD_RETURN_IF_ERROR(out->Resize(
          d.rois->dtype(), {static_cast<int64_t>(rows[l].size()), 4}));
      out->set_lod({offsets[l]});
      T* to = out->data<T>();
      for (int64_t r : rows[l]) to = std::copy_n(rois + r * 4, 4, to);
    }
    for (int64_t r : rows[l]) d.restore->data<int32_t>()[r] = place++;
    if (l >= d.numbers.size() || d.numbers[l] == nullptr) continue;
    PD_RETURN_IF_ERROR(
        d.numbers[l]->Resize(DType::kInt32, {static_cast<int64_t>(images)}));
    for (size_t i = 0; i < images; ++i)
      d.numbers[l]->data<int32_t>()[i] =
          static_cast<int32_t>(offsets[l][i + 1] - offsets[l][i]);
  }
  return absl::OkStatus();
}

absl::StatusOr<Step> BindDistribute(BindContext* context) {
  Distribution d;
  d.rois = context->Input("FpnRois");
  d.counts = context->Input("RoisNum");
  d.restore = context->Output("RestoreIndex");
  PD_RETURN_IF_ERROR(CheckRois("FpnRois", d.rois->shape()));
  PD_ASSIGN_OR_RETURN(d.levels, ReadLevels(context->op()));
  for (size_t i = 0; i < context->OutputCount("MultiFpnRois"); ++i)
    d.outs.push_back(context->Output("MultiFpnRois", i));
  for (size_t i = 0; i < context->OutputCount("MultiLevelRoIsNum"); ++i)
    d.numbers.push_back(context->Output("MultiLevelRoIsNum", i));
  return DispatchFloat(d.rois->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([d](const RunContext&) { return Distribute<T>(d); });
  });
}

absl::Status InferDistribute(InferContext* context) {
  const TensorMeta& rois = context->Input("FpnRois");
  PD_RETURN_IF_ERROR(CheckRois("FpnRois", rois.shape));
  PD_RETURN_IF_ERROR(ReadLevels(context->op()).status());
  TensorMeta out;
  out.dtype = rois.dtype;
  out.shape = {-1, 4};
  out.lod_level = 1;
  for (size_t i = 0; i < context->OutputCount("MultiFpnRois"); ++i)
    context->SetOutput("MultiFpnRois", out, i);
  context->SetOutput("RestoreIndex", {-1, 1}, DType::kInt32);
  for (size_t i = 0; i < context->OutputCount("MultiLevelRoIsNum"); ++i)
    context->SetOutput("MultiLevelRoIsNum", {-1}, DType::kInt32, i);
  return absl::OkStatus();
}

struct Collection {
  std::vector<Tensor*> rois, scores, counts;  // by level
  Tensor *out, *number;
  int64_t most = 0;
};

template <typename T>
struct Scored {
  T score;
  size_t image;
  const T* roi;
};

// All rois of all levels; `images` becomes the number of images.
template <typename T>
absl::Status Gather(const Collection& c, std::vector<Scored<T>>* all,
                    size_t* images) {
  for (size_t l = 0; l < c.rois.size(); ++l) {
    PD_ASSIGN_OR_RETURN(const std::vector<int64_t> starts,
                        RowOffsets("MultiLevelRois", *c.rois[l],
                                   c.counts.empty() ? nullptr : c.counts[l]));
    if (l > 0 && starts.size() - 1 != *images)
      return InvalidArgument("level %d has rois of %d images; level 0 of %d", l,
                             starts.size() - 1, *images);
    *images = starts.size() - 1;
    if (c.scores[l]->size() < starts.back())
      return InvalidArgument("level %d has %d rois and %d scores", l,
                             starts.back(), c.scores[l]->size());
    for (size_t i = 0; i < *images; ++i)
      for (int64_t r = starts[i]; r < starts[i + 1]; ++r)
        all->push_back({c.scores[l]->template data<T>()[r], i,
                        c.rois[l]->template data<T>() + r * 4});
  }
  return absl::OkStatus();
}

template <typename T>
absl::Status Collect(const Collection& c) {
  std::vector<Scored<T>> all;
  size_t images = 0;
  PD_RETURN_IF_ERROR(Gather(c, &all, &images));
  // Of equal scores PaddlePaddle takes the last one first.
  std::reverse(all.begin(), all.end());
  std::stable_sort(
      all.begin(), all.end(),
      [](const Scored<T>& a, const Scored<T>& b) { return a.score > b.score; });
  if (static_cast<int64_t>(all.size()) > c.most)
    all.resize(static_cast<size_t>(c.most));
  std::stable_sort(
      all.begin(), all.end(),
      [](const Scored<T>& a, const Scored<T>& b) { return a.image < b.image; });
  std::vector<uint64_t> offsets(images + 1, 0);
  PD_RETURN_IF_ERROR(
      c.out->Resize(c.rois[0]->dtype(), {static_cast<int64_t>(all.size()), 4}));
  T* to = c.out->data<T>();
  for (const Scored<T>& scored : all) {
    to = std::copy_n(scored.roi, 4, to);
    ++offsets[scored.image + 1];
  }
  if (c.number != nullptr) {
    PD_RETURN_IF_ERROR(
        c.number->Resize(DType::kInt32, {static_cast<int64_t>(images)}));
    for (size_t i = 0; i < images; ++i)
      c.number->data<int32_t>()[i] = static_cast<int32_t>(offsets[i + 1]);
  }
  for (size_t i = 0; i < images; ++i) offsets[i + 1] += offsets[i];
  c.out->set_lod({offsets});
  return absl::OkStatus();
}

absl::StatusOr<Step> BindCollect(BindContext* context) {
  Collection c;
  for (size_t i = 0; i < context->InputCount("MultiLevelRois"); ++i) {
    c.rois.push_back(context->Input("MultiLevelRois", i));
    c.scores.push_back(context->Input("MultiLevelScores", i));
    PD_RETURN_IF_ERROR(CheckRois("MultiLevelRois", c.rois[i]->shape()));
    if (c.rois[i]->dtype() != c.rois[0]->dtype() ||
        c.scores[i]->dtype() != c.rois[0]->dtype())
      return InvalidArgument(
          "level %d is %s and %s; expected %s", i, Name(c.rois[i]->dtype()),
          Name(c.scores[i]->dtype()), Name(c.rois[0]->dtype()));
  }
  for (size_t i = 0; i < context->InputCount("MultiLevelRoIsNum"); ++i)
    c.counts.push_back(context->Input("MultiLevelRoIsNum", i));
  c.out = context->Output("FpnRois");
  c.number = context->Output("RoisNum");
  c.most = context->Attr<int32_t>("post_nms_topN");
  return DispatchFloat(
      c.rois[0]->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([c](const RunContext&) { return Collect<T>(c); });
      });
}

absl::Status InferCollect(InferContext* context) {
  const size_t levels = context->InputCount("MultiLevelRois");
  const size_t counts = context->InputCount("MultiLevelRoIsNum");
  if (levels == 0 || context->InputCount("MultiLevelScores") != levels ||
      (counts != 0 && counts != levels))
    return InvalidArgument(
        "there are %d levels of rois, %d of scores, %d of numbers", levels,
        context->InputCount("MultiLevelScores"), counts);
  for (size_t i = 0; i < levels; ++i)
    PD_RETURN_IF_ERROR(
        CheckRois("MultiLevelRois", context->Input("MultiLevelRois", i).shape));
  if (context->Attr<int32_t>("post_nms_topN") < 0)
    return InvalidArgument("attr 'post_nms_topN' is %d; expected 0 or more",
                           context->Attr<int32_t>("post_nms_topN"));
  TensorMeta out;
  out.dtype = context->Input("MultiLevelRois").dtype;
  out.shape = {-1, 4};
  out.lod_level = 1;
  context->SetOutput("FpnRois", out);
  context->SetOutput("RoisNum", {-1}, DType::kInt32);
  return absl::OkStatus();
}

}  // namespace

absl::Status RegisterFpnProposals(OpRegistry* registry) {
  OpDef distribute("distribute_fpn_proposals");
  distribute.Input("FpnRois").OptionalInput("RoisNum");
  distribute.Outputs("MultiFpnRois").Output("RestoreIndex");
  distribute.OptionalOutputs("MultiLevelRoIsNum");
  for (const char* name :
       {"min_level", "max_level", "refer_level", "refer_scale"})
    distribute.RequiredAttr(name, AttrType::kInt);
  distribute.Attr("pixel_offset", true).ShapeFromData();
  distribute.Infer(InferDistribute).NoGrad().Reference(BindDistribute);
  PD_RETURN_IF_ERROR(registry->Add(std::move(distribute)));

  OpDef collect("collect_fpn_proposals");
  collect.Inputs("MultiLevelRois").Inputs("MultiLevelScores");
  collect.OptionalInputs("MultiLevelRoIsNum");
  collect.Output("FpnRois").OptionalOutput("RoisNum");
  collect.RequiredAttr("post_nms_topN", AttrType::kInt).ShapeFromData();
  collect.Infer(InferCollect).NoGrad().Reference(BindCollect);
  return registry->Add(std::move(collect));
}

}  // namespace pd

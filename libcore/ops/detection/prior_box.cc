// SPDX-License-Identifier: Apache-2.0
// Boxes of fixed shapes around every cell of Input's [H, W] grid, and the same
// variances beside each: [H, W, P, 4].
//   prior_box (SSD): in parts of Image. For each min_size s: s sqrt(r) by
//     s / sqrt(r) for every ratio r (1 first, and 1 / r too with flip), and a
//     square of sqrt(s * max_size); min_max_aspect_ratios_order puts that
//     square second.
//   density_prior_box: a density x density pattern of centres for each of
//     fixed_sizes and fixed_ratios; [H W P, 4] with flatten_to_2d.
//   anchor_generator (Faster R-CNN): in pixels of the image, anchor_sizes
//     within aspect_ratios (height / width).
// No gradients.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

constexpr int64_t kMostPriors = 1 << 20;  // of a cell

// The ratios without those met before, 1 first.
std::vector<float> DistinctRatios(const std::vector<float>& ratios, bool flip) {
  std::vector<float> distinct = {1.0f};
  for (float ratio : ratios) {
    const bool met = std::any_of(
        distinct.begin(), distinct.end(),
        [ratio](float other) { return std::fabs(ratio - other) < 1e-6; });
    if (met) continue;
    distinct.push_back(ratio);
    if (flip) distinct.push_back(1.0f / ratio);
  }
  return distinct;
}

// A half extent in each direction.
struct Half {
  double width, height;
};

// The shapes that prior_box puts around each centre.
std::vector<Half> PriorShapes(const OpDesc& op) {
  const auto floats = [&op](const char* name) {
    return std::get<std::vector<float>>(*op.FindAttr(name));
  };
  const std::vector<float> ratios = DistinctRatios(
      floats("aspect_ratios"), std::get<bool>(*op.FindAttr("flip")));
  const std::vector<float> min_sizes = floats("min_sizes");
  const std::vector<float> max_sizes = floats("max_sizes");
  const bool squares_first =
      std::get<bool>(*op.FindAttr("min_max_aspect_ratios_order"));
  std::vector<Half> shapes;
  for (size_t s = 0; s < min_sizes.size(); ++s) {
    const float size = min_sizes[s];
    const auto add_square = [&] {
      if (s >= max_sizes.size()) return;
      const double half = std::sqrt(size * max_sizes[s]) / 2.0;
      shapes.push_back({half, half});
    };
    for (size_t r = 0; r < ratios.size(); ++r) {
      const float root = std::sqrt(ratios[r]);
      shapes.push_back({size * root / 2.0, size / root / 2.0});
      if (r == 0 && squares_first) add_square();
    }
    if (!squares_first) add_square();
  }
  return shapes;
}

struct Grid {
  int64_t height = 0, width = 0;              // cells
  int64_t image_height = 0, image_width = 0;  // pixels
  float step_h = 0, step_w = 0, offset = 0.5f;
  bool clip = false;
};

Grid ReadGrid(const BindContext& context) {
  Grid grid;
  const Tensor* input = context.Input("Input");
  const Tensor* image = context.Input("Image");
  grid.height = input->dim(2);
  grid.width = input->dim(3);
  grid.image_height = image->dim(2);
  grid.image_width = image->dim(3);
  grid.step_h = context.Attr<float>("step_h");
  grid.step_w = context.Attr<float>("step_w");
  grid.offset = context.Attr<float>("offset");
  grid.clip = context.Attr<bool>("clip");
  return grid;
}

// The distance of the centres; given, or what fits Image.
template <typename T>
void Steps(const Grid& grid, T* step_h, T* step_w) {
  const bool fits = grid.step_h == 0 || grid.step_w == 0;
  *step_h = fits ? static_cast<T>(grid.image_height) /
                       static_cast<T>(std::max<int64_t>(grid.height, 1))
                 : static_cast<T>(grid.step_h);
  *step_w = fits ? static_cast<T>(grid.image_width) /
                       static_cast<T>(std::max<int64_t>(grid.width, 1))
                 : static_cast<T>(grid.step_w);
}

// Calls body(centre x, centre y) for the cells, row by row.
template <typename T, typename Body>
void ForCentres(const Grid& grid, const Body& body) {
  T step_h, step_w;
  Steps(grid, &step_h, &step_w);
  const T offset = static_cast<T>(grid.offset);
  for (int64_t h = 0; h < grid.height; ++h)
    for (int64_t w = 0; w < grid.width; ++w)
      body((static_cast<T>(w) + offset) * step_w,
           (static_cast<T>(h) + offset) * step_h);
}

template <typename T>
void FillVariances(const std::vector<float>& variances, Tensor* out) {
  if (out == nullptr) return;
  T* to = out->data<T>();
  for (int64_t i = 0; i < out->size(); ++i)
    to[i] = static_cast<T>(variances[static_cast<size_t>(i) % 4]);
}

template <typename T>
void ClipToUnit(Tensor* boxes) {
  T* data = boxes->data<T>();
  for (int64_t i = 0; i < boxes->size(); ++i)
    data[i] = std::min(std::max(data[i], T(0)), T(1));
}

absl::StatusOr<Step> BindPriorBox(BindContext* context) {
  const Grid grid = ReadGrid(*context);
  Tensor* boxes = context->Output("Boxes");
  Tensor* variances = context->Output("Variances");
  context->NoBuffer(context->Input("Input"));
  context->NoBuffer(context->Input("Image"));
  const std::vector<Half> shapes = PriorShapes(context->op());
  const auto values = context->Attr<std::vector<float>>("variances");
  return DispatchFloat(boxes->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* box = boxes->data<T>();
      const T width = static_cast<T>(grid.image_width);
      const T height = static_cast<T>(grid.image_height);
      ForCentres<T>(grid, [&](T x, T y) {
        for (const Half& half : shapes) {
          const T w = static_cast<T>(half.width);
          const T h = static_cast<T>(half.height);
          *box++ = (x - w) / width;
          *box++ = (y - h) / height;
          *box++ = (x + w) / width;
          *box++ = (y + h) / height;
        }
      });
      if (grid.clip) ClipToUnit<T>(boxes);
      FillVariances<T>(values, variances);
      return absl::OkStatus();
    });
  });
}

// A pattern of density_prior_box.
struct Pattern {
  float width, height;
  int32_t density;
};

std::vector<Pattern> Patterns(const OpDesc& op) {
  const auto sizes = std::get<std::vector<float>>(*op.FindAttr("fixed_sizes"));
  const auto ratios =
      std::get<std::vector<float>>(*op.FindAttr("fixed_ratios"));
  const auto densities =
      std::get<std::vector<int32_t>>(*op.FindAttr("densities"));
  std::vector<Pattern> patterns;
  for (size_t s = 0; s < sizes.size(); ++s)
    for (float ratio : ratios) {
      const float root = std::sqrt(ratio);
      patterns.push_back({sizes[s] * root, sizes[s] / root, densities[s]});
    }
  return patterns;
}

template <typename T>
T* FillPattern(const Pattern& pattern, const Grid& grid, T x, T y, T* box) {
  T step_h, step_w;
  Steps(grid, &step_h, &step_w);
  const int average = static_cast<int>((step_w + step_h) * T(0.5));
  const int shift = average / pattern.density;
  const auto first = [&](T centre) {
    return static_cast<float>(static_cast<double>(centre) - average / 2.0 +
                              shift / 2.0);
  };
  const float first_x = first(x), first_y = first(y);
  const auto width = static_cast<double>(grid.image_width);
  const auto height = static_cast<double>(grid.image_height);
  for (int32_t i = 0; i < pattern.density; ++i)
    for (int32_t j = 0; j < pattern.density; ++j) {
      const float cx = first_x + static_cast<float>(j * shift);
      const float cy = first_y + static_cast<float>(i * shift);
      const double half_w = pattern.width / 2.0, half_h = pattern.height / 2.0;
      *box++ = static_cast<T>(std::max((cx - half_w) / width, 0.0));
      *box++ = static_cast<T>(std::max((cy - half_h) / height, 0.0));
      *box++ = static_cast<T>(std::min((cx + half_w) / width, 1.0));
      *box++ = static_cast<T>(std::min((cy + half_h) / height, 1.0));
    }
  return box;
}

absl::StatusOr<Step> BindDensityPriorBox(BindContext* context) {
  const Grid grid = ReadGrid(*context);
  Tensor* boxes = context->Output("Boxes");
  Tensor* variances = context->Output("Variances");
  context->NoBuffer(context->Input("Input"));
  context->NoBuffer(context->Input("Image"));
  const std::vector<Pattern> patterns = Patterns(context->op());
  const auto values = context->Attr<std::vector<float>>("variances");
  return DispatchFloat(boxes->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* box = boxes->data<T>();
      ForCentres<T>(grid, [&](T x, T y) {
        for (const Pattern& pattern : patterns)
          box = FillPattern(pattern, grid, x, y, box);
      });
      if (grid.clip) ClipToUnit<T>(boxes);
      FillVariances<T>(values, variances);
      return absl::OkStatus();
    });
  });
}

absl::StatusOr<Step> BindAnchors(BindContext* context) {
  Tensor* input = context->Input("Input");
  Tensor* anchors = context->Output("Anchors");
  Tensor* variances = context->Output("Variances");
  context->NoBuffer(input);
  const auto sizes = context->Attr<std::vector<float>>("anchor_sizes");
  const auto ratios = context->Attr<std::vector<float>>("aspect_ratios");
  const auto stride = context->Attr<std::vector<float>>("stride");
  const auto values = context->Attr<std::vector<float>>("variances");
  const float offset = context->Attr<float>("offset");
  return DispatchFloat(anchors->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    return Step([=](const RunContext&) {
      T* box = anchors->data<T>();
      const T step_w = static_cast<T>(stride[0]);
      const T step_h = static_cast<T>(stride[1]);
      for (int64_t cell = 0; cell < input->dim(2) * input->dim(3); ++cell) {
        const T w = static_cast<T>(cell % input->dim(3));
        const T h = static_cast<T>(cell / input->dim(3));
        const T x = w * step_w + static_cast<T>(offset) * (step_w - 1);
        const T y = h * step_h + static_cast<T>(offset) * (step_h - 1);
        for (float ratio : ratios)
          for (float size : sizes) {
            const T r = static_cast<T>(ratio);
            const T base = std::round(std::sqrt(step_w * step_h / r));
            const T half_w =
                T(0.5) * (static_cast<T>(size) / step_w * base - 1);
            const T half_h =
                T(0.5) *
                (static_cast<T>(size) / step_h * std::round(base * r) - 1);
            *box++ = x - half_w;
            *box++ = y - half_h;
            *box++ = x + half_w;
            *box++ = y + half_h;
          }
      }
      FillVariances<T>(values, variances);
      return absl::OkStatus();
    });
  });
}

absl::Status CheckPositive(absl::string_view name,
                           const std::vector<float>& values) {
  for (float value : values)
    if (!(value > 0))
      return InvalidArgument("attr '%s' has %g; expected more than 0", name,
                             value);
  return absl::OkStatus();
}

absl::Status CheckInputs(const InferContext& context) {
  for (const char* slot : {"Input", "Image"})
    if (context.HasInput(slot) && context.Input(slot).shape.size() != 4)
      return InvalidArgument("'%s' has shape %s; expected rank 4", slot,
                             ToString(context.Input(slot).shape));
  const auto& values = context.Attr<std::vector<float>>("variances");
  if (values.size() != 4)
    return InvalidArgument("attr 'variances' has %d numbers; expected 4",
                           values.size());
  return CheckPositive("variances", values);
}

absl::Status SetBoxes(InferContext* context, absl::string_view slot,
                      int64_t priors, bool flat) {
  if (priors < 1 || priors > kMostPriors)
    return InvalidArgument("a cell has %d boxes; expected 1 to %d", priors,
                           kMostPriors);
  const TensorMeta& input = context->Input("Input");
  const int64_t h = input.shape[2], w = input.shape[3];
  Shape shape = {h, w, priors, 4};
  if (flat) shape = {h < 0 || w < 0 ? -1 : h * w * priors, 4};
  context->SetOutput(slot, shape, input.dtype);
  context->SetOutput("Variances", shape, input.dtype);
  return absl::OkStatus();
}

absl::Status InferPriorBox(InferContext* context) {
  PD_RETURN_IF_ERROR(CheckInputs(*context));
  const auto& min_sizes = context->Attr<std::vector<float>>("min_sizes");
  const auto& max_sizes = context->Attr<std::vector<float>>("max_sizes");
  PD_RETURN_IF_ERROR(CheckPositive("min_sizes", min_sizes));
  PD_RETURN_IF_ERROR(CheckPositive(
      "aspect_ratios", context->Attr<std::vector<float>>("aspect_ratios")));
  if (!max_sizes.empty() && max_sizes.size() != min_sizes.size())
    return InvalidArgument("attr 'max_sizes' has %d sizes; 'min_sizes' has %d",
                           max_sizes.size(), min_sizes.size());
  for (size_t i = 0; i < max_sizes.size(); ++i)
    if (!(max_sizes[i] > min_sizes[i]))
      return InvalidArgument("max_sizes[%d] is %g; expected more than %g", i,
                             max_sizes[i], min_sizes[i]);
  const auto& ratios = context->Attr<std::vector<float>>("aspect_ratios");
  // One ratio gives two shapes at most, and a square comes with each size.
  if (static_cast<int64_t>(min_sizes.size()) > kMostPriors ||
      static_cast<int64_t>(ratios.size()) > kMostPriors ||
      static_cast<int64_t>(min_sizes.size() * (2 * ratios.size() + 2)) >
          4 * kMostPriors)
    return InvalidArgument(
        "attrs 'min_sizes' and 'aspect_ratios' have %d and %d numbers; a cell "
        "has %d boxes at most",
        min_sizes.size(), ratios.size(), kMostPriors);
  return SetBoxes(context, "Boxes",
                  static_cast<int64_t>(PriorShapes(context->op()).size()),
                  false);
}

absl::Status InferDensityPriorBox(InferContext* context) {
  PD_RETURN_IF_ERROR(CheckInputs(*context));
  const auto& sizes = context->Attr<std::vector<float>>("fixed_sizes");
  const auto& ratios = context->Attr<std::vector<float>>("fixed_ratios");
  const auto& densities = context->Attr<std::vector<int32_t>>("densities");
  PD_RETURN_IF_ERROR(CheckPositive("fixed_sizes", sizes));
  PD_RETURN_IF_ERROR(CheckPositive("fixed_ratios", ratios));
  if (sizes.size() != densities.size())
    return InvalidArgument(
        "attr 'fixed_sizes' has %d sizes; 'densities' has "
        "%d",
        sizes.size(), densities.size());
  int64_t priors = 0;
  for (int64_t density : densities) {
    if (density <= 0 || density > kMostPriors)
      return InvalidArgument("attr 'densities' has %d; expected 1 or more",
                             density);
    priors = std::min(
        priors + static_cast<int64_t>(ratios.size()) * density * density,
        kMostPriors + 1);
  }
  return SetBoxes(context, "Boxes", priors,
                  context->Attr<bool>("flatten_to_2d"));
}

absl::Status InferAnchors(InferContext* context) {
  PD_RETURN_IF_ERROR(CheckInputs(*context));
  const auto& sizes = context->Attr<std::vector<float>>("anchor_sizes");
  const auto& ratios = context->Attr<std::vector<float>>("aspect_ratios");
  const auto& stride = context->Attr<std::vector<float>>("stride");
  PD_RETURN_IF_ERROR(CheckPositive("anchor_sizes", sizes));
  PD_RETURN_IF_ERROR(CheckPositive("aspect_ratios", ratios));
  PD_RETURN_IF_ERROR(CheckPositive("stride", stride));
  if (stride.size() != 2)
    return InvalidArgument("attr 'stride' has %d numbers; expected 2",
                           stride.size());
  return SetBoxes(context, "Anchors",
                  static_cast<int64_t>(sizes.size() * ratios.size()), false);
}

OpDef GridOp(absl::string_view type, bool clip) {
  OpDef op(type);
  op.Input("Input").Input("Image").Output("Boxes").Output("Variances");
  op.Attr("clip", clip).Attr("step_w", 0.0f).Attr("step_h", 0.0f);
  op.Attr("offset", 0.5f);
  return op;
}

}  // namespace

absl::Status RegisterPriorBox(OpRegistry* registry) {
  OpDef prior = GridOp("prior_box", true);
  prior.RequiredAttr("min_sizes", AttrType::kFloats);
  for (const char* name : {"max_sizes", "aspect_ratios", "variances"})
    prior.Attr(name, std::vector<float>{});
  prior.Attr("flip", true).Attr("min_max_aspect_ratios_order", false);
  prior.Infer(InferPriorBox).NoGrad().Reference(BindPriorBox);
  PD_RETURN_IF_ERROR(registry->Add(std::move(prior)));

  OpDef density = GridOp("density_prior_box", true);
  density.RequiredAttr("variances", AttrType::kFloats);
  density.Attr("flatten_to_2d", false);
  density.Attr("fixed_sizes", std::vector<float>{});
  density.Attr("fixed_ratios", std::vector<float>{});
  density.Attr("densities", std::vector<int32_t>{});
  density.Infer(InferDensityPriorBox).NoGrad().Reference(BindDensityPriorBox);
  PD_RETURN_IF_ERROR(registry->Add(std::move(density)));

  OpDef anchors("anchor_generator");
  anchors.Input("Input").Output("Anchors").Output("Variances");
  for (const char* name : {"anchor_sizes", "aspect_ratios", "variances"})
    anchors.RequiredAttr(name, AttrType::kFloats);
  anchors.Attr("stride", std::vector<float>{16.0f, 16.0f});
  anchors.Attr("offset", 0.5f);
  anchors.Infer(InferAnchors).NoGrad().Reference(BindAnchors);
  return registry->Add(std::move(anchors));
}

}  // namespace pd

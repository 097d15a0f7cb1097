// SPDX-License-Identifier: Apache-2.0
// pad1d, pad2d, pad3d, zero_pad2d. The op pads three axes, so that inputs of
// fewer get axes of extent 1 for it.
#include <utility>

#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job_layer.pb.h"
#include "libcore/nn/layers/layer_args.h"
#include "libcore/nn/layers/layer_table.h"

namespace pd {
namespace {

// A mirror image needs a value more than it shows, a circle one round.
absl::Status CheckBorder(LayerContext* c, const Space& space,
                         const std::string& x, const Ints& padding,
                         const std::string& mode) {
  if (mode != "reflect" && mode != "circular") return absl::OkStatus();
  for (size_t i = 0; i < padding.size(); ++i) {
    const int axis = static_cast<int>(i / 2);
    const int64_t extent =
        c->ShapeOf(x)[static_cast<size_t>(space.first_axis() + axis)];
    const int64_t most = mode == "reflect" ? extent - 1 : extent;
    if (extent >= 0 && padding[i] > most)
      return Annotate(
          InvalidArgument("a padding of %d in mode %s does not fit the %s of "
                          "%d; it must be at most %d",
                          padding[i], mode, space.axis_name(axis), extent,
                          most),
          c->Described());
  }
  return absl::OkStatus();
}

// The job counts from the last axis on: left, right, top, bottom, front, back.
template <typename P>
absl::StatusOr<std::string> Pad(LayerContext* c, const P& p, int axes,
                                const std::string& mode, double value) {
  const Space space = {axes, p.data_format() != 0};
  PD_RETURN_IF_ERROR(ExpectSpace(c, space));
  const Ints given = Spread(p.padding(), 2 * axes, 0);
  Ints padding;
  for (size_t i = given.size(); i > 0; i -= 2) {
    padding.push_back(given[i - 2]);
    padding.push_back(given[i - 1]);
  }
  return PadAround(c, space, c->input(), padding, mode, value);
}

template <typename P>
absl::StatusOr<std::string> PadWithMode(LayerContext* c, const P& p, int axes) {
  return Pad(c, p, axes, job::PadMode::Type_Name(p.mode()), p.value());
}

absl::StatusOr<std::string> BuildPad(LayerContext* c) {
  const job::Layer& l = c->layer();
  switch (l.kind_case()) {
    case job::Layer::kPad1D:
      return PadWithMode(c, l.pad1d(), 1);
    case job::Layer::kPad2D:
      return PadWithMode(c, l.pad2d(), 2);
    case job::Layer::kPad3D:
      return PadWithMode(c, l.pad3d(), 3);
    default:
      return Pad(c, l.zero_pad2d(), 2, "constant", 0);
  }
}

}  // namespace

absl::StatusOr<std::string> PadAround(LayerContext* c, const Space& space,
                                      const std::string& x, const Ints& padding,
                                      const std::string& mode, double value) {
  PD_RETURN_IF_ERROR(CheckBorder(c, space, x, padding, mode));
  const int first = space.first_axis();
  const Ints missing = space.axes == 1   ? Ints{first + 1, first + 2}
                       : space.axes == 2 ? Ints{first}
                                         : Ints();
  std::string input = x;
  if (!missing.empty()) {
    PD_ASSIGN_OR_RETURN(input, Unsqueeze(c, x, missing));
  }
  // The op counts from the last axis on. One axis stands in the place of depth.
  Ints paddings(space.axes == 1 ? 4 : 0, 0);
  for (size_t i = padding.size(); i > 0; i -= 2) {
    paddings.push_back(padding[i - 2]);
    paddings.push_back(padding[i - 1]);
  }
  paddings.resize(6, 0);
  PD_ASSIGN_OR_RETURN(
      const std::string padded,
      c->Unary("pad3d", input,
               {{"paddings", std::move(paddings)},
                {"mode", mode},
                {"value", static_cast<float>(value)},
                {"data_format",
                 std::string(space.channels_last ? "NDHWC" : "NCDHW")}}));
  return missing.empty() ? padded : Squeeze(c, padded, missing);
}

void AddPaddingLayers(LayerTable* table) {
  for (const int kind : {job::Layer::kPad1D, job::Layer::kPad2D,
                         job::Layer::kPad3D, job::Layer::kZeroPad2D})
    (*table)[kind] = {BuildPad};
}

}  // namespace pd

// SPDX-License-Identifier: Apache-2.0
// Pooling; the kernels are in pool.cu.
#include <limits>
#include <string>
#include <type_traits>
#include <utility>

#include "libcore/kernels/cuda/bindings.h"
#include "libcore/kernels/cuda/layouts.h"
#include "libcore/kernels/cuda/packs.h"
#include "libcore/kernels/cuda/pool_windows.h"
#include "libcore/ops/common/check.h"
#include "libcore/ops/conv/max_pool_with_index.h"
#include "libcore/ops/conv/window.h"

namespace pd::cuda {
namespace {

bool IsLast(const BindContext& context, const Tensor& like) {
  return like.layout() != nullptr &&
         SameLayout(like.layout(), ChannelsLast(like.shape())) &&
         context.op().AttrOr<std::string>("data_format", "NCHW") != "NHWC";
}

// Asks for channels last on both sides where X has them; says whether it does.
absl::StatusOr<bool> AskForWindows(BindContext* context, const Tensor& like,
                                   std::initializer_list<Tensor**> inputs,
                                   std::initializer_list<Tensor**> outputs) {
  const bool last = IsLast(*context, like);
  const auto layout_of = [&](const Tensor& tensor) {
    return last ? ChannelsLast(tensor.shape()) : nullptr;
  };
  for (Tensor** input : inputs)
    if (*input != nullptr) {
      PD_ASSIGN_OR_RETURN(*input, context->In(*input, layout_of(**input)));
    }
  for (Tensor** output : outputs) {
    PD_ASSIGN_OR_RETURN(*output, context->Out(*output, layout_of(**output)));
  }
  return last;
}

// Packs are of neighbouring channels; offsets in an image have 32 bits.
bool FitPacks(const PoolWindows& windows) {
  constexpr int64_t kMost = std::numeric_limits<int32_t>::max();
  const PoolAxis* axes = windows.axes;
  if (windows.position_step == 1 || windows.channels % kPoolPack != 0 ||
      axes[0].in != 1 || axes[0].out != 1)
    return false;
  for (const int64_t plane :
       {int64_t{axes[1].in} * axes[2].in, int64_t{axes[1].out} * axes[2].out})
    if (plane > kMost / windows.channels) return false;
  return true;
}

// Starts a kernel for each element or, where channels are last, for kPoolPack
// of them at once.
template <typename T>
class PoolStarter {
 public:
  static absl::StatusOr<PoolStarter> Find(DeviceBinding* binding,
                                          const std::string& name,
                                          const PoolWindows& windows) {
    using Start = Starter<PoolArgsOf<T>>;
    PoolStarter starter;
    PD_ASSIGN_OR_RETURN(starter.ones_,
                        Start::Find(binding, KernelFor<T>(name)));
    starter.packs_ = starter.ones_;
    starter.in_packs_ = std::is_same_v<T, float> && FitPacks(windows);
    if (starter.in_packs_) {
      PD_ASSIGN_OR_RETURN(starter.packs_,
                          Start::Find(binding, name + "_packs"));
    }
    return starter;
  }

  absl::Status operator()(const PoolArgsOf<T>& run) const {
    if constexpr (std::is_same_v<T, float>)
      if (in_packs_ && IsAligned<kPoolPack>(run.x) &&
          IsAligned<kPoolPack>(run.dout) && IsAligned<kPoolPack>(run.out))
        return packs_.Elements(run.n / kPoolPack, run);
    return ones_.Elements(run.n, run);
  }

 private:
  Starter<PoolArgsOf<T>> ones_, packs_;
  bool in_packs_ = false;
};

// The forward op leaves its gradient where in its window each maximum is, in
// the layout of its output, if a byte can hold it.
bool HasPlaces(const PoolWindows& windows) {
  int64_t positions = 1;
  for (const PoolAxis& axis : windows.axes)
    positions = std::min<int64_t>(positions * axis.kernel, 256);
  return windows.max && !windows.adaptive && positions <= 255;
}
std::string PlacesName(const std::string& output, bool last) {
  return absl::StrCat(output, last ? "@max_places_last" : "@max_places");
}

absl::StatusOr<Step> BindPool(BindContext* context, DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *out = context->Output("Out");
  PD_RETURN_IF_ERROR(SameNumbers({x, out}));
  const bool masked = context->op().type.rfind("max_", 0) == 0;
  Tensor* mask = masked ? context->Output("Mask") : nullptr;
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      masked ? ReadMaxPool(context->op(), x->shape())
                             : ReadPool(context->op(), x->shape()));
  PD_ASSIGN_OR_RETURN(PoolWindows windows, ReadWindows(g));
  windows.n = out->size();
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *x, {&x}, {&out}));
  if (last) windows.position_step = windows.channels;
  Tensor* const places =
      !masked && HasPlaces(windows)
          ? context->Keep(PlacesName(context->op().Out("Out"), last),
                          DType::kUInt8, out->shape())
          : nullptr;
  return ForReal(*x, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start,
                        PoolStarter<T>::Find(binding, "pool", windows));
    return Step([=](const RunContext&) {
      PoolArgsOf<T> run{windows, {}, {}, {}, nullptr, nullptr};
      run.x = Read<T>(x);
      run.out = Write<T>(out);
      run.mask = At<int32_t>(mask);
      run.places = At<uint8_t>(places);
      return start(run);
    });
  });
}

absl::StatusOr<Step> BindPoolGrad(BindContext* context,
                                  DeviceBinding* binding) {
  Tensor *x = context->Input("X"), *dout = context->Input("Out@GRAD"),
         *dx = context->Output("X@GRAD");
  PD_RETURN_IF_ERROR(SameNumbers({x, dout, dx}));
  PD_ASSIGN_OR_RETURN(const PoolGeometry g,
                      ReadPool(context->op(), x->shape()));
  PD_RETURN_IF_ERROR(
      ExpectInput(*context, "Out@GRAD", x->dtype(), g.OutputShape()));
  PD_ASSIGN_OR_RETURN(PoolWindows windows, ReadWindows(g));
  windows.n = dx->size();
  Tensor* const like = x;
  Tensor* places = nullptr;
  if (Tensor* out = context->Input("Out")) {
    context->NoBuffer(out);
    if (HasPlaces(windows))
      places = context->Kept(
          PlacesName(context->op().In("Out"), IsLast(*context, *like)));
    if (places != nullptr && places->shape() != g.OutputShape())
      places = nullptr;
  }
  if (!windows.max || places != nullptr)
    context->NoBuffer(std::exchange(x, nullptr));
  PD_ASSIGN_OR_RETURN(const bool last,
                      AskForWindows(context, *like, {&x, &dout}, {&dx}));
  if (last) windows.position_step = windows.channels;
  return ForReal(*dx, [&](auto tag) -> absl::StatusOr<Step> {
    using T = typename decltype(tag)::type;
    PD_ASSIGN_OR_RETURN(const auto start,
                        PoolStarter<T>::Find(binding, "pool_grad", windows));
    return Step([=](const RunContext&) {
      PoolArgsOf<T> run{windows, {}, {}, {}, nullptr, nullptr};
      run.x = Read<T>(x);
      run.dout = Read<T>(dout);
      run.out = Write<T>(dx);
      run.places = At<uint8_t>(places);
      return start(run);
    });
  });
}

}  // namespace

absl::StatusOr<PoolWindows> ReadWindows(const PoolGeometry& g) {
  PoolWindows args{};
  args.channels = g.channels;
  args.position_step = g.channels_last ? g.channels : 1;
  args.max = g.max;
  args.adaptive = g.adaptive;
  args.exclusive = g.exclusive;
  if (g.axes.size() > 3) return Unimplemented("%d axes", g.axes.size());
  for (PoolAxis& axis : args.axes) axis = {1, 1, 1, 1, 0};
  size_t at = 3 - g.axes.size();
  for (const WindowAxis& w : g.axes) {
    for (int64_t n : {w.in, w.out, w.kernel, w.stride, w.pad_before})
      if (n > INT32_MAX / 4) return Unimplemented("an extent of %d", n);
    args.axes[at++] = {static_cast<int32_t>(w.in), static_cast<int32_t>(w.out),
                       static_cast<int32_t>(w.kernel),
                       static_cast<int32_t>(w.stride),
                       static_cast<int32_t>(w.pad_before)};
  }
  return args;
}

void AddPool(KernelTable* kernels) {
  for (const std::string type : {"pool2d", "pool3d"}) {
    kernels->Add(type, AnyLayout("cuda", BindPool));
    kernels->Add(type + "_grad", AnyLayout("cuda", BindPoolGrad));
  }
  // Their gradients are in gather.cc.
  for (const char* type : {"max_pool2d_with_index", "max_pool3d_with_index"})
    kernels->Add(type, {"cuda", BindPool});
}

}  // namespace pd::cuda

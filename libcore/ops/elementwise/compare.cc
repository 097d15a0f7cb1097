// SPDX-License-Identifier: Apache-2.0
// Questions about elements, with the broadcasting of broadcast.h:
//   equal, not_equal, less_than, less_equal, greater_than, greater_equal,
//   logical_and, logical_or, logical_xor, logical_not ("not 0" is true): bool
//   bitwise_and, bitwise_or, bitwise_xor, bitwise_not: bool and integers
//   isnan_v2, isinf_v2, isfinite_v2: bool, integers are finite
//   isnan, isinf, isfinite: one bool for all elements (any, any, all)
// NaN is unequal to everything. No gradients.
#include <cmath>
#include <cstdint>
#include <string>
#include <type_traits>

#include "libcore/base/dispatch.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"
#include "libcore/ops/common/element_rows.h"
#include "libcore/ops/common/upcast.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace {

struct Equal {
  template <typename T>
  static bool F(T x, T y) {
    return x == y;
  }
};
struct NotEqual {
  template <typename T>
  static bool F(T x, T y) {
    return x != y;
  }
};
struct LessThan {
  template <typename T>
  static bool F(T x, T y) {
    return x < y;
  }
};
struct LessEqual {
  template <typename T>
  static bool F(T x, T y) {
    return x <= y;
  }
};
struct GreaterThan {
  template <typename T>
  static bool F(T x, T y) {
    return x > y;
  }
};
struct GreaterEqual {
  template <typename T>
  static bool F(T x, T y) {
    return x >= y;
  }
};
struct LogicalAnd {
  template <typename T>
  static bool F(T x, T y) {
    return static_cast<int>(x != T(0)) & static_cast<int>(y != T(0));
  }
};
struct LogicalOr {
  template <typename T>
  static bool F(T x, T y) {
    return static_cast<int>(x != T(0)) | static_cast<int>(y != T(0));
  }
};
struct LogicalXor {
  template <typename T>
  static bool F(T x, T y) {
    return (x != T(0)) != (y != T(0));
  }
};
struct LogicalNot {
  template <typename T>
  static bool F(T x) {
    return x == T(0);
  }
};
struct BitwiseAnd {
  template <typename T>
  static T F(T x, T y) {
    return static_cast<T>(x & y);
  }
};
struct BitwiseOr {
  template <typename T>
  static T F(T x, T y) {
    return static_cast<T>(x | y);
  }
};
struct BitwiseXor {
  template <typename T>
  static T F(T x, T y) {
    return static_cast<T>(x ^ y);
  }
};
struct BitwiseNot {
  template <typename T>
  static T F(T x) {
    if constexpr (std::is_same_v<T, bool>)
      return !x;
    else
      return static_cast<T>(~x);
  }
};
struct IsNan {
  template <typename T>
  static bool F(T x) {
    return x != x;
  }
};
struct IsInf {
  template <typename T>
  static bool F(T x) {
    if constexpr (std::is_integral_v<T>)
      return false;
    else
      return std::isinf(x);
  }
};
struct IsFinite {
  template <typename T>
  static bool F(T x) {
    if constexpr (std::is_integral_v<T>)
      return true;
    else
      return std::isfinite(x);
  }
};

template <bool kBits, typename Body>
auto DispatchCompareOperands(DType dtype, const Body& body) {
  if constexpr (kBits)
    return DispatchTypes<bool, int32_t, int64_t, int16_t, int8_t, uint8_t>(
        dtype, body);
  else
    return DispatchTypes<float, double, int32_t, int64_t, bool, int16_t, int8_t,
                         uint8_t>(dtype, body);
}

template <bool kBits>
absl::Status InferTwo(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  const TensorMeta& y = context->Input("Y");
  if (x.dtype != y.dtype)
    return InvalidArgument("X is %s, Y is %s; expected one dtype",
                           Name(x.dtype), Name(y.dtype));
  PD_ASSIGN_OR_RETURN(
      Broadcast b, BroadcastShapes(x.shape, y.shape,
                                   context->op().AttrOr<int32_t>("axis", -1)));
  context->SetOutput("Out", std::move(b.out), kBits ? x.dtype : DType::kBool);
  return absl::OkStatus();
}

absl::StatusOr<Step> BindRows(BindContext* context, MakeRowFn make) {
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("X"));
  Tensor* out = context->Output("Out");
  PD_ASSIGN_OR_RETURN(const RowFunction row, make(x->dtype()));
  if (context->InputCount("Y") == 0)
    return upcaster.Wrap(ElementStep(row, {x}, out));
  Tensor* y = upcaster.In(context->Input("Y"));
  PD_ASSIGN_OR_RETURN(
      const Broadcast b,
      BroadcastShapes(x->shape(), y->shape(),
                      context->op().AttrOr<int32_t>("axis", -1)));
  return upcaster.Wrap(BroadcastStep(row, b, x, y, out));
}

// A bool is compared, and stored, as the byte that it is: loops over bytes
// become vectors.
template <typename T>
using ByteOr = std::conditional_t<std::is_same_v<T, bool>, uint8_t, T>;

template <typename Op, bool kBits>
absl::StatusOr<RowFunction> RowOfTwo(DType dtype) {
  return DispatchCompareOperands<kBits>(
      dtype, [](auto tag) -> absl::StatusOr<RowFunction> {
        using T = typename decltype(tag)::type;
        if constexpr (kBits)
          return RowFunction::Of<T, T, T>([](T x, T y) { return Op::F(x, y); });
        else
          return RowFunction::Of<uint8_t, ByteOr<T>, ByteOr<T>>(
              [](ByteOr<T> x, ByteOr<T> y) { return Op::F(x, y); });
      });
}

template <typename Op, bool kBits>
absl::StatusOr<Step> BindTwo(BindContext* context) {
  return BindRows(context, RowOfTwo<Op, kBits>);
}

template <bool kBits>
absl::Status InferOne(InferContext* context) {
  const TensorMeta& x = context->Input("X");
  context->SetOutput("Out", x.shape, kBits ? x.dtype : DType::kBool);
  return absl::OkStatus();
}

template <typename Op, bool kBits>
absl::StatusOr<RowFunction> RowOfOne(DType dtype) {
  return DispatchCompareOperands<kBits>(
      dtype, [](auto tag) -> absl::StatusOr<RowFunction> {
        using T = typename decltype(tag)::type;
        if constexpr (kBits)
          return RowFunction::Of<T, T>([](T x) { return Op::F(x); });
        else
          return RowFunction::Of<uint8_t, ByteOr<T>>(
              [](ByteOr<T> x) { return Op::F(x); });
      });
}

template <typename Op, bool kBits>
absl::StatusOr<Step> BindOne(BindContext* context) {
  return BindRows(context, RowOfOne<Op, kBits>);
}

absl::Status InferWhole(InferContext* context) {
  context->SetOutput("Out", {1}, DType::kBool);
  return absl::OkStatus();
}

// One answer: whether an element is (or with kAll whether all are).
template <typename Op, bool kAll>
absl::StatusOr<Step> BindWhole(BindContext* context) {
  Upcaster upcaster(context);
  Tensor* x = upcaster.In(context->Input("X"));
  Tensor* out = context->Output("Out");
  return upcaster.Wrap(DispatchCompareOperands<false>(
      x->dtype(), [&](auto tag) -> absl::StatusOr<Step> {
        using T = typename decltype(tag)::type;
        return Step([x, out, n = x->size()](const RunContext&) {
          const T* in = x->data<T>();
          bool found = false;
          for (int64_t i = 0; i < n && !found; ++i)
            found = Op::F(in[i]) != kAll;
          out->data<bool>()[0] = found != kAll;
          return absl::OkStatus();
        });
      }));
}

template <typename Op, bool kBits = false>
absl::Status AddTwo(OpRegistry* registry, const std::string& type) {
  OpDef op(type);
  op.Input("X").Input("Y").Output("Out");
  if (!kBits && type.rfind("logical", 0) != 0)
    op.Attr("axis", int32_t{-1}).Attr("force_cpu", false);
  op.Infer(InferTwo<kBits>).NoGrad().Reference(BindTwo<Op, kBits>);
  return registry->Add(std::move(op));
}

absl::Status AddOne(OpRegistry* registry, const std::string& type,
                    InferFn infer, BindFn bind) {
  OpDef op(type);
  op.Input("X").Output("Out").Infer(infer).NoGrad().Reference(bind);
  return registry->Add(std::move(op));
}

}  // namespace

absl::Status RegisterCompare(OpRegistry* r) {
  absl::Status s = AddTwo<Equal>(r, "equal");
  s.Update(AddTwo<NotEqual>(r, "not_equal"));
  s.Update(AddTwo<LessThan>(r, "less_than"));
  s.Update(AddTwo<LessEqual>(r, "less_equal"));
  s.Update(AddTwo<GreaterThan>(r, "greater_than"));
  s.Update(AddTwo<GreaterEqual>(r, "greater_equal"));
  s.Update(AddTwo<LogicalAnd>(r, "logical_and"));
  s.Update(AddTwo<LogicalOr>(r, "logical_or"));
  s.Update(AddTwo<LogicalXor>(r, "logical_xor"));
  s.Update(AddTwo<BitwiseAnd, true>(r, "bitwise_and"));
  s.Update(AddTwo<BitwiseOr, true>(r, "bitwise_or"));
  s.Update(AddTwo<BitwiseXor, true>(r, "bitwise_xor"));
  s.Update(
      AddOne(r, "logical_not", InferOne<false>, BindOne<LogicalNot, false>));
  s.Update(AddOne(r, "bitwise_not", InferOne<true>, BindOne<BitwiseNot, true>));
  s.Update(AddOne(r, "isnan_v2", InferOne<false>, BindOne<IsNan, false>));
  s.Update(AddOne(r, "isinf_v2", InferOne<false>, BindOne<IsInf, false>));
  s.Update(AddOne(r, "isfinite_v2", InferOne<false>, BindOne<IsFinite, false>));
  s.Update(AddOne(r, "isnan", InferWhole, BindWhole<IsNan, false>));
  s.Update(AddOne(r, "isinf", InferWhole, BindWhole<IsInf, false>));
  s.Update(AddOne(r, "isfinite", InferWhole, BindWhole<IsFinite, true>));
  return s;
}

}  // namespace pd

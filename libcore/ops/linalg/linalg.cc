// SPDX-License-Identifier: Apache-2.0
#include "libcore/ops/linalg/linalg.h"

#include <Eigen/Dense>
#include <complex>
#include <cstring>
#include <type_traits>

#include "libcore/base/dispatch.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ops/common/broadcast.h"

namespace pd {
namespace {

template <typename T>
using RowMajor =
    Eigen::Matrix<T, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

template <typename T>
Eigen::Map<RowMajor<T>> At(const Tensor* t, const Matrices& m, int64_t i) {
  return {static_cast<T*>(t->raw()) + i * m.rows * m.cols, m.rows, m.cols};
}

template <typename Body>
void Visit(DType dtype, const Body& body) {
  switch (dtype) {
    case DType::kFloat32:
      return body(TypeTag<float>{});
    case DType::kFloat64:
      return body(TypeTag<double>{});
    case DType::kComplex64:
      return body(TypeTag<std::complex<float>>{});
    case DType::kComplex128:
      return body(TypeTag<std::complex<double>>{});
    default:
      PD_INVARIANT(false);  // CheckReal or CheckRealOrComplex comes first
  }
}

}  // namespace

Shape Matrices::With(const Shape& inner) const {
  Shape shape = batch;
  shape.insert(shape.end(), inner.begin(), inner.end());
  return shape;
}

absl::StatusOr<Matrices> MatricesOf(absl::string_view slot,
                                    const Shape& shape) {
  if (shape.size() < 2)
    return InvalidArgument("'%s' has shape %s; expected [..., rows, columns]",
                           slot, ToString(shape));
  Matrices m;
  m.batch.assign(shape.begin(), shape.end() - 2);
  m.rows = shape[shape.size() - 2];
  m.cols = shape.back();
  return m;
}

absl::StatusOr<Matrices> SquareMatricesOf(absl::string_view slot,
                                          const Shape& shape) {
  PD_ASSIGN_OR_RETURN(Matrices m, MatricesOf(slot, shape));
  if (m.rows != m.cols && m.rows >= 0 && m.cols >= 0)
    return InvalidArgument("'%s' has shape %s; expected square matrices", slot,
                           ToString(shape));
  return m;
}

absl::StatusOr<MatrixPairs> PairUp(const Matrices& x, const Matrices& y) {
  PD_ASSIGN_OR_RETURN(const Broadcast b, BroadcastShapes(x.batch, y.batch, -1));
  MatrixPairs pairs{x, y, b.out, {}, {}};
  if (IsDynamic(b.out)) return pairs;
  const auto loop = BroadcastLoop(b);
  const auto strides = loop.row_strides();
  loop.ForParts(0, loop.size(), [&](const auto& at, int64_t n) {
    for (int64_t j = 0; j < n; ++j) {
      pairs.of_x.push_back(at[0] + j * strides[0]);
      pairs.of_y.push_back(at[1] + j * strides[1]);
    }
  });
  return pairs;
}

absl::Status CheckReal(DType dtype) {
  if (dtype == DType::kFloat32 || dtype == DType::kFloat64)
    return absl::OkStatus();
  return Unimplemented("no kernel for dtype %s", Name(dtype));
}

absl::Status CheckRealOrComplex(DType dtype) {
  return IsComplex(dtype) ? absl::OkStatus() : CheckReal(dtype);
}

MatrixXd Load(const Tensor* t, const Matrices& m, int64_t i) {
  if (t->dtype() == DType::kFloat64) return At<double>(t, m, i);
  return At<float>(t, m, i).cast<double>();
}

MatrixXcd LoadComplex(const Tensor* t, const Matrices& m, int64_t i) {
  MatrixXcd value;
  Visit(t->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    value = At<T>(t, m, i).template cast<std::complex<double>>();
  });
  return value;
}

MatrixXd LoadOrZero(const Tensor* t, const Matrices& m, int64_t i) {
  return t != nullptr ? Load(t, m, i) : MatrixXd::Zero(m.rows, m.cols);
}

void Store(const MatrixXd& value, Tensor* t, const Matrices& m, int64_t i) {
  Visit(t->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    At<T>(t, m, i) = value.template cast<T>();
  });
}

void StoreComplex(const MatrixXcd& value, Tensor* t, const Matrices& m,
                  int64_t i) {
  Visit(t->dtype(), [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_arithmetic_v<T>)
      At<T>(t, m, i) = value.real().template cast<T>();
    else
      At<T>(t, m, i) = value.template cast<T>();
  });
}

void Add(const MatrixXd& value, Tensor* t, const Matrices& m, int64_t i) {
  Store(Load(t, m, i) + value, t, m, i);
}

void Clear(Tensor* t) {
  if (t->bytes() > 0) std::memset(t->raw(), 0, t->bytes());
}

MatrixXd Times(const MatrixXd& a, const MatrixXd& b) { return a * b; }
MatrixXcd TimesComplex(const MatrixXcd& a, const MatrixXcd& b) { return a * b; }
MatrixXd TransposeTimes(const MatrixXd& a, const MatrixXd& b) {
  return Times(a.transpose(), b);
}
MatrixXd TimesTranspose(const MatrixXd& a, const MatrixXd& b) {
  return Times(a, b.transpose());
}

MatrixXd SolveTriangle(const MatrixXd& t, bool upper, bool unit, MatrixXd b) {
  if (b.size() == 0) return b;
  MatrixXd whole = upper ? Upper(t) : Lower(t);
  if (unit) whole.diagonal().setOnes();
  if (upper)
    whole.triangularView<Eigen::Upper>().solveInPlace(b);
  else
    whole.triangularView<Eigen::Lower>().solveInPlace(b);
  return b;
}

MatrixXd Upper(const MatrixXd& a, int shift) {
  MatrixXd t = a;
  for (Eigen::Index j = 0; j < a.cols(); ++j)
    for (Eigen::Index i = std::max<Eigen::Index>(j - shift + 1, 0);
         i < a.rows(); ++i)
      t(i, j) = 0;
  return t;
}

MatrixXd Lower(const MatrixXd& a, int shift) {
  MatrixXd t = a;
  for (Eigen::Index j = 0; j < a.cols(); ++j)
    for (Eigen::Index i = 0; i < std::min(a.rows(), j + shift); ++i)
      t(i, j) = 0;
  return t;
}

DType ComplexOf(DType dtype) {
  if (dtype == DType::kFloat32) return DType::kComplex64;
  return dtype == DType::kFloat64 ? DType::kComplex128 : dtype;
}

DType RealDTypeOf(DType dtype) {
  if (dtype == DType::kComplex64) return DType::kFloat32;
  return dtype == DType::kComplex128 ? DType::kFloat64 : dtype;
}

}  // namespace pd

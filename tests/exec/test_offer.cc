// SPDX-License-Identifier: Apache-2.0
// In which order the implementations of an op are asked, and what is told of
// those that refuse.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "libcore/base/error.h"
#include "libcore/exec/offer.h"
#include "libcore/exec/session.h"
#include "libcore/ops/registry.h"

namespace pd {
namespace test_offer {

absl::StatusOr<Step> NoHostBind(BindContext*) {
  return Unimplemented("never called");
}
absl::StatusOr<Step> NoDeviceBind(BindContext*, DeviceBinding*) {
  return Unimplemented("never called");
}

OpDef ManyWays(const std::string& type) {
  OpDef op(type);
  op.Input("X").Output("Out").NoGrad().Reference(NoHostBind);
  op.AddImplementation({"dense", NoHostBind});
  op.AddImplementation(
      Implementation("sparse", NoHostBind).TakesSelectedRows());
  op.AddImplementation({"gpu", NoDeviceBind});
  op.AddImplementation(
      Implementation("gpu-near", NoDeviceBind).FollowsInputs());
  return op;
}

// The labels that are asked, "+" behind those with upcast tensors.
std::string AskedOf(const OpDef& def, const OfferTerms& terms,
                    std::vector<std::string>* refusals) {
  std::string asked;
  const auto accepted = Offer(
      def, terms,
      [&](const Implementation& implementation, bool upcast) -> absl::Status {
        asked += implementation.label + (upcast ? "+ " : " ");
        return Unimplemented("no");
      },
      refusals);
  EXPECT_TRUE(accepted.ok() && !*accepted);
  return asked;
}

TEST(Offer, FastOnesAreAskedBeforeTheReference) {
  const OpDef op = ManyWays("many");
  std::vector<std::string> refusals;
  OfferTerms terms;
  EXPECT_EQ(AskedOf(op, terms, &refusals), "dense sparse reference ");
  EXPECT_EQ(refusals, (std::vector<std::string>{"dense: no", "sparse: no",
                                                "reference: no"}));
  terms.Add(DType::kBFloat16, VarKind::kLodTensor);
  EXPECT_EQ(AskedOf(op, terms, &refusals),
            "dense sparse dense+ sparse+ reference reference+ ");
  // A cast between two casts would not be that cast.
  OpDef cast = ManyWays("converts");
  cast.With(Trait::kConvertsDtype);
  EXPECT_EQ(AskedOf(cast, terms, &refusals), "dense sparse reference ");
}

TEST(Offer, KindsThatAreNotTakenAreRefusals) {
  const OpDef op = ManyWays("many");
  std::vector<std::string> refusals;
  OfferTerms rows;
  rows.Add(DType::kFloat32, VarKind::kSelectedRows);
  EXPECT_EQ(AskedOf(op, rows, &refusals), "sparse reference ");
  EXPECT_EQ(refusals[0], "dense: it takes dense tensors");
  OfferTerms arrays;
  arrays.Add(DType::kFloat32, VarKind::kLodTensorArray);
  EXPECT_EQ(AskedOf(op, arrays, &refusals), "reference ");
}

TEST(Offer, OnADeviceSomeFollowTheirInputs) {
  const OpDef op = ManyWays("many");
  std::vector<std::string> refusals;
  OfferTerms terms;
  terms.place = Place::kDevice;
  terms.Add(DType::kFloat16, VarKind::kLodTensor);
  EXPECT_EQ(AskedOf(op, terms, &refusals), "gpu gpu+ ");
  terms.input_there = true;
  EXPECT_EQ(AskedOf(op, terms, &refusals), "gpu gpu-near gpu+ ");
}

TEST(Offer, TheFirstThatAcceptsIsTakenAndErrorsEndIt) {
  const OpDef op = ManyWays("many");
  std::vector<std::string> refusals;
  int asked = 0;
  const auto accepted = Offer(
      op, {},
      [&](const Implementation&, bool) {
        return ++asked == 2 ? absl::OkStatus() : Unimplemented("not the first");
      },
      &refusals);
  ASSERT_TRUE(accepted.ok());
  EXPECT_TRUE(*accepted);
  EXPECT_EQ(refusals, std::vector<std::string>{"dense: not the first"});
  EXPECT_EQ(NoneAccepted(refusals).message(),
            "no implementation takes it (dense: not the first)");
  const auto failed = Offer(
      op, {},
      [&](const Implementation&, bool) { return InvalidArgument("bad"); },
      &refusals);
  EXPECT_EQ(failed.status().message(), "bad");
}

// Out = as many rows as X has elements above 0, each 2 X: a late op, of float32
// alone.
absl::StatusOr<Step> BindAbove(BindContext* context) {
  Tensor* x = context->Input("X");
  Tensor* out = context->Output("Out");
  if (x->dtype() != DType::kFloat32) return Unimplemented("float32 alone");
  return Step([x, out](const RunContext&) -> absl::Status {
    std::vector<float> above;
    for (int64_t i = 0; i < x->size(); ++i)
      if (x->data<float>()[i] > 0) above.push_back(2 * x->data<float>()[i]);
    const auto n = static_cast<int64_t>(above.size());
    const absl::Status status = out->Resize(DType::kFloat32, {n});
    if (!status.ok()) return status;
    std::copy(above.begin(), above.end(), out->data<float>());
    return absl::OkStatus();
  });
}

TEST(Offer, LateOpsAreUpcastToo) {
  OpRegistry registry;
  OpDef above("above");
  above.Input("X").Output("Out").NoGrad().ShapeFromData();
  above.Infer([](InferContext* context) {
    context->SetOutput("Out", {-1}, context->Input("X").dtype);
    return absl::OkStatus();
  });
  above.Reference(BindAbove);
  ASSERT_TRUE(registry.Add(std::move(above)).ok());
  ProgramDesc program;
  program.blocks.emplace_back();
  for (const char* name : {"x", "out"}) {
    VarDesc var;
    var.name = name;
    var.dtype = DType::kFloat16;
    var.shape = {-1};
    program.global().vars.push_back(var);
  }
  OpDesc op;
  op.type = "above";
  op.SetInput("X", {"x"});
  op.SetOutput("Out", {"out"});
  program.global().ops.push_back(op);
  Session session(&registry);
  const auto results = session.Run(
      program,
      {{"x", MakeArray<Float16>(
                 {3}, {Float16(1.5f), Float16(-1.0f), Float16(0.25f)})}},
      {"out"});
  ASSERT_TRUE(results.ok()) << results.status();
  const Array& out = results->at("out");
  EXPECT_EQ(out.dtype, DType::kFloat16);
  ASSERT_EQ(out.shape, Shape{2});
  EXPECT_EQ(static_cast<float>(out.data<Float16>()[0]), 3.0f);
  EXPECT_EQ(static_cast<float>(out.data<Float16>()[1]), 0.5f);
}

}  // namespace test_offer
}  // namespace pd

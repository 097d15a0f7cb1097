// SPDX-License-Identifier: Apache-2.0
// Layers, losses and initial values as ops: what is built, what it gives when
// it runs, and what is said about what does not fit.
#include "libcore/nn/build.h"

#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "gtest/gtest.h"
#include "libcore/autodiff/backward.h"
#include "libcore/exec/session.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/layers/layer_table.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_build {

absl::StatusOr<BuiltModel> Build(const std::string& text) {
  const auto job = ParseJob(text, "job.pbtxt");
  if (!job.ok()) return job.status();
  return BuildModel(*job, ReferenceRegistry());
}

// A model of one input and these lines, which start at line 3.
std::string Model(const std::string& shape, const std::string& lines) {
  return absl::StrCat("model {\n  input { name: \"x\" shape: ", shape, " }\n",
                      lines, "\n}\n");
}

std::string ErrorOf(const std::string& text) {
  const auto built = Build(text);
  return built.ok() ? "no error" : std::string(built.status().message());
}

Shape ShapeOf(const BuiltModel& built, const std::string& name) {
  const VarDesc* var = built.main.global().FindVar(name);
  return var == nullptr ? Shape{-99} : var->shape;
}

std::vector<std::string> OpTypes(const ProgramDesc& program) {
  std::vector<std::string> types;
  for (const OpDesc& op : program.global().ops) types.push_back(op.type);
  return types;
}

const OpDesc* FindOp(const ProgramDesc& program, const std::string& type) {
  for (const OpDesc& op : program.global().ops)
    if (op.type == type) return &op;
  return nullptr;
}

TEST(Build, LeNet) {
  const auto job = ReadJob(PD_TESTDATA "/jobs/lenet_mnist.pbtxt");
  ASSERT_TRUE(job.ok()) << job.status();
  const auto built = BuildModel(*job, ReferenceRegistry());
  ASSERT_TRUE(built.ok()) << built.status();
  std::vector<std::string> names;
  int64_t numbers = 0;
  for (const ParameterSettings& p : built->parameters) {
    names.push_back(p.name);
    numbers += NumElements(ShapeOf(*built, p.name));
  }
  EXPECT_EQ(absl::StrJoin(names, " "),
            "conv1.weight conv1.bias conv2.weight conv2.bias "
            "fc1.weight fc1.bias fc2.weight fc2.bias fc3.weight fc3.bias");
  EXPECT_EQ(numbers, 61610);  // paddle.summary's
  ASSERT_EQ(built->outputs.size(), 1u);
  EXPECT_EQ(ToString(ShapeOf(*built, built->outputs[0])), "[-1, 10]");
  ASSERT_EQ(built->labels.size(), 1u);
  EXPECT_EQ(built->labels[0].name, "label");
  EXPECT_EQ(ToString(built->labels[0].shape), "[-1, 1]");
  ASSERT_EQ(built->metrics.size(), 1u);
  EXPECT_EQ(built->metrics[0].input, built->outputs[0]);
  EXPECT_EQ(absl::StrJoin(OpTypes(built->main), " "),
            "conv2d elementwise_add relu pool2d conv2d elementwise_add relu "
            "pool2d flatten_contiguous_range matmul_v2 elementwise_add "
            "matmul_v2 elementwise_add matmul_v2 elementwise_add "
            "softmax_with_cross_entropy reduce_mean");
}

std::string NamesOfParameters(const BuiltModel& built) {
  std::vector<std::string> names;
  for (const ParameterSettings& p : built.parameters) names.push_back(p.name);
  return absl::StrJoin(names, " ");
}

constexpr char kPair[] = R"(
  block {
    name: "pair"
    argument { name: "n" sets: ["a.linear.out_features", "in.block.set[m]"] }
    output: ["in", "a"]
    layer { name: "a" linear { out_features: 3 bias: false } }
    layer { name: "in" block { use: "inner" } }
  }
  block {
    name: "inner"
    argument { name: "m" sets: "b.linear.out_features" }
    layer { name: "b" linear { out_features: 4 bias: false } }
  }
)";

// Parameters are called as in PaddlePaddle's state_dict; a use of a block
// without a name leaves no trace in names.
TEST(Build, NamesOfBlocksAndFurtherResults) {
  const auto built = Build(Model("[-1, 2]", absl::StrCat(kPair, R"(
  layer { block { use: "pair" } }
  layer { name: "s.0" block { use: "pair" set: "n=5" } }
  layer { name: "t" block { use: "inner" repeat: 2 first: 1 } }
  layer { linear { out_features: 1 } }
  layer { name: "sum" input: ["s.0", "s.0:a"] add {} }
)")));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(NamesOfParameters(*built),
            "a.weight in.b.weight s.0.a.weight s.0.in.b.weight "
            "t.1.b.weight t.2.b.weight linear_0.w_0 linear_0.b_0");
  EXPECT_EQ(ToString(ShapeOf(*built, "s.0.in.b.weight")), "[5, 5]");
  EXPECT_EQ(built->layers.back().name, "sum");
}

TEST(Build, OpsSayWhichLayerTheyBelongTo) {
  const auto built = Build(Model("[-1, 4]",
                                 "layer { name: \"stem.0\" linear { "
                                 "out_features: 3 } }\nlayer { relu {} }"));
  ASSERT_TRUE(built.ok()) << built.status();
  const OpDesc* product = FindOp(built->main, "matmul_v2");
  const OpDesc* relu = FindOp(built->main, "relu");
  ASSERT_TRUE(product != nullptr && relu != nullptr);
  EXPECT_EQ(product->AttrOr<std::string>("op_namescope", ""), "/stem/0/");
  EXPECT_EQ(relu->AttrOr<std::string>("op_namescope", ""), "/relu_0/");
}

TEST(Build, TwoUsesWithoutNamesCollide) {
  EXPECT_EQ(ErrorOf(Model("[-1, 2]", absl::StrCat(kPair, R"(
  layer { block { use: "inner" } }
  layer { block { use: "inner" } }
)"))),
            "job.pbtxt:14:5 (used at job.pbtxt:18:3): layer 'b' (linear) would "
            "make the parameter 'b.weight', which there is already; give the "
            "layer, or the use of its block, another name");
}

TEST(Build, NetworkOfTheZoo) {
  const std::string use =
      "layer { block { use: \"lenet\" set: \"num_classes=7\" } }";
  const auto built = Build(Model("[-1, 1, 28, 28]", use));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(ToString(ShapeOf(*built, "fc.2.weight")), "[84, 7]");
  EXPECT_EQ(ErrorOf(Model("[-1, 1, 32, 32]", use)),
            "zoo/lenet.pbtxt:21:3 (used at job.pbtxt:3:1): layer 'fc.0' "
            "(linear) expects 400 input features; layer 'flatten_0' gives "
            "[-1, 576]");
  EXPECT_EQ(
      ErrorOf(Model("[-1, 1, 28, 28]", "layer { block { use: \"lenett\" } }")),
      "job.pbtxt:3:1: there is no block 'lenett', did you mean 'lenet'?");
}

// The loss of a fresh network is near that of guessing, and gradients reach
// every parameter.
TEST(Build, EveryExampleRuns) {
  for (const char* name : {"lenet_mnist", "mlp_mnist", "resnet_cifar",
                           "regression_csv", "words_csv", "clicks_fm"}) {
    SCOPED_TRACE(name);
    const auto job =
        ReadJob(absl::StrCat(PD_TESTDATA, "/jobs/", name, ".pbtxt"));
    ASSERT_TRUE(job.ok()) << job.status();
    auto built = BuildModel(*job, ReferenceRegistry());
    EXPECT_TRUE(built.ok()) << built.status();
    if (!built.ok()) continue;
    BackwardOptions options;
    options.targets[built->loss] = "";
    const auto gradients =
        AppendBackward(ReferenceRegistry(), options, &built->main);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    EXPECT_EQ(gradients->size(), built->parameters.size());
    Session session(&ReferenceRegistry(), 7);
    ASSERT_TRUE(session.RunOnce(built->startup).ok());
    NamedArrays feeds;
    std::vector<VarDesc> vars = built->inputs;
    vars.insert(vars.end(), built->labels.begin(), built->labels.end());
    for (const VarDesc& var : vars) {
      Shape shape = var.shape;
      shape[0] = 2;
      const size_t n = static_cast<size_t>(NumElements(shape));
      if (var.dtype == DType::kInt64) {
        feeds[var.name] = MakeArray(shape, std::vector<int64_t>(n, 1));
      } else {
        feeds[var.name] = MakeArray(shape, std::vector<float>(n, 0.5f));
      }
    }
    std::vector<std::string> fetches = {built->loss};
    for (const auto& entry : *gradients) fetches.push_back(entry.second);
    const auto results = session.Run(built->main, feeds, fetches);
    ASSERT_TRUE(results.ok()) << results.status();
    const float loss = results->at(built->loss).data<float>()[0];
    EXPECT_TRUE(std::isfinite(loss));
    EXPECT_GT(loss, 0);
    const auto test = session.Run(built->test, feeds, built->outputs);
    ASSERT_TRUE(test.ok()) << test.status();
  }
}

TEST(Build, NamesBothSidesOfAMisfit) {
  const std::string images = "[-1, 1, 28, 28]";
  EXPECT_EQ(
      ErrorOf(Model(images,
                    "  layer { name: \"flatten\" flatten {} }\n"
                    "  layer { name: \"fc1\" linear { in_features: 400 "
                    "out_features: 10 } }")),
      "job.pbtxt:4:3: layer 'fc1' (linear) expects 400 input features; layer "
      "'flatten' gives [-1, 784]");
  EXPECT_EQ(
      ErrorOf(Model("[-1, 7]",
                    "layer { conv2d { out_channels: 2 kernel_size: 3 "
                    "} }")),
      "job.pbtxt:3:1: layer 'conv2d_0' (conv2d) expects images [N, C, H, W]; "
      "input 'x' gives [-1, 7]");
  EXPECT_EQ(ErrorOf(Model(images,
                          "layer { conv2d { in_channels: 3 out_channels: 2 "
                          "kernel_size: 3 } }")),
            "job.pbtxt:3:1: layer 'conv2d_0' (conv2d) expects 3 input "
            "channels; input 'x' gives [-1, 1, 28, 28]");
  EXPECT_EQ(
      ErrorOf(Model(images,
                    "layer { name: \"c\" conv2d { out_channels: 2 "
                    "kernel_size: 3 } }\n"
                    "layer { name: \"sum\" input: [\"c\", \"y\"] add {} }")),
      "job.pbtxt:4:1: layer 'sum' reads 'y'; no layer before it and no "
      "input has that name, did you mean 'c'?");
  EXPECT_EQ(ErrorOf(Model("[-1, 4]",
                          "layer { embedding { num_embeddings: 5 "
                          "embedding_dim: 2 } }")),
            "job.pbtxt:3:1: layer 'embedding_0' (embedding) expects integers "
            "(int64 or int32), not float32; input 'x' gives [-1, 4]");
  EXPECT_EQ(ErrorOf(Model("[-1, -1]", "layer { linear { out_features: 2 } }")),
            "job.pbtxt:3:1: layer 'linear_0' (linear) expects a known number "
            "of input features or 'in_features'; input 'x' gives [-1, -1]");
  const std::string add = ErrorOf(
      Model("[-1, 6]",
            "layer { name: \"a\" linear { out_features: 2 } }\n"
            "layer { name: \"b\" input: \"x\" linear { out_features: 3 } }\n"
            "layer { name: \"sum\" input: [\"a\", \"b\"] add {} }"));
  EXPECT_EQ(add.rfind("job.pbtxt:5:1: layer 'sum' (add) reads [-1, 2] of layer "
                      "'a' and [-1, 3] of layer 'b': ",
                      0),
            0u)
      << add;
  const std::string window = ErrorOf(
      Model("[-1, 1, 4, 4]",
            "layer { name: \"p\" conv2d { out_channels: 1 kernel_size: 5 } }"));
  EXPECT_EQ(window.rfind("job.pbtxt:3:1: layer 'p' (conv2d) reads [-1, 1, 4, "
                         "4] of input 'x': ",
                         0),
            0u)
      << window;
}

// Errors for arguments of windows, groups and sizes that do not fit.
TEST(Build, ExplainsArguments) {
  const auto error = [](const std::string& layer) {
    return ErrorOf(
        Model("[-1, 4, 6, 5]", "layer { name: \"l\" " + layer + " }"));
  };
  const std::string reads =
      "job.pbtxt:3:1: layer 'l' (%s) reads [-1, 4, 6, 5] of input 'x': ";
  const auto of = [&](const char* kind, const std::string& rest) {
    return absl::StrReplaceAll(reads, {{"%s", kind}}) + rest;
  };
  EXPECT_EQ(error("conv2d { out_channels: 1 kernel_size: [3, 7] }"),
            of("conv2d", "a kernel of 7 does not fit into the width of 5"));
  EXPECT_EQ(
      error("conv2d { out_channels: 1 kernel_size: 4 dilation: 3 padding: 1 }"),
      of("conv2d",
         "a kernel of 4 (10 with dilation) does not fit into the height of 6 "
         "with padding 1 and 1"));
  EXPECT_EQ(error("avg_pool2d { kernel_size: 6 }"),
            of("avg_pool2d", "a kernel of 6 does not fit into the width of 5"));
  EXPECT_EQ(error("pad2d { padding: 5 mode: reflect }"),
            of("pad2d",
               "a padding of 5 in mode reflect does not fit the width of 5; it "
               "must be at most 4"));
  const std::string at = "job.pbtxt:3:1: ";
  EXPECT_EQ(error("conv3d { out_channels: 1 kernel_size: 1 }"),
            at + "layer 'l' (conv3d) expects [N, C, D, H, W]; input 'x' gives "
                 "[-1, 4, 6, 5]");
  EXPECT_EQ(error("conv2d { out_channels: 6 kernel_size: 1 groups: 4 }"),
            at + "'groups' is 4; it must divide the 4 input channels and the 6 "
                 "output channels");
  EXPECT_EQ(error("max_pool2d { kernel_size: 2 padding: 2 }"),
            at + "'padding' is 2 along the height; it must be below the kernel "
                 "2");
  EXPECT_EQ(error("max_pool2d { kernel_size: 2 return_mask: true ceil_mode: "
                  "true }"),
            at + "'return_mask' does not go with ceil_mode");
  EXPECT_EQ(error("group_norm { num_groups: 3 }"),
            at + "'num_groups' is 3; it must divide the 4 channels");
  EXPECT_EQ(error("upsample { size: 8 mode: linear }"),
            of("upsample", "mode linear is not for 4 axes"));
  EXPECT_EQ(error("upsample {}"),
            at + "'size' and 'scale_factor' are both missing; expected one");
  EXPECT_EQ(error("glu {}"), at + "layer 'l' (glu) expects an even extent of "
                                  "the axis; input 'x' gives [-1, 4, 6, 5]");
  EXPECT_EQ(error("prelu { num_parameters: 3 }"),
            at + "layer 'l' (prelu) expects 3 input channels; input 'x' gives "
                 "[-1, 4, 6, 5]");
  EXPECT_EQ(error("batch_norm { act: \"rellu\" }"),
            at + "'act' is 'rellu'; it takes an activation's name, like relu, "
                 "did you mean 'relu'?");
  EXPECT_EQ(error("conv2d_transpose { out_channels: 1 kernel_size: 3 stride: 2 "
                  "output_padding: 2 }"),
            at + "'output_padding' is 2; it must be below the stride 2 or the "
                 "dilation 1");
  EXPECT_EQ(
      ErrorOf(Model("[-1, 4, 6, 5]", "layer { pad3d { padding: [1, 2] } }")),
      "job.pbtxt:3:17: 'padding' has 2 values; it takes 1 or 6");
}

TEST(Build, ExplainsLosses) {
  const std::string model =
      Model("[-1, 6]", "layer { linear { out_features: 3 } }");
  EXPECT_EQ(ErrorOf(model + "loss { input: \"lin\" mse_loss {} }"),
            "job.pbtxt:5:8: the loss reads 'lin'; no layer before it and no "
            "input has that name");
  EXPECT_EQ(ErrorOf(model + "loss { label: \"x\" mse_loss {} }"),
            "job.pbtxt:5:1: the predictions are [-1, 3] and the labels 'x' "
            "[-1, 6]; expected labels of the same shape");
}

TEST(Build, UnfoldsBlocks) {
  const std::string block = R"(
  block {
    name: "twice"
    argument { name: "n" sets: ["a.linear.out_features", "b.linear.out_features"] }
    layer { name: "a" linear { out_features: 4 } }
    layer { name: "b" linear { out_features: 4 } }
    layer { name: "sum" input: ["a", "b"] add {} }
  }
)";
  const auto built = Build(Model(
      "[-1, 6]", block + "layer { name: \"s\" block { use: \"twice\" repeat: 2 "
                         "set: \"n=5\" } }\nlayer { relu {} }"));
  ASSERT_TRUE(built.ok()) << built.status();
  std::vector<std::string> names;
  for (const LayerInfo& layer : built->layers) names.push_back(layer.name);
  EXPECT_EQ(absl::StrJoin(names, " "),
            "s.0/a s.0/b s.0/sum s.1/a s.1/b s.1/sum relu_0");
  EXPECT_EQ(ToString(ShapeOf(*built, "s.1.b.weight")), "[5, 5]");
  const auto use = [&](const std::string& use) {
    return ErrorOf(Model("[-1, 6]", block + "layer { block { " + use + " } }"));
  };
  EXPECT_EQ(use("use: \"twise\""),
            "job.pbtxt:11:1: there is no block 'twise', did you mean 'twice'?");
  EXPECT_EQ(use("use: \"twice\" set: \"m=1\""),
            "job.pbtxt:11:1: block 'twice' has no argument 'm', did you mean "
            "'n'?");
  EXPECT_EQ(use("use: \"twice\" set: \"n=x\""),
            "job.pbtxt:11:1: argument 'n' of block 'twice', which sets "
            "'a.linear.out_features': 'out_features' takes an integer; got "
            "'x'");
  EXPECT_EQ(use("use: \"twice\" set: \"n=0\""),
            "job.pbtxt:11:1: 'out_features' is 0; it must be at least 1");
  EXPECT_EQ(
      ErrorOf(Model("[-1, 6]",
                    "block { name: \"r\" layer { block { use: \"r\" } } }\n"
                    "layer { block { use: \"r\" } }"))
          .substr(0, 100),
      "job.pbtxt:3:19 (used at job.pbtxt:3:19): blocks use each other more "
      "than 32 deep; does 'r' use itsel");
  const std::string inside = ErrorOf(Model(
      "[-1, 6]",
      "block { name: \"r\" layer { linear { in_features: 7 out_features: 1 } } "
      "}\nlayer { name: \"u\" block { use: \"r\" } }"));
  EXPECT_EQ(inside,
            "job.pbtxt:3:19 (used at job.pbtxt:4:1): layer 'u/linear_0' "
            "(linear) expects 7 input features; input 'x' gives [-1, 6]");
}

TEST(Build, SharesParametersByName) {
  const std::string attr = "weight_attr { name: \"w\" } bias: false";
  const auto built =
      Build(Model("[-1, 4]", "layer { linear { out_features: 4 " + attr +
                                 " } }\nlayer { linear { out_features: 4 " +
                                 attr + " } }"));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_EQ(built->parameters.size(), 1u);
  EXPECT_EQ(built->startup.global().ops.size(), 1u);
  EXPECT_EQ(
      ErrorOf(Model("[-1, 4]", "layer { linear { out_features: 4 " + attr +
                                   " } }\nlayer { linear { "
                                   "out_features: 5 " +
                                   attr + " } }")),
      "job.pbtxt:4:1: layer 'linear_1' (linear) needs a parameter of "
      "shape [4, 5]; 'w' is one of shape [4, 4]");
}

float StartAttr(const BuiltModel& built, const std::string& name,
                const std::string& attr) {
  for (const OpDesc& op : built.startup.global().ops)
    if (op.Out("Out") == name) return op.AttrOr<float>(attr, NAN);
  return NAN;
}

// Numbers of real PaddlePaddle 2.6.2's startup programs.
TEST(Build, StartsAsPaddlePaddleDoes) {
  const auto built = Build(Model("[-1, 1, 28, 28]", R"(
    layer { conv2d { out_channels: 6 kernel_size: 3 padding: 1 } }
    layer { conv2d { out_channels: 8 kernel_size: 3 groups: 2 bias: false } }
    layer { batch_norm2d {} }
    layer { adaptive_avg_pool2d { output_size: 2 } }
    layer { flatten {} }
    layer { linear { out_features: 20 } }
    layer { linear { out_features: 40 weight_attr {
      initializer { xavier_normal {} } } } }
    layer { linear { out_features: 10 weight_attr {
      initializer { kaiming_normal {} } } } }
    layer { linear { out_features: 10 weight_attr {
      initializer { kaiming_uniform { nonlinearity: tanh } } } } }
  )"));
  ASSERT_TRUE(built.ok()) << built.status();
  EXPECT_FLOAT_EQ(StartAttr(*built, "conv2d_0.w_0", "std"),
                  0.4714045226573944f);
  EXPECT_FLOAT_EQ(StartAttr(*built, "conv2d_1.w_0", "std"),
                  0.19245009124279022f);
  EXPECT_FLOAT_EQ(StartAttr(*built, "linear_0.w_0", "max"),
                  0.3396831154823303f);
  EXPECT_FLOAT_EQ(StartAttr(*built, "linear_1.w_0", "std"),
                  std::sqrt(2.0f / 60));
  EXPECT_FLOAT_EQ(StartAttr(*built, "linear_2.w_0", "std"),
                  0.22360679507255554f);
  EXPECT_FLOAT_EQ(StartAttr(*built, "linear_3.w_0", "max"),
                  5.0f / 3 * std::sqrt(3.0f / 10));
  EXPECT_FLOAT_EQ(StartAttr(*built, "batch_norm2d_0.w_2", "value"), 1);
  // The test form has no use for batch_norm's ReserveSpace.
  EXPECT_EQ(built->test.global().vars.size() + 1,
            built->main.global().vars.size());
  EXPECT_FALSE(FindOp(built->main, "batch_norm")->AttrOr("is_test", true));
  EXPECT_TRUE(FindOp(built->test, "batch_norm")->AttrOr("is_test", false));
}

// First values of a convolution's filters.
std::vector<float> FirstValues(const std::string& channels,
                               const std::string& layer,
                               const std::string& initializer) {
  const auto built =
      Build(Model(absl::StrCat("[-1, ", channels, "]"),
                  absl::StrCat("layer { name: \"l\" ", layer,
                               " bias: false weight_attr { initializer { ",
                               initializer, " } } } }")));
  EXPECT_TRUE(built.ok()) << built.status();
  if (!built.ok()) return {};
  Session session(&ReferenceRegistry(), 1);
  const absl::Status status = session.RunOnce(built->startup);
  EXPECT_TRUE(status.ok()) << status;
  const auto value = session.scope().Get("l.weight");
  EXPECT_TRUE(value.ok());
  return std::vector<float>(value->data<float>(),
                            value->data<float>() + NumElements(value->shape));
}

// Numbers of real PaddlePaddle 2.6.2.
TEST(Build, DiracAndBilinearFilters) {
  EXPECT_EQ(FirstValues("2, 9", "conv1d { out_channels: 4 kernel_size: 3",
                        "dirac { groups: 2 }"),
            (std::vector<float>{0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0,
                                0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0}));
  EXPECT_EQ(FirstValues("1, 9, 9", "conv2d { out_channels: 1 kernel_size: 4",
                        "bilinear {}"),
            (std::vector<float>{0.0625, 0.28125, 0.375, 0.15625, 0.1875,
                                0.65625, 0.75, 0.21875, 0.1875, 0.46875, 0.375,
                                0.09375, 0.0625, 0.09375, 0, -0.03125}));
  EXPECT_EQ(ErrorOf(Model("[-1, 4]",
                          "layer { linear { out_features: 3 weight_attr { "
                          "initializer { dirac {} } } } }")),
            "job.pbtxt:3:1: 'dirac' is for filters of 3 to 5 axes; parameter "
            "'linear_0.w_0' has shape [4, 3]");
}

// The fewer of rows and columns have length gain and are orthogonal.
TEST(Build, OrthogonalMatrices) {
  for (const auto& [in, out] : {std::pair<size_t, size_t>{3, 5}, {6, 4}}) {
    const std::vector<float> w = FirstValues(
        absl::StrCat(in), absl::StrCat("linear { out_features: ", out),
        "orthogonal { gain: 2 }");
    ASSERT_EQ(w.size(), in * out);
    const bool rows = in < out;
    const size_t n = rows ? in : out, length = rows ? out : in;
    for (size_t a = 0; a < n; ++a) {
      for (size_t b = 0; b < n; ++b) {
        double product = 0;
        for (size_t k = 0; k < length; ++k)
          product += rows ? w[a * out + k] * w[b * out + k]
                          : w[k * out + a] * w[k * out + b];
        EXPECT_NEAR(product, a == b ? 4 : 0, 1e-5);
      }
    }
  }
}

TEST(Build, EveryInitializerRuns) {
  for (const char* text :
       {"constant { value: 3 }", "normal {}", "truncated_normal { std: 0.1 }",
        "uniform { low: 0 high: 1 }", "xavier_normal {}", "xavier_uniform {}",
        "kaiming_normal { nonlinearity: leaky_relu negative_slope: 0.1 }",
        "kaiming_uniform { nonlinearity: selu }", "orthogonal {}",
        "assign { value: [1, 2, 3, 4, 5, 6] }"}) {
    SCOPED_TRACE(text);
    const auto built =
        Build(Model("[-1, 2]", absl::StrCat("layer { linear { out_features: 3 "
                                            "weight_attr { initializer { ",
                                            text, " } } } }")));
    ASSERT_TRUE(built.ok()) << built.status();
    Session session(&ReferenceRegistry(), 1);
    const absl::Status status = session.RunOnce(built->startup);
    EXPECT_TRUE(status.ok()) << status;
  }
  EXPECT_EQ(ErrorOf(Model("[-1, 2]",
                          "layer { linear { out_features: 3 weight_attr { "
                          "initializer { assign { value: 1 } } } } }")),
            "job.pbtxt:3:1: 'assign' holds 1 values; parameter 'linear_0.w_0' "
            "has shape [2, 3]");
}

TEST(Build, EveryLayerKindIsBuilt) {
  const auto* kinds = job::Layer::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < kinds->field_count(); ++i)
    EXPECT_TRUE(kinds->field(i)->name() == "block" ||
                FindLayer(kinds->field(i)->number()) != nullptr)
        << kinds->field(i)->name();
}

// Simple layers run and have a gradient; testdata/layers has cases of others.
TEST(Build, SimpleLayersRun) {
  const std::map<std::string, std::string> needs = {
      {"linear", "out_features: 3"},
      {"conv2d", "out_channels: 2 kernel_size: 1"},
      {"max_pool2d", "kernel_size: 2"},
      {"avg_pool2d", "kernel_size: 2"},
      {"adaptive_avg_pool2d", "output_size: 2"},
      {"reshape", "shape: [0, 4, 4]"},
      {"transpose", "perm: [0, 2, 3, 1]"},
  };
  for (const std::string kind :
       {"linear", "conv2d", "max_pool2d", "avg_pool2d", "adaptive_avg_pool2d",
        "batch_norm1d", "batch_norm2d", "layer_norm", "dropout", "flatten",
        "reshape", "transpose", "add", "multiply", "concat", "mean", "identity",
        "relu"}) {
    SCOPED_TRACE(kind);
    const auto it = needs.find(kind);
    const std::string body = it == needs.end() ? "" : it->second;
    const bool joins = kind == "add" || kind == "multiply" || kind == "concat";
    auto built = Build(
        Model("[-1, 1, 4, 4]",
              absl::StrCat("layer { name: \"c\" conv2d { out_channels: 1 "
                           "kernel_size: 1 } }\n",
                           kind == "batch_norm1d"
                               ? "layer { reshape { shape: [0, 4, 4] } }\n"
                               : "",
                           "layer { ", joins ? "input: [\"c\", \"x\"] " : "",
                           kind, " { ", body, " } }")) +
        "loss { mse_loss {} }");
    ASSERT_TRUE(built.ok()) << built.status();
    BackwardOptions options;
    options.targets[built->loss] = "";
    const auto gradients =
        AppendBackward(ReferenceRegistry(), options, &built->main);
    ASSERT_TRUE(gradients.ok()) << gradients.status();
    Session session(&ReferenceRegistry(), 3);
    ASSERT_TRUE(session.RunOnce(built->startup).ok());
    NamedArrays feeds;
    for (const VarDesc& var : {built->inputs[0], built->labels[0]}) {
      Shape shape = var.shape;
      if (!shape.empty())
        shape[0] = kind == "concat" && var.name == "label" ? 4 : 2;
      std::vector<float> values(static_cast<size_t>(NumElements(shape)));
      for (size_t k = 0; k < values.size(); ++k)
        values[k] = 0.1f * static_cast<float>(k % 7) - 0.2f;
      feeds[var.name] = MakeArray(shape, values);
    }
    const auto results =
        session.Run(built->main, feeds, {gradients->begin()->second});
    EXPECT_TRUE(results.ok()) << results.status();
  }
}

}  // namespace test_build
}  // namespace pd

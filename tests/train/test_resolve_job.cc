// SPDX-License-Identifier: Apache-2.0
// Values that a job takes from its data: means and deviations against NumPy's,
// sizes against the known sizes of the files.
#include "libcore/train/resolve_job.h"

#include <filesystem>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "libcore/base/file.h"
#include "libcore/base/status_macros.h"
#include "libcore/nn/job.pb.h"
#include "libcore/nn/job_sizes.h"
#include "libcore/train/open_data.h"

namespace pd {
namespace test_resolve_job {

// Absolute, as a run's job.pbtxt has it.
const std::string& Table() {
  static const auto* const kTable = new std::string(
      std::filesystem::absolute(PD_TESTDATA "/friedman/train.csv").string());
  return *kTable;
}

absl::StatusOr<LoadedJob> Resolve(const std::string& model,
                                  const std::string& data,
                                  const std::string& run = "") {
  PD_ASSIGN_OR_RETURN(
      const LoadedJob job,
      ParseJob(absl::StrCat("model { input { name: \"x\" shape: [-1, ",
                            "@columns] } ", model, " }\n", data),
               "job.pbtxt"));
  return ResolveJob(job, run);
}

std::string Train(const std::string& rest) {
  return absl::StrCat("data { train { csv { path: \"", Table(),
                      "\" field { name: \"y\" column: \"y\" } ", rest, " }\n");
}

std::string ErrorOf(const absl::StatusOr<LoadedJob>& job) {
  return job.ok() ? "no error" : std::string(job.status().message());
}

void ExpectNear(const job::Column& field, const std::vector<double>& mean,
                const std::vector<double>& std) {
  for (size_t i = 0; i < mean.size(); ++i) {
    EXPECT_NEAR(field.mean(static_cast<int>(i)), mean[i], 1e-13);
    EXPECT_NEAR(field.std(static_cast<int>(i)), std[i], 1e-13);
  }
}

// np.loadtxt(...): mean(0) and std(0) of x1, x2, x3.
TEST(ResolveJob, StandardizesAsNumPy) {
  const auto job =
      Resolve("layer { relu {} }",
              Train("field { name: \"x\" column: \"*\" standardize: true } }") +
                  "eval { csv { path: \"" + Table() + "\" } } }");
  ASSERT_TRUE(job.ok()) << job.status();
  const job::Data& data = job->proto().data();
  EXPECT_EQ(job->proto().model().input(0).shape(1), 10);
  ASSERT_EQ(data.train().csv().field(1).mean_size(), 10);
  ExpectNear(data.train().csv().field(1),
             {0.4933676666666663, 0.4959453999999992, 0.49778913333333374},
             {0.285332868537589, 0.29057974811086423, 0.29304940811277697});
  EXPECT_EQ(data.eval().csv().field(1).SerializeAsString(),
            data.train().csv().field(1).SerializeAsString());
  // Values read have mean 0 and variance 1, and are those of the stored job.
  const auto stored = ParseJob(job->EffectiveText(), "stored.pbtxt");
  ASSERT_TRUE(stored.ok()) << stored.status();
  EXPECT_EQ(stored->proto().data().SerializeAsString(),
            data.SerializeAsString());
  RunVocabularies vocabularies;
  const auto set =
      OpenDataset(*stored, stored->proto().data().train(), &vocabularies);
  ASSERT_TRUE(set.ok()) << set.status();
  double sum = 0, squares = 0;
  Record record;
  for (int64_t i = 0; i < (*set)->size(); ++i) {
    ASSERT_TRUE((*set)->Read(i, &record).ok());
    const float value =
        reinterpret_cast<const float*>(record.fields[1].data)[4];
    sum += value;
    squares += value * value;
  }
  EXPECT_NEAR(sum / 1500, 0, 1e-6);
  EXPECT_NEAR(squares / 1500, 1, 1e-6);
}

// Only the records that training reads: a[100:350].
TEST(ResolveJob, MeasuresTheSubset) {
  const auto job = Resolve(
      "layer { relu {} }",
      Train("field { name: \"x\" column: \"*\" standardize: true } } subset { "
            "range: \"100:350\" }") +
          "}");
  ASSERT_TRUE(job.ok()) << job.status();
  ExpectNear(job->proto().data().train().csv().field(1),
             {0.49945280000000064, 0.5146880000000003, 0.48227600000000004},
             {0.2935794119691638, 0.30078095660463616, 0.3033854158393247});
}

// np.log1p comes first; a column that does not vary has std 1.
TEST(ResolveJob, LogarithmsAndConstants) {
  const std::string path = ::testing::TempDir() + "/constant.csv";
  ASSERT_TRUE(WriteFile(path, "a,b,y\n3,1e9,0\n3,1000000001,1\n").ok());
  const auto constant = Resolve(
      "layer { relu {} }",
      "data { train { csv { path: \"" + path +
          "\" field { name: \"x\" column: [\"a\", \"b\"] standardize: true } "
          "} } }");
  ASSERT_TRUE(constant.ok()) << constant.status();
  ExpectNear(constant->proto().data().train().csv().field(0), {3, 1000000000.5},
             {1, 0.5});
  const auto logarithm = Resolve(
      "layer { relu {} }",
      "data { train { csv { path: \"" + Table() +
          "\" field { name: \"x\" column: \"y\" log1p: true standardize: true "
          "} } } }");
  ASSERT_TRUE(logarithm.ok()) << logarithm.status();
  ExpectNear(logarithm->proto().data().train().csv().field(0),
             {2.6622860919532734}, {0.38263036859808386});
}

TEST(ResolveJob, EachSizeOfItsField) {
  const std::string path = ::testing::TempDir() + "/sizes.csv";
  std::string rows = "a,b,words,who,kind,n\n";
  for (int i = 0; i < 12; ++i)
    absl::StrAppend(&rows, i, ",", i * i, ",a w", i % 4, " b,u", i, ",k", i % 3,
                    ",", i % 5, "\n");
  ASSERT_TRUE(WriteFile(path, rows).ok());
  const auto job = Resolve(
      R"(layer { name: "kind" input: "x" linear { out_features: @classes(kind) } }
         layer { name: "n" input: "x" linear { out_features: @classes } }
         layer { name: "w" input: "x" linear { out_features: @vocabulary(words) } }
         layer { name: "h" input: "x" linear { out_features: @vocabulary(who) } }
         layer { name: "u" input: "x" linear { out_features: @classes(other) } })",
      "loss { label: \"n\" cross_entropy {} }\n"
      "data { train { csv { path: \"" +
          path +
          R"(" field { name: "x" column: ["a", "b"] }
          field { name: "words" column: "words" text {} }
          field { name: "who" column: "who" hash_buckets: 37 }
          field { name: "kind" column: "kind" categories {} }
          field { name: "other" column: "kind" categories { unknown: true } }
          field { name: "n" column: "n" dtype: int64 } } } })");
  ASSERT_TRUE(job.ok()) << job.status();
  const job::Model& model = job->proto().model();
  const auto size = [&](int layer) {
    return model.layer(layer).linear().out_features();
  };
  EXPECT_EQ(model.input(0).shape(1), 2);
  EXPECT_EQ(size(0), 3);      // k0, k1, k2
  EXPECT_EQ(size(1), 5);      // 0 to 4
  EXPECT_EQ(size(2), 4 + 6);  // special tokens; a, b, w0 to w3
  EXPECT_EQ(size(3), 37);
  EXPECT_EQ(size(4), 3 + 1);  // and unknown ones
}

TEST(ResolveJob, Folders) {
  const std::string root = ::testing::TempDir() + "/folders";
  for (const char* name : {"ant", "bee", "cat"}) {
    std::filesystem::create_directories(root + "/" + name);
    std::filesystem::copy_file(
        PD_TESTDATA "/images/rgb.png", root + "/" + name + "/a.png",
        std::filesystem::copy_options::overwrite_existing);
  }
  const auto text = absl::StrCat(
      "model { input { name: \"image\" shape: [-1, 3, 8, 8] } layer { flatten "
      "{} } layer { linear { out_features: @classes } } } data { train { "
      "dataset_folder { root: \"",
      root, "\" } } }");
  const auto folders = ParseJob(text, "job.pbtxt");
  ASSERT_TRUE(folders.ok()) << folders.status();
  const auto resolved = ResolveJob(*folders);
  ASSERT_TRUE(resolved.ok()) << resolved.status();
  EXPECT_EQ(resolved->proto().model().layer(1).linear().out_features(), 3);
}

TEST(ResolveJob, Errors) {
  EXPECT_EQ(ErrorOf(Resolve("layer { relu {} }", "")),
            "job.pbtxt:1:39: @columns is what data.train says, which the job "
            "does not have");
  EXPECT_EQ(ErrorOf(Resolve("layer { relu {} }", Train("} }"))),
            "job.pbtxt:1:39: data.train has no field 'x'; it has 'y'");
  const std::string x = "field { name: \"x\" column: \"x1:x3\" } } }";
  EXPECT_EQ(
      ErrorOf(
          Resolve("layer { linear { out_features: @vocabulary } }", Train(x))),
      "job.pbtxt:1:68: '@vocabulary' does not say which field is meant: none "
      "of data.train has texts with numbers");
  EXPECT_EQ(ErrorOf(Resolve("layer { linear { out_features: @classes(y) } }",
                            Train(x))),
            "job.pbtxt:1:68: field 'y' is float32[1]; classes are integers");
  // Evaluation is scaled as training is, or not at all.
  const std::string scaled =
      "field { name: \"x\" column: \"x1:x3\" standardize: true } }";
  EXPECT_NE(
      ErrorOf(Resolve("layer { relu {} }",
                      Train(scaled) + "eval { csv { path: \"" + Table() +
                          "\" field { name: \"x\" column: \"x1:x3\" } } } }"))
          .find("data.train standardizes field 'x'"),
      std::string::npos);
  EXPECT_NE(ErrorOf(Resolve("layer { relu {} }",
                            Train("field { name: \"x\" column: \"x1:x3\" } }") +
                                "eval { csv { path: \"" + Table() + "\" " +
                                scaled + "} }"))
                .find("standardized here alone"),
            std::string::npos);
}

}  // namespace test_resolve_job
}  // namespace pd

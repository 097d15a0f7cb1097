// SPDX-License-Identifier: Apache-2.0
// A name on a command line stands for one thing, whoever asks: OpenContent,
// LoadModel and Inspect find the same values in every form of a model, and
// refuse the same files in the same words. The values are numpy's of a network
// that PaddlePaddle wrote.
#include "libcore/model/content.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <functional>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "formats/npz.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/safetensors.h"
#include "formats/tensor_stream.h"
#include "libcore/base/file.h"
#include "libcore/model/inspect.h"
#include "libcore/model/load_model.h"
#include "libcore/model/tree.h"
#include "tests/formats/format_test.h"
#include "tests/ops/registry.h"

namespace pd {
namespace test_content {

namespace fs = std::filesystem;
using testing::ExpectSameArray;
using testing::TestData;
using Kind = LoadedModel::Kind;

constexpr char kModel[] = "models/inference.pdmodel";
constexpr char kJoint[] = "models/inference.pdiparams";

std::string Scratch(const std::string& name) {
  const auto path = fs::path(PD_BINARY_DIR) / "test_scratch" / "content" / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

void Copy(const std::string& from, const std::string& to) {
  fs::create_directories(fs::path(to).parent_path());
  fs::copy_file(TestData(from), to, fs::copy_options::overwrite_existing);
}

NamedArrays Expected() {
  const auto want = ReadNpz(TestData("numpy/inference.npz"));
  EXPECT_TRUE(want.ok()) << want.status();
  return want.value_or(NamedArrays());
}

ProgramDesc Program() {
  const auto program = ReadProgram(TestData(kModel));
  EXPECT_TRUE(program.ok()) << program.status();
  return program.value_or(ProgramDesc());
}

void ExpectSame(const NamedArrays& got, const NamedArrays& want) {
  EXPECT_EQ(got.size(), want.size());
  for (const auto& [name, array] : want) {
    const auto found = got.find(name);
    ASSERT_NE(found, got.end()) << name;
    ExpectSameArray(found->second, array, name);
  }
}

// All three readers find these values under `name`.
void ExpectValues(const std::string& name, Content::Form form, Kind kind,
                  const NamedArrays& want) {
  SCOPED_TRACE(name);
  const auto content = OpenContent(name, ReadOptions());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->form, form);
  ExpectSame(ArraysIn(content->object), want);
  const auto model = LoadModel(name);
  ASSERT_TRUE(model.ok()) << model.status();
  EXPECT_EQ(model->kind, kind);
  ExpectSame(model->params, want);
  const auto inspection = Inspect(ReferenceRegistry(), name);
  ASSERT_TRUE(inspection.ok()) << inspection.status();
  ASSERT_EQ(inspection->tensors.size(), want.size());
  for (const TensorInfo& tensor : inspection->tensors) {
    ASSERT_EQ(want.count(tensor.name), 1u) << tensor.name;
    EXPECT_EQ(tensor.shape, want.at(tensor.name).shape) << tensor.name;
    EXPECT_TRUE(tensor.stats.has_value()) << tensor.name;
  }
}

// All three readers refuse `name` in the same words.
void ExpectError(const std::string& name, const std::string& says) {
  SCOPED_TRACE(name);
  const absl::Status content = ReadContent(name, ReadOptions()).status();
  EXPECT_TRUE(absl::StrContains(content.message(), says)) << content;
  EXPECT_TRUE(absl::StrContains(content.message(), name)) << content;
  EXPECT_EQ(LoadModel(name).status().ToString(), content.ToString());
  EXPECT_EQ(Inspect(ReferenceRegistry(), name).status().ToString(),
            content.ToString());
}

TEST(Content, EveryFormOfAModelHoldsItsValues) {
  const NamedArrays want = Expected();
  const auto file = Content::Form::kFile;
  ExpectValues(TestData("models/inference"), file, Kind::kInference, want);
  ExpectValues(TestData(kModel), file, Kind::kInference, want);
  // static.save: parameters and the rest in state dicts.
  const std::string prefix = Scratch("static/m");
  Copy(kModel, prefix + ".pdmodel");
  StateDict params, rest;
  for (const auto& [name, array] : want)
    (absl::StrContains(name, ".w_") ? params : rest).tensors[name] = array;
  ASSERT_TRUE(WriteStateDict(prefix + ".pdparams", params).ok());
  ASSERT_TRUE(WriteStateDict(prefix + ".pdopt", rest).ok());
  ExpectValues(prefix, file, Kind::kInference, want);
  // PaddlePaddle 1.x.
  const auto folder = Content::Form::kFolder;
  Copy(kModel, Scratch("joint/__model__"));
  Copy(kJoint, Scratch("joint/__params__"));
  ExpectValues(Scratch("joint"), folder, Kind::kInference, want);
  ExpectValues(Scratch("joint/__model__"), file, Kind::kInference, want);
  Copy(kModel, Scratch("separate/__model__"));
  for (const auto& [name, array] : want)
    ASSERT_TRUE(WriteTensor(Scratch("separate/" + name), array).ok());
  ExpectValues(Scratch("separate"), folder, Kind::kInference, want);
}

TEST(Content, ACheckpointByEachOfItsNames) {
  const NamedArrays want = Expected();
  Checkpoint checkpoint;
  checkpoint.state.step = checkpoint.state.best_step = 7;
  checkpoint.state.best_metric = "acc";
  checkpoint.program = Program();
  checkpoint.params = want;
  const std::string run = Scratch("RUN");
  ASSERT_TRUE(WriteCheckpoint(run, checkpoint, 0).ok());
  ASSERT_TRUE(WriteFile(run + "/job.pbtxt", "").ok());
  for (const char* name :
       {"", "/", "@best", "@step-7", "/checkpoints/step-7"}) {
    ExpectValues(run + name, Content::Form::kCheckpoint, Kind::kRun, want);
    const auto content = OpenContent(run + name, ReadOptions());
    ASSERT_TRUE(content.ok()) << content.status();
    EXPECT_EQ(content->state.step, 7);
    EXPECT_EQ(content->checkpoint->newest, std::string(name).size() < 2);
  }
  // A model that was exported under the run's name stands beside it.
  Copy(kModel, run + ".pdmodel");
  Copy(kJoint, run + ".pdiparams");
  ExpectValues(run, Content::Form::kFile, Kind::kInference, want);
  ExpectValues(run + "/", Content::Form::kCheckpoint, Kind::kRun, want);
  fs::remove(run + ".pdmodel");
}

TEST(Content, ParametersOfEveryForm) {
  const NamedArrays want = Expected();
  StateDict state;
  state.tensors = want;
  ASSERT_TRUE(WriteStateDict(Scratch("w.pdparams"), state).ok());
  ASSERT_TRUE(WriteNpz(Scratch("w.npz"), want).ok());
  Safetensors tensors;
  tensors.tensors.assign(want.begin(), want.end());
  ASSERT_TRUE(WriteSafetensors(Scratch("w.safetensors"), tensors).ok());
  for (const auto& [name, array] : want)
    ASSERT_TRUE(WriteTensor(Scratch("vars/" + name), array).ok());
  for (const char* name : {"w", "w.pdparams", "w.safetensors"})
    ExpectValues(Scratch(name), Content::Form::kFile, Kind::kParameters, want);
  ExpectValues(Scratch("vars"), Content::Form::kTensorFolder, Kind::kParameters,
               want);
  ExpectValues(TestData(kJoint), Content::Form::kFile, Kind::kParameters, want);
  ExpectValues(Scratch("w.npz"), Content::Form::kFile, Kind::kParameters, want);
}

// An npz has no views: without `whole` nothing of it is read.
TEST(Content, ArraysOfAnNpzStayUnread) {
  ReadOptions options;
  options.whole = false;
  const auto content = OpenContent(TestData("numpy/inference.npz"), options);
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->kind, FileKind::kNpz);
  EXPECT_GT(content->bytes.size, 0u);
  EXPECT_NE(content->object.As<PickleNone>(), nullptr);
}

TEST(Content, EveryReaderRefusesInTheSameWords) {
  ExpectError(Scratch("nothing"), "' not found: neither it nor '");
  fs::create_directories(Scratch("empty"));
  ExpectError(Scratch("empty"),
              "is no model: it has neither '__model__' nor 'latest'");
  Copy(kModel, Scratch("two/a.pdmodel"));
  Copy(kModel, Scratch("two/b.pdmodel"));
  ExpectError(Scratch("two"), "holds several programs");
  const auto good = ReadFile(TestData(kJoint));
  ASSERT_TRUE(good.ok()) << good.status();
  Copy(kModel, Scratch("cut.pdmodel"));
  ASSERT_TRUE(WriteFile(Scratch("cut.pdiparams"),
                        good->view().substr(0, good->size - 5))
                  .ok());
  ExpectError(Scratch("cut"), "cut.pdiparams': ");
  ASSERT_TRUE(WriteFile(Scratch("damaged.pdmodel"), "\n\x7f").ok());
  ExpectError(Scratch("damaged.pdmodel"), "damaged.pdmodel': ");
  NamedArrays wrong = Expected();
  wrong["fc_0.b_0"] = MakeArray<float>({3}, {1, 2, 3});
  Copy(kModel, Scratch("wrong.pdmodel"));
  ASSERT_TRUE(WriteTensors(Scratch("wrong.pdiparams"), wrong).ok());
  ExpectError(Scratch("wrong"),
              "'fc_0.b_0' has shape [3], the program declares [7]");
}

TEST(Content, FilesThatAreNoModels) {
  const std::string text = Scratch("notes.txt");
  ASSERT_TRUE(WriteFile(text, "notes\n").ok());
  const absl::Status read = ReadContent(text, ReadOptions()).status();
  EXPECT_TRUE(absl::StrContains(read.message(), "is no model")) << read;
  EXPECT_TRUE(absl::StrContains(read.message(), "kind 'text'")) << read;
  EXPECT_EQ(LoadModel(text).status().ToString(), read.ToString());
  // Of tensors without names a network takes none.
  Copy(kJoint, Scratch("alone.pdiparams"));
  const auto content = ReadContent(Scratch("alone.pdiparams"), ReadOptions());
  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_TRUE(content->numbered());
  EXPECT_FALSE(LoadModel(Scratch("alone.pdiparams")).ok());
  // A program beside it that cannot name them: a note of inspection, which asks
  // about the file alone, and an error for whoever writes another.
  Copy("models/tiny.pdmodel", Scratch("other.pdmodel"));
  Copy(kJoint, Scratch("other.pdiparams"));
  const auto other = Inspect(ReferenceRegistry(), Scratch("other.pdiparams"));
  ASSERT_TRUE(other.ok()) << other.status();
  ASSERT_EQ(other->notes.size(), 1u);
  EXPECT_TRUE(absl::StrContains(other->notes[0], "the file holds 8 tensors"));
  const absl::Status refused =
      ReadContent(Scratch("other.pdiparams"), ReadOptions()).status();
  EXPECT_TRUE(absl::StrContains(refused.message(), other->notes[0])) << refused;
}

}  // namespace test_content
}  // namespace pd

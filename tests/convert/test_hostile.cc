// SPDX-License-Identifier: Apache-2.0
// A file may hold anything: reading it comes back soon with a value or one line
// that names the file, and asks for no more memory than a file of its size may.
// Small good files of every format are cut at every byte and changed in every
// byte; the damaged files of testdata are read as they are.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>

#include "absl/strings/match.h"
#include "formats/cifar.h"
#include "formats/csv.h"
#include "formats/detect.h"
#include "formats/gzip.h"
#include "formats/idx.h"
#include "formats/image.h"
#include "formats/image_header.h"
#include "formats/json_text.h"
#include "formats/npy.h"
#include "formats/npz.h"
#include "formats/onnx_file.h"
#include "formats/pdmodel.h"
#include "formats/pdparams.h"
#include "formats/safetensors.h"
#include "formats/tensor_stream.h"
#include "formats/torch.h"
#include "libcore/convert/write.h"
#include "libcore/model/inspect.h"
#include "libcore/model/tree.h"
#include "libcore/ops/registry.h"
#include "tests/formats/format_test.h"

namespace {

constexpr size_t kCap = size_t{256} << 20;
std::atomic<size_t> largest{0};  // bytes of one allocation

}  // namespace

#ifndef PD_WITH_SANITIZER
// Sees every `new` of this program and of the libraries it has loaded.
void* operator new(size_t size) {
  size_t seen = largest;
  while (size > seen && !largest.compare_exchange_weak(seen, size)) {
  }
  void* memory = std::malloc(size);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
#endif

namespace pd {
namespace {

namespace fs = std::filesystem;
using testing::ForEveryDamage;
using testing::HeapBytes;
using testing::MustRead;
using testing::TestData;

std::string Scratch(const std::string& name) {
  const auto path = fs::path(PD_BINARY_DIR) / "test_scratch" / "hostile" / name;
  fs::create_directories(path.parent_path());
  return path.string();
}

struct Reader {
  const char* name;
  std::vector<const char*> files;  ///< below testdata, small
  std::function<bool(const FileBytes&)> read;
};

// A good program is written and read again: what passed is whole.
bool ReadAndWriteProgram(const FileBytes& file) {
  const auto program = ParseProgram(file.view());
  if (!program.ok()) return false;
  const auto bytes = SerializeProgram(*program);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() && ParseProgram(*bytes).ok();
}

bool ReadAndWritePickle(const FileBytes& file) {
  const auto value = ParsePickle(file, Alignment::kAny);
  if (!value.ok()) return false;
  const auto bytes = SerializePickle(*value);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  const auto flat = Flatten(*value, "x");
  if (flat.ok()) {
    NamedArrays arrays;
    bool utf8 = true;
    for (const TreeArray& array : flat->arrays) {
      arrays.emplace(array.name, *array.array);
      utf8 &= IsUtf8(array.name);
    }
    EXPECT_EQ(TreeFromJson(TreeToJson(*value, "x"), arrays).ok(), utf8);
  }
  StateDictOf(*value).status().IgnoreError();
  return true;
}

bool DecodeAnyImage(const FileBytes& file) {
  ImageOptions options;
  options.max_pixels = 1 << 20;
  Image image;
  ParseImageHeader(file.view()).IgnoreError();
  return DecodeImage(file.view(), options, &image).ok();
}

const std::vector<Reader>& Readers() {
  static const auto* readers = new std::vector<Reader>{
      {"pickle",
       {"formats/pickles/proto0.pdparams", "formats/pickles/proto1.pdparams",
        "formats/pickles/proto5.pdparams", "formats/pickles/py2.pdparams",
        "formats/pickles/numpy2.pdparams", "formats/pickles/sgd.sched.pdopt",
        "formats/pickles/tensor.p2.pdtensor", "formats/pickles/tensor.pdtensor",
        "formats/pickles/sliced.p4.pdparams"},
       ReadAndWritePickle},
      {"program", {"formats/models/tiny.pdmodel"}, ReadAndWriteProgram},
      {"tensor stream",
       {"formats/streams/lod3.pdtensor", "formats/streams/float32.pdtensor",
        "formats/streams/bool.pdtensor", "formats/streams/combined__params__"},
       [](const FileBytes& f) {
         ParseTensor(f).status().IgnoreError();
         return ParseTensorList(f).ok();
       }},
      {"selected rows",
       {"formats/streams/rows.pdtensor"},
       [](const FileBytes& f) { return ParseSelectedRows(f).ok(); }},
      {"npy",
       {"formats/numpy/lf4F.npy", "formats/numpy/v3.npy",
        "formats/numpy/bc8C.npy"},
       [](const FileBytes& f) { return ParseNpy(f).ok(); }},
      {"npz",
       {"formats/numpy/foreign.npz", "formats/numpy/empty.npz"},
       [](const FileBytes& f) { return ParseNpz(f).ok(); }},
      {"safetensors",
       {"formats/safetensors/small.safetensors"},
       [](const FileBytes& f) { return ParseSafetensors(f).ok(); }},
      {"torch",
       {"formats/torch/small.pt", "formats/torch/small.pth"},
       [](const FileBytes& f) { return ParseTorch(f).ok(); }},
      {"onnx",
       {"formats/onnx/small.onnx"},
       [](const FileBytes& f) { return ParseOnnx(f.view(), "").ok(); }},
      {"image",
       {"images/one_bit.png", "images/rle8.bmp", "images/plain.pgm",
        "images/lzw.tif", "images/fax.tif", "images/tiles.tif",
        "images/lossless.webp", "images/animated.webp"},
       [](const FileBytes& f) { return DecodeAnyImage(f); }},
  };
  return *readers;
}

std::string Path(const char* file) {
  return absl::StrCat(PD_TESTDATA, "/", file);
}

TEST(Hostile, EveryReaderComesBackFromEveryDamage) {
  for (const Reader& reader : Readers()) {
    for (const char* name : reader.files) {
      SCOPED_TRACE(name);
      const FileBytes good = MustRead(Path(name));
      ASSERT_LT(good.size, 4096u);
      EXPECT_TRUE(reader.read(good));
      largest = 0;
      int read = 0, tried = 0;
      ForEveryDamage(good.view(), [&](const FileBytes& bad) {
        read += reader.read(bad);
        DetectKind(bad.view(), name);
        ++tried;
      });
      EXPECT_LT(read, tried);
      EXPECT_LT(largest, kCap);
    }
  }
}

TEST(Hostile, EveryReaderRefusesTheFilesOfTheOthers) {
  for (const Reader& reader : Readers()) {
    for (const Reader& other : Readers()) {
      if (&reader == &other) continue;
      for (const char* name : other.files) {
        SCOPED_TRACE(absl::StrCat(reader.name, " reads ", name));
        largest = 0;
        reader.read(HeapBytes(MustRead(Path(name)).view()));
        EXPECT_LT(largest, kCap);
      }
    }
  }
}

// One line that names the file, or a value.
void ExpectPromptAnswer(const std::string& path, const OpRegistry& registry,
                        bool inspect) {
  const auto begin = std::chrono::steady_clock::now();
  largest = 0;
  const absl::Status status = inspect
                                  ? Inspect(registry, path).status()
                                  : ReadContent(path, ReadOptions()).status();
  EXPECT_LT(largest, kCap) << path;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(30))
      << path;
  if (status.ok()) return;
  EXPECT_TRUE(absl::StrContains(status.message(), path)) << status;
  EXPECT_FALSE(absl::StrContains(status.message(), "\n")) << status;
}

TEST(Hostile, MessagesNameTheFile) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  for (const char* name :
       {"formats/pickles/sgd.sched.pdopt", "formats/streams/lod1.pdtensor",
        "formats/streams/rows.pdtensor", "formats/numpy/lf4F.npy",
        "formats/numpy/foreign.npz", "formats/safetensors/small.safetensors",
        "formats/torch/small.pth", "formats/onnx/small.onnx",
        "formats/models/tiny.pdmodel"}) {
    const std::string path = Scratch(fs::path(name).filename().string());
    const FileBytes good = MustRead(Path(name));
    int tried = 0;
    ForEveryDamage(good.view(), [&](const FileBytes& bad) {
      std::ofstream(path, std::ios::binary) << bad.view();  // no sync
      ExpectPromptAnswer(path, registry, tried++ % 2 == 0);
    });
  }
}

TEST(Hostile, DamagedFilesOfTestdata) {
  OpRegistry registry;
  ASSERT_TRUE(RegisterAllOps(&registry).ok());
  for (const auto& entry : fs::directory_iterator(TestData("malformed"))) {
    ExpectPromptAnswer(entry.path().string(), registry, true);
    ExpectPromptAnswer(entry.path().string(), registry, false);
  }
}

}  // namespace
}  // namespace pd

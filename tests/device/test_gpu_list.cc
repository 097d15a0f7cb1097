// SPDX-License-Identifier: Apache-2.0
// Libraries that are looked for, and GPUs of fakes of NVIDIA's (fake_cuda.cc).
// The driver is loaded once a process, so what other drivers do is told by
// device_test.sh.
#include "libcore/device/gpu_list.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include "libcore/base/flags.h"
#include "libcore/device/dynamic_library.h"
#include "libcore/device/gpu_support.h"

namespace pd {
namespace test_gpu_list {

const std::string kFakes = std::string(PD_BINARY_DIR) + "/tests/device/fakes";

void Look(const std::string& kind) {
  ASSERT_TRUE(SetFlag("cuda_dir", kFakes + "/" + kind).ok());
  ASSERT_TRUE(SetFlag("cudnn_dir", kFakes + "/" + kind).ok());
}

std::string Said(const absl::Status& status) {
  return std::string(status.message());
}

TEST(DynamicLibrary, SaysWhereItLooked) {
  const LibraryQuery query{"a thing",
                           {"libpd_no_such.so.2", "libpd_no_such.so.1"},
                           "FLAGS_cuda_dir",
                           {"/nowhere"}};
  Look("none");
  const auto library = DynamicLibrary::Open(query);
  EXPECT_EQ(library.status().code(), absl::StatusCode::kUnavailable);
  const std::string said = Said(library.status());
  EXPECT_EQ(said.rfind("a thing is not there: no libpd_no_such.so.2, no "
                       "libpd_no_such.so.1 in " +
                           kFakes + "/none (FLAGS_cuda_dir), ",
                       0),
            0u)
      << said;
  EXPECT_NE(said.find("/nowhere"), std::string::npos) << said;
}

TEST(DynamicLibrary, SaysWhatIsWrongWithAFile) {
  const std::string dir = ::testing::TempDir();
  const std::string file = dir + "/libpd_broken.so";
  FILE* f = fopen(file.c_str(), "w");
  ASSERT_NE(f, nullptr);
  fputs("no library", f);
  fclose(f);
  const auto library =
      DynamicLibrary::Open({"a thing", {"libpd_broken.so"}, "", {dir}});
  EXPECT_NE(Said(library.status()).find("libpd_broken.so: "), std::string::npos)
      << library.status();
}

TEST(DynamicLibrary, NamesAMissingFunction) {
  const auto library = DynamicLibrary::Open(
      {"a thing", {"libcudnn.so.9"}, "", {kFakes + "/good"}});
  ASSERT_TRUE(library.ok()) << library.status();
  void (*function)() = nullptr;
  const absl::Status bound = library->Bind("pd_no_such", &function);
  EXPECT_EQ(Said(bound).rfind("a thing has no function 'pd_no_such': '", 0),
            0u);
  EXPECT_EQ(function, nullptr);
}

TEST(GpuList, ListsWhatTheDriverShows) {
  Look("good");
  setenv("FAKE_CUDA", "gpus=2", 1);
  const GpuList list = ListGpus();
  ASSERT_TRUE(list.driver.ok()) << list.driver.status();
  EXPECT_EQ((*list.driver)->version, 13000);
  ASSERT_TRUE(list.error.ok()) << list.error;
  ASSERT_EQ(list.gpus.size(), 2u);
  EXPECT_EQ(list.gpus[1].name, "Fake GPU 1");
  EXPECT_EQ(list.gpus[1].memory_bytes, int64_t{3} << 30);
  EXPECT_EQ(list.gpus[1].capability(), 90);
  EXPECT_EQ(list.gpus[1].multiprocessors, 7);
  ASSERT_TRUE(list.cublaslt.ok()) << list.cublaslt.status();
  EXPECT_EQ(list.cublaslt->version, "13.0.2");
  ASSERT_TRUE(list.cudnn.ok()) << list.cudnn.status();
  EXPECT_EQ(list.cudnn->version, "9.19.2");

  EXPECT_TRUE(FindGpu(1).ok());
  EXPECT_EQ(Said(FindGpu(2).status()),
            "there is no gpu:2; expected gpu:0 to gpu:1");
}

TEST(GpuList, RefusesLibrariesOfOtherVersions) {
  Look("old");
  // Opened libraries stay open under their names, so these two come by path.
  EXPECT_EQ(Said(FindCudnn().status()),
            "cuDNN '" + kFakes +
                "/old/libcudnn.so.9' has version 8.9.7; "
                "expected 9");
  EXPECT_EQ(Said(FindCublasLt().status()),
            "cuBLASLt '" + kFakes +
                "/old/libcublasLt.so.13' has version "
                "11.4.1; expected 12 to 13");
}

TEST(GpuSupport, KnowsTheManualsTable) {
  ASSERT_NE(FindGeneration(3, 5), nullptr);
  EXPECT_EQ(FindGeneration(3, 5)->packages, "CUDA10");
  EXPECT_EQ(FindGeneration(8, 6)->packages, "CUDA11, CUDA11.2 (recommended)");
  EXPECT_EQ(FindGeneration(9, 0), nullptr);
  EXPECT_EQ(ArchitectureName(9, 0), "Hopper");
  EXPECT_EQ(ArchitectureName(8, 9), "Ada");
  EXPECT_EQ(ArchitectureName(99, 0), "");
}

TEST(GpuSupport, SaysWhatItCannotComputeOn) {
  GpuInfo gpu;
  gpu.name = "Tesla K40";
  gpu.major = 3;
  gpu.minor = 5;
  EXPECT_EQ(Said(CheckGpu(gpu, 13000, 13000)),
            "Tesla K40 has compute capability 3.5 (Kepler; PaddlePaddle's "
            "packages: CUDA10); expected 7.5 or above");
  gpu.major = 7;
  EXPECT_TRUE(CheckGpu(gpu, 13000, 13000).ok());
  EXPECT_TRUE(CheckGpu(gpu, 14000, 13000).ok());
  EXPECT_EQ(Said(CheckGpu(gpu, 12080, 13010)),
            "the NVIDIA driver is too old: it runs CUDA 12.8; expected 13.0 or "
            "above, which this build's kernels are compiled by");
  EXPECT_EQ(CheckGpu(gpu, 13000, 0).code(), absl::StatusCode::kUnavailable);
}

}  // namespace test_gpu_list
}  // namespace pd

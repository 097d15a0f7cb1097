// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/version.h"

#include <google/protobuf/stubs/common.h>
#include <oneapi/dnnl/dnnl.h>
#include <zlib.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "cmd/common/devices.h"
#include "libcore/base/parallel.h"

namespace pd {
namespace {

std::vector<std::string> CpuFeatures() {
  __builtin_cpu_init();
  std::vector<std::string> features;
#define PD_CPU_FEATURE(name) \
  if (__builtin_cpu_supports(name)) features.push_back(name)
  PD_CPU_FEATURE("avx2");
  PD_CPU_FEATURE("fma");
  PD_CPU_FEATURE("avx512f");
  PD_CPU_FEATURE("avx512bw");
  PD_CPU_FEATURE("avx512vl");
  PD_CPU_FEATURE("avx512vnni");
  PD_CPU_FEATURE("avx512bf16");
#undef PD_CPU_FEATURE
  return features;
}

std::string ModelName() {
  std::ifstream info("/proc/cpuinfo");
  for (std::string line; std::getline(info, line);) {
    absl::string_view rest = line;
    if (!absl::ConsumePrefix(&rest, "model name")) continue;
    const size_t colon = rest.find(':');
    if (colon != absl::string_view::npos)
      return std::string(absl::StripAsciiWhitespace(rest.substr(colon + 1)));
  }
  return "unknown CPU";
}

std::string DnnlVersion() {
  const dnnl_version_t* v = dnnl_version();
  return absl::StrCat(v->major, ".", v->minor, ".", v->patch);
}

std::string ProtobufVersion() {
  return google::protobuf::internal::VersionString(GOOGLE_PROTOBUF_VERSION);
}

}  // namespace

absl::string_view Version() { return PD_VERSION; }

std::string CpuName() {
  __builtin_cpu_init();
  const char* vectors = __builtin_cpu_supports("avx512f") ? "AVX-512" : "AVX2";
  return absl::StrCat(ModelName(), ", ", vectors);
}

std::vector<std::pair<std::string, std::string>> MachineFacts() {
  return {{"pdkit", std::string(Version())},
          {"CPU", CpuName()},
          {"threads", absl::StrCat(Threads())}};
}

std::string VersionText(absl::string_view tool, const GpuList& gpus,
                        bool json) {
  if (json) {
    const nlohmann::ordered_json object = {
        {"tool", std::string(tool)},
        {"version", PD_VERSION},
        {"build_type", PD_BUILD_TYPE},
        {"compiler", PD_COMPILER},
        {"onednn", DnnlVersion()},
        {"protobuf", ProtobufVersion()},
        {"highway", PD_HIGHWAY},
        {"zlib", zlibVersion()},
        {"gpu", nlohmann::ordered_json::parse(GpuJson(gpus))},
        {"cpu", ModelName()},
        {"cpu_features", CpuFeatures()},
    };
    return object.dump(2) + "\n";
  }
  std::vector<std::pair<std::string, std::string>> rows = {
      {"build", absl::StrCat(PD_BUILD_TYPE, ", ", PD_COMPILER)},
      {"oneDNN", DnnlVersion()},
      {"protobuf", ProtobufVersion()},
      {"Highway", PD_HIGHWAY},
      {"zlib", zlibVersion()},
      {"CPU", ModelName()},
      {"features", absl::StrJoin(CpuFeatures(), " ")},
  };
  for (auto& row : GpuRows(gpus)) rows.push_back(std::move(row));
  std::string text = absl::StrCat(tool, " ", PD_VERSION, "\n");
  for (const auto& [name, value] : rows)
    absl::StrAppend(&text, "  ", name, std::string(10 - name.size(), ' '),
                    value, "\n");
  return text;
}

}  // namespace pd

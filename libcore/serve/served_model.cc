// SPDX-License-Identifier: Apache-2.0
#include "libcore/serve/served_model.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "libcore/base/error.h"
#include "libcore/base/guarded.h"
#include "libcore/base/log.h"
#include "libcore/base/printable.h"
#include "libcore/base/status_macros.h"
#include "libcore/model/load_model.h"
#include "libcore/serve/picture_reader.h"
#include "libcore/serve/run_model.h"

namespace pd {
namespace serve {
namespace {

// One row of zeros; empty where an extent other than the first is open.
NamedArrays ExampleOf(const Signature& signature) {
  NamedArrays example;
  for (const TensorInfo& info : signature.inputs) {
    Shape shape = info.shape;
    if (!shape.empty() && shape[0] < 0) shape[0] = 1;
    std::byte* bytes = nullptr;
    if (IsDynamic(shape) || !CheckInput(info, info.dtype, shape).ok())
      return {};
    auto array = NewArray(info.dtype, shape, &bytes);
    if (!array.ok()) return {};
    std::memset(bytes, 0, array->size_bytes());
    example[info.name] = *std::move(array);
  }
  return example;
}

}  // namespace

absl::StatusOr<std::shared_ptr<ServedModel>> ServedModel::Load(
    const std::string& name, int64_t version, const std::string& path,
    const inference::ModelOptions& model, const BatchOptions& batch,
    Metrics* metrics) {
  return Guarded([&]() -> absl::StatusOr<std::shared_ptr<ServedModel>> {
    LoadOptions reading;
    reading.alignment = Alignment::kAny;
    PD_ASSIGN_OR_RETURN(LoadedModel loaded, LoadModel(path, reading));
    if (loaded.kind == LoadedModel::Kind::kRun && !loaded.run.empty()) {
      PD_ASSIGN_OR_RETURN(loaded, ModelOfRun(loaded));
    }
    if (loaded.kind != LoadedModel::Kind::kInference)
      return Unimplemented(
          "'%s' is no inference model: export it with pd-export first", path);
    auto served = std::make_shared<ServedModel>();
    served->name = name;
    served->version = version;
    served->format = loaded.format;
    PD_ASSIGN_OR_RETURN(const auto pictures, PictureReader::Open(loaded));
    PD_ASSIGN_OR_RETURN(auto shared,
                        inference::SharedModel::Make(std::move(loaded), model));
    auto signature = SignatureOf(*shared);
    if (!signature.ok())
      return Annotate(signature.status(), absl::StrCat("'", path, "'"));
    served->signature = *std::move(signature);
    if (pictures != nullptr) served->signature.inputs[0].pictures = pictures;
    BatchOptions own = batch;
    if (!served->signature.why_alone.empty()) own.max_batch = 1;
    served->metrics = metrics->Of(name, version);
    served->batcher = std::make_unique<Batcher>(
        std::move(shared), own, served->metrics, ExampleOf(served->signature));
    LogInfo("model '%s' version %d is served from '%s'%s", Printable(name),
            version, Printable(path),
            served->signature.why_alone.empty()
                ? ""
                : absl::StrCat("; requests are not joined: ",
                               Printable(served->signature.why_alone)));
    return served;
  });
}

}  // namespace serve
}  // namespace pd

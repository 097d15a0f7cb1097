// SPDX-License-Identifier: Apache-2.0
#include "libcore/data/environment.h"

#include <cmath>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "formats/npy.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/ir/array.h"

namespace pd {
namespace {

// Of what was read ahead: there are many environments, and answers are small.
constexpr size_t kBufferBytes = size_t{1} << 14;

absl::Status CheckFinite(const StreamedArray& array, absl::string_view name) {
  const auto* values = reinterpret_cast<const float*>(array.data);
  for (size_t i = 0; i < array.bytes / sizeof(float); ++i)
    if (!std::isfinite(values[i]))
      return InvalidArgument("field '%s' has the number %g at %d", name,
                             values[i], i);
  return absl::OkStatus();
}

}  // namespace

Environment::Environment(const EnvironmentProgram& program, int64_t number,
                         std::unique_ptr<ChildProcess> child)
    : program_(program),
      number_(number),
      child_(std::move(child)),
      arrays_(child_.get(), kBufferBytes) {
  Array form;
  form.dtype = program.action.dtype;
  form.shape = program.action.shape;
  const std::string header = FormatNpyHeader(form);
  action_at_ = header.size();
  message_.resize(header.size() + program.action.bytes());
  std::memcpy(message_.data(), header.data(), header.size());
}

absl::StatusOr<std::unique_ptr<Environment>> Environment::Start(
    const EnvironmentProgram& program, const EnvironmentStart& start) {
  ChildProcessOptions options;
  options.command = program.command;
  options.folder = program.folder;
  options.timeout = program.timeout;
  options.takes_input = true;
  options.interrupted = start.interrupted;
  options.environment = {{"PD_ENVIRONMENT", absl::StrCat(start.number)},
                         {"PD_SEED", absl::StrCat(start.seed)},
                         {"PD_SET", program.set}};
  auto child = ChildProcess::Start(options);
  if (!child.ok())
    return Annotate(child.status(), ProgramName(program.command));
  return std::unique_ptr<Environment>(
      new Environment(program, start.number, *std::move(child)));
}

absl::Status Environment::At(const absl::Status& status) const {
  if (status.ok() || absl::IsCancelled(status)) return status;
  return Annotate(
      status, absl::StrCat(ProgramName(program_.command), " environment ",
                           number_, " episode ", episode_, " step ", step_));
}

absl::Status Environment::Read(const ExpectedArray& expected,
                               const Shape& shape, StreamedArray* array) {
  const auto check = [&](const Shape& got) -> absl::Status {
    if (got == shape || (shape == Shape{1} && got.empty()))
      return absl::OkStatus();
    return InvalidArgument("field '%s' has the shape %s; %s %s", expected.name,
                           ToString(got), expected.by, ToString(shape));
  };
  return arrays_.Read(expected, /*may_end=*/false, check, array).status();
}

absl::Status Environment::ReadObservation() {
  const EnvironmentTensor& form = program_.observation;
  PD_RETURN_IF_ERROR(
      Read({"observation", form.dtype}, form.shape, &observation_));
  return form.dtype == DType::kFloat32
             ? CheckFinite(observation_, "observation")
             : absl::OkStatus();
}

absl::Status Environment::Begin() {
  if (end_ == EpisodeEnd::kNone) return absl::OkStatus();
  ++episode_;
  step_ = 0;
  PD_RETURN_IF_ERROR(At(ReadObservation()));
  end_ = EpisodeEnd::kNone;
  return absl::OkStatus();
}

absl::Status Environment::Send(const std::byte* action) {
  ++step_;
  std::memcpy(message_.data() + action_at_, action, program_.action.bytes());
  return At(child_->Write(message_.data(), message_.size()));
}

absl::Status Environment::Receive() {
  constexpr char kBy[] = "expected";
  PD_RETURN_IF_ERROR(At(Read({"reward", DType::kFloat32, kBy}, {1}, &scalar_)));
  PD_RETURN_IF_ERROR(At(CheckFinite(scalar_, "reward")));
  float reward = 0;
  std::memcpy(&reward, scalar_.data, sizeof(reward));
  reward_ = reward;
  PD_RETURN_IF_ERROR(At(Read({"done", DType::kUInt8, kBy}, {1}, &scalar_)));
  const auto done = static_cast<uint8_t>(scalar_.data[0]);
  if (done > static_cast<uint8_t>(EpisodeEnd::kCutOff))
    return At(InvalidArgument(
        "field 'done' is %d; expected 0, 1 (the episode has ended) or 2 (it is "
        "cut off)",
        done));
  PD_RETURN_IF_ERROR(At(ReadObservation()));
  end_ = static_cast<EpisodeEnd>(done);
  return absl::OkStatus();
}

}  // namespace pd

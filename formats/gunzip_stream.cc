// SPDX-License-Identifier: Apache-2.0
#include "formats/gunzip_stream.h"

#include <zlib.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <utility>

#include "formats/gzip.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"

namespace pd {
namespace {

// zlib counts in 32 bits.
constexpr size_t kMostAtOnce = size_t{1} << 30;

}  // namespace

struct GunzipStream::State {
  FileBytes file;
  size_t used = 0;  // compressed bytes that zlib took
  z_stream stream;
  bool open = false, ended = false;

  absl::Status Start();
  absl::Status Inflate();
  absl::Status EndMember();
};

absl::Status GunzipStream::State::Start() {
  if (!IsGzip(file.view())) return DataLoss("not a gzip file");
  std::memset(&stream, 0, sizeof(stream));
  constexpr int kGzipOnly = 16 + MAX_WBITS;
  if (inflateInit2(&stream, kGzipOnly) != Z_OK)
    return ResourceExhausted("no memory for a gzip decompressor");
  open = true;
  return absl::OkStatus();
}

// After a member: another one, zeros, or the end.
absl::Status GunzipStream::State::EndMember() {
  const absl::string_view rest = file.view().substr(used);
  if (IsGzip(rest)) {
    inflateReset(&stream);
    return absl::OkStatus();
  }
  if (std::any_of(rest.begin(), rest.end(), [](char c) { return c != '\0'; }))
    return DataLoss("gzip data is followed by %d bytes of something else",
                    rest.size());
  ended = true;
  return absl::OkStatus();
}

absl::Status GunzipStream::State::Inflate() {
  const size_t in = std::min(file.size - used, kMostAtOnce);
  stream.next_in =
      reinterpret_cast<Bytef*>(const_cast<std::byte*>(file.data.get() + used));
  stream.avail_in = static_cast<uInt>(in);
  const uInt room = stream.avail_out;
  const int result = inflate(&stream, Z_NO_FLUSH);
  const size_t took = in - stream.avail_in;
  used += took;
  if (result == Z_STREAM_END) return EndMember();
  if (result != Z_OK || (took == 0 && stream.avail_out == room))
    return DataLoss("gzip data is truncated or damaged");
  return absl::OkStatus();
}

GunzipStream::GunzipStream(FileBytes file) : state_(std::make_unique<State>()) {
  state_->file = std::move(file);
}

GunzipStream::~GunzipStream() {
  if (state_->open) inflateEnd(&state_->stream);
}

absl::StatusOr<size_t> GunzipStream::Read(char* to, size_t size) {
  State& state = *state_;
  if (!state.open) PD_RETURN_IF_ERROR(state.Start());
  size_t done = 0;
  while (done < size && !state.ended) {
    const size_t room = std::min(size - done, kMostAtOnce);
    state.stream.next_out = reinterpret_cast<Bytef*>(to + done);
    state.stream.avail_out = static_cast<uInt>(room);
    while (state.stream.avail_out > 0 && !state.ended)
      PD_RETURN_IF_ERROR(state.Inflate());
    done += room - state.stream.avail_out;
  }
  return done;
}

size_t GunzipStream::left() const { return state_->file.size - state_->used; }

}  // namespace pd

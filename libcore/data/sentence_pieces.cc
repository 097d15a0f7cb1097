// SPDX-License-Identifier: Apache-2.0
// Nothing of Abseil may be included here, see the header.
#include "libcore/data/sentence_pieces.h"

#include <sentencepiece_processor.h>

#include <string_view>

namespace pd {

class SentencePieces::Impl {
 public:
  sentencepiece::SentencePieceProcessor processor;
  std::vector<int> ids;
};

SentencePieces::SentencePieces() : impl_(std::make_unique<Impl>()) {}
SentencePieces::~SentencePieces() = default;

std::unique_ptr<SentencePieces> SentencePieces::Read(const std::string& path,
                                                     std::string* error) {
  std::unique_ptr<SentencePieces> pieces(new SentencePieces);
  const auto status = pieces->impl_->processor.Load(path);
  if (status.ok()) return pieces;
  *error = status.ToString();
  return nullptr;
}

bool SentencePieces::Encode(const char* text, size_t size,
                            std::vector<int64_t>* ids, std::string* error) {
  const auto status =
      impl_->processor.Encode(std::string_view(text, size), &impl_->ids);
  if (!status.ok()) {
    *error = status.ToString();
    return false;
  }
  ids->insert(ids->end(), impl_->ids.begin(), impl_->ids.end());
  return true;
}

std::string SentencePieces::Decode(const std::vector<int>& ids) const {
  return impl_->processor.DecodeIds(ids);
}

int64_t SentencePieces::size() const { return impl_->processor.GetPieceSize(); }
int64_t SentencePieces::pad() const { return impl_->processor.pad_id(); }
int64_t SentencePieces::bos() const { return impl_->processor.bos_id(); }
int64_t SentencePieces::eos() const { return impl_->processor.eos_id(); }

}  // namespace pd

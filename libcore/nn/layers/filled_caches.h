// SPDX-License-Identifier: Apache-2.0
// Keys and values in the loop of `generate`: tensors that have their final
// length from the beginning and are filled key by key, so that all shapes stay
// as they are from step to step and nothing is bound anew. Attention writes
// into them and masks what is not filled; layers that know nothing of them read
// the part that is. Internal to libcore/nn.
#ifndef PD_LIBCORE_NN_LAYERS_FILLED_CACHES_H_
#define PD_LIBCORE_NN_LAYERS_FILLED_CACHES_H_

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/nn/layers/layer_context.h"
#include "libcore/nn/op_chain.h"

namespace pd {

/// All variables of states, those of groups too.
std::vector<std::string> VariablesOf(const std::vector<LayerInput>& states);
/// The same states in other variables.
std::vector<LayerInput> WithVariables(std::vector<LayerInput> states,
                                      const std::vector<std::string>& names);

/// Of FilledCaches::BeginRun: no loop is under construction.
constexpr int32_t kNoBlock = -1;

class FilledCaches {
 public:
  /// `variable`, [N, heads, keys, size], has a key for each id that was read:
  /// self-attention made it.
  void MarkGrowing(const std::string& variable) { growing_.insert(variable); }
  bool Grows(const std::string& variable) const {
    return growing_.count(variable) > 0;
  }

  /// A run of a loop's body begins, block `block` of the program: nothing
  /// counts that was made for another.
  void BeginRun(int32_t block);
  /// Whether ops that are appended now are in that block, not in one inside.
  bool InRun(const BlockBuilder& main) const {
    return main.block_index() == block_;
  }
  /// `variable` has room for as many keys as `places`, int64 [N, all] of 0, 1,
  /// ..., has columns; the first `count`, int64 [1], are there.
  void Set(const std::string& variable, const std::string& count,
           const std::string& places);
  /// The count of keys; null where the variable is not one of these.
  const std::string* CountOf(const std::string& variable) const;
  /// Whether the variable is a mask that Mask gave.
  bool IsMask(const std::string& variable) const {
    return mask_counts_.count(variable) > 0;
  }

  /// `cache` with one more key, `now` of [N, heads, 1, size].
  std::string Write(const std::string& cache, const std::string& now,
                    OpChain* ops);
  /// A mask to add to products with the keys of `cache`: 0, but -1e9 where none
  /// is, [N, 1, 1, all]. With `next` as it is after one more key.
  std::string Mask(const std::string& cache, bool next, OpChain* ops);
  /// The part of a cache that is filled, or of a mask that is about such keys.
  std::string Filled(const std::string& variable, OpChain* ops);
  /// Puts those parts in the place of caches and masks that a layer reads by
  /// other fields than those for caches and masks.
  absl::Status FillReads(LayerReads* reads, BlockBuilder* main);

 private:
  struct Cache {
    std::string count, places;
  };
  std::string Next(const std::string& count, OpChain* ops);
  std::string MaskOf(const std::string& count, const std::string& places,
                     OpChain* ops);

  std::set<std::string> growing_;
  int32_t block_ = kNoBlock;
  std::map<std::string, Cache> caches_;
  // Of this run: by count, the next one, masks and indices of the next key.
  std::map<std::string, std::string> next_, masks_, indices_;
  std::map<std::string, std::string> mask_counts_;  // by mask
};

/// The states of a decoder that get a key and a value for each id.
class GrowingStates {
 public:
  /// `grows`: for each state, as Find gives it.
  GrowingStates(LayerContext* c, std::vector<bool> grows)
      : c_(c), grows_(std::move(grows)) {}

  static std::vector<bool> Find(const std::vector<LayerInput>& states,
                                const LayerContext& c);

  /// Gives keys and values that grow room for `all` keys, int64 [1]. Gives how
  /// many there are, int64 [1], for each state that grows.
  absl::StatusOr<std::vector<std::string>> MakeRoom(
      const std::string& all, std::vector<LayerInput>* states);
  /// A run of the loop's body begins, which the ops come into from now on.
  void BeginRun(const std::vector<LayerInput>& states,
                const std::vector<std::string>& counts,
                const std::string& places) const;
  /// The counts at the end of a run. InvalidArgument for a state whose keys are
  /// not those of FilledCaches.
  absl::StatusOr<std::vector<std::string>> CountsOf(
      const std::vector<LayerInput>& states) const;

 private:
  // The variables of those that grow.
  std::vector<std::vector<std::string>> Growing(
      const std::vector<LayerInput>& states) const;

  LayerContext* c_;
  const std::vector<bool> grows_;
};

}  // namespace pd

#endif  // PD_LIBCORE_NN_LAYERS_FILLED_CACHES_H_

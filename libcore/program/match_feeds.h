// SPDX-License-Identifier: Apache-2.0
// Do these arrays fit what a program declares? Answered before it runs, since
// the op that stumbles over a wrong array knows neither the file nor the input.
#ifndef PD_LIBCORE_PROGRAM_MATCH_FEEDS_H_
#define PD_LIBCORE_PROGRAM_MATCH_FEEDS_H_

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "libcore/ir/array.h"
#include "libcore/ir/program_desc.h"

namespace pd {

/// True when an array of shape `given` may be fed where `declared` stands:
/// equal ranks, and equal extents where the declared one is known (0 or more).
/// [] and [1] are the same, as they are between PaddlePaddle's versions.
bool TakesShape(const Shape& declared, const Shape& given);

/// Gives `array` the dtype that `var` declares: float64 becomes another
/// floating dtype and integers become integers of another width, with a note in
/// the log, since those are what NumPy makes by itself. InvalidArgument for any
/// other difference, and for a value that the declared dtype cannot hold.
/// `file` is where the array comes from, for messages; "": without the note.
absl::Status FitDType(const VarDesc& var, const std::string& file,
                      Array* array);

/// FitDType, and InvalidArgument for a shape that is not the declared one.
absl::Status FitFeed(const VarDesc& var, const std::string& file, Array* array);

/// Where arrays come from and what is asked of the program.
struct FeedCheck {
  std::string file;                  ///< of the arrays
  std::string model;                 ///< of the program
  std::vector<std::string> inputs;   ///< that the model declares
  std::vector<std::string> fetches;  ///< an input that none needs may be absent
};

/// FitFeed on every array that is a variable of `program`; of variables that an
/// op makes, whose declared shapes are guesses of a compiler, the dtype alone.
/// NotFound names a declared input that has no array. An array that is no
/// variable at all is a warning.
absl::Status FitFeeds(const ProgramDesc& program, const FeedCheck& check,
                      NamedArrays* feeds);

}  // namespace pd

#endif  // PD_LIBCORE_PROGRAM_MATCH_FEEDS_H_

// SPDX-License-Identifier: Apache-2.0
#include "cmd/common/feed_options.h"

namespace pd {

void BindParamsFile(OptionTable* table, std::string* params_file) {
  table->Text({"--params_file", "FILE",
               "the parameters of MODEL where its program does not find them: "
               "a joint file (`.pdiparams`), a `.pdparams`, the "
               "`.caffemodel` of a `.prototxt`"},
              params_file);
  table->DescribeDefault("--params_file", "the file beside the program");
}

void BindFeedOptions(OptionTable* table, std::string* feed, std::string* lod) {
  table->Text({"--feed", "FILE", "an npz file with an array for each input"},
              feed);
  table->Text({"--lod", "FILE",
               "a JSON file with the sequence lengths of feeds: "
               "`{\"word\": [[2, 3, 1]]}`, levels of lengths"},
              lod);
  table->TakesStream("--feed", StandardStream::kInput);
  table->TakesStream("--lod", StandardStream::kInput);
}

void BindStartupOption(OptionTable* table, std::string* startup) {
  table->Text({"--startup", "FILE",
               "a startup program that is run first, for a program without "
               "parameters"},
              startup);
  table->TakesStream("--startup", StandardStream::kInput);
}

}  // namespace pd

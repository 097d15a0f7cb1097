// SPDX-License-Identifier: Apache-2.0
#include "formats/csv.h"
#include "formats/text_input.h"
#include "tests/fuzz/fuzz_target.h"

PD_FUZZ_TARGET(csv) {
  // A file's reader takes a path: this is one whose bytes are in memory.
  pd::CsvFile csv;
  csv.path = "fuzz.csv";
  csv.file = file;
  csv.columns = 2;
  pd::CsvReader reader(csv);
  std::vector<pd::CsvCell> cells;
  // A broken row is followed by the line behind its first one.
  for (size_t rows = 0; rows < 1000; ++rows) {
    const auto more = reader.Next(&cells);
    if (!more.ok()) continue;
    if (!*more) break;
    pd::fuzz::Check(cells.size() == 2);
    pd::ParseNumber(cells[0].text, true).status().IgnoreError();
  }
}

// SPDX-License-Identifier: Apache-2.0
// A dataset is N records of named fields. Records are read one at a time into
// a caller's Record, whose buffers are reused: reading allocates nothing once
// they have grown. Images are uint8, height x width x channels, as decoded;
// transforms (transforms.h) and batching (loader.h) come after. Fields may
// differ in their extents from record to record; the loader pads them.
#ifndef PD_LIBCORE_DATA_DATASET_H_
#define PD_LIBCORE_DATA_DATASET_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "libcore/base/dtype.h"
#include "libcore/base/shape.h"

namespace pd {

class Experience;
class Vocabulary;

/// How the numbers of a field of boxes are meant, and when a box is gone.
struct BoxForm {
  bool centre = false;  ///< x and y of the centre, width, height; else corners
  bool normalized = true;  ///< parts of the picture; else pixels of it
  /// A box of which transforms leave a smaller part of its area is taken out.
  double min_visible = 0.1;
};

/// Type and shape of one field of every record.
struct FieldSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Shape shape;  ///< of one record; -1 where records differ
  /// A uint8 image [height, width, channels], 1 or 3 channels: transforms
  /// apply to it.
  bool is_image = false;
  /// The classes of the image's pixels, uint8 [height, width, 1]; batches hold
  /// them as int64 [height, width]. Transforms move them as the image's.
  bool is_mask = false;
  /// Set for boxes in the record's first picture, float32 [n, 4]: transforms
  /// move them. Boxes without width or height are none.
  std::optional<BoxForm> boxes = {};
  /// A row for each of the record's boxes, which stays beside it.
  bool beside_boxes = false;
  /// The value that the loader pads short records with, unless overridden: a
  /// vocabulary's padding id.
  double pad_value = 0;
  /// The names of its class numbers 0, 1, ... where the data knows them; may be
  /// fewer than a network has outputs.
  std::vector<std::string> classes = {};
  /// The names of the columns that its values come from, in their order, where
  /// the file names columns.
  std::vector<std::string> columns = {};
};

/// How many axes a field with varying extents may have.
constexpr size_t kMostVaryingAxes = 6;

/// One field of one record: bytes in the dataset or in the Record's buffer.
struct FieldView {
  const std::byte* data = nullptr;  ///< row-major, the record's own extents
  int64_t height = 0, width = 0, channels = 0;  ///< of an image
  /// By axis; all are set where the field's spec has a -1 and it is no image.
  /// The length of a sequence [-1] or [-1, 4] is extents[0].
  std::array<int64_t, kMostVaryingAxes> extents = {};
};

/// Where Dataset::Read puts a record; one per reading thread.
struct Record {
  std::vector<FieldView> fields;            ///< as Dataset::fields()
  std::vector<std::vector<uint8_t>> bytes;  ///< buffers that views may use
  std::vector<Record> parts;  ///< of datasets that are made of others
  std::vector<std::vector<std::byte>> moved;  ///< by field: of MovedBoxes
};

/// Records that were left out because they could not be read.
struct BadRecords {
  static constexpr size_t kMostPlaces = 5;
  int64_t count = 0;
  std::vector<std::string> first;  ///< messages of the first few, with places

  void Add(const absl::Status& status);
  void Add(const BadRecords& more);
};

/// Where a record stands.
struct RecordPlace {
  std::string file;    ///< "" where records are of no file of their own
  int64_t number = 0;  ///< as `unit` counts
  /// The unit of `number`: "line" from 1, "record"; "" where the file is the
  /// whole record.
  const char* unit = "record";
};

/// One pass over the records of a dataset that is a stream. One thread reads;
/// Stop may be called by another.
class RecordStream {
 public:
  virtual ~RecordStream() = default;
  RecordStream(const RecordStream&) = delete;
  RecordStream& operator=(const RecordStream&) = delete;

  /// Reads the next record; false at the end. OutOfRange when this record holds
  /// what it must not and the next can be read; after other errors, which name
  /// the source and the record, none can.
  virtual absl::StatusOr<bool> Next(Record* record) = 0;

  /// Ends the pass: a Next under way gives Cancelled soon.
  virtual void Stop() = 0;

  /// Whether the record that Next gave last ends its batch, full or not.
  virtual bool EndsBatch() const { return false; }

 protected:
  RecordStream() = default;
};

/// A network that acts in environments.
class Actor {
 public:
  virtual ~Actor() = default;
  /// Fills `actions` for `observations`, one row for each environment. `seed`
  /// and `call` are those of the network's random numbers.
  virtual absl::Status Act(const std::byte* observations, uint64_t seed,
                           uint64_t call, std::byte* actions) = 0;
};

/// Which pass over a stream begins.
struct StreamPass {
  uint64_t seed = 0;
  int64_t epoch = 0;
  int64_t first_batch = 0;  ///< of the epoch; those before were seen
  Actor* actor = nullptr;   ///< outlives the pass; null: none
  /// As Loader::set_interrupted; may be null.
  std::function<bool()> interrupted = nullptr;
};

/// N records with the same fields. Read may be called from many threads. The
/// records of a stream come one after the other, once in a pass.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  int64_t size() const { return size_; }
  const std::vector<FieldSpec>& fields() const { return fields_; }
  /// The field of this name; null where there is none.
  const FieldSpec* FindField(const std::string& name) const;

  /// By field: what its numbers stand for, where they stand for texts.
  const std::map<std::string, std::shared_ptr<const Vocabulary>>& vocabularies()
      const {
    return vocabularies_;
  }

  /// True where records cannot be read by number: Start in place of Read.
  /// size() is then that of a pass, 0 where only its end shows it.
  virtual bool is_stream() const { return false; }
  /// The past of environments that the network acts in; null where the records
  /// come from none. Its next record depends on what the network
  /// has learned of those before, so nothing is read ahead.
  virtual Experience* experience() const { return nullptr; }
  /// Begins a pass over a stream. FailedPrecondition for other datasets.
  virtual absl::StatusOr<std::unique_ptr<RecordStream>> Start(
      const StreamPass& pass) const;

  /// Reads record `index` in [0, size()). The views stay valid until the next
  /// Read into the same Record. Errors name the file and the record.
  virtual absl::Status Read(int64_t index, Record* record) const = 0;

  /// Says that record `index` will be read soon: data in memory is fetched into
  /// the cache, which halves the time of small shuffled records.
  virtual void Prefetch(int64_t /*index*/) const {}

  /// "'file' record 17", for messages.
  virtual std::string Describe(int64_t index) const = 0;

  /// The same as its parts; the record's number in this dataset where it knows
  /// no better.
  virtual RecordPlace Place(int64_t index) const { return {"", index}; }

  /// The extents of axis 0 of a field, of every record, for batches of records
  /// of similar length. Reads every record unless the dataset knows better.
  virtual absl::StatusOr<std::vector<int64_t>> Lengths(size_t field) const;

  /// Records that were left out while the dataset was opened.
  virtual const BadRecords& left_out() const { return left_out_; }
  /// Sentences on what is no error and yet worth a warning: classes without
  /// records.
  const std::vector<std::string>& notes() const { return notes_; }

  /// Waits until data that is loaded in the background is there and checked;
  /// its error, if any, which Read gives too.
  virtual absl::Status WaitReady() const { return absl::OkStatus(); }

 protected:
  Dataset() = default;
  int64_t size_ = 0;
  std::vector<FieldSpec> fields_;
  std::vector<std::string> notes_;
  BadRecords left_out_;
  std::map<std::string, std::shared_ptr<const Vocabulary>> vocabularies_;
};

/// Fetches `bytes` bytes, at most a few KB of them, into the cache.
inline void PrefetchBytes(const std::byte* data, int64_t bytes) {
  constexpr int64_t kLine = 64, kMost = 8192;
  for (int64_t i = 0; i < (bytes < kMost ? bytes : kMost); i += kLine)
    __builtin_prefetch(data + i);
}

/// OutOfRange when a label is outside [0, classes); classes 0 means
/// unchecked. The message names `path` and the record.
absl::Status CheckLabel(int64_t label, int64_t classes, const std::string& path,
                        int64_t record);

/// The name of class `number` as text of one line, escaped as in C where it is
/// none; the number where it has no name.
std::string ClassName(const std::vector<std::string>& classes, int64_t number);

/// "'ant', 'bee', ... (100 classes)" for messages; "not named" without any.
std::string ClassesText(const std::vector<std::string>& classes);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_DATASET_H_

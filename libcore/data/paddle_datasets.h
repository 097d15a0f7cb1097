// SPDX-License-Identifier: Apache-2.0
// The data sets of paddle.vision.datasets and paddle.text.datasets that come as
// archives, in their original layouts: records, their order, dictionaries and
// values are those of PaddlePaddle's classes. Errors name the archive, the
// member and the line or record.
//
// Where PaddlePaddle numbers words in the order of a Python set, which changes
// from run to run (Movielens' categories and titles, Conll05st's labels), words
// are numbered as the file first names them.
#ifndef PD_LIBCORE_DATA_PADDLE_DATASETS_H_
#define PD_LIBCORE_DATA_PADDLE_DATASETS_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "libcore/data/datasets.h"

namespace pd {

/// cifar-10-python.tar.gz or cifar-100-python.tar.gz: pickled batches. All of
/// a mode's pixels are held in memory.
struct CifarPythonOptions {
  std::string data_file;
  std::string mode = "train";  ///< "train" or "test"
  bool hundred = false;        ///< CIFAR-100's layout, its fine labels
  int64_t classes = 10;        ///< labels must be below it
};
absl::StatusOr<DatasetPtr> OpenCifarPython(const CifarPythonOptions& options);

/// 102flowers.tgz, imagelabels.mat, setid.mat. Labels count from 1. Held in
/// memory: the mode's pictures as they are packed (JPEG).
struct FlowersOptions {
  std::string data_file, label_file, setid_file;
  /// "train" is the list 'tstid' and "test" 'trnid', the larger and the smaller
  /// one, as PaddlePaddle has them; "valid" is 'valid'.
  std::string mode = "train";
  int64_t classes = 102;  ///< the largest label
  bool skip_bad = false;  ///< pictures that are missing are left out
};
absl::StatusOr<DatasetPtr> OpenFlowers(const FlowersOptions& options);

/// VOCtrainval_11-May-2012.tar: pictures and the classes of their pixels. A
/// plain tar stays on disk, of a compressed one the mode's pictures are held
/// as they are packed.
struct Voc2012Options {
  std::string data_file;
  /// "train" is the list trainval, "test" is train, "valid" is val, as
  /// PaddlePaddle has them.
  std::string mode = "train";
  bool skip_bad = false;  ///< pictures that are missing are left out
};
/// Classes have Pascal VOC's names where all pictures have names of Pascal
/// VOC's, "2007_000032"; then a mask with a number that has no name, but for
/// 255, is OutOfRange when it is read. Other pictures' classes have no names.
absl::StatusOr<DatasetPtr> OpenVoc2012(const Voc2012Options& options);

/// housing.data: 13 features, (x - mean) / (max - min) over the whole file, and
/// a target; "train" is the first 80 %, "test" the rest.
struct UciHousingOptions {
  std::string data_file;
  std::string mode = "train";
};
absl::StatusOr<DatasetPtr> OpenUciHousing(const UciHousingOptions& options);

/// ml-1m.zip.
struct MovielensOptions {
  std::string data_file;
  std::string mode = "train";
  double test_ratio = 0.1;
  uint32_t rand_seed = 0;
};
absl::StatusOr<DatasetPtr> OpenMovielens(const MovielensOptions& options);

/// aclImdb_v1.tar.gz, read once from front to back; held in memory are the
/// words and the ids of the mode's texts.
struct ImdbOptions {
  std::string data_file;
  std::string mode = "train";
  int64_t cutoff = 150;  ///< words that occur more often are in the dictionary
};
absl::StatusOr<DatasetPtr> OpenImdb(const ImdbOptions& options);

/// simple-examples.tgz: the Penn Treebank.
struct ImikolovOptions {
  std::string data_file;
  std::string data_type = "NGRAM";  ///< or "SEQ"
  int64_t window_size = -1;
  std::string mode = "train";
  int64_t min_word_freq = 50;
};
absl::StatusOr<DatasetPtr> OpenImikolov(const ImikolovOptions& options);

/// wmt14.tgz with its dictionaries. One member at a time is held besides the
/// ids.
struct Wmt14Options {
  std::string data_file;
  std::string mode = "train";  ///< "train", "test" or "gen"
  int64_t dict_size = 0;
};
absl::StatusOr<DatasetPtr> OpenWmt14(const Wmt14Options& options);

/// wmt16.tar.gz; dictionaries are the most frequent words of the training set.
struct Wmt16Options {
  std::string data_file;
  std::string mode = "train";  ///< "train", "test" or "val"
  int64_t src_dict_size = 0, trg_dict_size = 0;
  std::string lang = "en";  ///< the source language, "en" or "de"
  /// The target's dictionary is of the target's words; PaddlePaddle makes both
  /// of the source's.
  bool own_dictionaries = false;
};
absl::StatusOr<DatasetPtr> OpenWmt16(const Wmt16Options& options);

/// conll05st-tests.tar.gz and its dictionaries: one record a predicate.
struct Conll05Options {
  std::string data_file, word_dict_file, verb_dict_file, target_dict_file;
};
absl::StatusOr<DatasetPtr> OpenConll05(const Conll05Options& options);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_PADDLE_DATASETS_H_

// SPDX-License-Identifier: Apache-2.0
// Opening the datasets that pdkit knows. Each Open checks headers, counts and
// labels before it returns; labels are fields "label", int64 [1]; images are
// fields "image", uint8 [height, width, channels].
#ifndef PD_LIBCORE_DATA_DATASETS_H_
#define PD_LIBCORE_DATA_DATASETS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "formats/csv.h"
#include "libcore/data/dataset.h"
#include "libcore/data/row_field.h"
#include "libcore/ir/array.h"

namespace pd {

using DatasetPtr = std::shared_ptr<const Dataset>;

/// A pair of idx files (MNIST, Fashion-MNIST), plain or .gz.
struct IdxDatasetOptions {
  std::string image_path;
  std::string label_path;
  int64_t classes = 10;                       ///< 0: labels are not checked
  std::vector<std::string> class_names = {};  ///< by label, where they have any
};
/// Checks both headers and all labels, and returns while the images are still
/// being inflated by a thread of the dataset's own: Read waits for them.
/// FailedPrecondition when the files hold different numbers of records.
absl::StatusOr<DatasetPtr> OpenIdx(const IdxDatasetOptions& options);

/// The files of paddle.vision.datasets.MNIST in one folder, `mode` "train" or
/// "test": train-images-idx3-ubyte[.gz] or t10k-... and their labels.
absl::StatusOr<DatasetPtr> OpenMnist(const std::string& folder,
                                     const std::string& mode,
                                     int64_t classes = 10,
                                     std::vector<std::string> class_names = {});

/// CIFAR-10 or CIFAR-100 in the binary version: files of label bytes and 3072
/// bytes of colour planes, plain or .gz, one after the other.
struct CifarDatasetOptions {
  std::vector<std::string> paths;
  int64_t classes = 10;       ///< 10, or 100 for CIFAR-100's fine labels
  bool coarse_label = false;  ///< CIFAR-100: the 20 coarse labels
};
absl::StatusOr<DatasetPtr> OpenCifar(const CifarDatasetOptions& options);

/// The endings of the pictures that are read: ".jpg", ".png", ...
std::vector<std::string> PictureEndings();

/// Images in one folder per class, classes sorted by name: the order and the
/// labels of paddle.vision.datasets.DatasetFolder. Sub-folders are walked.
struct ImageFolderOptions {
  std::string root;
  /// Endings that are read, without regard to case.
  std::vector<std::string> extensions = PictureEndings();
  /// false: paddle.vision.datasets.ImageFolder, images without labels.
  bool labels = true;
  /// Names of the classes by number, where they are known from elsewhere (the
  /// training set); empty: the folders' own, sorted.
  std::vector<std::string> classes = {};
};
/// Pictures without labels, as a field of one image.
struct PicturesOptions {
  /// Files, and folders whose pictures are taken as OpenImageFolder does; "-"
  /// is one picture from standard input.
  std::vector<std::string> paths;
  std::string field = "image";
  int64_t channels = 3;  ///< 3: RGB, 1: grey
};
/// Pictures are decoded when they are read; a record's place is its file.
absl::StatusOr<DatasetPtr> OpenPictures(const PicturesOptions& options);
/// True for a file name that ends as pictures do.
bool IsPictureName(const std::string& name);

/// Images are decoded when they are read, as RGB. Folders without images are
/// classes too; notes() tells of them. NotFound when a folder with images is
/// none of `classes`.
absl::StatusOr<DatasetPtr> OpenImageFolder(const ImageFolderOptions& options);
/// The names of the folders in `root`, sorted: its classes.
absl::StatusOr<std::vector<std::string>> ImageFolderClasses(
    const std::string& root);

/// Pictures and the masks of their pixels' classes, in two folders of the same
/// paths but for the endings.
struct ImageMaskFolderOptions {
  std::string images, masks;
  std::vector<std::string> extensions = PictureEndings();  ///< of images
  int64_t classes = 0;    ///< a mask's range check; 0: none
  bool skip_bad = false;  ///< pictures without masks are left out
};
/// NotFound where a picture has no mask, or a mask no picture, with the first
/// names; AlreadyExists where two pictures are of one mask.
absl::StatusOr<DatasetPtr> OpenImageMaskFolder(
    const ImageMaskFolderOptions& options);

/// One field made of columns of a CSV file.
struct CsvField {
  std::string name;
  /// Column names, numbers from 0, ranges "first:last" (both included) of
  /// either, or "*" for every column that no other field names.
  std::vector<std::string> columns;
  ValueOptions value;
  /// The columns that "*" and ranges of names stood for in the training set,
  /// in its order; they are taken by name then. Empty: not known.
  std::vector<std::string> known = {};
  /// Not read, and need not be there; where they are, they are none of "*".
  bool unused = false;
};
struct CsvDatasetOptions {
  std::vector<std::string> paths;  ///< read one after the other; "-": stdin
  bool header = true;
  char delimiter = ',';
  bool quoting = true;
  bool allow_nan = false;  ///< NaN and infinities are refused otherwise
  bool skip_bad = false;   ///< rows that cannot be read are left out
  /// Empty: every column is a float32 field of shape [1] under its own name.
  std::vector<CsvField> fields;
  /// Rows in memory in place of the files; the dataset may be empty then.
  const CsvFile* piece = nullptr;
};
absl::StatusOr<DatasetPtr> OpenCsv(const CsvDatasetOptions& options);

/// Arrays of a .npz file (fields under their names), or of .npy files: the
/// first extent counts the records. uint8 arrays [n, h, w] and [n, h, w, 1|3]
/// are images.
struct ArrayField {
  std::string name;     ///< the field's
  std::string array;    ///< the array's
  int64_t classes = 0;  ///< a label's range check; 0: none
};
struct ArrayDatasetOptions {
  std::string path;                ///< for messages
  std::vector<ArrayField> fields;  ///< empty: every array under its name
};
/// FailedPrecondition when the arrays hold different numbers of records.
absl::StatusOr<DatasetPtr> MakeArrayDataset(const NamedArrays& arrays,
                                            const ArrayDatasetOptions& options);
/// The arrays of an .npz, or the one of an .npy, which is called "x".
absl::StatusOr<NamedArrays> ReadNpzOrNpy(const std::string& path);
/// MakeArrayDataset of the file `options.path`, .npz or .npy (field "x").
absl::StatusOr<DatasetPtr> OpenNpz(const ArrayDatasetOptions& options);

}  // namespace pd

#endif  // PD_LIBCORE_DATA_DATASETS_H_

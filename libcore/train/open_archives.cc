// SPDX-License-Identifier: Apache-2.0
#include "libcore/train/open_archives.h"

#include <string>
#include <utility>
#include <vector>

#include "formats/tar.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/class_lists.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/nn/job.pb.h"

namespace pd {
namespace {

const std::string& NameOf(job::TrainTest::Mode mode) {
  return job::TrainTest::Mode_Name(mode);
}

const std::string& NameOf(job::TrainValidTest::Mode mode) {
  return job::TrainValidTest::Mode_Name(mode);
}

absl::StatusOr<DatasetPtr> OpenMnistOf(const LoadedJob& job,
                                       const job::MNIST& mnist,
                                       std::vector<std::string> classes) {
  if (mnist.has_folder()) {
    if (mnist.has_image_path() || mnist.has_label_path())
      return job.At(InvalidArgument("folder and paths are both given"), mnist,
                    "folder");
    return OpenMnist(mnist.folder(), NameOf(mnist.mode()), mnist.num_classes(),
                     std::move(classes));
  }
  if (!mnist.has_image_path() || !mnist.has_label_path())
    return job.At(
        InvalidArgument("give image_path and label_path, or their folder"),
        mnist);
  return OpenIdx({mnist.image_path(), mnist.label_path(), mnist.num_classes(),
                  std::move(classes)});
}

// One archive of pickled batches, or files of the binary version.
template <typename Message>
absl::StatusOr<DatasetPtr> OpenCifarOf(const LoadedJob& job,
                                       const Message& cifar, bool hundred) {
  bool archive = cifar.has_mode();
  if (!archive && cifar.data_file_size() == 1) {
    PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(cifar.data_file(0)));
    archive = LooksLikeTar(file);
  }
  if (!archive) {
    CifarDatasetOptions options;
    options.paths.assign(cifar.data_file().begin(), cifar.data_file().end());
    options.classes = hundred ? 100 : 10;
    return OpenCifar(options);
  }
  if (cifar.data_file_size() != 1)
    return job.At(InvalidArgument("data_file has %d files; a mode is of one "
                                  "archive",
                                  cifar.data_file_size()),
                  cifar, "data_file");
  return OpenCifarPython(
      {cifar.data_file(0), NameOf(cifar.mode()), hundred, cifar.num_classes()});
}

absl::StatusOr<DatasetPtr> OpenImikolovOf(const LoadedJob& job,
                                          const job::Imikolov& t) {
  if (t.data_type() == job::Imikolov::NGRAM && !t.has_window_size())
    return job.At(InvalidArgument("NGRAM needs a window_size"), t);
  return OpenImikolov({t.data_file(),
                       job::Imikolov::DataType_Name(t.data_type()),
                       t.has_window_size() ? t.window_size() : -1,
                       NameOf(t.mode()), t.min_word_freq()});
}

absl::StatusOr<DatasetPtr> OpenWmt16Of(const job::WMT16& t) {
  return OpenWmt16({t.data_file(), job::WMT16::Mode_Name(t.mode()),
                    t.src_dict_size(), t.trg_dict_size(),
                    job::WMT16::Lang_Name(t.lang()), t.own_dictionaries()});
}

absl::StatusOr<DatasetPtr> OpenTexts(const LoadedJob& job,
                                     const job::DataSet& set) {
  switch (set.kind_case()) {
    case job::DataSet::kImdb:
      return OpenImdb({set.imdb().data_file(), NameOf(set.imdb().mode()),
                       set.imdb().cutoff()});
    case job::DataSet::kImikolov:
      return OpenImikolovOf(job, set.imikolov());
    case job::DataSet::kWmt14:
      return OpenWmt14({set.wmt14().data_file(),
                        job::WMT14::Mode_Name(set.wmt14().mode()),
                        set.wmt14().dict_size()});
    case job::DataSet::kWmt16:
      return OpenWmt16Of(set.wmt16());
    case job::DataSet::kConll05St:
      return OpenConll05({set.conll05st().data_file(),
                          set.conll05st().word_dict_file(),
                          set.conll05st().verb_dict_file(),
                          set.conll05st().target_dict_file()});
    default:
      break;
  }
  PD_INVARIANT(!"a data set of another kind");
  return absl::InternalError("unreachable");
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenArchiveOf(const LoadedJob& job,
                                         const job::DataSet& set,
                                         bool skip_bad) {
  switch (set.kind_case()) {
    case job::DataSet::kMnist:
      return OpenMnistOf(job, set.mnist(), {});
    case job::DataSet::kFashionMnist:
      return OpenMnistOf(job, set.fashion_mnist(), FashionMnistClasses());
    case job::DataSet::kCifar10:
      return OpenCifarOf(job, set.cifar10(), false);
    case job::DataSet::kCifar100:
      return OpenCifarOf(job, set.cifar100(), true);
    case job::DataSet::kFlowers:
      return OpenFlowers({set.flowers().data_file(), set.flowers().label_file(),
                          set.flowers().setid_file(),
                          NameOf(set.flowers().mode()),
                          set.flowers().num_classes(), skip_bad});
    case job::DataSet::kVoc2012:
      return OpenVoc2012(
          {set.voc2012().data_file(), NameOf(set.voc2012().mode()), skip_bad});
    case job::DataSet::kUciHousing:
      return OpenUciHousing(
          {set.uci_housing().data_file(), NameOf(set.uci_housing().mode())});
    case job::DataSet::kMovielens:
      return OpenMovielens(
          {set.movielens().data_file(), NameOf(set.movielens().mode()),
           set.movielens().test_ratio(), set.movielens().rand_seed()});
    default:
      return OpenTexts(job, set);
  }
}

}  // namespace pd

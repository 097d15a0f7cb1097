// SPDX-License-Identifier: Apache-2.0
// MovieLens 1M: users, movies and ratings out of a zip. Each rating is drawn
// into the training or the test set by the numbers that NumPy's generator gives
// for the seed, so that the split is PaddlePaddle's.
#include <algorithm>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "formats/zip_archive.h"
#include "libcore/base/error.h"
#include "libcore/base/status_macros.h"
#include "libcore/data/paddle_datasets.h"
#include "libcore/data/python_text.h"
#include "libcore/data/table_dataset.h"

namespace pd {
namespace {

using python::Blanks;
using Words = std::unordered_map<std::string, int64_t>;

constexpr int64_t kAges[] = {1, 18, 25, 35, 45, 50, 56};

struct Movie {
  std::vector<int64_t> categories, title;
};
struct User {
  int64_t gender = 0, age = 0, job = 0;
};

int64_t IdOf(const std::string& word, Words* words) {
  return words->emplace(word, static_cast<int64_t>(words->size()))
      .first->second;
}

// numpy.random.random() of the generator that numpy.random.seed() sets.
class NumpyRandom {
 public:
  explicit NumpyRandom(uint32_t seed) : twister_(seed) {}
  double Next() {
    const uint32_t high = twister_() >> 5, low = twister_() >> 6;
    return (high * 67108864.0 + low) / 9007199254740992.0;
  }

 private:
  std::mt19937 twister_;
};

absl::StatusOr<int64_t> Whole(absl::string_view text, const char* what) {
  int64_t value;
  if (absl::SimpleAtoi(text, &value)) return value;
  return InvalidArgument("%s is '%s'; expected an integer", what,
                         text.substr(0, 32));
}

// "Toy Story (1995)" without its year.
absl::StatusOr<absl::string_view> TitleOf(absl::string_view text) {
  const size_t open = text.rfind('(');
  const bool closed = !text.empty() && text.back() == ')';
  if (open != absl::string_view::npos && closed) {
    const absl::string_view year =
        text.substr(open + 1, text.size() - open - 2);
    if (!year.empty() && std::all_of(year.begin(), year.end(), [](char c) {
          return c >= '0' && c <= '9';
        }))
      return text.substr(0, open);
  }
  return InvalidArgument("the title '%s' does not end in a year, '(1995)'",
                         text.substr(0, 64));
}

class Movielens {
 public:
  explicit Movielens(const MovielensOptions& options)
      : options_(options), dataset_(std::make_shared<TableDataset>()) {}

  absl::StatusOr<DatasetPtr> Open();

 private:
  using Fields = std::vector<absl::string_view>;
  // Calls `take` with the fields of each line of a member.
  absl::Status ForEachRow(
      ZipArchive* zip, const std::string& member, size_t fields,
      const std::function<absl::Status(const Fields&, int64_t line)>& take);
  absl::Status AddMovie(const Fields& row);
  absl::Status AddUser(const Fields& row);
  absl::Status AddRating(const Fields& row, int64_t line);

  MovielensOptions options_;
  std::unordered_map<int64_t, Movie> movies_;
  std::unordered_map<int64_t, User> users_;
  Words categories_, words_;
  std::shared_ptr<TableDataset> dataset_;
};

absl::Status Movielens::ForEachRow(
    ZipArchive* zip, const std::string& member, size_t fields,
    const std::function<absl::Status(const Fields&, int64_t line)>& take) {
  const auto read = [&]() -> absl::Status {
    PD_ASSIGN_OR_RETURN(const FileBytes bytes, zip->Read(member));
    return python::ForEachLine(
        bytes.view(),
        [&](absl::string_view line, int64_t number) -> absl::Status {
          const std::string text = python::DecodeLatin1(line);
          const Fields row =
              absl::StrSplit(python::Strip(text, Blanks::kText), "::");
          if (row.size() != fields)
            return InvalidArgument("%d fields between '::'; expected %d",
                                   row.size(), fields);
          return take(row, number);
        });
  };
  return Annotate(read(), absl::StrCat("'", options_.data_file, "': member '",
                                       member, "'"));
}

absl::Status Movielens::AddMovie(const Fields& row) {
  PD_ASSIGN_OR_RETURN(const int64_t id, Whole(row[0], "the movie"));
  PD_ASSIGN_OR_RETURN(const absl::string_view title, TitleOf(row[1]));
  Movie movie;
  for (const absl::string_view word : python::Split(title, Blanks::kText))
    movie.title.push_back(IdOf(python::LowerLatin1(word), &words_));
  for (const absl::string_view category : absl::StrSplit(row[2], '|'))
    movie.categories.push_back(IdOf(std::string(category), &categories_));
  movies_[id] = std::move(movie);
  return absl::OkStatus();
}

absl::Status Movielens::AddUser(const Fields& row) {
  PD_ASSIGN_OR_RETURN(const int64_t id, Whole(row[0], "the user"));
  PD_ASSIGN_OR_RETURN(const int64_t age, Whole(row[2], "the age"));
  User user;
  user.gender = row[1] == "M" ? 0 : 1;
  const auto found = std::find(std::begin(kAges), std::end(kAges), age);
  if (found == std::end(kAges))
    return InvalidArgument(
        "the age is %d; expected 1, 18, 25, 35, 45, 50 or 56", age);
  user.age = found - std::begin(kAges);
  PD_ASSIGN_OR_RETURN(user.job, Whole(row[3], "the job"));
  users_[id] = user;
  return absl::OkStatus();
}

absl::Status Movielens::AddRating(const Fields& row, int64_t line) {
  PD_ASSIGN_OR_RETURN(const int64_t user_id, Whole(row[0], "the user"));
  PD_ASSIGN_OR_RETURN(const int64_t movie_id, Whole(row[1], "the movie"));
  double rating;
  if (!absl::SimpleAtod(row[2], &rating))
    return InvalidArgument("the rating is '%s'; expected a number",
                           row[2].substr(0, 32));
  const auto user = users_.find(user_id);
  if (user == users_.end())
    return NotFound("user %d is not in 'ml-1m/users.dat'", user_id);
  const auto movie = movies_.find(movie_id);
  if (movie == movies_.end())
    return NotFound("movie %d is not in 'ml-1m/movies.dat'", movie_id);
  dataset_->Push(0, user_id);
  dataset_->Push(1, user->second.gender);
  dataset_->Push(2, user->second.age);
  dataset_->Push(3, user->second.job);
  dataset_->Push(4, movie_id);
  const Movie& what = movie->second;
  dataset_->Extend(5, what.categories.data(), what.categories.size());
  dataset_->Extend(6, what.title.data(), what.title.size());
  dataset_->Push(7, static_cast<float>(rating * 2 - 5.0));
  return dataset_->EndRecord(line);
}

absl::StatusOr<DatasetPtr> Movielens::Open() {
  for (const char* name :
       {"user_id", "gender_id", "age_id", "job_id", "movie_id"})
    dataset_->AddField({name, DType::kInt64, {1}});
  dataset_->AddField({"category", DType::kInt64, {-1}});
  dataset_->AddField({"title", DType::kInt64, {-1}});
  dataset_->AddField({"rating", DType::kFloat32, {1}});
  PD_ASSIGN_OR_RETURN(const FileBytes file, ReadFile(options_.data_file));
  auto zip = ZipArchive::Open(file);
  if (!zip.ok())
    return Annotate(zip.status(), absl::StrCat("'", options_.data_file, "'"));
  PD_RETURN_IF_ERROR(
      ForEachRow(&*zip, "ml-1m/movies.dat", 3,
                 [this](const Fields& row, int64_t) { return AddMovie(row); }));
  PD_RETURN_IF_ERROR(
      ForEachRow(&*zip, "ml-1m/users.dat", 5,
                 [this](const Fields& row, int64_t) { return AddUser(row); }));
  NumpyRandom random(options_.rand_seed);
  const bool test = options_.mode == "test";
  dataset_->BeginFile(options_.data_file, "member 'ml-1m/ratings.dat' line");
  PD_RETURN_IF_ERROR(ForEachRow(
      &*zip, "ml-1m/ratings.dat", 4, [&](const Fields& row, int64_t line) {
        const bool drawn = random.Next() < options_.test_ratio;
        return drawn == test ? AddRating(row, line) : absl::OkStatus();
      }));
  if (dataset_->size() == 0)
    return DataLoss("'%s' holds no ratings for mode '%s'", options_.data_file,
                    options_.mode);
  PD_RETURN_IF_ERROR(dataset_->Finish());
  return std::move(dataset_);
}

}  // namespace

absl::StatusOr<DatasetPtr> OpenMovielens(const MovielensOptions& options) {
  return Movielens(options).Open();
}

}  // namespace pd

// SPDX-License-Identifier: Apache-2.0
// Programs that nobody would write: every operator of PaddlePaddle's cases,
// forward and gradient, with its integer attributes set to -1, 0, 2^30, 2^31
// and 2^62 one by one, with attributes of other types, and with slots emptied,
// renamed, doubled or given another variable; and honest programs with hostile
// data: such numbers, NaN and Inf, fewer rows, none. They must run or be
// refused: no crash, no endless loop, no message of the standard library, no
// memory above a small limit. A child process tries the changes; when one kills
// it, that one fails by name and another child goes on behind it.
//   test_hostile_ops --gtest_filter=*conv2d
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <functional>
#include <limits>
#include <map>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "libcore/base/memory_limit.h"
#include "libcore/base/parallel.h"
#include "libcore/exec/session.h"
#include "libcore/kernels/attach.h"
#include "libcore/ops/registry.h"
#include "tests/ops/golden_case.h"
#include "tests/ops/trials.h"

namespace pd {
namespace {

constexpr int64_t kLimit = int64_t{16} << 20;

const OpRegistry& Registry(bool fast) {
  static const std::vector<OpRegistry>* registries = [] {
    auto* made = new std::vector<OpRegistry>(2);
    for (OpRegistry& registry : *made)
      EXPECT_TRUE(RegisterAllOps(&registry).ok());
    EXPECT_TRUE(AttachAllKernels(&made->back()).ok());
    return made;
  }();
  return (*registries)[fast ? 1 : 0];
}

// A case with one op changed.
class Hostile {
 public:
  Hostile(const GoldenCase& golden, size_t block, size_t op, Trials* trials)
      : golden_(golden), block_(block), op_(op), trials_(trials) {
    for (const auto& [name, array] : golden.expect) fetches_.push_back(name);
    for (const auto& slot : original().outputs)
      for (const std::string& name : slot.second)
        if (block == 0 && name != kEmptyVar) fetches_.push_back(name);
    std::sort(fetches_.begin(), fetches_.end());
    fetches_.erase(std::unique(fetches_.begin(), fetches_.end()),
                   fetches_.end());
  }

  const OpDesc& original() const {
    return golden_.program.blocks[block_].ops[op_];
  }

  // Runs the case with its op changed, by the fast kernels and the references.
  void Try(const std::string& what,
           const std::function<void(OpDesc*)>& change) {
    for (const bool fast : {true, false})
      trials_->Add(absl::StrCat(golden_.name, ": op '", original().type,
                                "': ", what, fast ? ", fast" : ", reference"),
                   [&] {
                     ProgramDesc program = golden_.program;
                     change(&program.blocks[block_].ops[op_]);
                     return Run(program, golden_.feed, fast);
                   });
  }

  // Runs the case with one feed changed.
  void TryFeed(const std::string& name, const std::string& what,
               const std::function<Array(const Array&)>& change) {
    for (const bool fast : {true, false})
      trials_->Add(absl::StrCat(golden_.name, ": feed '", name, "' ", what,
                                fast ? ", fast" : ", reference"),
                   [&] {
                     NamedArrays feeds = golden_.feed;
                     feeds[name] = change(feeds[name]);
                     return Run(golden_.program, feeds, fast);
                   });
  }

 private:
  // The message if it is one that no error may have, else "".
  std::string Run(const ProgramDesc& program, const NamedArrays& feeds,
                  bool fast) const {
    Session session(&Registry(fast), 1);
    if (!golden_.startup.blocks.empty() &&
        !session.RunOnce(golden_.startup).ok())
      return "";
    const absl::Status status = session.Run(program, feeds, fetches_).status();
    for (const char* raw :
         {"vector::", "bad_alloc", "basic_string", "std::", "_M_"})
      if (absl::StrContains(status.message(), raw)) return status.ToString();
    return absl::IsInternal(status) || absl::IsUnknown(status)
               ? status.ToString()
               : "";
  }

  const GoldenCase& golden_;
  size_t block_, op_;
  std::vector<std::string> fetches_;
  Trials* trials_;
};

template <typename Int>
std::vector<Int> Extremes() {
  std::vector<Int> values = {-1, 0, Int{1} << 30};
  if constexpr (sizeof(Int) == 8) {
    values.push_back(Int{1} << 31);
    values.push_back(Int{1} << 62);
  } else {
    values.push_back(std::numeric_limits<Int>::max());
    values.push_back(std::numeric_limits<Int>::min());
  }
  return values;
}

template <typename Int>
void TryNumbers(const std::string& name, Hostile* hostile) {
  for (const Int value : Extremes<Int>())
    hostile->Try(absl::StrCat("attr '", name, "' is ", value),
                 [&](OpDesc* op) { op->attrs[name] = value; });
}

template <typename Int>
void TryLists(const std::string& name, const std::vector<Int>& list,
              Hostile* hostile) {
  for (const Int value : Extremes<Int>()) {
    for (size_t i = 0; i < std::min<size_t>(list.size(), 4); ++i)
      hostile->Try(absl::StrCat("attr '", name, "' has ", value, " at ", i),
                   [&](OpDesc* op) {
                     std::vector<Int> changed = list;
                     changed[i] = value;
                     op->attrs[name] = std::move(changed);
                   });
    if (list.empty())
      hostile->Try(
          absl::StrCat("attr '", name, "' is [", value, "]"),
          [&](OpDesc* op) { op->attrs[name] = std::vector<Int>{value}; });
  }
  hostile->Try(absl::StrCat("attr '", name, "' is []"),
               [&](OpDesc* op) { op->attrs[name] = std::vector<Int>(); });
  hostile->Try(absl::StrCat("attr '", name, "' is longer"), [&](OpDesc* op) {
    std::vector<Int> changed = list;
    changed.insert(changed.end(), 3, Int{1});
    op->attrs[name] = std::move(changed);
  });
}

void TryIntegers(Hostile* hostile) {
  const OpDef* def = Registry(false).Find(hostile->original().type);
  if (def == nullptr) return;
  for (const AttrDef& attr : def->attrs()) {
    const auto given = hostile->original().attrs.find(attr.name);
    if (given == hostile->original().attrs.end() &&
        !attr.default_value.has_value())
      continue;
    const Attribute& value = given != hostile->original().attrs.end()
                                 ? given->second
                                 : *attr.default_value;
    if (attr.type == AttrType::kInt)
      TryNumbers<int32_t>(attr.name, hostile);
    else if (attr.type == AttrType::kLong)
      TryNumbers<int64_t>(attr.name, hostile);
    else if (const auto* ints = std::get_if<std::vector<int32_t>>(&value))
      TryLists<int32_t>(attr.name, *ints, hostile);
    else if (const auto* longs = std::get_if<std::vector<int64_t>>(&value))
      TryLists<int64_t>(attr.name, *longs, hostile);
  }
}

void TryTypes(Hostile* hostile) {
  for (const auto& [name, value] : hostile->original().attrs) {
    const std::string attr = name;
    const std::vector<Attribute> others = {std::string("x"), 1.5f,
                                           std::vector<int64_t>{1, 2, 3}, true};
    for (const Attribute& other : others)
      if (TypeOf(other) != TypeOf(value))
        hostile->Try(
            absl::StrCat("attr '", attr, "' is of type ", Name(TypeOf(other))),
            [&](OpDesc* op) { op->attrs[attr] = other; });
    hostile->Try(absl::StrCat("attr '", attr, "' is missing"),
                 [&](OpDesc* op) { op->attrs.erase(attr); });
  }
}

using SlotsOf = SlotList OpDesc::*;

void TrySlots(SlotsOf slots, const std::vector<std::string>& variables,
              Hostile* hostile) {
  const SlotList& given = hostile->original().*slots;
  for (size_t s = 0; s < given.size(); ++s) {
    const auto with = [&](const std::string& what,
                          const std::function<void(SlotList*)>& change) {
      hostile->Try(absl::StrCat("slot '", given[s].first, "' ", what),
                   [&](OpDesc* op) { change(&(op->*slots)); });
    };
    with("is absent", [&](SlotList* l) {
      l->erase(l->begin() + static_cast<std::ptrdiff_t>(s));
    });
    with("is renamed", [&](SlotList* l) { (*l)[s].first = "Bogus"; });
    with("has no name", [&](SlotList* l) { (*l)[s].first = ""; });
    with("names nothing", [&](SlotList* l) { (*l)[s].second.clear(); });
    with("names ''", [&](SlotList* l) { (*l)[s].second = {""}; });
    with("names @EMPTY@",
         [&](SlotList* l) { (*l)[s].second = {std::string(kEmptyVar)}; });
    with("names one twice", [&](SlotList* l) {
      if (!(*l)[s].second.empty())
        (*l)[s].second.push_back((*l)[s].second.front());
    });
    for (const std::string& variable : variables)
      with(absl::StrCat("names '", variable, "'"), [&](SlotList* l) {
        if (!(*l)[s].second.empty()) (*l)[s].second.front() = variable;
      });
  }
}

// `array` with `value` at some places: the first, the last, all.
template <typename T>
Array With(const Array& array, T value, int where) {
  std::vector<T> values(array.data<T>(), array.data<T>() + array.size());
  if (where == 0) values.front() = value;
  if (where == 1) values.back() = value;
  if (where == 2) std::fill(values.begin(), values.end(), value);
  Array changed = MakeArray(array.shape, values);
  changed.lod = array.lod;
  return changed;
}

template <typename T>
void TryValues(const std::string& name, const std::vector<T>& values,
               Hostile* hostile) {
  const char* places[] = {"first", "last", "everywhere"};
  for (const T value : values)
    for (const int where : {0, 1, 2})
      hostile->TryFeed(
          name, absl::StrCat("has ", value, " ", places[where]),
          [&](const Array& array) { return With(array, value, where); });
}

void TryFeeds(const GoldenCase& golden, Hostile* hostile) {
  constexpr float kInf = std::numeric_limits<float>::infinity();
  for (const auto& [name, array] : golden.feed) {
    // Sums and products of elements wrap, as PaddlePaddle's do; UBSan would
    // report each.
    if (array.size() > 0 && array.dtype == DType::kInt32)
      TryValues(name,
                kSanitized ? std::vector<int32_t>{-1, 0} : Extremes<int32_t>(),
                hostile);
    if (array.size() > 0 && array.dtype == DType::kInt64)
      TryValues(name,
                kSanitized ? std::vector<int64_t>{-1, 0} : Extremes<int64_t>(),
                hostile);
    if (array.size() > 0 && array.dtype == DType::kFloat32)
      TryValues<float>(name, {std::nanf(""), -kInf, 1e30f, -1.0f}, hostile);
    for (size_t axis = 0; axis < array.shape.size(); ++axis)
      for (const int64_t extent : {int64_t{0}, array.shape[axis] - 1})
        if (extent >= 0 && extent < array.shape[axis])
          hostile->TryFeed(name,
                           absl::StrCat("has extent ", extent, " at ", axis),
                           [&](const Array& whole) {
                             Array part = whole;
                             part.shape[axis] = extent;
                             return part;
                           });
  }
}

std::vector<std::string> Zips(const std::string& folder) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".zip")
      names.push_back(absl::StrCat(entry.path().parent_path().stem().string(),
                                   "/", entry.path().stem().string()));
  std::sort(names.begin(), names.end());
  return names;
}

std::vector<std::string> AllZips() {
  std::vector<std::string> all = Zips(PD_TESTDATA "/ops");
  for (const std::string& name : Zips(PD_TESTDATA "/ops_more"))
    all.push_back(name);
  return all;
}

using Tries = std::function<void(const GoldenCase&, Hostile*)>;

struct Spot {
  const GoldenCase* golden;
  size_t block, op;
};

bool HasLoop(const ProgramDesc& program) {
  for (const BlockDesc& block : program.blocks)
    for (const OpDesc& op : block.ops)
      if (op.type == "while") return true;
  return false;
}

// Ops of the cases of a zip, of each type those of a few cases; `seen` counts
// them over all zips.
std::vector<Spot> Choose(const std::vector<GoldenCase>& cases,
                         std::map<std::string, int>* seen) {
  constexpr int kCases = kSanitized ? 1 : 2;
  std::vector<Spot> places;
  for (const GoldenCase& golden : cases) {
    std::string last;
    for (size_t b = 0; b < golden.program.blocks.size(); ++b) {
      const auto& ops = golden.program.blocks[b].ops;
      for (size_t i = 0; i < ops.size(); ++i) {
        if (ops[i].type == last || ++(*seen)[ops[i].type] > kCases) continue;
        last = ops[i].type;
        places.push_back({&golden, b, i});
      }
    }
  }
  return places;
}

class HostileOps : public ::testing::TestWithParam<std::string> {
 protected:
  void Try(std::map<std::string, int>* seen, const Tries& tries) {
    constexpr unsigned kSeconds = 60;
    SetMemoryLimit(kLimit);
    SetThreads(1);  // a child has no threads of its parent's
    const auto cases =
        ReadGoldenCases(absl::StrCat(PD_TESTDATA "/", GetParam(), ".zip"));
    ASSERT_TRUE(cases.ok()) << cases.status();
    Registry(false);
    const std::vector<Spot> places = Choose(*cases, seen);
    const auto wrong = Trials::Run(
        [&](Trials* trials) {
          for (const Spot& spot : places) {
            trials->MayBeEndless(HasLoop(spot.golden->program));
            Hostile hostile(*spot.golden, spot.block, spot.op, trials);
            tries(*spot.golden, &hostile);
          }
        },
        kSeconds, 8 * kLimit);
    for (const std::string& what : wrong) ADD_FAILURE() << what;
  }
};

TEST_P(HostileOps, Integers) {
  static std::map<std::string, int> seen;
  Try(&seen, [](const GoldenCase&, Hostile* hostile) { TryIntegers(hostile); });
}

TEST_P(HostileOps, TypesAndSlots) {
  static std::map<std::string, int> seen;
  Try(&seen, [](const GoldenCase& golden, Hostile* hostile) {
    TryTypes(hostile);
    // Variables of the case that an op may be given in another's place.
    std::vector<std::string> variables;
    for (const VarDesc& var : golden.program.global().vars)
      if (variables.size() < 6) variables.push_back(var.name);
    TrySlots(&OpDesc::inputs, variables, hostile);
    TrySlots(&OpDesc::outputs, variables, hostile);
  });
}

TEST_P(HostileOps, Feeds) {
  static std::map<std::string, int> seen;
  const GoldenCase* last = nullptr;  // of several ops one stands for the case
  Try(&seen, [&last](const GoldenCase& golden, Hostile* hostile) {
    // Loops that data tell to go on have no end: each would take its second.
    if (&golden != last && !HasLoop(golden.program)) TryFeeds(golden, hostile);
    last = &golden;
  });
}

INSTANTIATE_TEST_SUITE_P(All, HostileOps, ::testing::ValuesIn(AllZips()),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '/', '_');
                           return name;
                         });

}  // namespace
}  // namespace pd

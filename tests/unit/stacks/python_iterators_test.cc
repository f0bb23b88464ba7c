// SPDX-License-Identifier: Apache-2.0
// What the loops of real interpreters iterate over, for every installation found.
#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/syscall.h>

#include "collector/stacks/capture.h"
#include "collector/stacks/python/reader.h"
#include "collector/stacks/target/live_target.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::stacks {
namespace {

using test::PythonInstallation;

std::string count(std::optional<std::int64_t> number) {
  return number ? fmt::format("{}", *number) : "?";
}

/// The loops of the function that calls stand(), outermost first, in the words of `said`.
template <class Said>
std::string loops_in(const PythonInstallation& python, const std::string& mood, const Said& said) {
  test::ChildProcess child(
      {python.command, tests::source_file("tests/support/python_loops.py"), mood}, true);
  ElfCache files;
  std::string problem;
  if (!child.lines_until("ready") || !child.rests_in(SYS_read)) {
    return "it did not come to rest";
  }
  auto target = LiveTarget::open(child.pid(), files);
  const auto reader = target ? open_python(**target, problem) : nullptr;
  if (reader == nullptr) {
    return problem;
  }
  std::string out;
  bool next = false;
  for (const PythonThreadState& state : reader->thread_states()) {
    for (const PythonFrame& one : reader->decode(reader->read_stack(state.address))) {
      if (next) {
        for (const Iteration& loop : one.frame.loops) {
          out += (out.empty() ? "" : ", ") + said(loop);
        }
      }
      next = one.frame.function == "stand";
    }
  }
  return out;
}

/// "list 3 of 7".
std::string counted(const Iteration& loop) {
  return fmt::format("{} {} of {}{}{}", loop.over, count(loop.done), count(loop.total()),
                     loop.loose ? " loose" : "",
                     loop.index ? fmt::format(" at {}", *loop.index) : std::string());
}

/// The messages that the function which calls stand() has passed to batch_isend_irecv().
std::string messages_by(const PythonInstallation& python, const std::string& mood) {
  test::ChildProcess child(
      {python.command, tests::source_file("tests/support/python_loops.py"), mood}, true);
  ElfCache files;
  std::string problem;
  if (!child.lines_until("ready") || !child.rests_in(SYS_read)) {
    return "it did not come to rest";
  }
  auto target = LiveTarget::open(child.pid(), files);
  const auto reader = target ? open_python(**target, problem) : nullptr;
  if (reader == nullptr) {
    return problem;
  }
  for (const PythonThreadState& state : reader->thread_states()) {
    for (const PythonFrame& one : reader->decode(reader->read_stack(state.address))) {
      if (!one.frame.locals.empty()) {
        return one.frame.function + ": " + one.frame.locals.front().second;
      }
    }
  }
  return {};
}

class PythonIterators : public testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    installations = test::python_installations(GetParam());
    if (installations.empty()) {
      GTEST_SKIP() << "no CPython 3." << GetParam() << " on this machine";
    }
  }

  void expect(const std::string& mood, const std::string& loops) {
    for (const PythonInstallation& python : installations) {
      EXPECT_EQ(loops_in(python, mood, counted), loops) << python.command << " " << mood;
    }
  }

  /// 3.14's generators are not read yet.
  [[nodiscard]] static bool reads_generators() {
    return GetParam() < 14;
  }

  std::vector<PythonInstallation> installations;
};

TEST_P(PythonIterators, AreCountedFromTheBottomOfTheStack) {
  const bool counts_ranges = GetParam() < 12;
  expect("ranges", counts_ranges ? "range 1 of 4, range 3 of 8" : "range ? of ?, range ? of ?");
  if (GetParam() < 14) {  // since 3.14 a with block keeps more than its __exit__ on the stack
    expect("sequences", "tuple 1 of 2, list 3 of 7");
  }
  expect("sliced", "list 3 of 6");
}

TEST_P(PythonIterators, OfAThreadThatRunsAreReadWithoutAStopWhereNoneIsMeantOrCameInTime) {
  using std::chrono::milliseconds;
  constexpr int kTries = 100;
  const CaptureOptions glance{
      .allow_stop = false, .native = false, .torch_state = false, .glance = true};
  const CaptureOptions too_late{.torch_state = false, .halt_deadline = milliseconds(0)};
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    test::ChildProcess child(
        {python.command, tests::source_file("tests/support/python_loops.py"), "spinning"}, true);
    ASSERT_TRUE(child.lines_until("ready"));
    const std::array<pid_t, 1> pids{child.pid()};
    for (const CaptureOptions& options : {glance, too_late}) {
      auto seen = capture(pids, options);
      // On an idle machine the thread may stop at once: then the look was not too late.
      for (int i = 0; i < kTries && seen.at(0).longest_stop_ms > 0; ++i) {
        seen = capture(pids, options);
      }
      ASSERT_FALSE(seen.at(0).threads.empty());
      const ThreadStack& main = seen[0].threads[0];
      EXPECT_EQ(main.stopped_ms, 0);
      const auto frame = std::find_if(main.frames.begin(), main.frames.end(),
                                      [](const Frame& one) { return one.function == "spinning"; });
      ASSERT_NE(frame, main.frames.end()) << main.problem;
      ASSERT_EQ(frame->loops.size(), 1U);
      EXPECT_EQ(frame->loops[0].total(), 9);
    }
  }
}

TEST_P(PythonIterators, EndWithTheShortestOfSeveral) {
  expect("zipped", "tuple 3 of 5");
}

TEST_P(PythonIterators, SayWhichNamesTheyGoOverInWhichOrder) {
  const auto names = [](const Iteration& loop) {
    return fmt::format("{}: {}", loop.over, fmt::join(loop.items, " "));
  };
  for (const PythonInstallation& python : installations) {
    SCOPED_TRACE(python.command);
    EXPECT_EQ(loops_in(python, "named", names), "dict: 'loss' 'bleu' 'wer'");
    EXPECT_EQ(loops_in(python, "paired", names), "list: 'b' 'a' 3");
    EXPECT_EQ(loops_in(python, "of_objects", names), "list: ");
    EXPECT_EQ(loops_in(python, "of_many", names), "list: ");
  }
}

TEST_P(PythonIterators, OfAnUnknownKindHaveNoCounts) {
  expect("own", "Own ? of ?");
}

TEST_P(PythonIterators, OverHandlesStandBesideTheMessagesTheyAreOf) {
  for (const PythonInstallation& python : installations) {
    EXPECT_EQ(messages_by(python, "messages"), "messages: isend 1, irecv 1, isend 0, ? ?")
        << python.command;
    EXPECT_EQ(messages_by(python, "two_lists_of_messages"), "") << python.command;
  }
}

TEST_P(PythonIterators, AreNotSeenWhereThereIsNoLoop) {
  expect("call", "");
  expect("past", "");
}

TEST_P(PythonIterators, OfAGeneratorAreItsOwnLoopsAndMayMislead) {
  if (reads_generators()) {
    expect("generator", "generator batches 3 of 7 loose");
    expect("numbered", "generator batches 3 of 7 loose at 8");
    expect("objects", "generator rows 3 of 7 loose");
    expect("bar", "list 3 of 11");
  }
}

TEST_P(PythonIterators, OfADataLoaderCountBatches) {
  if (reads_generators()) {
    expect("loader", "DataLoader with Strided 3 of 11");
    expect("short_loader", "DataLoader with Strided 3 of 10");
    expect("old_loader", "DataLoader with Strided 3 of 11");
    expect("shuffled", "DataLoader with RandomSampler 3 of 11");
  }
}

TEST(DataLoaderInTheMiddleOfABatch, HasDrawnMoreThanItGaveOut) {
  const auto frames = [](const std::vector<std::array<std::string, 2>>& innermost_first) {
    std::vector<PythonFrame> out;
    for (const auto& [function, file] : innermost_first) {
      PythonFrame one{};
      one.frame.function = function;
      one.frame.file = file;
      out.push_back(one);
    }
    return out;
  };
  const std::string loader = "/v/torch/utils/data/dataloader.py";
  const std::string fetcher = "/v/torch/utils/data/_utils/fetch.py";
  EXPECT_TRUE(draws_a_batch(frames({{"Records.__getitem__", "/srv/train.py"},
                                    {"_MapDatasetFetcher.fetch", fetcher},
                                    {"_SingleProcessDataLoaderIter._next_data", loader},
                                    {"_BaseDataLoaderIter.__next__", loader},
                                    {"tqdm.__iter__", "/v/tqdm/std.py"}})));
  EXPECT_FALSE(draws_a_batch(frames({{"_MultiProcessingDataLoaderIter._try_get_data", loader},
                                     {"_BaseDataLoaderIter.__next__", loader}})));
  EXPECT_FALSE(draws_a_batch(frames({{"_MapDatasetFetcher.fetch", fetcher},
                                     {"_BaseDataLoaderIter.__next__", loader},
                                     {"evaluate", "/srv/train.py"}})));
  EXPECT_FALSE(draws_a_batch({}));
}

TEST_P(PythonIterators, OfADataLoaderWithWorkersAreBehindTheSampler) {
  if (reads_generators()) {
    expect("workers", "DataLoader with Strided 3 of 11");
    expect("drained_workers", "DataLoader with Strided 3 of 5");
  }
}

TEST_P(PythonIterators, OfASamplerThatChoosesHaveNoEnd) {
  expect("filtered", "DataLoader with Filtered 3 of ?");
}

TEST_P(PythonIterators, OfAnIterableDatasetCountWhatItGoesOver) {
  expect("iterable_list", "DataLoader over Numbers 3 of 8");
  expect("iterable_generator", "DataLoader over Numbers 3 of ?");
}

INSTANTIATE_TEST_SUITE_P(Python3, PythonIterators, testing::Range(8, 15));

}  // namespace
}  // namespace ddpdoctor::stacks

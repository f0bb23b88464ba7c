// SPDX-License-Identifier: Apache-2.0
// The torch readers against a real hung gloo job of two ranks (tests/support/torch_ring.py).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "collector/stacks/live_target.h"
#include "collector/stacks/torch_layouts.h"
#include "collector/stacks/torch_state.h"
#include "tests/support/child_process.h"

namespace ddpdoctor::stacks {
namespace {

using std::chrono::steady_clock;
using test::ChildProcess;

const std::string kScript = DDPDOCTOR_SOURCE_DIR "/tests/support/torch_ring.py";

/// The number of the line with the comment "HERE: name"; 0 when there is none.
int line_of(const std::string& name) {
  std::ifstream file(kScript);
  std::string line;
  for (int number = 1; std::getline(file, line); ++number) {
    if (line.ends_with("# HERE: " + name)) {
      return number;
    }
  }
  return 0;
}

/// What our reader sees of one process.
struct View {
  explicit View(pid_t pid) {
    auto opened = LiveTarget::open(pid, files);
    if (opened) {
      target = std::move(*opened);
      std::string problem;
      python = open_python(*target, problem);
    }
  }
  std::optional<TorchState> torch() {
    target->memory().forget();
    return read_torch_state(*target, python.get());
  }

  ElfCache files;
  std::unique_ptr<LiveTarget> target;
  std::unique_ptr<PythonReader> python;
};

/// Two ranks that hang; started once for all tests.
class TorchJob : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* const python = std::getenv("DDPDOCTOR_TEST_PYTHON");
    if (python == nullptr) {
      why_not_ = "DDPDOCTOR_TEST_PYTHON names no Python";
      return;
    }
    const auto version = test::output_of({python, "-c",
                                          "import torch, torch.distributed as d\nassert "
                                          "d.is_available()\nprint(torch.__version__)"});
    if (!version) {
      why_not_ = fmt::format("{} has no torch.distributed", python);
      return;
    }
    version_ = version->substr(0, version->find('\n'));
    store_ = fmt::format("{}/ddpdoctor-torch-ring-{}",
                         std::filesystem::temp_directory_path().string(), ::getpid());
    for (int rank = 0; rank < 2; ++rank) {
      ranks_.push_back(std::make_unique<ChildProcess>(
          std::vector<std::string>{python, kScript, std::to_string(rank), "2", store_}));
    }
    for (const auto& rank : ranks_) {
      if (rank->line(std::chrono::minutes(2)) != "ready") {
        why_not_ = "the job did not start";
        return;
      }
    }
  }

  static void TearDownTestSuite() {
    ranks_.clear();
    std::error_code ignored;
    std::filesystem::remove(store_, ignored);
  }

  void SetUp() override {
    if (!why_not_.empty()) {
      GTEST_SKIP() << why_not_;
    }
  }

  /// The state once the rank has entered the call it hangs in.
  static TorchState hung(int rank) {
    View view(ranks_[static_cast<std::size_t>(rank)]->pid());
    const auto deadline = steady_clock::now() + std::chrono::seconds(60);
    std::optional<TorchState> state;
    do {
      state = view.torch();
      if (state && !state->records.empty() && state->records.back().group_name == "1") {
        break;
      }
      std::this_thread::yield();
    } while (steady_clock::now() < deadline);
    return state.value_or(TorchState{});
  }

  static std::vector<std::unique_ptr<ChildProcess>> ranks_;
  static std::string version_;
  static std::string store_;
  static std::string why_not_;
};

std::vector<std::unique_ptr<ChildProcess>> TorchJob::ranks_;
std::string TorchJob::version_;
std::string TorchJob::store_;
std::string TorchJob::why_not_;

/// The line in our script of the innermost frame there.
int call_site(const FlightRecord& record) {
  const auto frame = std::ranges::find(record.stack, kScript, &PythonLocation::file);
  return frame == record.stack.end() ? -1 : frame->line;
}

TEST_F(TorchJob, TellsVersionRankAndGroups) {
  for (int rank = 0; rank < 2; ++rank) {
    const TorchState state = hung(rank);
    EXPECT_EQ(state.version, version_);
    EXPECT_EQ(state.rank, rank);
    EXPECT_EQ(state.world_size, 2);
    ASSERT_EQ(state.groups.size(), rank == 0 ? 3U : 2U);
    EXPECT_EQ(state.groups[0].name, "0");
    EXPECT_EQ(state.groups[0].description, "default_pg");
    EXPECT_EQ(state.groups[0].backend, "gloo");
    EXPECT_EQ(state.groups[0].ranks, (std::vector<int>{0, 1}));
    EXPECT_EQ(state.groups[1].name, "1");
    EXPECT_EQ(state.groups[1].ranks, (std::vector<int>{0, 1}));
    if (torch_layout(version_) != nullptr) {
      EXPECT_EQ(state.groups[1].description, "evaluation of the model");
    }
    if (rank == 0) {
      EXPECT_EQ(state.groups[2].ranks, (std::vector<int>{0}));
      EXPECT_EQ(state.groups[2].description, "");
    }
  }
}

TEST_F(TorchJob, ReplaysTheFlightRecorder) {
  if (torch_layout(version_) == nullptr) {
    GTEST_SKIP() << "no layout of torch " << version_;
  }
  for (int rank = 0; rank < 2; ++rank) {
    const TorchState state = hung(rank);
    ASSERT_TRUE(state.recorder_read) << state.problem;
    ASSERT_EQ(state.records.size(), 12U);
    for (std::size_t i = 0; i < 10; ++i) {
      const FlightRecord& record = state.records[i];
      EXPECT_EQ(record.id, static_cast<std::int64_t>(i));
      EXPECT_EQ(record.sequence, static_cast<std::int64_t>(i) + 1);
      EXPECT_EQ(record.group_name, "0");
      EXPECT_EQ(record.operation, "gloo:all_reduce");
      EXPECT_EQ(record.input_shapes, (std::vector<std::vector<std::int64_t>>{{}}));
      EXPECT_EQ(record.input_dtypes, (std::vector<std::string>{"int64"}));
      EXPECT_TRUE(record.completed);
      EXPECT_EQ(call_site(record), line_of("loop"));
    }
    EXPECT_EQ(state.records[10].operation, "gloo:broadcast");
    EXPECT_EQ(state.records[10].input_shapes, (std::vector<std::vector<std::int64_t>>{{2, 3}}));
    EXPECT_EQ(call_site(state.records[10]), line_of("broadcast"));

    const FlightRecord& last = state.records[11];
    EXPECT_EQ(last.operation, rank == 0 ? "gloo:all_reduce" : "gloo:barrier");
    EXPECT_EQ(last.sequence, 1);
    EXPECT_EQ(last.group_description, "evaluation of the model");
    EXPECT_FALSE(last.completed);
    EXPECT_EQ(call_site(last), line_of(fmt::format("rank {} hangs", rank)));
    EXPECT_TRUE(std::ranges::any_of(last.stack, [](const PythonLocation& frame) {
      return frame.line == line_of("caller") && frame.function == "main";
    }));
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    const auto age = std::chrono::duration_cast<std::chrono::seconds>(now).count() -
                     last.created_ns / 1'000'000'000;
    EXPECT_GE(age, 0);
    EXPECT_LT(age, 600);
  }
}

TEST_F(TorchJob, SpellsTheArgumentsOfTheBlockedCall) {
  hung(0);
  View view(ranks_[0]->pid());
  ASSERT_NE(view.python, nullptr);
  show_torch_values(*view.target, *view.python);
  std::map<std::string, std::string> locals;
  for (const PythonThreadState& thread : view.python->thread_states()) {
    for (const PythonFrame& frame : view.python->decode(view.python->read_stack(thread.address))) {
      if (frame.frame.function == "all_reduce") {
        locals.insert(frame.frame.locals.begin(), frame.frame.locals.end());
      }
    }
  }
  EXPECT_EQ(locals["group"], "<ProcessGroup 1>");
  EXPECT_EQ(locals["async_op"], "False");
  if (torch_layout(version_) != nullptr) {
    EXPECT_EQ(locals["tensor"], "Tensor(1000x7, float64)");
    EXPECT_EQ(locals["op"], "ReduceOp.MAX");
  }
}

TEST_F(TorchJob, WithoutPythonStillGivesTheRecords) {
  if (torch_layout(version_) == nullptr) {
    GTEST_SKIP() << "no layout of torch " << version_;
  }
  hung(1);
  View view(ranks_[1]->pid());
  const auto state = read_torch_state(*view.target, nullptr);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->version, version_);
  EXPECT_EQ(state->records.size(), 12U);
  EXPECT_TRUE(state->records.back().stack.empty());
}

TEST(TorchState, IsAbsentInAProcessWithoutTorch) {
  View view(::getpid());
  ASSERT_NE(view.target, nullptr);
  EXPECT_FALSE(view.torch().has_value());
}

}  // namespace
}  // namespace ddpdoctor::stacks

// SPDX-License-Identifier: Apache-2.0
// The torch readers against a real hung gloo job of two ranks (tests/support/torch_ring.py).
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <unistd.h>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/text.h"
#include "collector/stacks/target/live_target.h"
#include "collector/stacks/torch/layouts.h"
#include "collector/stacks/torch/state.h"
#include "tests/support/child_process.h"
#include "tests/support/places.h"

namespace ddpdoctor::stacks {
namespace {

using std::chrono::steady_clock;
using test::ChildProcess;

const std::string kScript = tests::source_file("tests/support/torch_ring.py");

/// The number of the line with the comment "HERE: name"; 0 if there is none.
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

/// What our reader reads from one process.
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

/// Two ranks that hang in tests/support/torch_ring.py.
class HungJob {
 public:
  explicit HungJob(const std::string& python) {
    for (int rank = 0; rank < 2; ++rank) {
      ranks_.push_back(std::make_unique<ChildProcess>(
          std::vector<std::string>{python, kScript, std::to_string(rank), "2", store_}));
    }
  }
  HungJob(const HungJob&) = delete;
  HungJob& operator=(const HungJob&) = delete;
  HungJob(HungJob&&) = delete;
  HungJob& operator=(HungJob&&) = delete;
  ~HungJob() {
    ranks_.clear();
    std::error_code ignored;
    std::filesystem::remove(store_, ignored);
  }

  bool started() {
    // some releases of gloo print to stdout, too
    return std::ranges::all_of(
        ranks_, [](const auto& rank) { return rank->lines_until("ready").has_value(); });
  }
  [[nodiscard]] pid_t pid(int rank) const {
    return ranks_[static_cast<std::size_t>(rank)]->pid();
  }
  /// The state after the rank has entered the call in which it hangs; `layout`: the recorder is
  /// readable.
  [[nodiscard]] TorchState state(int rank, bool layout) const {
    View view(pid(rank));
    const auto deadline = steady_clock::now() + std::chrono::seconds(60);
    std::optional<TorchState> state;
    do {
      state = view.torch();
      if (state &&
          (!layout || (!state->records.empty() && state->records.back().group_name == "1"))) {
        break;
      }
      std::this_thread::yield();
    } while (steady_clock::now() < deadline);
    return state.value_or(TorchState{});
  }

 private:
  std::string store_ = fmt::format("{}/ddpdoctor-torch-ring-{}",
                                   std::filesystem::temp_directory_path().string(), ::getpid());
  std::vector<std::unique_ptr<ChildProcess>> ranks_;
};

/// The line of the innermost frame in our script.
int call_site(const FlightRecord& record) {
  const auto frame = std::ranges::find(record.stack, kScript, &PythonLocation::file);
  return frame == record.stack.end() ? -1 : frame->line;
}

void expect_groups(const TorchState& state, int rank, bool layout) {
  EXPECT_EQ(state.rank, rank);
  EXPECT_EQ(state.world_size, 2);
  ASSERT_EQ(state.groups.size(), rank == 0 ? 3U : 2U);
  EXPECT_EQ(state.groups[0].name, "0");
  EXPECT_EQ(state.groups[0].description, "default_pg");
  EXPECT_EQ(state.groups[0].backend, "gloo");
  EXPECT_EQ(state.groups[0].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(state.groups[1].name, "1");
  EXPECT_EQ(state.groups[1].ranks, (std::vector<int>{0, 1}));
  EXPECT_EQ(state.groups[1].description, layout ? "evaluation of the model" : "");
  if (rank == 0) {
    EXPECT_EQ(state.groups[2].ranks, (std::vector<int>{0}));
    EXPECT_EQ(state.groups[2].description, "");
  }
}

void expect_finished_calls(const TorchState& state) {
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
}

void expect_hung_call(const FlightRecord& record, int rank) {
  EXPECT_EQ(record.operation, rank == 0 ? "gloo:all_reduce" : "gloo:barrier");
  EXPECT_EQ(record.sequence, 1);
  EXPECT_EQ(record.group_description, "evaluation of the model");
  EXPECT_FALSE(record.completed);
  EXPECT_EQ(call_site(record), line_of(fmt::format("rank {} hangs", rank)));
  EXPECT_TRUE(std::ranges::any_of(record.stack, [](const PythonLocation& frame) {
    return frame.line == line_of("caller") && frame.function == "main";
  }));
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto age = std::chrono::duration_cast<std::chrono::seconds>(now).count() -
                   record.created_ns / 1'000'000'000;
  EXPECT_GE(age, 0);
  EXPECT_LT(age, 600);
}

/// Arguments of the all_reduce in which rank 0 hangs.
void expect_arguments(pid_t pid, bool layout) {
  View view(pid);
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
  EXPECT_EQ(locals["tensor"], layout ? "Tensor(1000x7, float64)" : "<Tensor>");
  EXPECT_EQ(locals["op"], "ReduceOp.MAX");
}

void expect_records_without_python(pid_t pid, const std::string& version) {
  View view(pid);
  const auto state = read_torch_state(*view.target, nullptr);
  ASSERT_TRUE(state.has_value());
  EXPECT_EQ(state->version, version);
  ASSERT_EQ(state->records.size(), 12U);
  EXPECT_TRUE(state->records.back().stack.empty());
}

/// Pythons with a torch: ours, and those of further releases in $DDPDOCTOR_TORCH_VERSIONS
/// (separated by colons).
std::vector<std::string> pythons() {
  std::vector<std::string> found;
  for (const char* variable : {"DDPDOCTOR_TEST_PYTHON", "DDPDOCTOR_TORCH_VERSIONS"}) {
    const char* const paths = std::getenv(variable);
    for (const std::string_view path : base::split(paths == nullptr ? "" : paths, ':')) {
      if (!path.empty()) {
        found.emplace_back(path);
      }
    }
  }
  return found;
}

/// torch.__version__ of a Python; nothing if it has no torch.distributed.
std::optional<std::string> version_of(const std::string& python) {
  const auto printed = test::output_of({python, "-c",
                                        "import torch, torch.distributed as d\n"
                                        "assert d.is_available()\n"
                                        "print(torch.__version__)"});
  return printed ? std::optional(printed->substr(0, printed->find('\n'))) : std::nullopt;
}

/// `said` is the version that the job's torch reports, `version` the one in its files.
void expect_hung_job(const std::string& python, const std::string& version,
                     const std::string& said) {
  const bool layout = torch_layout(version) != nullptr;
  HungJob job(python);
  ASSERT_TRUE(job.started());
  for (int rank = 0; rank < 2; ++rank) {
    SCOPED_TRACE(fmt::format("rank {}", rank));
    const TorchState state = job.state(rank, layout);
    EXPECT_EQ(state.version, said);
    expect_groups(state, rank, layout);
    EXPECT_EQ(state.recorder_read, layout) << state.problem;
    EXPECT_EQ(state.problem.empty(), layout) << state.problem;
    ASSERT_EQ(state.records.size(), layout ? 12U : 0U);
    if (layout) {
      expect_finished_calls(state);
      expect_hung_call(state.records[11], rank);
      expect_records_without_python(job.pid(rank), version);
    }
  }
  expect_arguments(job.pid(0), layout);
}

TEST(TorchState, OfAHungJobIsWhatTheJobDid) {
  if (pythons().empty()) {
    GTEST_SKIP() << "DDPDOCTOR_TEST_PYTHON names no Python";
  }
  for (const std::string& python : pythons()) {
    SCOPED_TRACE(python);
    const auto version = version_of(python);
    if (!version) {
      GTEST_SKIP() << python << " has no torch.distributed";
    }
    expect_hung_job(python, *version, *version);
  }
}

TEST(TorchState, OfABuildWhoseVersionHasNoRowIsTheSame) {
  if (pythons().empty()) {
    GTEST_SKIP() << "DDPDOCTOR_TEST_PYTHON names no Python";
  }
  constexpr const char* kSaid = "2.99.0a0+nv25.10";
  ASSERT_EQ(torch_layout(kSaid), nullptr);
  for (const std::string& python : pythons()) {
    SCOPED_TRACE(python);
    const auto version = version_of(python);
    if (!version) {
      GTEST_SKIP() << python << " has no torch.distributed";
    }
    ::setenv("DDPDOCTOR_TORCH_SAYS", kSaid, 1);  // NOLINT(concurrency-mt-unsafe): one thread
    expect_hung_job(python, *version, kSaid);
    ::unsetenv("DDPDOCTOR_TORCH_SAYS");  // NOLINT(concurrency-mt-unsafe)
  }
}

TEST(TorchState, IsAbsentInAProcessWithoutTorch) {
  View view(::getpid());
  ASSERT_NE(view.target, nullptr);
  EXPECT_FALSE(view.torch().has_value());
}

}  // namespace
}  // namespace ddpdoctor::stacks

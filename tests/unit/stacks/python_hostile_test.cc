// SPDX-License-Identifier: Apache-2.0
// Memory that does not belong to a Python: the readers must end soon, and must return nothing that
// makes a caller crash.
#include <algorithm>
#include <limits>
#include <random>

#include <gtest/gtest.h>

#include "tests/support/fake_memory.h"
#include "tests/support/python_probe.h"

namespace ddpdoctor::stacks {
namespace {

constexpr RemoteAddress kBase = 0x10000;
constexpr std::size_t kLength = 1 << 18;

/// Random bytes, but many words are addresses of the same memory, so that walks go far.
std::vector<std::byte> noise(std::mt19937_64& random) {
  std::vector<std::uint64_t> words(kLength / 8);
  for (std::uint64_t& word : words) {
    switch (random() % 4) {
      case 0:
        word = kBase + random() % kLength / 8 * 8;
        break;
      case 1:
        word = random() % 64;
        break;
      case 2:
        word = random();
        break;
      default:
        word =
            kBase + 0x4000 +
            random() % 16 *
                0x400;  // a few addresses to which many words point: shared structures and cycles
        break;
    }
  }
  const auto bytes = std::as_bytes(std::span(words));
  return {bytes.begin(), bytes.end()};
}

/// Gives every object at these addresses the type at kBase, so that type checks pass.
void plant_types(test::FakeMemory& memory, const PythonLayout& layout, std::mt19937_64& random) {
  constexpr auto kNames =
      std::to_array<std::string_view>({"code", "str", "dict", "float", "cell", "x"});
  for (RemoteAddress place = kBase + 0x4000; place < kBase + 0x8000; place += 0x400) {
    const RemoteAddress type = kBase + 0x20000 + random() % 64 * 0x400;
    memory.put(place + static_cast<RemoteAddress>(layout.object_type), type);
    memory.put(type + static_cast<RemoteAddress>(layout.type_name), kBase + 0x3f000);
    memory.put(type + static_cast<RemoteAddress>(layout.type_flags), random());
    const auto name = kNames[random() % kNames.size()];
    memory.put(type + static_cast<RemoteAddress>(layout.type_name), type + 0x380);
    memory.put_text(type + 0x380, name);
    memory.put(type + 0x380 + name.size(), std::uint64_t{0});
  }
}

class Noise : public testing::TestWithParam<PythonLayout> {};

TEST_P(Noise, IsReadToAnEndInBoundedWork) {
  constexpr int kMostReads = 4'000'000;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    std::mt19937_64 random(seed);
    test::FakeMemory memory;
    memory.map(kBase, noise(random));
    plant_types(memory, GetParam(), random);
    const PythonHome home{
        .runtime = kBase, .layout = GetParam(), .version = "3.x", .hash_secret = {}};
    const RemoteAddress object = kBase + 0x4000 + random() % 16 * 0x400;
    test::read_everything(memory, home, object);
    EXPECT_LT(memory.reads, kMostReads) << seed;
  }
}

INSTANTIATE_TEST_SUITE_P(Layouts, Noise,
                         testing::ValuesIn(python_layouts().begin(), python_layouts().end()),
                         [](const auto& row) { return "v" + std::to_string(row.param.version); });

std::vector<PythonThread> threads_of(test::FakeMemory& memory, const PythonLayout& layout) {
  return python_threads(memory,
                        {.runtime = kBase, .layout = layout, .version = "3.12", .hash_secret = {}});
}

TEST(PythonThreads, CirclesOfInterpretersAndThreadsEnd) {
  const PythonLayout& layout = *python_layout(0x030c);
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  const RemoteAddress interpreter = kBase + 0x1000;
  const RemoteAddress thread = kBase + 0x2000;
  memory.put(kBase + static_cast<RemoteAddress>(layout.runtime_interpreters), interpreter);
  memory.put(interpreter + static_cast<RemoteAddress>(layout.interpreter_next), interpreter);
  memory.put(interpreter + static_cast<RemoteAddress>(layout.interpreter_threads), thread);
  memory.put(thread + static_cast<RemoteAddress>(layout.thread_next), thread);
  memory.put(thread + static_cast<RemoteAddress>(layout.thread_native_id), std::uint64_t{77});
  const auto threads = threads_of(memory, layout);
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].state.inner_tid, 77);
}

TEST(PythonThreads, ATidNoKernelGivesIsUnknown) {
  const PythonLayout& layout = *python_layout(0x030c);
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  memory.put(kBase + static_cast<RemoteAddress>(layout.runtime_interpreters), kBase + 0x1000);
  memory.put(kBase + 0x1000 + static_cast<RemoteAddress>(layout.interpreter_threads),
             kBase + 0x2000);
  memory.put(kBase + 0x2000 + static_cast<RemoteAddress>(layout.thread_native_id),
             std::uint64_t{1} << 40U);
  const auto threads = threads_of(memory, layout);
  ASSERT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads[0].state.inner_tid, 0);
}

TEST(PythonThreads, Before311TheTidIsTakenOnlyFromWhatIsAPthread) {
  const PythonLayout& layout = *python_layout(0x0309);
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  const RemoteAddress pthread = kBase + 0x3000;
  memory.put(kBase + static_cast<RemoteAddress>(layout.runtime_interpreters), kBase + 0x1000);
  memory.put(kBase + 0x1000 + static_cast<RemoteAddress>(layout.interpreter_threads),
             kBase + 0x2000);
  memory.put(kBase + 0x2000 + static_cast<RemoteAddress>(layout.thread_ident), pthread);
#if defined(__aarch64__)
  memory.put(pthread + 208, 1234);
  EXPECT_EQ(threads_of(memory, layout).at(0).state.inner_tid, 0);
  memory.put(pthread + 192, pthread + 192);  // a list with one thread
  memory.put(pthread + 200, pthread + 192);
#else
  memory.put(pthread + 720, 1234);
  EXPECT_EQ(threads_of(memory, layout).at(0).state.inner_tid, 0);
  memory.put(pthread, pthread);
  memory.put(pthread + 16, pthread);
#endif
  EXPECT_EQ(threads_of(memory, layout).at(0).state.inner_tid, 1234);
}

TEST(PythonStack, ACircleOfFramesEndsAtItsFirstRepetition) {
  const PythonLayout& layout = *python_layout(0x0309);
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  const auto previous = static_cast<RemoteAddress>(layout.frame_previous);
  memory.put(kBase + static_cast<RemoteAddress>(layout.thread_frame), kBase + 0x1000);
  memory.put(kBase + 0x1000 + previous, kBase + 0x2000);
  memory.put(kBase + 0x2000 + previous, kBase + 0x1000);
  EXPECT_EQ(read_python_stack(memory, layout, kBase).size(), 2U);
}

TEST(PythonStack, AFrameThatIsNoLongerMappedEndsTheChain) {
  const PythonLayout& layout = *python_layout(0x030d);
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  memory.put(kBase + static_cast<RemoteAddress>(layout.thread_frame), kBase + 0x1000);
  memory.put(kBase + 0x1000 + static_cast<RemoteAddress>(layout.frame_previous),
             RemoteAddress{0x5});
  EXPECT_EQ(read_python_stack(memory, layout, kBase).size(), 1U);
}

TEST(PythonStack, AFrameWhoseCodeIsNoCodeIsSaidToBeUnreadable) {
  const PythonLayout& layout = *python_layout(0x030d);
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  PythonObjects objects(memory, layout);
  FrameDecoder decoder(memory, layout, objects);
  const auto frames = decoder.decode({{.address = kBase, .code = kBase + 0x100, .instruction = 0}});
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(frames[0].frame.function, "<unreadable frame>");
}

TEST(GilHolder, AHolderOfAnOpenLockIsStale) {
  const PythonLayout& layout = *python_layout(0x030b);
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  const PythonHome home{.runtime = kBase, .layout = layout, .version = "3.11", .hash_secret = {}};
  const RemoteAddress gil = kBase + static_cast<RemoteAddress>(layout.runtime_gil);
  memory.put(gil + static_cast<RemoteAddress>(layout.gil_holder), kBase + 0x2000);
  memory.put(kBase + 0x2000 + static_cast<RemoteAddress>(layout.thread_native_id),
             std::uint64_t{99});
  EXPECT_EQ(python_gil_holder(memory, home), std::nullopt);
  memory.put(gil + static_cast<RemoteAddress>(layout.gil_locked), 1);
  EXPECT_EQ(python_gil_holder(memory, home), 99);
}

/// _PyRuntime of 3.13 with its own offsets: the cookie, the version, and each offset of the
/// layout's row.
void put_debug_offsets(test::FakeMemory& memory, std::uint64_t hex, std::uint64_t free_threaded) {
  memory.put_text(kBase, "xdebugpy");
  memory.put(kBase + 8, hex);
  memory.put(kBase + 16, free_threaded);
}

TEST(PythonLayouts, AFreeThreadedBuildIsRefusedByName) {
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  put_debug_offsets(memory, 0x030d00f0, 1);
  std::string problem;
  EXPECT_EQ(layout_of_runtime(memory, kBase, 0, problem), std::nullopt);
  EXPECT_NE(problem.find("free-threaded CPython 3.13t"), std::string::npos) << problem;
}

TEST(PythonLayouts, ANewerPythonIsRefusedWithTheVersionsWeKnow) {
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  put_debug_offsets(memory, 0x036300f0, 0);
  std::string problem;
  EXPECT_EQ(layout_of_runtime(memory, kBase, 0, problem), std::nullopt);
  EXPECT_NE(problem.find("CPython 3.99 is not known (known are 3.8 to 3."), std::string::npos)
      << problem;
}

TEST(PythonLayouts, AnOlderPythonIsRefusedWithTheVersionsWeKnow) {
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  std::string problem;
  EXPECT_EQ(layout_of_runtime(memory, kBase, 0x0307, problem), std::nullopt);
  EXPECT_NE(problem.find("CPython 3.7 is not known"), std::string::npos) << problem;
}

TEST(PythonLayouts, OffsetsThatMakeNoSenseAreRefused) {
  test::FakeMemory memory;
  memory.map(kBase, std::vector<std::byte>(kLength, std::byte{0x7f}));
  put_debug_offsets(memory, 0x030d00f0, 0);
  std::string problem;
  EXPECT_EQ(layout_of_runtime(memory, kBase, 0, problem), std::nullopt);
  EXPECT_NE(problem.find("makes no sense"), std::string::npos) << problem;
}

TEST(PythonLayouts, TheInterpretersOwnOffsetsWinOverTheTable) {
  test::FakeMemory memory;
  memory.map(kBase, kLength);
  put_debug_offsets(memory, 0x030e00f0, 0);
  const PythonLayout& row = *python_layout(0x030e);
  const PythonLayout& positions = *python_debug_positions(0x030e);
  const auto tell = [&memory](std::int64_t position, std::int64_t offset) {
    memory.put(kBase + static_cast<RemoteAddress>(position), offset);
  };
  tell(positions.object_header, row.object_header);
  tell(positions.frame_locals, row.frame_locals);
  tell(positions.string_ascii, row.string_ascii);
  tell(positions.string_state, row.string_state);
  tell(positions.string_length, row.string_length);
  tell(positions.interpreter_next, 4711);
  std::string problem;
  const auto layout = layout_of_runtime(memory, kBase, 0, problem);
  ASSERT_TRUE(layout.has_value()) << problem;
  EXPECT_EQ(layout->interpreter_next, 4711);
}

TEST(Locals, AreWantedInWaitsOfListedFilesOnly) {
  EXPECT_TRUE(
      locals_wanted("/x/site-packages/torch/distributed/distributed_c10d.py", "all_reduce"));
  EXPECT_TRUE(locals_wanted("/usr/lib/python3.11/threading.py", "Condition.wait"));
  EXPECT_FALSE(locals_wanted("/usr/lib/python3.11/threading.py", "Thread.run"));
  EXPECT_FALSE(locals_wanted("/home/user/my_threading.py", "wait"));
  EXPECT_FALSE(locals_wanted("/x/torch/distributed/c10d_logger.py", "wrapper"));
  EXPECT_FALSE(locals_wanted("/home/user/train.py", "wait"));
  EXPECT_TRUE(locals_wanted("<frozen importlib._bootstrap>", "_ModuleLock.acquire"));
}

}  // namespace
}  // namespace ddpdoctor::stacks

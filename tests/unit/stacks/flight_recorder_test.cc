// SPDX-License-Identifier: Apache-2.0
// The flight recorder's ring: every layout, and every way in which a process's memory may be wrong
// or change.
#include "collector/stacks/torch/flight_recorder.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "tests/unit/stacks/torch_image.h"

namespace ddpdoctor::stacks {
namespace {

const TorchLayout& layout_213() {
  return *torch_layout("2.13.0");
}

std::vector<std::int64_t> sequences(const RecorderReading& reading) {
  std::vector<std::int64_t> result;
  for (const RecorderEntry& entry : reading.entries) {
    result.push_back(entry.record.sequence);
  }
  return result;
}

struct Job {
  explicit Job(std::uint64_t max_entries = 8, const TorchLayout& row = layout_213())
      : layout(row), recorder(process, row, max_entries) {}

  void record(std::int64_t from, std::int64_t to) {
    for (std::int64_t sequence = from; sequence <= to; ++sequence) {
      recorder.record(all_reduce(sequence));
    }
  }
  RecorderReading read(const RecorderLimits& limits = {}) {
    return read_flight_recorder(process, recorder.address(), layout, limits);
  }

  FakeProcess process;
  const TorchLayout& layout;
  FakeRecorder recorder;
};

class EveryRelease : public testing::TestWithParam<const char*> {};

TEST_P(EveryRelease, KeepsWhatWasRecorded) {
  Job job(8, *torch_layout(GetParam()));
  FlightRecord scatter = all_reduce(1);
  scatter.operation = "gloo:a_name_that_does_not_fit_into_the_string_itself";
  scatter.input_shapes = {{2, 3}, {}, {5, 1, 1, 1, 9}};
  scatter.input_dtypes = {"int64", "bfloat16", "bool"};
  scatter.output_shapes = {};
  scatter.output_dtypes = {};
  scatter.completed = true;
  job.recorder.record(scatter, {{.code = 0x1234, .lasti = 6}, {.code = 0x5678, .lasti = 190}});

  const RecorderReading reading = job.read();
  ASSERT_TRUE(reading.read) << reading.problem;
  ASSERT_EQ(reading.entries.size(), 1U);
  const FlightRecord& record = reading.entries[0].record;
  EXPECT_EQ(record.id, 0);
  EXPECT_EQ(record.group_name, "0");
  EXPECT_EQ(record.group_description, "default_pg");
  EXPECT_EQ(record.operation, scatter.operation);
  EXPECT_EQ(record.sequence, 1);
  EXPECT_EQ(record.operation_id, 1);
  EXPECT_EQ(record.created_ns, scatter.created_ns);
  EXPECT_EQ(record.input_shapes, scatter.input_shapes);
  EXPECT_EQ(record.input_dtypes, scatter.input_dtypes);
  EXPECT_TRUE(record.output_shapes.empty());
  EXPECT_TRUE(record.completed);
  ASSERT_EQ(reading.entries[0].calls.size(), 2U);
  EXPECT_EQ(reading.entries[0].calls[1], (CodePoint{.code = 0x5678, .lasti = 190}));
}

INSTANTIATE_TEST_SUITE_P(Layouts, EveryRelease,
                         testing::Values("2.8.0", "2.10.0", "2.13.0", "2.15.0"),
                         [](const auto& instance) {
                           std::string name = instance.param;
                           std::ranges::replace(name, '.', '_');
                           return name;
                         });

TEST(TorchLayouts, AreKnownByReleaseWhateverTheBuild) {
  EXPECT_EQ(torch_layout("2.13.0+cu130"), torch_layout("2.13.0"));
  EXPECT_NE(torch_layout("2.13.0"), nullptr);
  EXPECT_EQ(torch_layout("2.13.9"), nullptr);
  EXPECT_EQ(torch_layout("1.13.1"), nullptr);
  EXPECT_EQ(torch_layout(""), nullptr);
}

TEST(FlightRecorder, IsReadWhileItGrows) {
  Job job(8);
  job.record(1, 3);
  EXPECT_EQ(sequences(job.read()), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(FlightRecorder, ThatIsEmptyIsReadAsEmpty) {
  const RecorderReading reading = Job().read();
  EXPECT_TRUE(reading.read);
  EXPECT_TRUE(reading.entries.empty());
}

TEST(FlightRecorder, WrappedGivesTheOldestFirst) {
  for (std::int64_t last = 8; last < 20; ++last) {
    Job job(8);
    job.record(1, last);
    const std::vector<std::int64_t> found = sequences(job.read());
    ASSERT_EQ(found.size(), 8U) << last;
    EXPECT_EQ(found.front(), last - 7);
    EXPECT_EQ(found.back(), last);
  }
}

TEST(FlightRecorder, LargerThanTheLimitGivesTheNewest) {
  for (std::int64_t last = 6; last < 20; ++last) {
    Job job(8);
    job.record(1, last);
    const auto found = sequences(job.read({.entries = 5}));
    EXPECT_EQ(found, (std::vector<std::int64_t>{last - 4, last - 3, last - 2, last - 1, last}));
  }
}

TEST(FlightRecorder, ReadsCallsOfTheNewestOnlyAndTheInnermostFrames) {
  Job job;
  for (std::int64_t i = 1; i <= 3; ++i) {
    job.recorder.record(all_reduce(i), {{.code = 1, .lasti = 0}, {.code = 2}, {.code = 3}});
  }
  const RecorderReading reading = job.read({.calls = 2, .frames = 2});
  ASSERT_EQ(reading.entries.size(), 3U);
  EXPECT_TRUE(reading.entries[0].calls.empty());
  ASSERT_EQ(reading.entries[2].calls.size(), 2U);
  EXPECT_EQ(reading.entries[2].calls[0].code, 1U);
}

TEST(FlightRecorder, ForgetsEntriesFromBeforeAReset) {
  Job job(8);
  job.record(1, 5);
  job.recorder.reset();
  job.record(6, 7);
  EXPECT_EQ(sequences(job.read()), (std::vector<std::int64_t>{6, 7}));
}

TEST(FlightRecorder, LeavesOutAnEntryThatIsBeingWritten) {
  Job job(4);
  job.record(1, 6);
  // The writer took slot 2 (sequence 3) and has not finished: next was incremented, next_id was
  // not.
  job.process.put(job.recorder.address() + job.layout.next, std::uint64_t{3});
  job.process.put(job.recorder.slot(2) + job.layout.id, std::uint64_t{6});
  EXPECT_EQ(sequences(job.read()), (std::vector<std::int64_t>{4, 5, 6}));
}

TEST(FlightRecorder, LeavesOutWhatWasOverwrittenDuringTheRead) {
  Job job(8);
  job.record(1, 20);  // 13..20
  job.process.before_read = [&job](int number) {
    if (number == 5) {
      job.recorder.record(all_reduce(21));
      job.recorder.record(all_reduce(22));
    }
  };
  const RecorderReading reading = job.read();
  ASSERT_TRUE(reading.read) << reading.problem;
  EXPECT_EQ(reading.entries.back().record.sequence, 20);
  EXPECT_GE(reading.entries.front().record.sequence, 15);
}

TEST(FlightRecorder, KeepsAllWhenEntriesWereAppendedDuringTheRead) {
  Job job(8);
  job.record(1, 3);
  job.process.before_read = [&job](int number) {
    if (number == 5) {
      job.recorder.record(all_reduce(4));
    }
  };
  EXPECT_EQ(sequences(job.read()), (std::vector<std::int64_t>{1, 2, 3}));
}

TEST(FlightRecorder, LooksAtThePresentBeforeAndAfter) {
  Job job;
  job.record(1, 3);
  job.read();
  EXPECT_EQ(job.process.forgotten, 2);
}

TEST(FlightRecorder, ThatNeverRestsIsGivenUp) {
  Job job(4);
  job.record(1, 8);
  job.process.before_read = [&job](int) {
    for (int i = 0; i < 6; ++i) {
      job.recorder.record(all_reduce(static_cast<std::int64_t>(job.recorder.recorded()) + 1));
    }
  };
  const RecorderReading reading = job.read();
  EXPECT_FALSE(reading.read);
  EXPECT_FALSE(reading.problem.empty());
}

TEST(FlightRecorder, SwitchedOffSaysSo) {
  Job job;
  job.process.put(job.recorder.address() + job.layout.enabled, std::uint8_t{0});
  const RecorderReading reading = job.read();
  EXPECT_FALSE(reading.read);
  EXPECT_NE(reading.problem.find("TORCH_FR_BUFFER_SIZE"), std::string::npos);
}

TEST(FlightRecorder, SurvivesAnyBytes) {
  std::uint64_t random = 88172645463325252ULL;  // xorshift64
  const auto next = [&random] {
    random ^= random << 13U;
    random ^= random >> 7U;
    random ^= random << 17U;
    return random;
  };
  for (int round = 0; round < 3000; ++round) {
    Job job(8);
    job.record(1, 12);
    for (int change = 0; change < 3; ++change) {
      const bool header = next() % 4 == 0;
      const RemoteAddress start = header ? job.recorder.address() : job.recorder.slot(next() % 8);
      const std::size_t size = header ? job.layout.recorder_size : job.layout.entry_size;
      job.process.put(start + next() % (size / 8) * 8,
                      next() % 2 == 0 ? next() : FakeProcess::kBase + next() % 8192);
    }
    const RecorderReading reading = job.read();
    EXPECT_LE(reading.entries.size(), 8U);
    EXPECT_TRUE(reading.read || reading.entries.empty());
    EXPECT_NE(reading.read, !reading.problem.empty());
  }
}

/// Bytes that a wrong layout or a hostile process may have in a field; each must be refused
/// entirely.
struct Lie {
  const char* what;
  void (*tell)(Job& job);
};

class HostileRecorder : public testing::TestWithParam<Lie> {};

TEST_P(HostileRecorder, IsRefused) {
  Job job(8);
  job.record(1, 4);
  ASSERT_TRUE(job.read().read);
  GetParam().tell(job);
  const RecorderReading reading = job.read();
  EXPECT_FALSE(reading.read);
  EXPECT_TRUE(reading.entries.empty());
  EXPECT_FALSE(reading.problem.empty());
}

template <typename T>
void put_entry(Job& job, std::size_t offset, T value) {
  job.process.put(job.recorder.slot(2) + offset, value);
}
template <typename T>
void put_recorder(Job& job, std::size_t offset, T value) {
  job.process.put(job.recorder.address() + offset, value);
}
constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;

INSTANTIATE_TEST_SUITE_P(
    Lies, HostileRecorder,
    testing::Values(
        Lie{"HugeMaximum", [](Job& j) { put_recorder(j, j.layout.max_entries, kHuge); }},
        Lie{"MoreEntriesThanTheMaximum",
            [](Job& j) { put_recorder(j, j.layout.max_entries, 3UL); }},
        Lie{"EndBeforeBegin", [](Job& j) { put_recorder(j, j.layout.entries + 8, 1UL); }},
        Lie{"EndFarAway", [](Job& j) { put_recorder(j, j.layout.entries + 8, kHuge); }},
        Lie{"EntriesNotMapped",
            [](Job& j) {
              put_recorder(j, j.layout.entries, kHuge);
              put_recorder(j, j.layout.entries + 8, kHuge + 4 * j.layout.entry_size);
            }},
        Lie{"NextOutside", [](Job& j) { put_recorder(j, j.layout.next, 99UL); }},
        Lie{"EnabledIsNoBoolean",
            [](Job& j) { put_recorder(j, j.layout.enabled, std::uint8_t{7}); }},
        Lie{"IdsBehind", [](Job& j) { put_recorder(j, j.layout.next_id, 77UL); }},
        Lie{"IdJumps", [](Job& j) { put_entry(j, j.layout.id, 9UL); }},
        Lie{"NameUnmapped", [](Job& j) { put_entry(j, j.layout.group_name, kHuge); }},
        Lie{"NameHuge", [](Job& j) { put_entry(j, j.layout.group_name + 8, kHuge); }},
        Lie{"NameUnprintable", [](Job& j) { put_entry(j, j.layout.group_name + 16, '\x01'); }},
        Lie{"OperationEmpty", [](Job& j) { put_entry(j, j.layout.operation + 8, 0UL); }},
        Lie{"NegativeSequence", [](Job& j) { put_entry(j, j.layout.collective_sequence, -1L); }},
        Lie{"FlagIsNoBoolean", [](Job& j) { put_entry(j, j.layout.retired, std::uint8_t{2}); }},
        Lie{"HugeDimensions", [](Job& j) { put_entry(j, j.layout.input_dims + 16, 1L << 40); }},
        Lie{"NegativeDimensions", [](Job& j) { put_entry(j, j.layout.input_dims + 16, -2L); }},
        Lie{"SizesLeftOver", [](Job& j) { put_entry(j, j.layout.input_dims + 16, 1L); }},
        Lie{"NegativeSize", [](Job& j) { put_entry(j, j.layout.sizes + 16, -1L); }},
        Lie{"SmallVectorBeyondItsCapacity",
            [](Job& j) { put_entry(j, j.layout.input_dims + 8, std::uint32_t{1U << 31}); }},
        Lie{"TypesUnmapped",
            [](Job& j) {
              put_entry(j, j.layout.input_dtypes, kHuge);
              put_entry(j, j.layout.input_dtypes + 8, kHuge + 1);
              put_entry(j, j.layout.input_dtypes + 16, kHuge + 1);
            }},
        Lie{"FewerTypesThanTensors",
            [](Job& j) { put_entry(j, j.layout.input_dtypes + 8, RemoteAddress{0}); }}),
    [](const auto& instance) { return instance.param.what; });

TEST(FlightRecorder, IsRefusedWhenItIsNotThere) {
  FakeProcess process;
  EXPECT_FALSE(read_flight_recorder(process, 0, layout_213()).read);
  EXPECT_FALSE(read_flight_recorder(process, ~RemoteAddress{0} - 4, layout_213()).read);
}

TEST(FlightRecorder, WithABrokenTracebackOnlyLosesTheCall) {
  Job job;
  job.recorder.record(all_reduce(1), {{.code = 1, .lasti = 2}});
  put_entry(job, job.layout.traceback, 0UL);
  job.process.put(job.recorder.slot(0) + job.layout.traceback, kHuge);
  const RecorderReading reading = job.read();
  ASSERT_TRUE(reading.read);
  EXPECT_TRUE(reading.entries[0].calls.empty());
}

/// A call of the current time: a layout found only by searching memory must contain one.
FlightRecord call_of_today(std::int64_t sequence) {
  FlightRecord record = all_reduce(sequence);
  record.created_ns = 1'763'870'000'000'000'000 + sequence;
  return record;
}

TEST_P(EveryRelease, IsReadUnderAnyVersionText) {
  for (const char* version : {"2.9.0a0+nv25.10", "2.99.1", "", "2.13.0"}) {
    Job job(8, *torch_layout(GetParam()));
    for (int sequence = 1; sequence <= 3; ++sequence) {
      job.recorder.record(call_of_today(sequence));
    }
    const RecorderReading reading =
        read_flight_recorder(job.process, job.recorder.address(), torch_layouts(version));
    ASSERT_TRUE(reading.read) << version << ": " << reading.problem;
    EXPECT_EQ(sequences(reading), (std::vector<std::int64_t>{1, 2, 3}));
  }
}

TEST(FlightRecorderOfAnUnknownRelease, ProvesNothingWhileItIsEmpty) {
  Job job;
  const TorchLayouts unknown = torch_layouts("2.99.0");
  EXPECT_FALSE(read_flight_recorder(job.process, job.recorder.address(), unknown).read);
  FlightRecord ancient = all_reduce(1);
  ancient.created_ns = 5;
  job.recorder.record(ancient);
  EXPECT_FALSE(read_flight_recorder(job.process, job.recorder.address(), unknown).read);
  job.recorder.record(call_of_today(2));
  const RecorderReading mixed = read_flight_recorder(job.process, job.recorder.address(), unknown);
  EXPECT_FALSE(mixed.read);
  EXPECT_FALSE(mixed.problem.empty());
}

TEST(FlightRecorderOfAnUnknownRelease, IsLeftAloneWhereEntriesGrew) {
  TorchLayout grown = layout_213();
  grown.entry_size += 8;
  for (std::size_t* later : {&grown.operation, &grown.traceback, &grown.created, &grown.sizes}) {
    *later += 8;
  }
  Job job(8, grown);
  for (int sequence = 1; sequence <= 8; ++sequence) {
    job.recorder.record(call_of_today(sequence));
  }
  ASSERT_TRUE(job.read().read) << "the double itself";
  for (const char* version : {"2.99.0", "2.13.0"}) {
    const RecorderReading reading =
        read_flight_recorder(job.process, job.recorder.address(), torch_layouts(version));
    EXPECT_FALSE(reading.read) << version;
    EXPECT_FALSE(reading.problem.empty());
  }
}

TEST(FlightRecorder, TakesNoTextThatIsNoString) {
  Job job;
  job.recorder.record(call_of_today(1));
  const RemoteAddress name = job.recorder.slot(0) + layout_213().operation;
  job.process.put(name, job.process.allocate(64));  // outside the string object,
  job.process.put(name + 16, std::uint64_t{3});     // with less room than a short one has
  EXPECT_FALSE(job.read().read);
}

}  // namespace
}  // namespace ddpdoctor::stacks

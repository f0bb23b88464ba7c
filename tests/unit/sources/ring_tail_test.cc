// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <unistd.h>

#include <gtest/gtest.h>

#include "collector/sources/rings/tail.h"
#include "tests/unit/sources/ring_in_memory.h"

namespace ddpdoctor::sources {
namespace {

using test::RingInMemory;

/// A ring as a file that is rewritten as its process continues.
class RingFile {
 public:
  RingFile() {
    const int fd = ::mkstemp(path_.data());
    if (fd >= 0) {
      ::close(fd);
    }
  }
  RingFile(const RingFile&) = delete;
  RingFile& operator=(const RingFile&) = delete;
  RingFile(RingFile&&) = delete;
  RingFile& operator=(RingFile&&) = delete;
  ~RingFile() {
    ::unlink(path_.c_str());
  }

  void write(const RingInMemory& memory) {
    std::FILE* const file = std::fopen(path_.c_str(), "r+b");
    ASSERT_NE(file, nullptr);
    EXPECT_EQ(std::fwrite(memory.bytes().data(), 1, memory.bytes().size(), file),
              memory.bytes().size());
    std::fclose(file);
  }
  [[nodiscard]] const std::string& path() const {
    return path_;
  }

 private:
  std::string path_ = "/tmp/ddpdoctor-ring-test-XXXXXX";
};

TEST(RingTail, TellsEachCallOnce) {
  RingInMemory memory;
  RingFile file;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  memory.add_call(group, 1, wire::Operation::kBroadcast).peer = 1;
  file.write(memory);
  auto tail = RingTail::open(file.path());
  ASSERT_TRUE(tail);
  const RingNews first = tail->read();
  ASSERT_EQ(first.calls.size(), 1U);
  EXPECT_EQ(first.calls[0].group, "0");
  EXPECT_EQ(first.calls[0].root, 1);
  EXPECT_TRUE(tail->read().calls.empty());
  memory.add_call(group, 2, wire::Operation::kBarrier);
  file.write(memory);
  ASSERT_EQ(tail->read().calls.size(), 1U);
}

TEST(RingTail, WaitsForASlotThatIsStillBeingWritten) {
  RingInMemory memory;
  RingFile file;
  const std::uint16_t group = memory.add_group("0", 0, 2);
  wire::Slot& slot = memory.add_call(group, 1, wire::Operation::kBarrier);
  slot.sequence = 0;
  file.write(memory);
  auto tail = RingTail::open(file.path());
  ASSERT_TRUE(tail);
  EXPECT_TRUE(tail->read().calls.empty());
  slot.sequence = 1;
  file.write(memory);
  EXPECT_EQ(tail->read().calls.size(), 1U);
}

TEST(RingTail, HasNoNewsOfAFileThatIsNotARingYet) {
  RingFile file;
  auto tail = RingTail::open(file.path());
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->read().collectives, 0U);
  RingInMemory memory;
  memory.ring().header.collectives = 7;
  file.write(memory);
  EXPECT_EQ(tail->read().collectives, 7U);
}

TEST(RingTail, CountsChildrenThatASignalEnded) {
  RingInMemory memory;
  RingFile file;
  memory.add_slot(wire::EventKind::kChildExit, wire::Phase::kEnqueued).peer = 9;
  memory.add_slot(wire::EventKind::kChildExit, wire::Phase::kEnqueued).peer = 0x100;
  file.write(memory);
  auto tail = RingTail::open(file.path());
  ASSERT_TRUE(tail);
  EXPECT_EQ(tail->read().children_killed, 1);
}

TEST(RingTail, IgnoresAGroupOutsideTheTable) {
  RingInMemory memory;
  RingFile file;
  memory.ring().header.groups = 0xFFFFFFFF;
  memory.add_call(wire::kGroups + 1, 1, wire::Operation::kBarrier);
  memory.ring().header.head = 3;  // two more were reserved by a writer that was killed
  file.write(memory);
  auto tail = RingTail::open(file.path());
  ASSERT_TRUE(tail);
  EXPECT_TRUE(tail->read().calls.empty());
}

}  // namespace
}  // namespace ddpdoctor::sources

// SPDX-License-Identifier: Apache-2.0
#include "collector/fleet/kept_recordings.h"

#include <gtest/gtest.h>

#include "collector/transport/local.h"
#include "tests/support/fleet_story.h"

namespace ddpdoctor::fleet {
namespace {

class KeptRecordings : public ::testing::Test {
 protected:
  void keep(const std::string& job, const std::string& node, int first, int ranks, int world_size,
            const std::string& bytes) {
    NodeMarks marks = told(node, first, ranks, 1, 1);
    marks.world_size = world_size;
    ASSERT_TRUE(keep_recording(*connection_, job, marks, bytes));
  }

  std::string read(const std::string& job) {
    std::vector<base::Error> problems;
    const auto found = kept_recordings(*connection_, job, problems);
    if (!found) {
      return found.error().what;
    }
    std::string out;
    for (const KeptRecording& one : *found) {
      out += one.name + "=" + one.bytes + " ";
    }
    return out;
  }

  transport::LocalServer server_;
  std::unique_ptr<transport::Transport> connection_ = server_.connect();
};

TEST_F(KeptRecordings, AreReadByJobTheNewestFirst) {
  keep("one", "a", 0, 2, 4, "first");
  keep("one", "b", 2, 2, 4, "second");
  EXPECT_EQ(read("one"), "one/b.ddpd=second one/a.ddpd=first ");
  EXPECT_EQ(read(""), read("one"));
  keep("one", "a", 0, 2, 4, "third");
  EXPECT_EQ(read("one"), "one/a.ddpd=third one/b.ddpd=second ");
  keep("two", "a", 0, 2, 4, "other");
  EXPECT_EQ(read(""), "the NATS server keeps recordings of 2 jobs: one, two");
  EXPECT_EQ(read("three"), "the NATS server keeps no recordings of job three");
}

TEST_F(KeptRecordings, AnEarlierJobOfTheSameNameIsLeftOut) {
  keep("job", "old1", 0, 2, 4, "x");
  keep("job", "old2", 2, 2, 4, "x");
  keep("job", "new1", 0, 2, 4, "y");
  keep("job", "new2", 2, 2, 4, "y");
  EXPECT_EQ(read("job"), "job/new2.ddpd=y job/new1.ddpd=y ");
  keep("job", "small", 0, 2, 2, "z");
  EXPECT_EQ(read("job"), "job/small.ddpd=z ");
}

TEST_F(KeptRecordings, AServerThatKeepsNothingSaysSo) {
  EXPECT_EQ(read(""), "the NATS server keeps no recordings");
  transport::LocalServer forgetful("no JetStream");
  connection_ = forgetful.connect();
  EXPECT_EQ(read(""), "the NATS server keeps no recordings (JetStream)");
  connection_.reset();
}

}  // namespace
}  // namespace ddpdoctor::fleet

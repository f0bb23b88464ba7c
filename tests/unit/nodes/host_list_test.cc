// SPDX-License-Identifier: Apache-2.0
#include "collector/nodes/host_list.h"

#include <gtest/gtest.h>

#include "collector/nodes/launchers.h"

namespace ddpdoctor::nodes {
namespace {

using Names = std::vector<std::string>;

TEST(HostList, NamesAndRanges) {
  EXPECT_EQ(expand_hosts("a,b , user@c.example"), (Names{"a", "b", "user@c.example"}));
  EXPECT_EQ(expand_hosts("n[08-10,12]"), (Names{"n08", "n09", "n10", "n12"}));
  EXPECT_EQ(expand_hosts("gpu[1-2].lan,a"), (Names{"gpu1.lan", "gpu2.lan", "a"}));
  EXPECT_EQ(expand_hosts("a,a,a"), Names{"a"});
}

TEST(HostList, RefusesWhatAShellOrAProgramMightRead) {
  for (const char* list : {"", ",", "a;reboot", "$(x)", "-oProxyCommand=x", "a b", "n[3-1]", "n[",
                           "n[1-99999999]", "n[x]", "a'b", "`x`", "a\nb"}) {
    EXPECT_FALSE(expand_hosts(list).has_value()) << list;
  }
}

TEST(Words, AnyTextIsAWordThatNoShellChanges) {
  for (const char* text : {"train.py", "a b; $(c) 'd' %41", "100%", "ä"}) {
    const std::string word = as_word(text);
    EXPECT_EQ(word.find_first_of(" ;$'\"()\\"), std::string::npos) << word;
    EXPECT_EQ(from_word(word), text);
  }
}

TEST(Launchers, ACommandForEachHost) {
  Target target;
  target.hosts = "a,b";
  target.program = "/opt/ddp doctor";
  const auto by_ssh = plan(target, {"capture", "--session", "s"});
  ASSERT_TRUE(by_ssh.has_value());
  ASSERT_EQ(by_ssh->nodes.size(), 2U);
  EXPECT_EQ(by_ssh->nodes[1].command.front(), "ssh");
  EXPECT_EQ(by_ssh->nodes[1].command.back(), "'/opt/ddp doctor' capture --session s");
  target.launcher = "pdsh -w {host} {command}";
  const auto by_command = plan(target, {"capture"});
  ASSERT_TRUE(by_command.has_value());
  EXPECT_EQ(by_command->nodes[0].command,
            (Names{"/bin/sh", "-c", "pdsh -w a '/opt/ddp doctor' capture"}));
  target.launcher = "pdsh {command}";
  EXPECT_FALSE(plan(target, {"capture"}).has_value());
}

}  // namespace
}  // namespace ddpdoctor::nodes

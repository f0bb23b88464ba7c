// SPDX-License-Identifier: Apache-2.0
#include "collector/sources/processes/access.h"

#include <gtest/gtest.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "tests/support/system_calls.h"
#include "tests/unit/sources/children.h"

namespace ddpdoctor::sources {
namespace {

AccessFacts refused() {
  AccessFacts facts;
  facts.pid = 77;
  facts.exists = true;
  facts.state = 'S';
  facts.comm = "python3";
  facts.uid = 1000;
  facts.our_uid = 1000;
  return facts;
}

bool says(const base::Error& error, std::string_view what, std::string_view hint) {
  return error.what.find(what) != std::string::npos && error.hint.find(hint) != std::string::npos;
}

TEST(Explain, NamesTheOneThingThatStandsInTheWay) {
  AccessFacts other = refused();
  other.our_uid = 1001;
  EXPECT_TRUE(says(explain(other), "belongs to", "sudo")) << explain(other).what;

  AccessFacts yama = refused();
  yama.yama_scope = 1;
  EXPECT_TRUE(says(explain(yama), "ptrace_scope = 1", "sysctl kernel.yama.ptrace_scope=0"));
  yama.yama_scope = 2;
  EXPECT_TRUE(says(explain(yama), "ptrace_scope = 2", "sudo"));
  yama.yama_scope = 3;
  EXPECT_TRUE(says(explain(yama), "ptrace_scope = 3", "next boot"));

  AccessFacts container = refused();
  container.uid = container.our_uid = 0;
  container.in_container = true;
  EXPECT_TRUE(says(explain(container), "without CAP_SYS_PTRACE", "--cap-add=SYS_PTRACE"));

  AccessFacts hidden = refused();
  hidden.dumpable = false;
  hidden.yama_scope = 1;
  EXPECT_TRUE(says(explain(hidden), "PR_SET_DUMPABLE", "sudo"));

  AccessFacts rootless = refused();
  rootless.other_user_namespace = true;
  EXPECT_TRUE(says(explain(rootless), "user namespace", "container"));

  AccessFacts module = refused();
  module.we_have_ptrace = true;
  EXPECT_TRUE(says(explain(module), "security module", "dmesg"));

  AccessFacts capable = refused();
  capable.more_capabilities = true;
  EXPECT_TRUE(says(explain(capable), "capabilities that ddpdoctor lacks", "sudo"));
}

TEST(Explain, ReadableProcessesHaveNothingInTheWayButATracer) {
  AccessFacts facts = refused();
  facts.readable = true;
  EXPECT_EQ(explain(facts).what, "");
  facts.tracer = 9;
  facts.tracer_comm = "gdb";
  EXPECT_TRUE(says(explain(facts), "traced by process 9 (gdb)", "detach process 9"));
  facts.memory_read_refused = true;
  facts.our_seccomp = true;
  EXPECT_TRUE(says(explain(facts), "seccomp", "seccomp=unconfined"));
}

TEST(Explain, APidOfAContainerIsTranslated) {
  AccessFacts facts;
  facts.pid = 7;
  facts.outer_pid = 4711;
  EXPECT_TRUE(says(explain(facts), "no process 7 here", "4711"));
}

TEST(Explain, HostileNamesAreMadePrintable) {
  AccessFacts facts = refused();
  facts.comm = "\x1b[2Jevil\n";
  EXPECT_EQ(explain(facts).what.find('\x1b'), std::string::npos);
}

TEST(WhyUnreadable, TellsAbsentZombieThreadAndReadable) {
  EXPECT_EQ(why_unreadable((1 << 22) + 1).what,
            fmt::format("there is no process {}", (1 << 22) + 1));
  EXPECT_NE(why_unreadable(-5).what, "");
  Child child([] {
    if (::fork() == 0) {
      ::_exit(0);
    }
    std::thread([] { ::pause(); }).join();
  });
  pid_t zombie = 0;
  ASSERT_TRUE(eventually([&] {
    for (const auto& [pid, row] : read_process_table()) {
      zombie = row.ppid == child.pid() && row.state == 'Z' ? pid : zombie;
    }
    return zombie != 0 && numbered_entries(proc_path(child.pid(), "task")).size() == 2;
  }));
  EXPECT_NE(why_unreadable(zombie).what.find("has ended"), std::string::npos);
  EXPECT_NE(why_unreadable(zombie).hint.find(std::to_string(child.pid())), std::string::npos);
  EXPECT_FALSE(may_read(zombie));
  EXPECT_EQ(why_unreadable(child.pid()).what, "");
  EXPECT_TRUE(may_read(child.pid()));
  const auto tids = numbered_entries(proc_path(child.pid(), "task"));
  const pid_t thread = tids[0] == child.pid() ? tids[1] : tids[0];
  EXPECT_EQ(process_of_thread(thread), child.pid());
  EXPECT_NE(why_unreadable(thread).what.find("is a thread of process"), std::string::npos);
}

/// Checks access as user nobody, in a child, and returns the answer through a pipe.
std::string asked_as_nobody(pid_t pid) {
  std::array<int, 2> ends{};
  if (::pipe(ends.data()) != 0) {
    return {};
  }
  std::string answer;
  {
    Child asker([&] {
      if (::setgid(65534) != 0 || ::setuid(65534) != 0) {
        ::_exit(1);
      }
      const base::Error error = why_unreadable(pid);
      const std::string text = error.what + "\n" + error.hint;
      [[maybe_unused]] const ssize_t written = ::write(ends[1], text.data(), text.size());
      ::_exit(0);
    });
    ::close(ends[1]);
    std::array<char, 2048> buffer{};
    const ssize_t got = ::read(ends[0], buffer.data(), buffer.size());
    answer.assign(buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0);
  }
  ::close(ends[0]);
  return answer;
}

TEST(WhyUnreadable, AnotherUsersProcessIsNamedWithItsUser) {
  if (::getuid() != 0) {
    GTEST_SKIP() << "needs root to become another user";
  }
  Child child([] { ::pause(); });
  const std::string answer = asked_as_nobody(child.pid());
  EXPECT_NE(answer.find("belongs to root (uid 0)"), std::string::npos) << answer;
  EXPECT_NE(answer.find("sudo"), std::string::npos);
}

TEST(WhyUnreadable, AnUndumpableProcessOfTheSameUserIsNamedSo) {
  if (::getuid() != 0) {
    GTEST_SKIP() << "needs root to become another user";
  }
  Child child([] {
    if (::setgid(65534) == 0 && ::setuid(65534) == 0) {
      ::prctl(PR_SET_DUMPABLE, 0);
      ::pause();
    }
  });
  ASSERT_TRUE(eventually([&] { return sleeps_in(child.pid(), test::kPause); }));
  const std::string answer = asked_as_nobody(child.pid());
  EXPECT_NE(answer.find("made itself unreadable"), std::string::npos) << answer;
}

TEST(WhyUnreadable, ATracerIsNamed) {
  Child child([] { ::pause(); });
  if (::ptrace(PTRACE_SEIZE, child.pid(), nullptr, nullptr) != 0) {
    GTEST_SKIP() << "ptrace is not allowed here";
  }
  const AccessFacts facts = access_facts(child.pid());
  EXPECT_EQ(facts.tracer, ::getpid());
  EXPECT_NE(explain(facts).what.find(fmt::format("traced by process {}", ::getpid())),
            std::string::npos);
  ::ptrace(PTRACE_DETACH, child.pid(), nullptr, nullptr);
}

}  // namespace
}  // namespace ddpdoctor::sources

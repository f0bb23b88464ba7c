// SPDX-License-Identifier: Apache-2.0
// The kernel's tables as text: sockets, file locks, mounts, descriptors, log lines.
#include <cstring>

#include <gtest/gtest.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <sys/socket.h>

#include "collector/sources/facts/fact_sources.h"
#include "collector/sources/files/descriptors.h"
#include "collector/sources/files/file_locks.h"
#include "collector/sources/files/mounts.h"
#include "collector/sources/network/sock_diag.h"
#include "collector/sources/network/sockets.h"

namespace ddpdoctor::sources {
namespace {

constexpr const char* kTcp =
    "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout "
    "inode\n"
    "   0: 0100007F:73A3 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 "
    "100 1 x\n"
    "   1: 0100007F:C350 0100007F:73A3 01 00000000:0000000A 00:00000000 00000000     0        0 "
    "101 1 x\n"
    "   2: 0100007F:73A3 0100007F:C350 01 00000007:00000000 00:00000000 00000000     0        0 "
    "102 1 x\n"
    "   3: 0100007F:C351 0200000A:73A3 02 00000001:00000000 01:00000000 00000000     0        0 "
    "103 1 x\n";
constexpr const char* kTcp6 =
    "   0: 0000000000000000FFFF00000100007F:C352 0000000000000000FFFF00000100007F:73A3 01 "
    "00000000:00000000 00:00000000 00000000 0 0 104 1 x\n"
    "   1: 00000000000000000000000001000000:0050 00000000000000000000000000000000:0000 0A "
    "00000000:00000000 00:00000000 00000000 0 0 105 1 x\n";

TEST(ParseTcp, ReadsAddressesPortsStatesAndQueues) {
  const auto sockets = parse_tcp(kTcp);
  ASSERT_EQ(sockets.size(), 4U);
  EXPECT_EQ(sockets[0].local_address, "127.0.0.1");
  EXPECT_EQ(sockets[0].local_port, 29603);
  EXPECT_EQ(sockets[0].state, TcpState::kListen);
  EXPECT_EQ(sockets[1].unread_bytes, 10U);
  EXPECT_EQ(sockets[2].unsent_bytes, 7U);
  EXPECT_EQ(sockets[3].state, TcpState::kSynSent);
  EXPECT_EQ(sockets[3].remote_address, "10.0.0.2");
}

TEST(ParseTcp, MappedAddressesAreWrittenAsIpv4) {
  const auto sockets = parse_tcp(kTcp6);
  ASSERT_EQ(sockets.size(), 2U);
  EXPECT_EQ(sockets[0].local_address, "127.0.0.1");
  EXPECT_EQ(sockets[1].local_address, "::1");
}

TEST(ParseTcp, BrokenLinesAreLeftOut) {
  EXPECT_TRUE(parse_tcp("").empty());
  EXPECT_TRUE(parse_tcp("0: 0100007F 00000000:0000 0A 0:0 0 0 0 0 1\n").empty());
  EXPECT_TRUE(parse_tcp("0: XX00007F:1 00000000:0000 0A 0:0 0 0 0 0 1\n").empty());
  EXPECT_TRUE(parse_tcp("0: 0100007F01:1 00000000:0000 0A 0:0 0 0 0 0 1\n").empty());
  EXPECT_TRUE(parse_tcp(std::string(5000, ':')).empty());
}

TEST(TcpTable, ThePeerHasTheAddressesReversed) {
  TcpTable table;
  table.add(parse_tcp(kTcp));
  const TcpSocket* client = table.by_inode(101);
  ASSERT_NE(client, nullptr);
  ASSERT_NE(table.peer(*client), nullptr);
  EXPECT_EQ(table.peer(*client)->inode, 102U);
  EXPECT_EQ(table.peer(*table.by_inode(103)), nullptr);
  EXPECT_EQ(table.by_inode(0), nullptr);
  ASSERT_NE(table.listener("127.0.0.1", 29603), nullptr);
  EXPECT_EQ(table.listener("10.0.0.9", 29603), nullptr);
}

TEST(SockDiag, CutAnswersAreNoSockets) {
  std::vector<std::byte> message(NLMSG_HDRLEN + sizeof(inet_diag_msg));
  EXPECT_FALSE(read_tcp_answer(message));  // family 0
  message[NLMSG_HDRLEN] = std::byte{AF_INET};
  EXPECT_TRUE(read_tcp_answer(message));
  for (std::size_t length = 0; length < message.size(); ++length) {
    EXPECT_FALSE(read_tcp_answer(std::span(message).first(length)));
  }
  std::map<std::uint64_t, std::uint64_t> peers;
  for (std::size_t length = 0; length < 64; ++length) {
    read_unix_answer(std::vector<std::byte>(length, std::byte{0xFF}), peers);
    read_unix_answer(std::vector<std::byte>(length, std::byte{0}), peers);
  }
  EXPECT_TRUE(peers.empty());
}

TEST(ParseLocks, TheWaiterHasTheNumberOfTheLock) {
  const auto locks = parse_locks(
      "1: POSIX  ADVISORY  WRITE 3568 08:02:1834 0 EOF\n"
      "1: -> POSIX  ADVISORY  READ 3570 08:02:1834 0 EOF\n"
      "2: FLOCK  ADVISORY  WRITE 99 00:2f:77 0 EOF\n"
      "3: OFDLCK ADVISORY  READ  -1 00:05:9 0 0\n");
  ASSERT_EQ(locks.size(), 4U);
  EXPECT_EQ(locks[0].type, "posix");
  EXPECT_EQ(locks[0].inode, 1834U);
  EXPECT_EQ(locks[0].major, 8U);
  EXPECT_TRUE(locks[1].waits);
  EXPECT_EQ(locks[1].mode, "read");
  ASSERT_NE(held_against(locks, locks[1]), nullptr);
  EXPECT_EQ(held_against(locks, locks[1])->pid, 3568);
  EXPECT_EQ(locks[2].minor, 0x2fU);
  EXPECT_EQ(locks[3].pid, -1);
}

TEST(ParseLocks, BrokenLinesAreLeftOut) {
  EXPECT_TRUE(parse_locks("").empty());
  EXPECT_TRUE(parse_locks("1:\n1: ->\n1: -> POSIX\nx: POSIX ADVISORY WRITE 1 08:02:1 0 EOF\n1: "
                          "POSIX ADVISORY WRITE 1 08:02 0 EOF\n")
                  .empty());
}

TEST(Mounts, KnowsServersAndUnescapesPaths) {
  const auto mounts = parse_mounts(
      "36 35 98:0 / / rw,noatime master:1 - ext4 /dev/root rw\n"
      "37 36 0:50 / /data\\040set rw - nfs4 server:/x rw\n"
      "38 36 0:51 / /data rw shared:1 - fuse.sshfs host: rw\n"
      "broken line\n");
  ASSERT_EQ(mounts.size(), 3U);
  EXPECT_EQ(mounts[1].path, "/data set");
  EXPECT_TRUE(mounts[1].remote());
  EXPECT_TRUE(mounts[2].remote());
  EXPECT_FALSE(mounts[0].remote());
  EXPECT_EQ(mount_of_path(mounts, "/data set/a")->type, "nfs4");
  EXPECT_EQ(mount_of_path(mounts, "/data/a")->type, "fuse.sshfs");
  EXPECT_EQ(mount_of_path(mounts, "/database")->type, "ext4");
}

TEST(ParseDescriptor, KindsAreReadFromTheLink) {
  EXPECT_EQ(parse_descriptor(3, "pipe:[17]").inode, 17U);
  EXPECT_EQ(parse_descriptor(3, "socket:[18]").kind, DescriptorKind::kSocket);
  EXPECT_EQ(parse_descriptor(0, "/dev/pts/3").kind, DescriptorKind::kTty);
  EXPECT_EQ(parse_descriptor(3, "/dev/shm/torch_1_2_3 (deleted)").kind, DescriptorKind::kShm);
  EXPECT_EQ(parse_descriptor(3, "/dev/shm/torch_1_2_3 (deleted)").link, "/dev/shm/torch_1_2_3");
  EXPECT_TRUE(parse_descriptor(3, "/x (deleted)").deleted);
  EXPECT_EQ(parse_descriptor(3, "anon_inode:[eventpoll]").kind, DescriptorKind::kEpoll);
  EXPECT_EQ(parse_descriptor(3, "anon_inode:[pidfd]").kind, DescriptorKind::kPidFd);
  EXPECT_EQ(parse_descriptor(3, "pipe:[").inode, 0U);
  EXPECT_EQ(parse_descriptor(3, "pipe:[x]").inode, 0U);
  EXPECT_EQ(parse_descriptor(3, "").kind, DescriptorKind::kOther);
}

TEST(KernelMessage, LinesThatConcernAJobAreToldByTheirPid) {
  const auto message = parse_kernel_message(
      "6,339,5140900,-;python[77]: segfault at 0 ip 1 sp 2 error 4\n SUBSYSTEM=x\n");
  ASSERT_TRUE(message);
  EXPECT_NEAR(message->seconds_since_boot, 5.1409, 1e-9);
  EXPECT_EQ(kernel_message_about(message->text), "segfault");
  EXPECT_EQ(pid_in_kernel_message(message->text), 77);
  EXPECT_EQ(pid_in_kernel_message(
                "Memory cgroup out of memory: Killed process 4242 (python) total-vm:1kB"),
            4242);
  EXPECT_EQ(
      pid_in_kernel_message("oom-kill:constraint=CONSTRAINT_MEMCG,task=python,pid=4243,uid=0"),
      4243);
  EXPECT_EQ(pid_in_kernel_message("INFO: task python:88 blocked for more than 120 seconds."), 88);
  EXPECT_EQ(pid_in_kernel_message(
                "NVRM: Xid (PCI:0000:01:00): 79, pid='<unknown>', GPU has fallen off the bus."),
            0);
  EXPECT_EQ(kernel_message_about("NVRM: Xid (PCI:0000:01:00): 79, pid=5, x"), "xid");
  EXPECT_EQ(kernel_message_about("usb 1-1: new device"), "");
}

TEST(KernelMessage, BrokenRecordsAreNone) {
  EXPECT_FALSE(parse_kernel_message(""));
  EXPECT_FALSE(parse_kernel_message("6,339"));
  EXPECT_FALSE(parse_kernel_message("6,339,x,-;text"));
  EXPECT_FALSE(parse_kernel_message(";text"));
}

}  // namespace
}  // namespace ddpdoctor::sources

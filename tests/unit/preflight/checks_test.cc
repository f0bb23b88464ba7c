// SPDX-License-Identifier: Apache-2.0
// Each check on a machine that breaks a job and on one that does not.
#include <fcntl.h>
#include <unistd.h>

#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "tests/unit/preflight/asked.h"

namespace ddpdoctor::preflight {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

Machine with_space(std::uint64_t total, std::uint64_t free) {
  Machine machine;
  machine.setting.told_space["/dev/shm"] = {.total = total, .free = free};
  return machine;
}

TEST(SharedMemory, IsComparedWithWorkersRanksAndBatch) {
  Machine machine = with_space(1024 * kMiB, 1000 * kMiB);
  machine.setting.plan.workers = 4;
  machine.setting.plan.ranks_here = 2;
  machine.setting.plan.batch_bytes = 50.0 * kMiB;
  expect("shared-memory", machine.setting, Level::kBreaks, "need 1.2 GiB");
  machine.setting.plan.batch_bytes = 40.0 * kMiB;
  expect("shared-memory", machine.setting, Level::kOk, "need 960 MiB");
}

TEST(SharedMemory, DockersDefaultIsAWarningUnlessThereAreNoWorkers) {
  Machine machine = with_space(64 * kMiB, 64 * kMiB);
  expect("shared-memory", machine.setting, Level::kWarning, "--shm-size");
  machine.setting.plan.workers = 0;
  expect("shared-memory", machine.setting, Level::kOk, "64 MiB");
}

TEST(SharedMemory, AFullOneBreaksWorkers) {
  Machine machine = with_space(1024 * kMiB, 10 * kMiB);
  machine.setting.plan.workers = 2;
  expect("shared-memory", machine.setting, Level::kBreaks, "ddpdoctor clean");
}

std::string limits(std::string_view name, std::string_view soft, std::string_view hard) {
  return fmt::format(
      "Limit                     Soft Limit           Hard Limit           Units\n"
      "{:<26}{:<21}{:<21}files\n",
      name, soft, hard);
}

TEST(OpenFiles, AreComparedWithTheWorkers) {
  Machine machine;
  machine.file("/proc/self/limits", limits("Max open files", "256", "4096"));
  machine.setting.plan.workers = 8;
  expect("open-files", machine.setting, Level::kBreaks, "ulimit -n 4096");
  machine.file("/proc/self/limits", limits("Max open files", "65536", "65536"));
  expect("open-files", machine.setting, Level::kOk, "65536");
  machine.file("/proc/self/limits", limits("Max open files", "unlimited", "unlimited"));
  expect("open-files", machine.setting, Level::kOk, "no limit");
}

TEST(OpenFiles, AHardLimitIsNotToBeRaisedByUlimit) {
  Machine machine;
  machine.file("/proc/self/limits", limits("Max open files", "256", "256"));
  machine.setting.plan.workers = 8;
  expect("open-files", machine.setting, Level::kBreaks, "LimitNOFILE");
}

TEST(Observation, YamaWithoutTheCapabilityRefusesAttach) {
  Machine machine;
  machine.file("/proc/sys/kernel/yama/ptrace_scope", "1\n");
  expect("observation", machine.setting, Level::kWarning, "will be refused");
  machine.file("/proc/sys/kernel/yama/ptrace_scope", "3\n");
  expect("observation", machine.setting, Level::kWarning, "no process may inspect");
  machine.file("/proc/sys/kernel/yama/ptrace_scope", "0\n");
  expect("observation", machine.setting, Level::kOk, "ptrace_scope is 0");
}

/// Listens on a port during its lifetime.
class Listener {
 public:
  Listener() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof address;
    auto* const generic = reinterpret_cast<sockaddr*>(&address);
    EXPECT_EQ(::bind(fd_, generic, size), 0);
    EXPECT_EQ(::listen(fd_, 1), 0);
    EXPECT_EQ(::getsockname(fd_, generic, &size), 0);
    port = ntohs(address.sin_port);
  }
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  Listener(Listener&&) = delete;
  Listener& operator=(Listener&&) = delete;
  ~Listener() {
    ::close(fd_);
  }
  int port = 0;

 private:
  int fd_;
};

TEST(MasterPort, ATakenOneNamesItsOwner) {
  const Listener listener;
  Machine machine;
  machine.setting.plan.port = listener.port;
  expect("master-port", machine.setting, Level::kBreaks, fmt::format("process {} (", ::getpid()));
}

TEST(MasterPort, AFreeOneAndOnePickedByTheLauncherAreInOrder) {
  Machine machine;
  {
    const Listener closed_again;
    machine.setting.plan.port = closed_again.port;
  }
  expect("master-port", machine.setting, Level::kOk, "is free");
  machine.setting.plan.port = 0;
  expect("master-port", machine.setting, Level::kOk, "picks");
  machine.setting.plan.port.reset();
  EXPECT_TRUE(asked("master-port", machine.setting).empty());
}

TEST(MasterPort, OnAnotherNodeItIsNotOurs) {
  const Listener listener;
  Machine machine;
  machine.setting.plan.port = listener.port;
  machine.setting.plan.nodes = 2;
  machine.setting.plan.node = 1;
  EXPECT_TRUE(asked("master-port", machine.setting).empty());
}

TEST(MasterAddress, TheLoopbackIsNoPlaceForTwoMachines) {
  Machine machine;
  machine.setting.plan.address = "127.0.0.1";
  expect("master-address", machine.setting, Level::kOk, "this machine");
  machine.setting.plan.nodes = 2;
  expect("master-address", machine.setting, Level::kBreaks, "every machine to itself");
}

TEST(MasterAddress, ANameThatDoesNotResolveBreaks) {
  Machine machine;
  machine.setting.plan.address = "256.1.1.1 is no address";
  expect("master-address", machine.setting, Level::kBreaks, "does not resolve");
}

TEST(MasterAddress, RankZerosAddressMustBeThisMachines) {
  Machine machine;
  machine.setting.plan.address = "192.0.2.1";  // TEST-NET-1, RFC 5737: never assigned
  machine.setting.plan.node = 0;
  expect("master-address", machine.setting, Level::kBreaks, "not an address of this machine");
}

Machine with_interfaces() {
  Machine machine;
  machine.file("/sys/class/net/lo/operstate", "unknown\n");
  machine.file("/sys/class/net/eth0/operstate", "up\n");
  machine.file("/sys/class/net/ib0/operstate", "down\n");
  return machine;
}

TEST(Interfaces, MustExistAndBeUp) {
  Machine machine = with_interfaces();
  expect("interfaces", machine.variable("GLOO_SOCKET_IFNAME", "eth1").setting, Level::kBreaks,
         "eth0, ib0, lo");
  expect("interfaces", machine.variable("GLOO_SOCKET_IFNAME", "ib0").setting, Level::kBreaks,
         "is down");
  expect("interfaces", machine.variable("GLOO_SOCKET_IFNAME", "eth0").setting, Level::kOk, "eth0");
}

TEST(Interfaces, NcclTakesPrefixesAndExclusions) {
  Machine machine = with_interfaces();
  expect("interfaces", machine.variable("NCCL_SOCKET_IFNAME", "eth").setting, Level::kOk, "eth0");
  expect("interfaces", machine.variable("NCCL_SOCKET_IFNAME", "=eth").setting, Level::kBreaks,
         "no such");
  expect("interfaces", machine.variable("NCCL_SOCKET_IFNAME", "^lo,ib").setting, Level::kOk,
         "eth0");
}

TEST(Interfaces, TheLoopbackDoesNotReachAnotherMachine) {
  Machine machine = with_interfaces();
  machine.variable("GLOO_SOCKET_IFNAME", "lo");
  expect("interfaces", machine.setting, Level::kOk, "lo");
  machine.setting.plan.nodes = 2;
  expect("interfaces", machine.setting, Level::kBreaks, "loopback");
}

TEST(Threads, AreComparedWithTheCpus) {
  Machine machine;
  machine.file("/proc/self/status", "Name:\tx\nCpus_allowed_list:\t0-3,8-11\n");
  machine.setting.plan.ranks_here = 4;
  expect("threads", machine.setting, Level::kWarning, "4 ranks start 8 threads each");
  expect("threads", machine.variable("OMP_NUM_THREADS", "4").setting, Level::kWarning,
         "16 threads on 8 CPUs");
  expect("threads", machine.variable("OMP_NUM_THREADS", "2").setting, Level::kOk, "");
  expect("threads", machine.variable("OMP_NUM_THREADS", "many").setting, Level::kWarning,
         "is not a number");
}

TEST(NcclEnvironment, RenamedAndUnknownValuesAreTold) {
  Machine machine;
  expect("nccl-environment", machine.setting, Level::kOk, "");
  expect("nccl-environment", machine.variable("NCCL_BLOCKING_WAIT", "1").setting, Level::kWarning,
         "TORCH_NCCL_BLOCKING_WAIT");
  expect("nccl-environment", machine.variable("TORCH_DISTRIBUTED_DEBUG", "1").setting,
         Level::kBreaks, "OFF, INFO or DETAIL");
}

Machine with_gpus(int count) {
  Machine machine;
  machine.file("/dev/nvidiactl", "").file("/dev/nvidia-uvm", "");
  for (int i = 0; i < count; ++i) {
    machine.file(fmt::format("/dev/nvidia{}", i), "");
  }
  return machine;
}

TEST(CudaEnvironment, DevicesAreCountedAgainstRanks) {
  Machine machine = with_gpus(2);
  machine.setting.plan.ranks_here = 2;
  expect("cuda-environment", machine.setting, Level::kOk, "2 GPUs");
  expect("cuda-environment", machine.variable("CUDA_VISIBLE_DEVICES", "1").setting, Level::kBreaks,
         "1 devices for 2 ranks");
  expect("cuda-environment", machine.variable("CUDA_VISIBLE_DEVICES", "0,7").setting,
         Level::kBreaks, "'7' is not one of the 2 devices");
  expect("cuda-environment", machine.variable("CUDA_VISIBLE_DEVICES", "0,0").setting,
         Level::kBreaks, "twice");
  expect("cuda-environment", machine.variable("CUDA_VISIBLE_DEVICES", "1,0").setting, Level::kOk,
         "2 devices");
}

TEST(CudaEnvironment, WithoutAGpuNothingIsSaid) {
  EXPECT_TRUE(asked("cuda-environment", with_gpus(0).setting).empty());
}

TEST(StartMethod, ForkBesideCudaIsToldWithItsLine) {
  Machine machine;
  machine.setting.plan.script = "/srv/train.py";
  machine.file("/srv/train.py", "import torch\n# mp.set_start_method('fork')\nx.cuda()\n");
  expect("start-method", machine.setting, Level::kOk, "train.py");
  machine.file("/srv/train.py", "import torch\nmp.set_start_method('fork')\nx.cuda()\n");
  expect("start-method", machine.setting, Level::kWarning, "train.py:2 forks and train.py:3");
}

TEST(StartMethod, SpawnWithoutAGuardBreaks) {
  Machine machine;
  machine.setting.plan.script = "/srv/train.py";
  machine.file("/srv/train.py", "mp.spawn(work, nprocs=2)\n");
  expect("start-method", machine.setting, Level::kBreaks, "__main__");
  machine.setting.plan.script = "/srv/absent.py";
  expect("start-method", machine.setting, Level::kBreaks, "cannot be read");
}

TEST(LockFiles, ABatonNobodyHoldsBreaksAndNamesItsPath) {
  Machine machine;
  machine.variable("HOME", "/home/u");
  machine.file("/home/u/.cache/torch_extensions/py311/ext/build.ninja", "");
  machine.file("/home/u/.cache/huggingface/hub/.locks/model.lock", "");
  expect("lock-files", machine.setting, Level::kOk, "1 lock files");
  machine.file("/home/u/.cache/torch_extensions/py311/ext/lock", "");
  expect("lock-files", machine.setting, Level::kBreaks,
         "rm /home/u/.cache/torch_extensions/py311/ext/lock");
}

TEST(LockFiles, ABatonThatSomebodyHasOpenIsABuildOnItsWay) {
  Machine machine;
  machine.variable("TORCH_EXTENSIONS_DIR", "/ext");
  machine.file("/ext/lock", "");
  const int fd = ::open((machine.setting.root + "/ext/lock").c_str(), O_RDONLY | O_CLOEXEC);
  expect("lock-files", machine.setting, Level::kWarning, fmt::format("process {} (", ::getpid()));
  ::close(fd);
  expect("lock-files", machine.setting, Level::kBreaks, "rm /ext/lock");
}

TEST(MemoryLimit, OfTheTightestGroupAboveUsCounts) {
  Machine machine;
  machine.file("/proc/self/cgroup", "0::/a/b\n");
  machine.file("/sys/fs/cgroup/a/b/memory.max", "max\n");
  machine.file("/sys/fs/cgroup/a/memory.max", fmt::format("{}\n", 900 * kMiB));
  machine.file("/sys/fs/cgroup/a/memory.current", "1048576\n");
  expect("memory-limit", machine.setting, Level::kOk, "/sys/fs/cgroup/a");
  machine.setting.plan.ranks_here = 4;
  expect("memory-limit", machine.setting, Level::kBreaks, "4 ranks need at least 1.6 GiB");
}

TEST(ProcessLimit, PidsMaxIsComparedWithRanksAndWorkers) {
  Machine machine;
  machine.file("/proc/self/cgroup", "0::/\n");
  machine.file("/sys/fs/cgroup/pids.max", "100\n").file("/sys/fs/cgroup/pids.current", "30\n");
  machine.variable("OMP_NUM_THREADS", "1");
  expect("process-limit", machine.setting, Level::kOk, "30 of 100");
  machine.setting.plan.workers = 8;
  expect("process-limit", machine.setting, Level::kBreaks, "--pids-limit");
}

TEST(LockedMemory, MattersOnlyWhereThereIsInfiniBand) {
  Machine machine;
  machine.file("/proc/self/limits", limits("Max locked memory", "65536", "65536"));
  EXPECT_TRUE(asked("locked-memory", machine.setting).empty());
  machine.file("/sys/class/infiniband/mlx5_0/x", "");
  expect("locked-memory", machine.setting, Level::kWarning, "ulimit -l unlimited");
}

TEST(RankEnvironment, HalfOfItOrARankBeyondTheWorldBreaks) {
  Machine machine;
  EXPECT_TRUE(asked("rank-environment", machine.setting).empty());
  expect("rank-environment", machine.variable("RANK", "2").setting, Level::kBreaks,
         "without WORLD_SIZE");
  machine.variable("WORLD_SIZE", "2").variable("MASTER_ADDR", "a").variable("MASTER_PORT", "1");
  expect("rank-environment", machine.setting, Level::kBreaks, "not below");
  expect("rank-environment", machine.variable("RANK", "1").setting, Level::kOk, "RANK=1 of 2");
}

TEST(TemporaryFolder, MustBeWritableAndShort) {
  Machine machine;
  machine.file("/tmp/x", "");
  machine.setting.told_space["/tmp"] = {.total = 1024 * kMiB, .free = 900 * kMiB};
  expect("temporary-folder", machine.setting, Level::kOk, "900 MiB");
  expect("temporary-folder", machine.variable("TMPDIR", "/nowhere").setting, Level::kBreaks,
         "/nowhere");
  const std::string deep = "/tmp/" + std::string(90, 'x');
  machine.file(deep + "/y", "");
  expect("temporary-folder", machine.variable("TMPDIR", deep).setting, Level::kBreaks, "too long");
}

TEST(HostName, IsNotAskedWhenAnInterfaceIsNamed) {
  Machine machine;
  EXPECT_FALSE(asked("host-name", machine.setting).empty());
  EXPECT_TRUE(asked("host-name", machine.variable("GLOO_SOCKET_IFNAME", "lo").setting).empty());
}

}  // namespace
}  // namespace ddpdoctor::preflight

// SPDX-License-Identifier: Apache-2.0
// The known messages of NCCL, gloo, MPI, the kernel and the drivers.
#include "collector/detectors/evidence/message_tables.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::string_view kGpuFix =
    "Drain this node and run `dmesg | grep Xid` and `nvidia-smi -q` there; the hardware or its "
    "driver failed, not the program.";

constexpr std::string_view kInterface =
    "Set NCCL_SOCKET_IFNAME on every node to an interface of `ip -brief address` there, or unset "
    "it.";

constexpr std::string_view kConnect =
    "Set NCCL_SOCKET_IFNAME to an interface that reaches the other nodes, and open NCCL's ports in "
    "the firewall.";

constexpr std::string_view kVersions =
    "Install the same version on every node and in every container, and compare LD_LIBRARY_PATH.";

constexpr std::string_view kDaemons =
    "Log in from the first node to each other node with ssh, compare PATH and LD_LIBRARY_PATH "
    "there, and pass oob_tcp_if_include with an interface that all nodes reach.";

// NCCL before 2.4 put only the file name before its messages.
constexpr std::string_view kOldSocket = "include/socket.h:";

constexpr KnownException no_interface(std::string_view pattern, std::string_view also = {}) {
  return {.kind = "master-unreachable",
          .pattern = pattern,
          .also = also,
          .meaning = "found no network interface for NCCL",
          .fix = kInterface,
          .says = Message::kNoPeer};
}

constexpr std::string_view kSizes =
    "Compare the call and the sizes that each rank passes (TORCH_DISTRIBUTED_DEBUG=DETAIL), and "
    "NCCL_PROTO and NCCL_ALGO on all nodes.";

constexpr std::string_view kLocked =
    "Raise the limit of locked memory for the job (`ulimit -l unlimited`, memlock in "
    "limits.conf or in the container).";

constexpr std::string_view kGid =
    "Set NCCL_IB_GID_INDEX and NCCL_IB_HCA so that the ports reach each other (`show_gids`, "
    "`ib_write_bw`), or NCCL_IB_DISABLE=1 to use sockets.";

/// NCCL could not make its queues for InfiniBand or RoCE.
constexpr KnownException no_verbs(std::string_view call) {
  return {.kind = "fabric-fault",
          .pattern = call,
          .also = "Cannot allocate memory",
          .meaning = "could not register memory for InfiniBand: locked memory is limited",
          .fix = kLocked};
}

constexpr KnownException cannot_connect(std::string_view pattern, std::string_view also = {}) {
  return {.kind = "master-unreachable",
          .pattern = pattern,
          .also = also,
          .meaning = "could not connect to a different rank through NCCL's sockets",
          .fix = kConnect,
          .says = Message::kNoPeer};
}

/// NCCL retries: only a line without any following line is a failure.
constexpr KnownException retries_connection(std::string_view pattern, std::string_view also) {
  KnownException out = cannot_connect(pattern, also);
  out.passes = true;
  return out;
}

constexpr KnownException kOfTransports[] = {
    {.kind = "gpu-fault",
     .pattern = "uncorrectable ECC error encountered",  // other programs report memory errors, too
     .meaning = "had a memory fault of its GPU",
     .fix = kGpuFix},
    {.kind = "gpu-fault",
     .pattern = "uncorrectable NVLink error",
     .meaning = "had a fault of an NVLink of its GPU",
     .fix = kGpuFix},
    {.kind = "gpu-fault",  // cudaErrorContained
     .pattern = "Invalid access of peer GPU memory over nvlink or a hardware error",
     .meaning = "had a hardware fault of a GPU or an NVLink",
     .fix = kGpuFix},
    {.kind = "gpu-fault",  // of ROCm's runtime, which then aborts the process
     .pattern = "HW Exception by GPU node",
     .meaning = "had a GPU that the driver reset",
     .fix =
         "Drain this node and run `dmesg | grep amdgpu` and `rocm-smi` there; the hardware or its "
         "driver failed, not the program."},
    {.kind = "fabric-fault",  // of libmlx5
     .pattern = "mlx5: ",
     .also = ": got completion with error",
     .meaning = "had a transfer over InfiniBand or RoCE that its adapter gave up",
     .fix =
         "Check the ports and cables of that node and of its peer (`ibstat`, `perfquery`, dmesg); "
         "read the next NCCL WARN line."},
    {.kind = "fabric-fault",
     .pattern = "NCCL WARN Call to ibv_modify_qp failed",
     .meaning = "could not connect to a different rank over InfiniBand or RoCE",
     .fix = kGid},
    no_verbs("Call to ibv_create_cq failed"),
    no_verbs("Call to ibv_create_qp failed"),
    no_verbs("Call to ibv_reg_mr failed"),
    no_verbs("Call to ibv_reg_mr_iova2 failed"),
    {.kind = "fabric-fault",
     .pattern = "NCCL WARN Net : Call to recv from ",
     .also = "failed : Connection timed out",
     .meaning = "lost its connection to a different rank: that node did not answer any more",
     .fix = "Check that node and the network between both (`dmesg`, `ip -s link`); TCP gave up "
            "after its retransmissions."},
    {.kind = "fabric-fault",
     .pattern = "Failed to bind NVLink SHARP (NVLS) Multicast memory",
     .meaning = "could not set up NVLink SHARP (NVLS)",
     .fix = "Set NCCL_NVLS_ENABLE=0, and restart the fabric manager on that node (`systemctl "
            "restart nvidia-fabricmanager`)."},
    {.kind = "fabric-fault",
     .pattern = "MNNVL (cliqueSize ",
     .also = "Check the IMEX",
     .meaning = "could not use NVLink between nodes (MNNVL)",
     .fix = "Set NCCL_MNNVL_ENABLE=0, or start nvidia-imex on every node and give its channel to "
            "the container."},
    {.kind = "fabric-fault",
     .pattern = "P2P is disabled between NVLINK connected GPUs",
     .meaning = "cannot copy directly between GPUs that NVLink connects",
     .fix = "Drain that node and run `nvidia-smi nvlink -s` and `nvidia-smi topo -p2p r`; a link "
            "or the driver failed. NCCL_IGNORE_DISABLED_P2P=1 ignores it."},
    {.kind = "fabric-fault",
     .pattern = "system not yet initialized",
     .meaning = "cannot start CUDA: the fabric manager of the NVSwitches does not run",
     .fix = "Start the fabric manager on that node (`systemctl start nvidia-fabricmanager`); its "
            "version must equal the driver's."},
    {.kind = "fabric-fault",
     .pattern = "Missing \"iommu=pt\" from kernel command line",
     .meaning = "may hang in direct copies between GPUs: the kernel runs without iommu=pt",
     .fix = "Boot that machine with iommu=pt.",
     .warns = true},
    {.kind = "gpu-fault",
     .pattern = "GPU requires reset",
     .meaning = "has a GPU that must be reset",
     .fix = kGpuFix},
    {.kind = "gpu-fault",
     .pattern = "Failed to initialize NVML: Driver/library version mismatch",
     .meaning = "cannot use its GPU: the loaded driver and its library have different versions",
     .fix =
         "Reboot that node, or unload the modules of the old driver (`rmmod nvidia_uvm nvidia`)."},
    {.kind = "environment-differs",
     .pattern = "Mismatched NCCL version detected",
     .meaning = "found different versions of NCCL among the ranks",
     .fix = kVersions},
    {.kind = "environment-differs",
     .pattern = "NCCL version mismatch with remote peer",
     .meaning = "found different versions of NCCL among the ranks",
     .fix = kVersions},
    {.kind = "environment-differs",
     .pattern = "Open MPI detected a mismatch in versions between two processes",
     .meaning = "found different versions of Open MPI on the nodes",
     .fix = kVersions},
    {.kind = "environment-differs",
     .pattern = "Bootstrap Root : mismatch in rank count from procs",
     .meaning = "found ranks that pass different world sizes to NCCL",
     .fix = "Pass the same world size on every rank: compare WORLD_SIZE and the arguments of the "
            "launcher on all nodes."},
    {.kind = "mismatched-shape",
     .pattern = "message truncated : receiving ",
     .meaning = "received a message of a different size than it expects",
     .fix = kSizes},
    {.kind = "mismatched-shape",
     .pattern = "NET/IB : ",
     .also = "collective mismatch error",
     .meaning = "received a message of a different size than it expects",
     .fix = kSizes},
    {.kind = "io-stall",
     .pattern = "nfs: server ",
     .also = " not responding",
     .said_by = "kernel",
     .common = true,
     .meaning = "may wait for a server of NFS that does not answer",
     .fix = "Check that server and the network to it, and the mount on this node (`nfsstat -m`, "
            "`dmesg`)."},
    {.kind = "rendezvous-incomplete",
     .pattern = "There are not enough slots available in the system to satisfy the",
     .meaning = "was not started: mpirun has fewer slots than ranks",
     .fix = "Give the hosts more slots (`--host node1:8`, `slots=8` in the hostfile), or pass "
            "--oversubscribe."},
    {.kind = "master-unreachable",
     .pattern = "RTE was unable to reliably start one or more daemons",
     .meaning = "was not started: mpirun could not start its daemons on all nodes",
     .fix = kDaemons,
     .says = Message::kNoDaemons},
    {.kind = "master-unreachable",
     .pattern = "RTE daemon has unexpectedly failed after launch and before",
     .meaning = "was not started: a daemon of mpirun could not connect back",
     .fix = kDaemons},
    {.kind = "master-unreachable",
     .pattern = "is unable to establish a communication connection to the",
     .meaning = "lost mpirun: no route between two of its daemons",
     .fix = kDaemons},
    {.kind = "master-unreachable",
     .pattern = "HYDU_sock_connect",
     .also = "unable to connect from",
     .meaning = "was not started: a proxy of mpiexec could not connect back",
     .fix = kDaemons},
    {.kind = "dead-rank",
     .pattern = "RTE has lost communication with a remote daemon",
     .meaning = "lost its node: mpirun lost the connection to the daemon there",
     .fix = "Check the node named below that message: it was rebooted, lost its network, or its "
            "daemon was killed (`dmesg`)."},
    {.kind = "master-unreachable",
     .pattern = "is neither AF_INET(",
     .meaning = "received an invalid address from a different rank: NCCL probably found no "
                "interface there",
     .fix = kInterface,
     .says = Message::kNoPeer,
     .ambiguous = true},
    {.kind = "master-unreachable",
     .pattern = "Unable to find address for: ",
     .meaning = "found no network interface for gloo",
     .fix = "Set GLOO_SOCKET_IFNAME on every node to an interface of `ip -brief address` there, or "
            "unset it.",
     .says = Message::kNoPeer},
    {.kind = "master-unreachable",
     .pattern = "Unable to find interface for: ",
     .meaning = "found no network interface for gloo",
     .fix = "Set GLOO_SOCKET_IFNAME on every node to an interface of `ip -brief address` there, or "
            "unset it.",
     .says = Message::kNoPeer},
    no_interface("Bootstrap : no socket interface found"),
    no_interface("NET/Socket : no interface found"),
    no_interface("NET/Socket : No usable listening interface found"),
    no_interface("no device found matching", "NCCL_OOB_NET_IFNAME"),
    no_interface("No interface found in the same subnet as remote address"),
    no_interface(kOldSocket, " WARN Socket creation failed : "),
    no_interface("NCCL WARN Socket creation failed : "),
    no_interface("Net : Socket creation failed : "),
    no_interface("ncclSocketInit: Socket creation failed : "),
    cannot_connect("ocketStartConnect: ", " failed : "),
    cannot_connect("ocketStartConnect", "exceeded "),
    cannot_connect("ocketPollConnect", " failed "),
    cannot_connect("ocketPollConnect", "exceeded "),
    cannot_connect("ocketPollConnect: Connect to ", " returned "),
    cannot_connect("Net : Connect to ", " failed : "),
    cannot_connect("NCCL WARN Connect to ", " failed : "),
    cannot_connect("NCCL WARN Call to connect ", " : "),
    cannot_connect(kOldSocket, " WARN Connect to "),
    cannot_connect(kOldSocket, " WARN Call to connect failed : "),
    retries_connection("ocketPollConnect", "retrying ("),
    retries_connection("ocketStartConnect", "retrying ("),
    retries_connection("NCCL INFO Call to connect returned", ", retrying"),
    retries_connection(kOldSocket, " INFO Call to connect returned"),
};

}  // namespace

std::span<const KnownException> messages_of_transports() {
  return kOfTransports;
}

}  // namespace ddpdoctor::detectors

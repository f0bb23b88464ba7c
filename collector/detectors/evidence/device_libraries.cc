// SPDX-License-Identifier: Apache-2.0
// DeepEP 1 and 2, torch 2.5 to 2.14, vLLM 0.6 to 0.12, SGLang 0.4 and 0.5, FlashInfer 0.3 to 0.5,
// NVSHMEM 3, MSCCL++ 0.6.
#include "collector/detectors/evidence/device_libraries.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "collector/graph/activity_rules.h"
#include "collector/model/log_lines.h"
#include "collector/model/questions.h"

namespace ddpdoctor::detectors {
namespace {

constexpr std::size_t kMostTimeouts = 256;
constexpr std::size_t kLongestLibraryLine = 400;
constexpr model::Rank kRanksOfNode = 8;  // DeepEP's NUM_MAX_NVL_PEERS

constexpr std::string_view kCustom =
    "Start once without the custom all-reduce (vLLM, SGLang: --disable-custom-all-reduce) to see "
    "whether it is the cause.";

constexpr auto kLibraries = std::to_array<DeviceLibrary>({
    {"DeepEP", "/deep_ep/", "deep_ep", "deep_ep::",
     "Run DeepEP's own tests (test_intranode.py, test_internode.py, test_low_latency.py) on these "
     "nodes with NVSHMEM_DEBUG=INFO."},
    {"torch's symmetric memory", "/torch/distributed/_symmetric_memory", "SymmetricMemory",
     "symmetric_memory::",
     "Call rendezvous(), barrier(), put_signal() and wait_signal() equally often on every rank and "
     "channel, with timeout_ms set."},
    {"torch's symmetric memory", "", "symm_mem", "multimem_", ""},
    {"torch's symmetric memory", "", "", "one_shot_all_reduce", ""},
    {"torch's symmetric memory", "", "", "two_shot_all_reduce", ""},
    {"vLLM's custom all-reduce", "/vllm/distributed/device_communicators/custom_all_reduce.py",
     "vllm::cross_device_reduce", "cross_device_reduce", kCustom},
    {"vLLM's quick all-reduce", "/vllm/distributed/device_communicators/quick_all_reduce.py",
     "quickreduce::", "quickreduce::", kCustom},
    {"SGLang's custom all-reduce",
     "/sglang/srt/distributed/device_communicators/custom_all_reduce.py", "sglang::cross_device",
     "sglang::cross_device", kCustom},
    {"FlashInfer's all-reduce", "/flashinfer/comm/", "flashinfer::trtllm_allreduce",
     "allreduce_fusion_kernel", kCustom},
    {"NVSHMEM", "/nvshmem/", "nvshmem", "nvshmem",
     "Run NVSHMEM's performance tests between these nodes with NVSHMEM_DEBUG=INFO."},
    // Its kernels for experts on several GPUs wait for each other; its Python files only compile.
    {"DeepGEMM", "", "", "deep_gemm::",
     "Compile its kernels on every rank before the first request (SGLang: python3 -m "
     "sglang.compile_deep_gemm), or start without them."},
    {"MSCCL++", "/mscclpp/",
     "mscclpp::", "mscclpp::", "Run mscclpp-test between these nodes with MSCCLPP_DEBUG=INFO."},
    {"pplx-kernels", "/pplx_kernels/", "pplx::", "pplx::",
     "Run the all-to-all tests of pplx-kernels on these nodes with NVSHMEM_DEBUG=INFO."},
});

bool contains(std::string_view text, std::string_view part) {
  return !part.empty() && text.find(part) != std::string_view::npos;
}

/// Several rows of one library are reported as its first row.
const DeviceLibrary* first_of_name(const DeviceLibrary& row) {
  return std::find_if(kLibraries.begin(), kLibraries.end(),
                      [&row](const DeviceLibrary& one) { return one.name == row.name; });
}

template <typename Fits>
const DeviceLibrary* row_where(const Fits& fits) {
  const auto* const found = std::find_if(kLibraries.begin(), kLibraries.end(), fits);
  return found == kLibraries.end() ? nullptr : first_of_name(*found);
}

const DeviceLibrary* library_of(const model::Frame& frame) {
  if (frame.language == model::Language::kPython) {
    return row_where(
        [&frame](const DeviceLibrary& row) { return contains(frame.file, row.python); });
  }
  return row_where([&frame](const DeviceLibrary& row) {
    return contains(frame.function, row.native) || contains(frame.module, row.native);
  });
}

std::optional<std::int64_t> number_after_word(std::string_view text, std::string_view word) {
  const std::size_t at = text.find(word);
  if (at == std::string_view::npos) {
    return std::nullopt;
  }
  const std::string_view rest = text.substr(at + word.size());
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
  return error == std::errc() && number >= 0 && number < model::kMaxWorldSize
             ? std::optional(number)
             : std::nullopt;
}

std::optional<model::Rank> rank_behind(std::string_view text, std::string_view word) {
  const auto number = number_after_word(text, word);
  return number ? std::optional(static_cast<model::Rank>(*number)) : std::nullopt;
}

/// "RDMA: 1, nvl: 3, src RDMA: 0, src nvl: 3", "…, src RDMA lane: 0, dst NVL: 5": node, and rank on
/// that node.
void read_lanes(std::string_view line, DeviceTimeout& out) {
  const auto node = rank_behind(line, ", RDMA: ");
  const auto place = rank_behind(line, ", nvl: ");
  const auto from_node = rank_behind(line, "src RDMA: ");
  const auto from_lane = rank_behind(line, "src RDMA lane: ");
  const auto from_place = rank_behind(line, "src nvl: ");
  if (!node || !place || *place >= kRanksOfNode) {
    return;
  }
  out.waiting = *node * kRanksOfNode + *place;
  if (from_node && from_place && *from_place < kRanksOfNode) {
    out.missing = *from_node * kRanksOfNode + *from_place;
  } else if (from_lane) {
    out.missing = *from_lane * kRanksOfNode + *place;
  }
}

std::optional<DeviceTimeout> timeout_in(const model::LogLine& log) {
  const std::string_view line = log.text;
  DeviceTimeout out{.library = nullptr, .waiting = log.rank, .missing = {}, .line = {}};
  if (contains(line, "DeepGEMM grid sync timeout")) {
    out.library = row_where([](const DeviceLibrary& row) { return row.name == "DeepGEMM"; });
  } else if (contains(line, "DeepEP") && contains(line, "timeout")) {
    out.library = &kLibraries[0];
    read_lanes(line, out);
    if (const auto rank = rank_behind(line, ", rank "); rank && !out.missing) {
      out.waiting = rank;
      const auto to = rank_behind(line, "dst_rank ");
      out.missing = to ? to : rank_behind(line, "src_rank ");
    }
  } else if (contains(line, "SymmetricMemory::") && contains(line, "failed to ")) {
    out.library = &kLibraries[1];
    out.waiting = rank_behind(line, ": rank ");
    out.missing = rank_behind(line, "to rank ");
    out.missing = out.missing ? out.missing : rank_behind(line, "from rank ");
  } else {
    return std::nullopt;
  }
  out.line = base::elide(base::printable(base::trim(line)), kLongestLibraryLine);
  return out;
}

}  // namespace

std::optional<InLibrary> library_in(std::span<const model::Frame> frames) {
  InLibrary out;
  for (const model::Frame& frame : frames) {
    const bool python = frame.language == model::Language::kPython;
    if (const DeviceLibrary* library = library_of(frame)) {
      out.library = library;
      if (python) {
        out.function = std::string(graph::plain_name(frame.function));
        out.frame = &frame;
        return out;
      }
      continue;  // its wrapper is further out
    }
    if (python && (out.library == nullptr || !model::is_torch_file(frame.file))) {
      break;
    }
  }
  if (out.library == nullptr) {
    return std::nullopt;
  }
  return out;
}

const DeviceLibrary* library_of_kernel(std::string_view kernel) {
  return contains(kernel, "nccl") ? nullptr : row_where([kernel](const DeviceLibrary& row) {
    return contains(kernel, row.kernel);
  });
}

std::vector<DeviceTimeout> device_timeouts(const model::JobModel& job) {
  std::vector<DeviceTimeout> out;
  for (const model::Log& log : job.logs) {
    for (const std::string_view raw : base::split(log.text, '\n')) {
      model::LogLine line = model::read_log_line(raw.substr(0, kLongestLibraryLine * 4));
      line.rank = line.rank ? line.rank : log.rank;
      auto timeout = out.size() < kMostTimeouts ? timeout_in(line) : std::nullopt;
      if (timeout) {
        out.push_back(std::move(*timeout));
      }
    }
  }
  return out;
}

}  // namespace ddpdoctor::detectors

// SPDX-License-Identifier: Apache-2.0
// Recognizes the format of a text from its first lines.
#include <algorithm>
#include <array>
#include <cctype>

#include "base/text.h"
#include "collector/imports/logs/fabric_text.h"
#include "collector/imports/logs/horovod_text.h"
#include "collector/imports/logs/labels.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/stack_dumps/dump_processes.h"
#include "collector/imports/stack_dumps/gdb_frames.h"
#include "collector/imports/stack_dumps/kernel_stacks.h"
#include "collector/imports/stack_dumps/margins.h"
#include "collector/imports/stack_dumps/process_rows.h"
#include "collector/imports/stack_dumps/stack_readers.h"
#include "collector/model/log_lines.h"

namespace ddpdoctor::imports {
std::string_view without_padding(std::string_view text) {
  const std::size_t first = text.find_first_not_of('\0');
  const std::size_t last = text.find_last_not_of('\0');
  return first == std::string_view::npos ? std::string_view()
                                         : text.substr(first, last + 1 - first);
}

namespace {

bool printable(std::string_view head) {
  head = without_padding(head);
  const auto odd = std::count_if(head.begin(), head.end(), [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte == 0x7f || (byte < 0x20 && c != '\n' && c != '\t' && c != '\r' && c != '\x1b' &&
                            c != '\b' && c != '\a' && c != '\f');
  });
  return odd * 100 <= static_cast<long>(head.size());  // a few zeros in a log
}

/// True if any line without its launcher prefix satisfies `question`.
bool any_line(std::string_view head, bool (*question)(std::string_view)) {
  const auto asked = [question](std::string_view text) {
    const auto lines = base::split(text, '\n');
    return std::any_of(lines.begin(), lines.end(), [question](std::string_view line) {
      return question(model::read_log_line(behind_margin(line)).text);
    });
  };
  return printable(head) && (asked(head) || asked(with_ranks_named(head).text));
}

bool names_rank(std::string_view head) {
  const auto lines = base::split(head, '\n');
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    return model::read_log_line(line).rank.has_value();
  });
}

/// "gpu7:18553:18611 [0] include/socket.h:360 WARN …" of NCCL, "INFO 09-03 10:50:12
/// [shm_broadcast.py:466] …" of vLLM.
bool has_logger(std::string_view line) {
  const std::string_view text = model::read_log_line(line).text;
  const std::size_t taken = line.size() - std::min(text.size(), line.size());
  return nccl_tag(line).has_value() || line.substr(0, taken).find(".py:") != line.npos;
}

/// "[2026-03-10 08:01:12 TP0] Load weight end.": loggers put a date in brackets before their lines.
bool is_dated(std::string_view line) {
  return line.starts_with('[') && model::read_log_line(line.substr(1)).time.has_value();
}

/// "# nThread 1 nGpus 2 minBytes 8 maxBytes 134217728 …": the first line of nccl-tests and
/// rccl-tests.
bool is_header_of_nccl_tests(std::string_view line) {
  return base::contains(line, "nThread ") && base::contains(line, " nGpus ") &&
         base::contains(line, " minBytes ");
}

/// "$ rocm-smi", "root@node1:/work# nvidia-smi", "[me@node1 tests]$ mpirun …": a shell's prompt and
/// a command.
bool has_prompt(std::string_view line) {
  line = base::trim(line.substr(0, 1'024));
  if (line.starts_with("$ ") || line.starts_with("% ")) {
    return line.size() > 2 && std::isspace(static_cast<unsigned char>(line[2])) == 0;
  }
  const std::size_t at = line.find('@');
  const std::size_t end = std::min({line.find("$ "), line.find("# "), line.find(" % ")});
  std::string_view before = line.substr(0, std::min(at, line.size()));
  const std::size_t environment = before.starts_with('(') ? before.find(") ") : before.npos;
  before.remove_prefix(environment == before.npos ? 0 : environment + 2);  // of conda or venv
  const bool name = !before.empty() && before.find_first_of(" \t:\"'<=") == before.npos;
  const std::string_view host =
      at < end && end < line.size() ? line.substr(at + 1, end - at - 1) : std::string_view();
  return name && !host.empty() && host.size() < 256 && end + 2 < line.size() &&
         host.find_first_of("\"'<>=(),") == host.npos;
}

/// "9405/9412 [56:18<00:02, 2.78it/s]" of tqdm, also as a notebook shows it.
bool is_progress_bar(std::string_view line) {
  const std::size_t open = line.find(" [");
  const std::size_t left = line.find('<', std::min(open, line.size()));
  const std::size_t end = line.find(']', std::min(left, line.size()));
  const std::string_view speed = end == line.npos ? "" : line.substr(left, end - left);
  return base::contains(speed, "it/s") || base::contains(speed, "s/it");
}

/// "| NVIDIA-SMI 535.104.05    Driver Version: 535.104.05 |", "index, utilization.gpu [%]".
bool is_of_nvidia_smi(std::string_view line) {
  return line.starts_with("| NVIDIA-SMI ") || base::contains(line, "utilization.gpu") ||
         base::contains(line, "Unable to determine the device handle for ");
}

/// Names that launchers and people give to output files.
bool is_named_like_log(std::string_view path) {
  constexpr std::array<std::string_view, 5> kEndings = {".log", ".err", ".out", "stderr", "stdout"};
  const std::string_view name = base::file_name(path);
  return std::any_of(kEndings.begin(), kEndings.end(),
                     [name](std::string_view ending) { return name.ends_with(ending); });
}

}  // namespace

std::optional<model::JobModel> read_empty_log(const std::string& path) {
  const auto rank = rank_in_path(path, {});
  if (!rank || !is_named_like_log(path)) {
    return std::nullopt;
  }
  model::JobModel job;
  job.logs.push_back({.rank = rank, .text = {}});
  return job;
}

bool is_py_spy(std::string_view head, std::string_view) {
  if (printable(head) && has_unheaded_stack(head)) {
    return true;
  }
  return any_line(head, [](std::string_view line) {
    if (!take_prefix(line, "Process ")) {
      return is_py_spy_thread(line);
    }
    const std::size_t colon = line.find(": ");
    return colon != std::string_view::npos && pid_of(line.substr(0, colon)).has_value();
  });
}

bool is_py_spy_json(std::string_view head, std::string_view) {
  return base::trim(head).starts_with('[') &&
         (head.find("\"os_thread_id\"") != std::string_view::npos ||
          head.find("\"owns_gil\"") != std::string_view::npos);
}

bool is_pystack(std::string_view head, std::string_view) {
  return any_line(head, [](std::string_view line) {
    return line.starts_with("Traceback for thread ") || line.starts_with("Core file information:");
  });
}

bool is_gdb(std::string_view head, std::string_view) {
  if (printable(head) && is_bare_backtrace(head)) {
    return true;
  }
  return any_line(head, [](std::string_view line) {
    if (line.starts_with(kPyBt)) {
      return true;
    }
    return line.starts_with("Thread ") && line.find("):") != std::string_view::npos &&
           (line.find("(LWP ") != std::string_view::npos ||
            line.find("(process ") != std::string_view::npos);
  });
}

bool is_lldb(std::string_view head, std::string_view) {
  return printable(head) && is_lldb_backtrace(head);
}

bool is_sample(std::string_view head, std::string_view) {
  return any_line(head, is_sample_title);
}

bool is_eu_stack(std::string_view head, std::string_view) {
  return any_line(head, [](std::string_view line) {
    return line.starts_with("PID ") && (line.find(" - process") != std::string_view::npos ||
                                        line.find(" - core") != std::string_view::npos);
  });
}

bool is_faulthandler(std::string_view head, std::string_view) {
  return any_line(head, [](std::string_view line) {
    const bool heading = (line.starts_with("Thread 0x") || line.starts_with("Current thread 0x") ||
                          line.starts_with("Stack (")) &&
                         line.find("(most recent call first):") != std::string_view::npos;
    return heading || faulthandler_frame(line).has_value();
  });
}

bool is_austin(std::string_view head, std::string_view) {
  return any_line(head, is_austin_sample);
}

bool is_printed_stacks(std::string_view head, std::string_view) {
  return printable(head) && head.find("\", line ") != std::string_view::npos &&
         any_line(head, is_printed_heading) &&
         any_line(head, [](std::string_view line) { return python_frame(line).has_value(); });
}

bool is_process_table(std::string_view head, std::string_view) {
  constexpr std::size_t kFewestRows = 2;
  return printable(head) && process_rows(base::split(head, '\n')).size() >= kFewestRows;
}

bool is_log(std::string_view head, std::string_view path) {
  if (!printable(head)) {
    return false;
  }
  const bool telling = any_line(head, [](std::string_view line) {
    constexpr std::array<std::string_view, 19> kWords = {"Traceback (most recent call",
                                                         "Link encap:",  // of ifconfig
                                                         "<LOOPBACK,",   // of ip address
                                                         "<UP,LOOPBACK",
                                                         "ProcessGroupNCCL",
                                                         "ProcessGroupGloo",
                                                         "torch.distributed",
                                                         "torch/distributed",
                                                         "torchrun",
                                                         "Not all ranks joining collective",
                                                         "NCCL INFO",
                                                         "NCCL WARN",
                                                         "NCCL DIAG",
                                                         "RuntimeError",
                                                         "Error: ",
                                                         "DataLoader worker",
                                                         "Fatal Python error",
                                                         "Bus error",
                                                         "Segmentation fault"};
    return base::contains_any(line, kWords);
  });
  const auto lines = base::split(head, '\n');
  const bool known = std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    line = line.substr(0, 4096);
    return is_kernel_line(line) || has_logger(line) || is_header_of_nccl_tests(line) ||
           is_dated(line) || tells_of_stall(line) || is_kernel_frame(line) ||
           is_progress_bar(line) || is_of_nvidia_smi(line);
  });
  return telling || known || names_rank(head) || is_named_like_log(path);
}

bool is_terminal_copy(std::string_view text) {
  const auto lines = base::split(text, '\n');
  return printable(text) && std::any_of(lines.begin(), lines.end(), has_prompt);
}

bool is_plain_text(std::string_view text) {
  const std::string_view begin = base::trim(text.substr(0, 4096));
  const bool printed = begin.starts_with("{'");  // a dict that a Python program prints
  const bool document = (begin.starts_with('{') && !printed) || begin.starts_with("[{") ||
                        begin.starts_with('<') || begin.starts_with("%PDF");
  return !document && printable(text);
}

bool tells_of_trouble(std::string_view text) {
  const auto lines = base::split(text, '\n');
  return is_plain_text(text) && std::any_of(lines.begin(), lines.end(), model::tells_trouble);
}

}  // namespace ddpdoctor::imports

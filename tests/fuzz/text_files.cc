// SPDX-License-Identifier: Apache-2.0
// An untrusted text: stack dumps of every tool, logs, answers of RAS; read, settled and diagnosed.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/clog.h"
#include "collector/imports/logs/json_log.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/imports/nccl_ras.h"
#include "collector/imports/stack_dumps/dump_processes.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddpdoctor;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  struct Format {
    bool (*recognises)(std::string_view head, std::string_view path);
    base::Result<model::JobModel> (*read)(std::string_view bytes, const std::string& path);
  };
  constexpr std::string_view kPath = "rank_1/fuzzed.txt";
  for (const auto& [recognises, read] :
       {Format{imports::is_py_spy_json, imports::read_py_spy_dump},
        Format{imports::is_ras_json, imports::read_ras_json},
        Format{imports::is_error_file, imports::read_error_file},
        Format{imports::is_clog, imports::read_clog},
        Format{imports::is_json_log, imports::read_text},
        Format{imports::is_py_spy, imports::read_text},
        Format{imports::is_pystack, imports::read_text},
        Format{imports::is_gdb, imports::read_text},
        Format{imports::is_eu_stack, imports::read_text},
        Format{imports::is_faulthandler, imports::read_text},
        Format{imports::is_austin, imports::read_text},
        Format{imports::is_printed_stacks, imports::read_text},
        Format{imports::is_ras_text, imports::read_text},
        Format{imports::is_log, imports::read_text},
        Format{[](std::string_view, std::string_view) { return true; }, imports::read_text}}) {
    if (!recognises(text, kPath)) {
      continue;
    }
    // The first reader that recognizes it, as in `report`.
    if (auto job = read(text, std::string(kPath))) {
      imports::settle_dumps(*job);
      imports::infer_waits(*job);
      static_cast<void>(diagnosis::diagnose(*job));
    }
    break;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// A text from anybody: stack dumps of every tool, logs, answers of RAS; read, settled and
// diagnosed.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/logs/text_file.h"
#include "collector/imports/logs/torchrun_text.h"
#include "collector/imports/nccl_ras.h"
#include "collector/imports/stack_dumps/dump_processes.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddpdoctor;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  for (const auto recognises :
       {imports::is_py_spy, imports::is_py_spy_json, imports::is_pystack, imports::is_gdb,
        imports::is_eu_stack, imports::is_faulthandler, imports::is_log, imports::is_ras_json,
        imports::is_ras_text, imports::is_error_file}) {
    static_cast<void>(recognises(text, "rank_1/fuzzed.txt"));
  }
  for (const auto read : {imports::read_text, imports::read_py_spy_dump, imports::read_ras_json,
                          imports::read_error_file}) {
    if (auto job = read(text, "fuzzed.txt")) {
      imports::settle_dumps(*job);
      imports::infer_waits(*job);
      static_cast<void>(diagnosis::diagnose(*job));
    }
  }
  return 0;
}

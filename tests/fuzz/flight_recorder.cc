// SPDX-License-Identifier: Apache-2.0
// Untrusted dumps: pickle or JSON → plain data → calls → job → diagnosis.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "collector/diagnosis/diagnosis.h"
#include "collector/imports/documents/pickle.h"
#include "collector/imports/documents/plain_json.h"
#include "collector/imports/flight_recorder/job.h"
#include "collector/imports/flight_recorder/parts.h"
#include "collector/imports/flight_recorder/write.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddpdoctor;
  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-reinterpret-cast): bytes are text here
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  imports::PlainDocument document;
  const bool read = bytes.starts_with('{')
                        ? imports::read_plain_json(bytes, "rank_0", document).has_value()
                        : imports::read_pickle(bytes, "rank_0", document).has_value();
  if (!read) {
    return 0;
  }
  imports::Vocabulary vocabulary;
  imports::DumpReader reader(vocabulary);
  std::string problem;
  auto dump = reader.read(document, problem);
  if (!dump) {
    return 0;
  }
  std::vector<imports::Dump> dumps = {*dump, *dump};
  dumps[1].rank = 1;
  if (!dumps[1].calls.empty()) {
    dumps[1].calls.pop_back();  // so that the two diverge
  }
  const model::JobModel job = imports::job_of_dumps(dumps, vocabulary);
  static_cast<void>(diagnosis::diagnose(job));
  if (const auto written = imports::write_flight_recorder(job)) {  // what we write must be readable
    for (const imports::DumpFile& file : written->files) {
      if (!imports::read_pickle(file.bytes, file.name, document)) {
        __builtin_trap();
      }
    }
  }
  return 0;
}

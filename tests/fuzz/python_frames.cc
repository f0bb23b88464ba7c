// SPDX-License-Identifier: Apache-2.0
// The input is the memory of a "Python process": byte 0 selects the version, the rest is mapped
// from address 0, with _PyRuntime at 64.
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tests/support/fake_memory.h"
#include "tests/support/python_probe.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddpdoctor;
  if (size < 64) {
    return 0;
  }
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  test::FakeMemory memory;
  memory.map(0, std::vector<std::byte>(bytes.begin(), bytes.end()));
  const auto rows = stacks::python_layouts();
  stacks::PythonHome home{
      .runtime = 64, .layout = rows[data[0] % rows.size()], .version = {}, .hash_secret = {}};
  std::string problem;
  if (const auto layout =
          stacks::layout_of_runtime(memory, home.runtime, home.layout.version, problem)) {
    home.layout = *layout;
  }
  test::read_everything(memory, home, size / 2);
  return 0;
}

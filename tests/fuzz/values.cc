// SPDX-License-Identifier: Apache-2.0
// An expression and the memory of the "Python process" in which it is evaluated: byte 0 selects the
// version, the line after it is the expression, the rest is mapped from address 0.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "collector/program/syntax/source_index.h"
#include "collector/stacks/python/objects.h"
#include "collector/stacks/python/scopes.h"
#include "collector/values/evaluator.h"
#include "collector/values/from_syntax.h"
#include "tests/support/fake_memory.h"
#include "tests/support/python_probe.h"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ddpdoctor;
  constexpr std::size_t kLongest = 200;  // bytes of an expression
  if (size < 64) {
    return 0;
  }
  const std::uint8_t* const line = data + 1;
  const std::uint8_t* const end = std::find(line, line + std::min(kLongest, size - 1), '\n');
  const program::SourceText text({{1, std::string(line, end)}});
  const auto memory_bytes = std::as_bytes(std::span(end, data + size));
  test::FakeMemory memory;
  memory.map(0, std::vector<std::byte>(memory_bytes.begin(), memory_bytes.end()));
  const auto rows = stacks::python_layouts();
  stacks::PythonObjects objects(memory, rows[data[0] % rows.size()]);
  objects.set_hash_secret(1, 2);
  values::Evaluator evaluator(
      objects, {.rank = 1, .world_size = 2, .group_exists = true, .torch_version = "2.9.0"});
  evaluator.set_deadline(values::CpuClock::now() + std::chrono::seconds(1));
  evaluator.set_tensor_item([](auto) { return std::nullopt; });
  for (const stacks::RemoteAddress at : {std::size_t{64}, size / 2}) {
    stacks::Scope scope(objects, {.address = at, .code = at});
    const program::SourceIndex& index = program::index_of(text);
    if (!index.empty()) {
      const values::Expression expression =
          values::expression_of(index.root().first_child().first_child());
      const values::Value value = evaluator.evaluate(expression, scope);
      static_cast<void>(evaluator.text(value));
      static_cast<void>(evaluator.says_all(evaluator.truth(value)));
    }
    const values::Value loaded = evaluator.load(at);
    static_cast<void>(evaluator.text(loaded, kLongest));
    static_cast<void>(evaluator.text(evaluator.truth(loaded)));
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
// Replaces libFuzzer where there is no clang: runs a target on files, on mutations of them, or on
// random bytes. The same seed gives the same inputs, so that a failure can be repeated.
//
//   fuzz_TARGET [--limit] [--mutations N] [--random N] [FILE…]
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include <sys/resource.h>

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;
constexpr std::uint32_t kSeed = 20261120;

Bytes read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

Bytes mutated(Bytes bytes, std::mt19937& random) {
  const std::size_t changes = 1 + random() % 64;
  for (std::size_t i = 0; i < changes && !bytes.empty(); ++i) {
    bytes[random() % bytes.size()] = static_cast<std::uint8_t>(random());
  }
  if (random() % 8 == 0) {
    bytes.resize(random() % (bytes.size() + 1));
  }
  return bytes;
}

Bytes random_bytes(std::mt19937& random) {
  constexpr std::size_t kLongest = 65536;
  Bytes bytes(random() % kLongest);
  std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(random()); });
  return bytes;
}

/// As in attach: a hostile file can make a library request gigabytes.
void limit_memory() {
#if !defined(__SANITIZE_ADDRESS__)  // ASan's shadow memory counts as data
  const rlimit limit{.rlim_cur = std::size_t{768} << 20U, .rlim_max = RLIM_INFINITY};
  ::setrlimit(RLIMIT_DATA, &limit);
#endif
}

}  // namespace

int main(int argc, char** argv) {
  std::mt19937 random(kSeed);
  long mutations = 0;
  long inputs = 0;
  const auto feed = [&](const Bytes& bytes) {
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++inputs;
  };
  for (int i = 1; i < argc; ++i) {
    const std::string word = argv[i];
    if (word == "--limit") {
      limit_memory();
    } else if (word == "--mutations" && i + 1 < argc) {
      mutations = std::strtol(argv[++i], nullptr, 10);
    } else if (word == "--random" && i + 1 < argc) {
      for (long left = std::strtol(argv[++i], nullptr, 10); left > 0; --left) {
        feed(random_bytes(random));
      }
    } else {
      const Bytes bytes = read_file(word);
      feed(bytes);
      for (long k = 0; k < mutations; ++k) {
        feed(mutated(bytes, random));
      }
    }
  }
  std::printf("%ld inputs\n", inputs);
  return inputs > 0 ? 0 : 1;
}

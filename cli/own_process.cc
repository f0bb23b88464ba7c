// SPDX-License-Identifier: Apache-2.0
#include "cli/own_process.h"

#include <array>
#include <csignal>

#ifdef DDPDOCTOR_STATIC
#include <nss.h>
#endif

#include "base/text.h"

namespace ddpdoctor::cli {

void prepare_own_process() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
#ifdef DDPDOCTOR_STATIC
  // /etc/nsswitch.conf names modules of the machine's own libc: loaded into another libc they
  // crash.
  __nss_configure_lookup("passwd", "files");
  __nss_configure_lookup("hosts", "files dns");
#endif
}

std::vector<char*> words_of(int argc, char** argv) {
  static std::array<char, 6> name{"pyspy"};
  std::vector<char*> words(argv, argv + argc);
  if (!words.empty() && base::file_name(words.front()) == "py-spy") {
    words.insert(words.begin() + 1, name.data());
  }
  return words;
}

}  // namespace ddpdoctor::cli

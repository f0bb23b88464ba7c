// SPDX-License-Identifier: Apache-2.0
#include "cli/own_process.h"

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
  // /etc/nsswitch.conf names modules of the machine's own libc, which crash in another libc.
  __nss_configure_lookup("passwd", "files");
  __nss_configure_lookup("hosts", "files dns");
#endif
}

std::vector<std::string> words_of(int argc, char** argv) {
  std::vector<std::string> words(argv, argv + argc);
  if (!words.empty() && base::file_name(words.front()) == "py-spy") {
    words.insert(words.begin() + 1, "pyspy");
  }
  return words;
}

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
// Messages to other programs go through curl, which knows TLS, proxies and certificates of the
// site.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace ddpdoctor::cli {

/// Runs curl with these words and this standard input; fails unless the server took the message.
/// Returns within 15 seconds, or soon after `stop` holds. `option` names the sender in errors.
base::Result<void> run_curl(
    std::string_view option, const std::vector<std::string>& words, std::string_view input,
    const std::function<bool()>& stop = [] { return false; });

}  // namespace ddpdoctor::cli

// SPDX-License-Identifier: Apache-2.0
#include "cli/otlp_settings.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include "base/text.h"

namespace ddpdoctor::cli {
namespace {

constexpr std::string_view kFromEnvironment = "env";
constexpr std::string_view kMetricsPath = "/v1/metrics";
constexpr std::string_view kAllSignals = "OTEL_EXPORTER_OTLP_";
constexpr std::string_view kMetricsOnly = "OTEL_EXPORTER_OTLP_METRICS_";
constexpr double kLongestSend = 10;  // seconds; by then there are newer metrics

/// A value and the variable that had it.
struct Found {
  std::string name;
  std::string value;
};

/// The variable of metrics, else the one of all signals. An empty variable counts as unset.
Found find(std::string_view end, const Variable& variable) {
  for (const std::string_view start : {kMetricsOnly, kAllSignals}) {
    std::string name = fmt::format("{}{}", start, end);
    const char* const value = variable(name.c_str());
    if (value != nullptr && !base::trim(value).empty()) {
      return {.name = std::move(name), .value = std::string(base::trim(value))};
    }
  }
  return {};
}

std::string with_path(std::string url) {
  while (url.ends_with('/')) {
    url.pop_back();
  }
  return url.ends_with(kMetricsPath) ? url : url.append(kMetricsPath);
}

/// "%20" → " ", as in a URL.
std::string decoded_header(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned byte = 0;
    const char* const digits = text.data() + i + 1;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(digits, digits + 2, byte, 16).ptr == digits + 2) {
      out += static_cast<char>(byte);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// "api-key=secret,x=a%20b" as lines of HTTP.
base::Result<std::vector<std::string>> headers_of(const Found& found) {
  std::vector<std::string> out;
  for (const std::string_view part : base::split(found.value, ',')) {
    const std::string_view pair = base::trim(part);
    if (pair.empty()) {
      continue;
    }
    const std::size_t equals = pair.find('=');
    const std::string name(base::trim(pair.substr(0, equals)));
    const std::string value = equals == std::string_view::npos
                                  ? std::string()
                                  : decoded_header(base::trim(pair.substr(equals + 1)));
    const auto breaks = [](char letter) { return static_cast<unsigned char>(letter) < ' '; };
    if (name.empty() || value.empty() || std::any_of(value.begin(), value.end(), breaks) ||
        name.find_first_of(" :\t") != std::string::npos) {
      // The value is not shown, because it may be a secret.
      return base::failure(fmt::format("{}: not a list of headers", found.name),
                           "expected NAME=VALUE,NAME=VALUE");
    }
    out.push_back(fmt::format("{}: {}", name, value));
  }
  return out;
}

base::Result<double> limit_of(const Found& found) {
  if (found.value.empty()) {
    return kLongestSend;
  }
  double milliseconds = 0;
  const char* const end = found.value.data() + found.value.size();
  const auto [read, error] = std::from_chars(found.value.data(), end, milliseconds);
  if (error != std::errc() || read != end || !(milliseconds > 0)) {
    return base::failure(fmt::format("{}={}: not a time", found.name, base::printable(found.value)),
                         "expected milliseconds, such as 10000");
  }
  return std::min(milliseconds / 1000, kLongestSend);
}

/// The only protocol that is spoken here.
base::Result<void> check_protocol(const Found& found) {
  if (found.value.empty() || found.value.starts_with("http/")) {
    return {};
  }
  return base::failure(
      fmt::format("{}={}: not supported", found.name, base::printable(found.value)),
      "name the HTTP port of the receiver (4318 by default) with --otlp http://HOST:4318");
}

}  // namespace

base::Result<OtlpSettings> otlp_settings(const std::string& address, const Variable& variable) {
  OtlpSettings out;
  std::string shown = address;
  if (address == kFromEnvironment) {
    const Found found = find("ENDPOINT", variable);
    if (found.value.empty()) {
      return base::failure("--otlp env: OTEL_EXPORTER_OTLP_ENDPOINT is not set",
                           "set it to http://HOST:4318, or use --otlp http://HOST:4318");
    }
    if (const auto known = check_protocol(find("PROTOCOL", variable)); !known) {
      return tl::make_unexpected(known.error());
    }
    // The variable of metrics holds the whole address.
    out.url = found.name.starts_with(kMetricsOnly) ? found.value : with_path(found.value);
    shown = fmt::format("env: {}={}", found.name, base::printable(found.value));
  } else {
    out.url = with_path(address);
  }
  if (!out.url.starts_with("http://") && !out.url.starts_with("https://")) {
    return base::failure(fmt::format("--otlp {}: not an address", shown),
                         "expected http://HOST:4318 or https://HOST:4318");
  }
  out.headers = TRY(headers_of(find("HEADERS", variable)));
  out.limit = TRY(limit_of(find("TIMEOUT", variable)));
  out.ca = find("CERTIFICATE", variable).value;
  out.certificate = find("CLIENT_CERTIFICATE", variable).value;
  out.key = find("CLIENT_KEY", variable).value;
  return out;
}

}  // namespace ddpdoctor::cli

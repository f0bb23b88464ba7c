// SPDX-License-Identifier: Apache-2.0
#include "cli/otlp_settings.h"

#include <map>

#include <gtest/gtest.h>

namespace ddpdoctor::cli {
namespace {

using Variables = std::map<std::string, std::string>;

base::Result<OtlpSettings> with(const Variables& variables, const std::string& address = "env") {
  return otlp_settings(address, [&variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

std::string refusal(const Variables& variables, const std::string& address = "env") {
  const auto settings = with(variables, address);
  return settings ? "accepted" : settings.error().what;
}

TEST(OtlpSettings, TheAddressOfAllSignalsGetsThePathOfMetrics) {
  EXPECT_EQ(with({{"OTEL_EXPORTER_OTLP_ENDPOINT", " https://h:4318/otlp/ "}})->url,
            "https://h:4318/otlp/v1/metrics");
  EXPECT_EQ(with({}, "http://h:4318")->url, "http://h:4318/v1/metrics");
  EXPECT_EQ(with({}, "http://h:4318/v1/metrics")->url, "http://h:4318/v1/metrics");
  EXPECT_EQ(with({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4318"},
                  {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "http://m/own"}})
                ->url,
            "http://m/own");
}

TEST(OtlpSettings, TheVariablesOfMetricsHavePriority) {
  const auto settings =
      with({{"OTEL_EXPORTER_OTLP_HEADERS", "a=1"},
            {"OTEL_EXPORTER_OTLP_METRICS_HEADERS", "Authorization=Bearer%20s%3Dt, api-key = k=v ,"},
            {"OTEL_EXPORTER_OTLP_CERTIFICATE", "/ca"},
            {"OTEL_EXPORTER_OTLP_METRICS_CERTIFICATE", ""},
            {"OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", "/own"},
            {"OTEL_EXPORTER_OTLP_CLIENT_KEY", "/key"},
            {"OTEL_EXPORTER_OTLP_TIMEOUT", "2500"}},
           "https://h");
  ASSERT_TRUE(settings);
  EXPECT_EQ(settings->headers,
            (std::vector<std::string>{"Authorization: Bearer s=t", "api-key: k=v"}));
  EXPECT_EQ(settings->ca, "/ca");
  EXPECT_EQ(settings->certificate + settings->key, "/own/key");
  EXPECT_EQ(settings->limit, 2.5);
}

TEST(OtlpSettings, RefusesWhatItCannotDoAndShowsNoSecret) {
  EXPECT_EQ(refusal({}), "--otlp env: OTEL_EXPORTER_OTLP_ENDPOINT is not set");
  EXPECT_EQ(refusal({}, "h:4318"), "--otlp h:4318: not an address");
  EXPECT_EQ(refusal({{"OTEL_EXPORTER_OTLP_ENDPOINT", "h:4317"}}),
            "--otlp env: OTEL_EXPORTER_OTLP_ENDPOINT=h:4317: not an address");
  EXPECT_EQ(refusal({{"OTEL_EXPORTER_OTLP_ENDPOINT", "http://h:4317"},
                     {"OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"}}),
            "OTEL_EXPORTER_OTLP_PROTOCOL=grpc: not supported");
  EXPECT_EQ(refusal({{"OTEL_EXPORTER_OTLP_TIMEOUT", "soon"}}, "http://h"),
            "OTEL_EXPORTER_OTLP_TIMEOUT=soon: not a time");
  for (const char* const headers : {"sesame", "a=", "=sesame", "a b=sesame", "a=x%0d%0asesame"}) {
    EXPECT_EQ(refusal({{"OTEL_EXPORTER_OTLP_HEADERS", headers}}, "http://h"),
              "OTEL_EXPORTER_OTLP_HEADERS: not a list of headers");
  }
}

}  // namespace
}  // namespace ddpdoctor::cli

#pragma once
// A strict reader of the Prometheus text exposition format 0.0.4, for tests that look at /metrics.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hearth::testing {

struct Sample {
  std::string name;  // the family's, or with _bucket, _sum, _count
  std::map<std::string, std::string> labels;
  double value = 0;
};

struct MetricFamily {
  std::string type;  // counter, gauge, histogram
  std::string help;
  std::vector<Sample> samples;
};

class Exposition {
 public:
  // A mistake is all that the format forbids, and also parts that the server has no reason to
  // write: timestamps, comments, untyped samples, blank lines. After a mistake families() is empty,
  // and mistake() says what and where.
  explicit Exposition(std::string_view text);

  [[nodiscard]] const std::string& mistake() const { return mistake_; }
  [[nodiscard]] const std::map<std::string, MetricFamily>& families() const { return families_; }

  // The value of the sample with exactly these labels; absent if there is none.
  [[nodiscard]] std::optional<double> value(
      std::string_view name, const std::map<std::string, std::string>& labels = {}) const;
  // The sum over all samples of that name whose labels hold these.
  [[nodiscard]] double sum(std::string_view name,
                           const std::map<std::string, std::string>& labels = {}) const;

 private:
  // Each is false after a mistake.
  bool read(std::string_view text);
  bool read_line(std::string_view line);
  bool read_description(std::string_view line);
  bool read_sample(std::string_view line);
  bool check_family(const MetricFamily& family);
  bool fail(std::string why);

  std::map<std::string, MetricFamily> families_;
  std::string current_;  // the family that the lines are about
  std::string mistake_;
};

}  // namespace hearth::testing

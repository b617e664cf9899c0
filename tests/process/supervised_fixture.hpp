#pragma once
// A supervisor, and the servers that it starts one after the other.

#include "process/process_fixture.hpp"

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <signal.h>

namespace hearth::testing {

class SupervisedTest : public ProcessTest {
 protected:
  // `more`: further arguments.
  [[nodiscard]] std::unique_ptr<ServerProcess> supervise(std::vector<std::string> more = {}) const {
    more.insert(more.begin(), "--supervised");
    return serve(more);
  }

  // The text behind the last `key` in the log, up to a space or the end of the line.
  static std::string last_value(const ServerProcess& supervisor, const std::string& key) {
    const std::string& log = supervisor.log();
    const std::size_t at = log.rfind(key);
    if (at == std::string::npos) throw std::runtime_error("not logged: " + key + "\n" + log);
    const std::size_t begin = at + key.size();
    return log.substr(begin, log.find_first_of(" \n", begin) - begin);
  }

  // Waits until the server has become ready for the `times`th time, and returns its port.
  static std::uint16_t wait_for_server(ServerProcess& supervisor, std::size_t times) {
    supervisor.wait_for_log("server.ready address=", times);
    const std::string address = last_value(supervisor, "server.ready address=");
    return static_cast<std::uint16_t>(std::stoi(address.substr(address.rfind(':') + 1)));
  }
  // The time of day in front of the last line of the log that has this text.
  static std::chrono::milliseconds logged_at(const ServerProcess& supervisor,
                                             const std::string& text) {
    const std::string& log = supervisor.log();
    const std::size_t line = log.rfind('\n', log.rfind(text)) + 1;  // HH:MM:SS.mmm
    const auto number = [&](std::size_t at, std::size_t digits) {
      return std::stoi(log.substr(line + at, digits));
    };
    return std::chrono::hours(number(0, 2)) + std::chrono::minutes(number(3, 2)) +
           std::chrono::seconds(number(6, 2)) + std::chrono::milliseconds(number(9, 3));
  }
  // How long the last server took from its process to its readiness: what a start takes on this
  // machine just now.
  static std::chrono::milliseconds time_of_start(const ServerProcess& supervisor) {
    const auto took = logged_at(supervisor, "server.ready address=") -
                      logged_at(supervisor, "supervisor.started pid=");
    return took.count() < 0 ? took + std::chrono::hours(24) : took;
  }
  // The process id of the server that runs now.
  static pid_t server_of(const ServerProcess& supervisor) {
    return std::stoi(last_value(supervisor, "supervisor.started pid="));
  }
};

}  // namespace hearth::testing

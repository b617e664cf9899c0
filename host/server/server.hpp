#pragma once
// One running server: makes all layers, and starts and stops them in the right order.

#include "base/clock.hpp"
#include "base/error.hpp"
#include "base/logger.hpp"
#include "base/random.hpp"
#include "config/config.hpp"

#include <memory>
#include <string>
#include <vector>

namespace hearth::server {

// Promises   start() returns when clients can connect. If it fails, no thread, lock or port is
//            left. stop() returns when everything is closed.
// Threads    start(), stop() and destruction on one thread that is not the server's; the rest from
//            any.
// Lifetime   stop() comes before destruction (asserted). The logger outlives it.
// Failure    start(): a sentence for the operator that says what to do. A refused library is no
//            failure: its file, the broken rule and advice are logged, and other libraries are
//            served. A full disk is no failure if there are data: each item that cannot be written
//            is logged (server.disk_full).
class Server {
 public:
  static Result<std::unique_ptr<Server>> start(config::Config config, Logger& logger);
  ~Server();
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  // "127.0.0.1:8787"; with TLS "https://127.0.0.1:8787". For port 0 it has the real port.
  [[nodiscard]] std::string address() const;

  // The URL segments of the classes that are served, sorted.
  [[nodiscard]] std::vector<std::string> classes() const;

  // Writes what a full disk did not take at the start, such as the record for commands. True:
  // nothing is missing.
  bool catch_up();

  // Looks at the plugin directories and the class files now, and reads the certificate again.
  // Replaces what has changed; clients stay connected. The log has the outcome.
  void reload();

  // Takes no new work, lets running work finish within limits.shutdown_grace, closes clients (1001)
  // and databases.
  void stop();

 private:
  struct Parts;
  explicit Server(std::unique_ptr<Parts> parts);

  std::unique_ptr<Parts> parts_;
};

}  // namespace hearth::server

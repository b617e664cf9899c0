#pragma once
// The records of an agent's operations, for its code and for administrators.

#include "durable/operation_fibers.hpp"
#include "durable/operation_requests.hpp"

namespace hearth::durable {

// Records are JSON, as in hearth/ext/operations.h. It only reads.
//
// Threads, Failure   As OperationTable. What it is given outlives it.
class OperationRecords {
 public:
  static constexpr std::size_t kMaxPageBytes = std::size_t{4} << 20;

  OperationRecords(OperationTable& table, OperationAnswers& answers, OperationFibers& fibers,
                   const RunningOperations& running)
      : table_(table), answers_(answers), fibers_(fibers), running_(running) {}

  [[nodiscard]] std::string record(const OperationRow& row, bool without_documents = false);
  // kNotFound.
  Result<std::string> inspect(std::string_view id);
  // A page ends with the record that reaches kMaxPageBytes. kNotFound: no operation has the id
  // `after`.
  Result<std::string> list(const OperationFilter& filter);
  // The page ended at kMaxPageBytes: ask again for the records after its last one.
  [[nodiscard]] static bool is_cut_short(std::string_view page) {
    return page.size() > kMaxPageBytes;
  }

 private:
  OperationTable& table_;
  OperationAnswers& answers_;
  OperationFibers& fibers_;
  const RunningOperations& running_;
};

}  // namespace hearth::durable

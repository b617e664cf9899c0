#include "durable/operation_answers.hpp"

#include "json/json.hpp"

#include <algorithm>

namespace hearth::durable {

using storage::Rows;

namespace {

constexpr auto kFirstPiece = static_cast<std::int64_t>(OperationPart::kFirstPiece);

storage::Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::byte*>(text.data()), text.size()};
}

}  // namespace

void OperationAnswers::remove_from(std::int64_t operation, OperationPart part) {
  table_.run("DELETE FROM cf_agents_operation_documents WHERE operation = ? AND part >= ?",
             operation, part);
}

std::optional<DispatchedRequest> OperationAnswers::find(std::int64_t operation) {
  std::optional<DispatchedRequest> request;
  Rows rows = table_.rows(
      "SELECT part, iif(part = 3, body, NULL), length(body) FROM "
      "cf_agents_operation_documents WHERE operation = ? AND part >= 3 ORDER BY part",
      operation);
  while (rows.next()) {
    const std::int64_t part = rows.integer(0);
    if (part == static_cast<std::int64_t>(OperationPart::kRequest)) {
      const Json json = parse_json(rows.text(1)).value();
      request.emplace();
      request->fingerprint = json.at("fingerprint").get<std::string>();
      request->dispatched_at_ms = json.at("dispatched_at").get<std::int64_t>();
      if (const Json& status = json.at("status"); !status.is_null())
        request->status = status.get<std::int64_t>();
      if (const Json& id = json.at("request_id"); !id.is_null())
        request->upstream_id = id.get<std::string>();
      request->can_resume = json.at("can_resume").get<bool>();
      request->whole = json.at("whole").get<bool>();
    } else if (part >= kFirstPiece && request) {
      request->bytes += static_cast<std::uint64_t>(rows.integer(2));
    }
  }
  return request;
}

void OperationAnswers::write(std::int64_t operation, const DispatchedRequest& request) {
  Json json = {{"fingerprint", request.fingerprint},
               {"dispatched_at", request.dispatched_at_ms},
               {"status", nullptr},
               {"request_id", nullptr},
               {"can_resume", request.can_resume},
               {"whole", request.whole}};
  if (request.status) json["status"] = *request.status;
  if (request.upstream_id) json["request_id"] = *request.upstream_id;
  table_.put(operation, OperationPart::kRequest, bytes_of(dump_json(json)));
}

void OperationAnswers::put_head(std::int64_t operation, std::string_view json) {
  table_.put(operation, OperationPart::kHead, bytes_of(json));
}

void OperationAnswers::append(std::int64_t operation, std::string_view piece) {
  std::int64_t last = kFirstPiece;
  std::size_t size = 0;
  {
    Rows rows = table_.rows(
        "SELECT part, length(body) FROM cf_agents_operation_documents WHERE "
        "operation = ? AND part >= ? ORDER BY part DESC LIMIT 1",
        operation, kFirstPiece);
    if (rows.next()) {
      last = rows.integer(0);
      size = static_cast<std::size_t>(rows.integer(1));
    }
  }
  if (size > 0 && size + piece.size() <= kJoinedBytes) {
    table_.run(
        "UPDATE cf_agents_operation_documents SET body = CAST(body || ?3 AS BLOB) WHERE "
        "operation = ?1 AND part = ?2",
        operation, last, bytes_of(piece));
    return;
  }
  if (size > 0) ++last;
  for (; !piece.empty(); ++last) {
    const std::string_view row =
        piece.substr(0, piece.size() < kPieceBytes ? kJoinedBytes : kPieceBytes);
    table_.put(operation, static_cast<OperationPart>(last), bytes_of(row));
    piece.remove_prefix(row.size());
  }
}

void OperationAnswers::cut(std::int64_t operation, std::uint64_t bytes) {
  const std::string all = body(operation);
  if (all.size() <= bytes) return;
  remove_from(operation, OperationPart::kFirstPiece);
  append(operation, std::string_view(all).substr(0, static_cast<std::size_t>(bytes)));
}

std::string OperationAnswers::head(std::int64_t operation) {
  return table_.document(operation, OperationPart::kHead).value_or("");
}

std::string OperationAnswers::body(std::int64_t operation) {
  std::string all;
  Rows rows = table_.rows(
      "SELECT body FROM cf_agents_operation_documents WHERE operation = ? AND "
      "part >= ? ORDER BY part",
      operation, kFirstPiece);
  while (rows.next()) {
    const storage::Bytes piece = rows.bytes(0);
    all.append(reinterpret_cast<const char*>(piece.data()), piece.size());
  }
  return all;
}

void OperationAnswers::drop_answer(std::int64_t operation) {
  remove_from(operation, OperationPart::kHead);
}

void OperationAnswers::drop(std::int64_t operation) {
  remove_from(operation, OperationPart::kRequest);
}

}  // namespace hearth::durable

#include "tds/wire/server_bulk.hpp"

#include <fmt/format.h>

#include <algorithm>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "tds/wire/type_info.hpp"

namespace rowferry::tds::server {

namespace {

enum Token : std::uint8_t { token_columns = 0x81, token_row = 0xD1, token_done = 0xFD };

RequestFault premature_end() {
  return {4804, 1,
          "While reading current row from host, a premature end-of-message was encountered--an incoming data stream "
          "was interrupted when the server expected to see more data. The host program may have terminated. Ensure "
          "that you are using a supported client application programming interface (API)."};
}

RequestFault column_fault(ValueFault fault, std::size_t column, const std::string& name) {
  switch (fault) {
    case ValueFault::length:
      return {4815, 1, fmt::format("Received an invalid column length from the bcp client for colid {}.", column)};
    case ValueFault::odd_length:
      return {4895, 1,
              fmt::format("Bulk load: Unicode data is odd byte size for column {}. Should be even byte size.", column)};
    case ValueFault::chunk_length:
      return {4897, 1,
              fmt::format("Received an invalid length for chunked LOB data for bcp client for colid {}.", column)};
    case ValueFault::short_chunks:
      return premature_end();
    case ValueFault::text_pointer:
      return {4813, 1, fmt::format("Expected the text length in data stream for bulk copy of column {}.", column)};
    default:
      return {7339, 1,
              fmt::format("OLE DB provider 'STREAM' for linked server '(null)' returned invalid data for column "
                          "'[!BulkInsert].{}'.",
                          name)};
  }
}

// Bulk loads may not use the pre-7.0 decimal forms, nor types that only results have (MS-TDS 2.2.5.4).
bool allowed_in_bulk(const TypeInfo& type) {
  switch (type.id) {
    case DataType::null:
    case DataType::decimal_legacy:
    case DataType::numeric_legacy:
    case DataType::xml:
    case DataType::udt:
    case DataType::tvp:
      return false;
    default:
      return true;
  }
}

// The form with a length byte that holds the same values as a fixed one.
TypeInfo nullable_form(const TypeInfo& type) {
  TypeInfo n = type;
  const auto as = [&](DataType id, std::uint32_t bytes) {
    n.id = id;
    n.max_length = bytes;
  };
  switch (type.id) {
    case DataType::int1:
      as(DataType::intn, 1);
      break;
    case DataType::int2:
      as(DataType::intn, 2);
      break;
    case DataType::int4:
      as(DataType::intn, 4);
      break;
    case DataType::int8:
      as(DataType::intn, 8);
      break;
    case DataType::bit:
      as(DataType::bitn, 1);
      break;
    case DataType::flt4:
      as(DataType::fltn, 4);
      break;
    case DataType::flt8:
      as(DataType::fltn, 8);
      break;
    case DataType::money4:
      as(DataType::moneyn, 4);
      break;
    case DataType::money:
      as(DataType::moneyn, 8);
      break;
    case DataType::datetim4:
      as(DataType::datetimn, 4);
      break;
    case DataType::datetime:
      as(DataType::datetimn, 8);
      break;
    case DataType::numericn:
      n.id = DataType::decimaln;
      break;
    default:
      break;
  }
  return n;
}

bool length_counts(DataType id) {
  switch (id) {
    case DataType::intn:
    case DataType::fltn:
    case DataType::moneyn:
    case DataType::datetimn:
    case DataType::bigchar:
    case DataType::bigvarchar:
    case DataType::bigbinary:
    case DataType::bigvarbinary:
    case DataType::nchar:
    case DataType::nvarchar:
    case DataType::vector:
      return true;
    default:
      return false;
  }
}

bool scale_counts(DataType id) {
  return id == DataType::decimaln || id == DataType::time || id == DataType::datetime2 ||
         id == DataType::datetimeoffset;
}

}  // namespace

RequestFault compare_bulk_columns(const std::vector<ColumnMeta>& declared, const std::vector<ColumnMeta>& stream) {
  const auto refuse = [](std::int32_t number, std::uint8_t state, std::size_t column) {
    const char* what = number == 4875 ? "attribute" : "type";
    return RequestFault{number, state,
                        fmt::format("Invalid column {} from bcp client for colid {}.", what, column + 1)};
  };
  if (declared.size() != stream.size()) return refuse(4816, 1, std::min(declared.size(), stream.size()));
  for (std::size_t i = 0; i < stream.size(); ++i) {
    const TypeInfo want = nullable_form(declared[i].type);
    const TypeInfo have = nullable_form(stream[i].type);
    // JSON travels as varchar(max) (MS-TDS 2.2.5.5.7).
    const bool json = want.id == DataType::json && have.id == DataType::bigvarchar && have.plp();
    if (want.id != have.id && !json) return refuse(4816, 1, i);
    if (!json && length_counts(want.id) && want.max_length != have.max_length) return refuse(4816, 2, i);
    if (scale_counts(want.id) && (want.scale != have.scale || want.precision != have.precision)) {
      return refuse(4875, 1, i);
    }
    const bool unknown = (stream[i].flags & flag_nullability_unknown) != 0;
    if (!unknown && stream[i].nullable() != declared[i].nullable()) return refuse(4816, 3, i);
  }
  return {};
}

BulkScan BulkScanner::fail(RequestFault fault) {
  fault_ = std::move(fault);
  return BulkScan::fault;
}

BulkScan BulkScanner::scan_columns(ByteView payload, bool message_ended, std::size_t& taken) {
  taken = 0;
  if (payload.empty()) {
    return message_ended ? fail({4894, 1, "COLMETADATA must be present when using bcp."}) : BulkScan::need_more;
  }
  if (payload[0] != token_columns) return fail({4894, 2, "COLMETADATA must be present when using bcp."});
  ByteReader reader(payload.subspan(1));
  bool none = false;
  std::string why;
  columns_.clear();
  switch (read_columns(reader, columns_, none, MetaPlace::bulk, why)) {
    case Parsed::ok:
      break;
    case Parsed::need_more:
      return message_ended ? fail(premature_end()) : BulkScan::need_more;
    case Parsed::malformed:
      return fail(
          {4816, 3, fmt::format("Invalid column type from bcp client for colid {}: {}.", columns_.size() + 1, why)});
  }
  if (none || columns_.empty()) return fail({4894, 3, "COLMETADATA must be present when using bcp."});
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    if (!allowed_in_bulk(columns_[i].type) || make_value_rule(columns_[i].type).check == nullptr) {
      return fail({4816, 1, fmt::format("Invalid column type from bcp client for colid {}.", i + 1)});
    }
  }
  taken = payload.size() - reader.left();
  return BulkScan::ended;
}

void BulkScanner::bind(const std::vector<bool>& refuses_null, bool hash) {
  hashing_ = hash;
  bound_.clear();
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    bound_.push_back({make_value_rule(columns_[i].type), i < refuses_null.size() && refuses_null[i]});
  }
}

BulkScan BulkScanner::value_fault(ValueFault fault) {
  return fail(column_fault(fault, column_ + 1, columns_[column_].name));
}

// The bytes end within a row: the walk goes on at offset_ when more have come.
BulkScan BulkScanner::end_early(const std::uint8_t* row, const std::uint8_t* start, std::size_t& taken,
                                bool message_ended) {
  taken = static_cast<std::size_t>(row - start);
  return message_ended ? fail(premature_end()) : BulkScan::need_more;
}

BulkScan BulkScanner::scan_rows(ByteView payload, bool message_ended, std::size_t rows_max, std::size_t& taken) {
  rows_.clear();
  const std::uint8_t* const start = payload.data();
  const std::uint8_t* const end = start + payload.size();
  const std::uint8_t* row = start;
  while (true) {
    if (offset_ == 0) {
      taken = static_cast<std::size_t>(row - start);
      if (row == end) return message_ended ? BulkScan::ended : BulkScan::need_more;
      if (*row == token_done) return BulkScan::ended;
      if (*row != token_row) {
        return fail(
            {4807, 1, fmt::format("The bulk copy client sent the token 0x{:02X} where a row was expected.", *row)});
      }
      if (rows_.size() == rows_max) return BulkScan::need_more;
      column_ = 0;
      row_plain_ = true;
    }
    const std::uint8_t* at = row + (offset_ == 0 ? 1 : offset_);
    offset_ = 0;
    for (; column_ < bound_.size(); ++column_) {
      const Column& column = bound_[column_];
      const ValueEnd value = column.rule.check(column.rule, at, end, walk_);
      if (value.fault != ValueFault::none) {
        if (value.fault != ValueFault::need_more) return value_fault(value.fault);
        offset_ = static_cast<std::size_t>(value.next - row);
        return end_early(row, start, taken, message_ended);
      }
      if (value.null && column.refuses_null) {
        null_column_ = column_;
        return fail({});
      }
      if (column.rule.plp) row_plain_ = row_plain_ && walk_.plain;
      at = value.next;
    }
    rows_.push_back({static_cast<std::uint32_t>(row + 1 - start), static_cast<std::uint32_t>(at - start)});
    ++scanned_;
    if (hashing_) hash_row(row + 1, at);
    row = at;
  }
}

void BulkScanner::hash_row(const std::uint8_t* from, const std::uint8_t* to) {
  if (!row_plain_) {
    canonical_row(from, to);
    from = scratch_.data();
    to = from + scratch_.size();
  }
  const XXH128_hash_t hash = XXH3_128bits(from, static_cast<std::size_t>(to - from));
  hash_.add(hash.low64, hash.high64);
}

// The row again, with each PLP value as total, one chunk, end: how a client cuts its chunks must not matter.
void BulkScanner::canonical_row(const std::uint8_t* from, const std::uint8_t* to) {
  scratch_.clear();
  ValueWalk walk;
  for (const Column& column : bound_) {
    const std::uint8_t* const next = column.rule.check(column.rule, from, to, walk).next;
    if (!column.rule.plp || walk.plain) {
      scratch_.append({from, static_cast<std::size_t>(next - from)});
    } else {
      scratch_.put_le(walk.seen);
      if (walk.seen != 0) scratch_.put_le(static_cast<std::uint32_t>(walk.seen));
      for (const std::uint8_t* chunk = from + sizeof walk.total; true;) {
        const std::size_t n = load_le<std::uint32_t>(chunk);
        if (n == 0) break;
        scratch_.append({chunk + 4, n});
        chunk += 4 + n;
      }
      scratch_.put_le(std::uint32_t{0});
    }
    from = next;
  }
}

}  // namespace rowferry::tds::server

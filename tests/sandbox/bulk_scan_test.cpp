// The bulk message, validated case by case: each bad stream gets the error that SQL Server gives.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include "capture.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/server_bulk.hpp"
#include "tds/wire/type_info.hpp"

using namespace rowferry;
using namespace rowferry::tds;
using namespace rowferry::tds::server;
using rowferry::test::capture_packets;
using rowferry::test::from_hex;

namespace {

struct Outcome {
  int error = 0;
  std::uint64_t rows = 0;
  WireHash hash;
  std::vector<std::string> bodies;
};

// Feeds the message in pieces of `piece` bytes, as packets would bring it; keeps what the scanner leaves.
Outcome scan(const std::string& message, std::size_t piece = SIZE_MAX, std::vector<bool> refuses_null = {},
             std::size_t rows_max = 3) {
  Outcome outcome;
  BulkScanner scanner;
  std::string kept;
  std::size_t fed = 0;
  bool bound = false;
  while (true) {
    std::size_t taken = 0;
    const bool ended = fed == message.size();
    const BulkScan state = bound ? scanner.scan_rows(as_bytes(kept), ended, rows_max, taken)
                                 : scanner.scan_columns(as_bytes(kept), ended, taken);
    if (state == BulkScan::fault) {
      outcome.error = scanner.fault() ? scanner.fault().number : 515;
      return outcome;
    }
    std::size_t rows = 0;
    if (bound) {
      for (const RowSpan& row : scanner.rows()) outcome.bodies.push_back(kept.substr(row.begin, row.end - row.begin));
      rows = scanner.rows().size();
      const WireHash hash = scanner.take_hash();
      outcome.hash.add(hash.low, hash.high);
    }
    kept.erase(0, taken);
    if (!bound && state == BulkScan::ended) {
      scanner.bind(refuses_null, true);
      bound = true;
      continue;
    }
    if (state == BulkScan::ended) break;
    if (rows == rows_max) continue;
    cr_assert_not(ended, "need_more at the end");
    const std::size_t n = std::min(piece, message.size() - fed);
    kept += message.substr(fed, n);
    fed += n;
  }
  outcome.rows = scanner.rows_scanned();
  return outcome;
}

// One column of a type (TYPE_INFO in hex), one row with this value, then DONE. The error's number, 0 = taken.
int one_value(std::string_view type, std::string_view value) {
  const std::string head = from_hex("81 01 00 00 00 00 00 09 00") + from_hex(type) + from_hex("01 63 00 D1");
  const std::string message = head + from_hex(value) + from_hex("FD 00 00 00 00 00 00 00 00 00 00 00 00");
  const int whole = scan(message).error;
  cr_expect_eq(scan(message, 1).error, whole, "byte by byte gives the same: %.*s", static_cast<int>(value.size()),
               value.data());
  return whole;
}

const char* const five_columns =
    "81 05 00"
    "00 00 00 00 09 00 26 04 01 69 00"
    "00 00 00 00 09 00 E7 14 00 09 04 D0 00 34 01 73 00"
    "00 00 00 00 09 00 6A 09 0A 02 01 64 00"
    "00 00 00 00 09 00 2A 07 01 74 00"
    "00 00 00 00 09 00 A5 FF FF 01 62 00";
const char* const row_1 =
    "D1 04 01 00 00 00 04 00 61 00 62 00 09 01 39 30 00 00 00 00 00 00 08 87 EE 97 76 69 07 24 0B"
    "02 00 00 00 00 00 00 00 02 00 00 00 CA FE 00 00 00 00";
const char* const row_2 = "D1 00 FF FF 00 00 FF FF FF FF FF FF FF FF";
const char* const row_3 =
    "D1 04 02 00 00 00 00 00 09 01 00 00 00 00 00 00 00 00 08 00 00 00 00 00 00 00 00"
    "00 00 00 00 00 00 00 00 00 00 00 00";

std::string five(std::string_view rows) { return from_hex(five_columns) + from_hex(rows); }

constexpr const char* int_type = "26 04";
constexpr const char* nvarchar_10 = "E7 14 00 09 04 D0 00 34";
constexpr const char* varchar_3 = "A7 03 00 09 04 D0 00 34";
constexpr const char* varbinary_max = "A5 FF FF";
constexpr const char* nvarchar_max = "E7 FF FF 09 04 D0 00 34";

}  // namespace

Test(bulk_scan, the_vector_gives_three_rows_however_it_is_cut) {
  const std::string message = five(std::string(row_1) + row_2 + row_3 + "FD 00 00 00 00 00 00 00 00 00 00 00 00");
  const Outcome whole = scan(message);
  cr_assert_eq(whole.error, 0);
  cr_assert_eq(whole.rows, 3u);
  cr_expect_eq(whole.bodies.at(0), from_hex(row_1).substr(1));
  cr_expect_eq(whole.bodies.at(1), from_hex(row_2).substr(1));
  for (std::size_t piece = 1; piece < message.size(); ++piece) {
    const Outcome cut = scan(message, piece, {}, 1 + piece % 3);
    cr_expect_eq(cut.rows, 3u, "pieces of %zu", piece);
    cr_expect(cut.bodies == whole.bodies, "pieces of %zu", piece);
    cr_expect(cut.hash.low == whole.hash.low && cut.hash.high == whole.hash.high, "pieces of %zu", piece);
  }
}

Test(bulk_scan, the_final_done_may_be_missing_or_short) {
  for (const char* done : {"", "FD", "FD 00 00 00 00 00 00 00 00", "FD 00 00 00 00 00 00 00 00 00 00 00 00",
                           "FD 10 00 C3 00 02 00 00 00 00 00 00 00"}) {
    const Outcome got = scan(five(std::string(row_1) + row_2 + done));
    cr_expect_eq(got.error, 0, "done \"%s\"", done);
    cr_expect_eq(got.rows, 2u, "done \"%s\"", done);
  }
}

Test(bulk_scan, a_message_may_have_no_rows) {
  cr_assert_eq(scan(five("FD 00 00 00 00 00 00 00 00 00 00 00 00")).error, 0);
}

Test(bulk_scan, columns_must_come_first) {
  cr_expect_eq(scan("").error, 4894);
  cr_expect_eq(scan(from_hex(row_1)).error, 4894);
  cr_expect_eq(scan(from_hex("FD 00 00 00 00 00 00 00 00 00 00 00 00")).error, 4894);
  cr_expect_eq(scan(from_hex("81 00 00")).error, 4894);
  cr_expect_eq(scan(from_hex("81 FF FF")).error, 4894);
}

Test(bulk_scan, columns_cut_short_are_a_premature_end) {
  const std::string columns = from_hex(five_columns);
  for (std::size_t cut = 1; cut < columns.size(); ++cut)
    cr_expect_eq(scan(columns.substr(0, cut)).error, 4804, "at %zu", cut);
}

Test(bulk_scan, types_that_bulk_may_not_use) {
  for (const char* type : {"37 05 09 02", "3F 05 09 02", "F1 00", "1F"}) {
    cr_expect_eq(scan(from_hex("81 01 00 00 00 00 00 09 00") + from_hex(type) + from_hex("01 63 00")).error, 4816, "%s",
                 type);
  }
  cr_expect_eq(scan(from_hex("81 01 00 00 00 00 00 09 00 99 01 63 00")).error, 4816, "an unknown type");
}

Test(bulk_scan, columns_are_compared_with_the_statement) {
  const auto compare = [](std::string_view declared, std::uint16_t declared_flags, std::string_view sent,
                          std::uint16_t sent_flags) {
    const auto column = [](std::string_view type, std::uint16_t flags) {
      const std::string wire = from_hex(type);
      ByteReader reader(as_bytes(wire));
      ColumnMeta meta;
      std::string why;
      cr_assert(read_type_info(reader, meta.type, MetaPlace::bulk, why) == Parsed::ok, "%s", why.c_str());
      meta.flags = flags;
      return std::vector<ColumnMeta>{meta};
    };
    return compare_bulk_columns(column(declared, declared_flags), column(sent, sent_flags)).number;
  };
  cr_expect_eq(compare("26 04", 1, "26 04", 9), 0);
  cr_expect_eq(compare("26 04", 0, "38", 8), 0, "the fixed form of the same type");
  cr_expect_eq(compare("26 04", 1, "26 08", 9), 4816, "another width");
  cr_expect_eq(compare("26 04", 1, "E7 14 00 09 04 D0 00 34", 9), 4816, "another type");
  cr_expect_eq(compare("26 04", 0, "26 04", 9), 4816, "nullable where the column is not");
  cr_expect_eq(compare("26 04", 1, "26 04", 8), 4816, "not nullable where the column is");
  cr_expect_eq(compare("26 04", 0, "26 04", 0x8004), 0, "not known");
  cr_expect_eq(compare("E7 14 00 09 04 D0 00 34", 1, "E7 28 00 09 04 D0 00 34", 1), 4816, "nvarchar(20) for (10)");
  cr_expect_eq(compare("E7 FF FF 09 04 D0 00 34", 1, "E7 40 1F 09 04 D0 00 34", 1), 4816, "sized for max");
  cr_expect_eq(compare("A7 0A 00 09 04 D0 00 34", 1, "AF 0A 00 09 04 D0 00 34", 1), 4816, "char for varchar");
  cr_expect_eq(compare("6A 09 0A 02", 1, "6C 09 0A 02", 1), 0, "numeric is decimal");
  cr_expect_eq(compare("6A 09 0A 02", 1, "6A 06 0A 02", 1), 0, "FreeTDS's widths");
  cr_expect_eq(compare("6A 09 0A 02", 1, "6A 09 0A 03", 1), 4875);
  cr_expect_eq(compare("6A 09 0A 02", 1, "6A 09 0B 02", 1), 4875);
  cr_expect_eq(compare("2A 07", 1, "2A 03", 1), 4875);
  cr_expect_eq(compare_bulk_columns({}, std::vector<ColumnMeta>(1)).number, 4816, "one too many");
}

Test(bulk_scan, rows_cut_short_are_a_premature_end) {
  const std::string message = five(row_1);
  const std::size_t columns = from_hex(five_columns).size();
  for (std::size_t cut = columns + 1; cut < message.size(); ++cut) {
    cr_expect_eq(scan(message.substr(0, cut)).error, 4804, "at %zu", cut);
  }
}

Test(bulk_scan, other_tokens_are_refused) {
  cr_expect_eq(scan(five(std::string(row_1) + "00")).error, 4807);
  cr_expect_eq(scan(five("D2 1F")).error, 4807, "NBCROW is for servers only");
  cr_expect_eq(scan(five("81 00 00")).error, 4807);
  // An empty chunk and its end behind an empty value: four stray bytes, the mistake of several clients.
  cr_expect_eq(one_value(varbinary_max, "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00"), 4807);
}

Test(bulk_scan, lengths) {
  cr_expect_eq(one_value(int_type, "04 2A 00 00 00"), 0);
  cr_expect_eq(one_value(int_type, "02 2A 00"), 4815);
  cr_expect_eq(one_value(int_type, "08 2A 00 00 00 00 00 00 00"), 4815);
  cr_expect_eq(one_value("68 01", "02 01 00"), 4815);
  cr_expect_eq(one_value(varchar_3, "03 00 61 62 63"), 0);
  cr_expect_eq(one_value(varchar_3, "04 00 61 62 63 64"), 4815);
  cr_expect_eq(one_value(nvarchar_10, "16 00 61 00 61 00 61 00 61 00 61 00 61 00 61 00 61 00 61 00 61 00 61 00"), 4815);
  cr_expect_eq(one_value("2A 07", "07 FB 29 B3 02 07 24 0B"), 4815, "a value of another scale");
  cr_expect_eq(one_value("28", "04 07 24 0B 00"), 4815);
  cr_expect_eq(one_value("24 10", "0F 33 22 11 00 55 44 77 66 88 99 AA BB CC DD EE"), 4815);
  cr_expect_eq(one_value("6A 05 09 02", "09 01 39 30 00 00 00 00 00 00"), 4815, "wider than declared");
  cr_expect_eq(one_value("6A 11 26 0A", "05 00 39 30 00 00"), 0, "narrower than declared");
  cr_expect_eq(one_value("6A 06 0C 04", "06 00 39 30 00 00 00"), 0, "FreeTDS's width for 12 digits");
  cr_expect_eq(one_value("6A 11 26 0A", "01 00"), 4815, "a sign without digits");
}

Test(bulk_scan, unicode_has_whole_units) {
  cr_expect_eq(one_value(nvarchar_10, "03 00 61 00 62"), 4895);
  cr_expect_eq(one_value(nvarchar_max, "03 00 00 00 00 00 00 00 03 00 00 00 61 00 62 00 00 00 00"), 4895);
  // A unit may be cut by the chunks.
  cr_expect_eq(one_value(nvarchar_max, "FE FF FF FF FF FF FF FF 01 00 00 00 61 03 00 00 00 00 62 00 00 00 00 00"), 0);
}

Test(bulk_scan, chunks_must_add_up) {
  cr_expect_eq(one_value(varbinary_max, "03 00 00 00 00 00 00 00 03 00 00 00 61 62 63 00 00 00 00"), 0);
  cr_expect_eq(one_value(varbinary_max, "FE FF FF FF FF FF FF FF 03 00 00 00 61 62 63 00 00 00 00"), 0);
  cr_expect_eq(one_value(varbinary_max, "FE FF FF FF FF FF FF FF 00 00 00 00"), 0, "empty, total unknown");
  cr_expect_eq(one_value(varbinary_max, "00 00 00 00 00 00 00 00 00 00 00 00"), 0, "empty");
  cr_expect_eq(one_value(varbinary_max, "FF FF FF FF FF FF FF FF"), 0, "NULL");
  cr_expect_eq(one_value(varbinary_max, "04 00 00 00 00 00 00 00 03 00 00 00 61 62 63 00 00 00 00"), 4804, "too few");
  cr_expect_eq(one_value(varbinary_max, "02 00 00 00 00 00 00 00 03 00 00 00 61 62 63 00 00 00 00"), 4897, "too many");
  cr_expect_eq(one_value(varbinary_max, "00 00 00 80 00 00 00 00 01 00 00 00 61 00 00 00 00"), 4897, "more than 2 GB");
}

Test(bulk_scan, values_out_of_range) {
  cr_expect_eq(one_value("6D 08", "08 00 00 00 00 00 00 F8 7F"), 7339, "NaN");
  cr_expect_eq(one_value("6D 04", "04 00 00 80 7F"), 7339, "infinity");
  cr_expect_eq(one_value("3E", "00 00 00 00 00 00 F0 FF"), 7339, "infinity without a length byte");
  cr_expect_eq(one_value("6A 05 02 00", "05 01 63 00 00 00"), 0, "99 in decimal(2,0)");
  cr_expect_eq(one_value("6A 05 02 00", "05 01 64 00 00 00"), 7339, "100 in decimal(2,0)");
  cr_expect_eq(one_value("6A 05 02 00", "05 02 01 00 00 00"), 7339, "a sign that is none");
  cr_expect_eq(one_value("6A 11 26 00", "11 01 FF FF FF FF 3F 22 8A 09 7A C4 86 5A A8 4C 3B 4B"), 0, "10^38 - 1");
  cr_expect_eq(one_value("6A 11 26 00", "11 01 00 00 00 00 40 22 8A 09 7A C4 86 5A A8 4C 3B 4B"), 7339, "10^38");
  cr_expect_eq(one_value("28", "03 DA B9 37"), 0, "9999-12-31");
  cr_expect_eq(one_value("28", "03 DB B9 37"), 7339, "the day behind it");
  cr_expect_eq(one_value("29 07", "05 FF BF 69 2A C9"), 0, "23:59:59.9999999");
  cr_expect_eq(one_value("29 07", "05 00 C0 69 2A C9"), 7339, "24:00");
  cr_expect_eq(one_value("29 00", "03 80 51 01"), 7339, "24:00:00");
  cr_expect_eq(one_value("2A 00", "06 80 51 01 07 24 0B"), 7339);
  cr_expect_eq(one_value("6F 08", "08 7F 24 2D 00 FF 81 8B 01"), 0, "the last datetime");
  cr_expect_eq(one_value("6F 08", "08 AC 8E 00 00 00 82 8B 01"), 7339, "ticks of a whole day");
  cr_expect_eq(one_value("6F 08", "08 45 2E FF FF 00 00 00 00"), 7339, "1752-12-31");
  cr_expect_eq(one_value("6F 04", "04 FF FF A0 05"), 7339, "minute 1440");
  cr_expect_eq(one_value("2B 07", "0A 87 B2 DF 5C 3B 07 24 0B 4A 01"), 0);
  cr_expect_eq(one_value("2B 07", "0A 87 B2 DF 5C 3B 07 24 0B 49 03"), 7339, "an offset of 841 minutes");
  cr_expect_eq(one_value("2B 00", "08 00 00 00 00 00 00 FF FF"), 7339, "local time before year 1");
  cr_expect_eq(one_value("2B 00", "08 7F 51 01 DA B9 37 01 00"), 7339, "local time after 9999");
  cr_expect_eq(one_value("68 01", "01 02"), 7339, "a bit of 2");
}

Test(bulk_scan, text_pointers) {
  const char* const text = "23 FF FF FF 7F 09 04 D0 00 34 01 00 74 00";
  cr_expect_eq(
      one_value(text, "10 FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF FF 02 00 00 00 68 69"),
      0);
  cr_expect_eq(one_value(text, "00"), 0, "NULL");
  cr_expect_eq(one_value(text, "08 FF FF FF FF FF FF FF FF"), 4813);
}

Test(bulk_scan, variants) {
  const char* const variant = "62 49 1F 00 00";
  for (const char* good :
       {"06 00 00 00 38 00 05 00 00 00", "0D 00 00 00 E7 07 09 04 D0 00 34 14 00 61 00 62 00",
        "09 00 00 00 6C 02 09 02 01 7B 00 00 00", "08 00 00 00 29 01 07 87 EE 97 76 69", "05 00 00 00 28 00 07 24 0B",
        "03 00 00 00 32 00 01", "00 00 00 00", "06 00 00 00 A5 02 04 00 DE AD"}) {
    cr_expect_eq(one_value(variant, good), 0, "%s", good);
  }
  cr_expect_eq(one_value(variant, "05 00 00 00 38 00 05 00 00"), 4815, "an int of three bytes");
  cr_expect_eq(one_value(variant, "01 00 00 00 38"), 4815, "no room for its head");
  cr_expect_eq(one_value(variant, "06 00 00 00 99 00 05 00 00 00"), 7339, "an unknown base type");
  cr_expect_eq(one_value(variant, "FF FF 00 00 38"), 4815, "larger than a variant may be");
}

Test(bulk_scan, fixed_types_have_no_length_byte) {
  const Outcome got =
      scan(from_hex("81 01 00 00 00 00 00 05 00 32 02 63 00 31 00 D1 00 FD 00 00 00 00 00 00 00 00 00 00 00 00"));
  cr_assert_eq(got.error, 0);
  cr_assert_eq(got.rows, 1u);
}

Test(bulk_scan, null_is_refused_where_the_target_says_so) {
  const std::string message = five(std::string(row_1) + row_2);
  cr_expect_eq(scan(message, SIZE_MAX, {false, true, false, false, false}).error, 515);
  cr_expect_eq(scan(message, 1, {false, false, false, false, true}).error, 515);
  cr_expect_eq(scan(five(row_1), SIZE_MAX, {true, true, true, true, true}).error, 0);
}

Test(bulk_scan, the_hash_does_not_see_how_values_are_chunked) {
  const std::string head = "81 01 00 00 00 00 00 09 00 E7 FF FF 09 04 D0 00 34 01 63 00 D1";
  const auto hash = [&](const char* value) {
    const Outcome got = scan(from_hex(head + value));
    cr_assert_eq(got.error, 0, "%s", value);
    return fmt::format("{:x}{:016x}", got.hash.high, got.hash.low);
  };
  const std::string one = hash("04 00 00 00 00 00 00 00 04 00 00 00 61 00 62 00 00 00 00 00");
  cr_expect_eq(hash("FE FF FF FF FF FF FF FF 04 00 00 00 61 00 62 00 00 00 00 00"), one);
  cr_expect_eq(hash("04 00 00 00 00 00 00 00 01 00 00 00 61 03 00 00 00 00 62 00 00 00 00 00"), one);
  cr_expect_neq(hash("04 00 00 00 00 00 00 00 04 00 00 00 61 00 63 00 00 00 00 00"), one);
  cr_expect_neq(hash("FF FF FF FF FF FF FF FF"), hash("00 00 00 00 00 00 00 00 00 00 00 00"));
  cr_expect_eq(hash("FE FF FF FF FF FF FF FF 00 00 00 00"), hash("00 00 00 00 00 00 00 00 00 00 00 00"));
}

Test(bulk_scan, takes_what_tedious_loaded) {
  PacketReader reader;
  std::string message;
  for (const std::string& packet : capture_packets("07-bulk-load-13-columns.tds", 'C')) {
    reader.feed(as_bytes(packet));
    if (!reader.message_ended()) continue;
    if (reader.type() == PacketType::bulk) message = as_text(reader.payload());
    reader.next_message();
  }
  const Outcome whole = scan(message, SIZE_MAX, {}, 7);
  cr_assert_eq(whole.error, 0);
  cr_assert_eq(whole.rows, 60u);
  const Outcome cut = scan(message, 997, {}, 7);
  cr_expect(cut.bodies == whole.bodies);
}

// Binary COPY: whatever a server sends is decoded or refused, without a read beyond its bytes.
//
// The input: a byte that picks the column set, then messages, each behind a little-endian length of two bytes.
#include <cstdlib>

#include "base/error.hpp"
#include "postgres/wire/copy_decoder.hpp"

using namespace rowferry;
using postgres::wire::CopyColumn;
using postgres::wire::CopyDecoder;
using postgres::wire::Form;
using rows::Type;
using rows::TypeId;

namespace {

CopyColumn column(Form form, const Type& type, rows::OnLoss action) {
  return {.name = "c", .form = form, .type = type, .policy = {action, {}}};
}

std::vector<CopyColumn> columns(unsigned pick) {
  const auto action = static_cast<rows::OnLoss>(pick % 4);
  const std::vector<CopyColumn> all{
      column(Form::boolean, Type::of(TypeId::boolean), action),
      column(Form::int32, Type::of(TypeId::int32), action),
      column(Form::numeric, Type::decimal(38, 18), action),
      column(Form::numeric, Type::decimal(5, 2), action),
      column(Form::bytes, Type::text(), action),
      column(Form::jsonb, Type::of(TypeId::json), action),
      column(Form::bit_string, Type::text(), action),
      column(Form::char_byte, Type::text(), action),
      column(Form::date, Type::of(TypeId::date), action),
      column(Form::timestamp, Type::timestamp(rows::TimeUnit::micro, 6, true), action),
      column(Form::uuid, Type::of(TypeId::uuid), action),
      column(Form::money, Type::decimal(19, 2), action),
  };
  const std::size_t first = pick / 4 % all.size();
  const std::size_t count = 1 + pick % 5;
  std::vector<CopyColumn> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(all[(first + i) % all.size()]);
  return chosen;
}

void check(const rows::Batch& batch) {
  for (std::size_t c = 0; c < batch.columns(); ++c) {
    const rows::ColumnView& view = batch.column(c);
    const TypeId id = batch.schema().fields[c].type.id;
    if (!rows::is_variable(id)) continue;
    for (std::size_t row = 0; row < batch.rows(); ++row) {
      if (view.offsets[row + 1] < view.offsets[row]) std::abort();
    }
  }
}

void decode_all(CopyDecoder& decoder, rows::Batch& batch, ByteReader& input) {
  std::vector<std::vector<std::uint8_t>> held;  // exact sizes: a read beyond is seen by the sanitizer
  std::size_t done = 0;
  while (input.left() > 2 && done < 4096) {
    const ByteView message = input.bytes(std::min<std::size_t>(input.u16(), input.left()));
    held.emplace_back(message.begin(), message.end());
    if (decoder.accept(held.back()) == CopyDecoder::Got::malformed) return;
    if (decoder.pending() != CopyDecoder::block_rows && input.left() > 2) continue;
    const std::size_t pending = decoder.pending();
    if (!decoder.decode(batch, done)) return;
    done += pending;
    held.clear();
  }
  batch.seal(done);
  check(batch);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  ByteReader input({data, size});
  const std::vector<CopyColumn> plan = columns(input.u8());
  rows::Schema schema;
  for (const CopyColumn& one : plan) schema.fields.push_back({one.name, one.type, true});
  rows::Batch batch(std::make_shared<const rows::Schema>(std::move(schema)));
  CopyDecoder decoder(plan);
  try {
    decode_all(decoder, batch, input);
  } catch (const Error& error) {
    if (error.category() != Category::data) throw;  // a loss under the policy `error`
  }
  return 0;
}

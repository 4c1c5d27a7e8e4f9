// Text conversions agree with one another on any bytes, and never touch memory that is not theirs.
#include <cstdlib>

#include "base/text.hpp"

namespace {

using namespace rowferry;

void require(bool good) {
  if (!good) std::abort();
}

void utf8(ByteView bytes) {
  const std::string_view input = as_text(bytes);
  const bool valid = text::find_invalid_utf8(bytes) == text::npos;
  const std::string utf16 = text::to_utf16le(input);
  ByteBuffer back;
  require(text::append_utf8(back, as_bytes(utf16)) == text::npos);
  if (!valid) return;
  require(as_text(back.view()) == input);
  require(utf16.size() == 2 * text::utf16_units(input));
  for (std::size_t n = 0; n < 8; ++n) {
    require(text::valid_utf8(text::cut_bytes(input, n)));
    require(text::utf16_units(text::cut_utf16_units(input, n)) <= n);
    require(text::code_points(text::cut_code_points(input, n)) <= n);
  }
}

void utf16(ByteView bytes) {
  ByteBuffer strict;
  ByteBuffer lenient;
  const std::size_t bad = text::append_utf8(strict, bytes);
  const std::size_t faults = text::append_utf8_lenient(lenient, bytes);
  require((bad == text::npos) == (faults == 0));
  require(text::find_invalid_utf8(lenient.view()) == text::npos);
}

void code_page(ByteView bytes, std::uint16_t number) {
  const text::CodePage& page = text::CodePage::get(number);
  ByteBuffer strict;
  ByteBuffer lenient;
  const std::size_t bad = page.decode(strict, bytes);
  const std::size_t faults = page.decode_lenient(lenient, bytes);
  require((bad == text::npos) == (faults == 0));
  require(text::find_invalid_utf8(lenient.view()) == text::npos);
  ByteBuffer again;
  if (bad == text::npos) {
    require(page.encode(again, as_text(strict.view())) == text::npos);
    require(page.encoded_length(as_text(strict.view())) == again.size());
  }
  const std::string_view input = as_text(bytes);
  ByteBuffer encoded;
  require(page.encode(encoded, input) == page.find_unencodable(input));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static constexpr std::uint16_t pages[] = {437, 874, 932, 936, 949, 950, 1252, 1255, 1258, 65001};
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  const ByteView bytes{data + 1, size - 1};
  if (choice < 2) {
    choice == 0 ? utf8(bytes) : utf16(bytes);
  } else {
    code_page(bytes, pages[choice % std::size(pages)]);
  }
  return 0;
}

// Any text either is refused with an Error(input), or reads back the same from what is written.
#include <cstdlib>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "base/json.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rowferry;
  try {
    const Json document = Json::parse(as_text({data, size}));
    if (!(Json::parse(document.text(2)) == document)) std::abort();
  } catch (const Error& error) {
    if (error.category() != Category::input) std::abort();
  }
  return 0;
}

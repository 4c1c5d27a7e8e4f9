// Any text either is refused with an Error(input) that says where, or its filled spec is a spec that fills to the same.
#include <cstdlib>

#include "base/bytes.hpp"
#include "base/error.hpp"
#include "transfer/spec.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace rowferry;
  transfer::Spec spec;
  try {
    spec = transfer::parse_spec(as_text({data, size}));
  } catch (const Error& error) {
    if (error.category() != Category::input || error.detail().empty()) std::abort();
    return 0;
  }
  transfer::fill_from_profile(spec);
  const std::string filled = transfer::to_json(spec);
  transfer::Spec again = transfer::parse_spec(filled);
  transfer::fill_from_profile(again);
  if (transfer::to_json(again) != filled) std::abort();
  return 0;
}

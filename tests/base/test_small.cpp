// Secret, time and ids.
#include <criterion/criterion.h>
#include <fmt/format.h>

#include <set>
#include <sstream>

#include "base/id.hpp"
#include "base/secret.hpp"
#include "base/time.hpp"
#include "tests/support/expect.hpp"

using namespace rowferry;

template <class T>
concept Streams = requires(std::ostream& out, const T& value) { out << value; };
static_assert(!Streams<Secret>);
static_assert(!fmt::is_formattable<Secret>::value);
static_assert(!std::is_copy_constructible_v<Secret>);
static_assert(!std::is_convertible_v<Secret, std::string_view> && !std::is_convertible_v<Secret, std::string>);

Test(secret, reveals_only_when_asked_and_moves_whole) {
  Secret first("hunter2");
  cr_expect(first.reveal() == "hunter2");
  const Secret moved = std::move(first);
  cr_expect(first.empty());  // NOLINT(bugprone-use-after-move): that is the test
  cr_expect(moved.reveal() == "hunter2");
  cr_expect(Secret().empty());
}

Test(secret, compares_whole) {
  const Secret secret("hunter2");
  cr_expect(secret.equals("hunter2"));
  cr_expect(!secret.equals("hunter"));
  cr_expect(!secret.equals("hunter2hunter2"));
  cr_expect(!secret.equals(""));
  cr_expect(!secret.equals("Hunter2"));
  cr_expect(Secret().equals(""));
  cr_expect(!Secret().equals("x"));
}

Test(time, utc_text_and_back) {
  const time::WallTime at = time::WallTime(std::chrono::microseconds(1'796'064'000'123'456));
  EXPECT_TEXT(time::utc_text(at), "2026-11-30T18:40:00.123Z");
  EXPECT_TEXT(time::utc_text(at, 0), "2026-11-30T18:40:00Z");
  cr_expect(time::parse_utc("2026-11-30T18:40:00.123456Z") == at);
  cr_expect(time::parse_utc("2026-11-30T18:40:00.5Z") == at + std::chrono::microseconds(500'000 - 123'456));
  for (const char* bad : {"", "2026-11-30", "2026-11-30T18:40:00", "2026-11-30T24:00:00Z", "2026-02-30T00:00:00Z",
                          "2026-11-30T18:40:00.Z", "2026-11-30T18:40:00.1234567Z", "2026-11-30T18:40:00Zx",
                          "2026-11-30 18:40:00Z", "2026-11-30T18:60:00Z", "+026-11-30T18:40:00Z"}) {
    cr_expect(!time::parse_utc(bad), "%s", bad);
  }
}

Test(time, the_stopwatch_runs_forward) {
  const time::Stopwatch watch;
  const double first = watch.seconds();
  cr_expect_geq(first, 0);
  cr_expect_geq(watch.seconds(), first);
}

Test(transfer_id, sorts_by_time_and_differs) {
  const time::WallTime at = time::now();
  const std::string early = new_transfer_id(at);
  const std::string late = new_transfer_id(at + std::chrono::milliseconds(1));
  cr_expect_lt(early.compare(late), 0);
  cr_expect(is_transfer_id(early));
  std::set<std::string> seen;
  for (int i = 0; i < 1000; ++i) cr_assert(seen.insert(new_transfer_id(at)).second);
}

Test(transfer_id, refuses_other_forms) {
  for (const char* bad : {"", "t", "../../../etc/passwd1", "T0000000000000000000", "t000000000000000000",
                          "t00000000000000000000", "x0000000000000000000", "t000000000000000000'"}) {
    cr_expect(!is_transfer_id(bad), "%s", bad);
  }
}

Test(id, fingerprints_tell_texts_apart) {
  EXPECT_TEXT(fingerprint(""), "6c62272e07bb014262b821756295c58d");
  EXPECT_TEXT(fingerprint("a"), "d228cb696f1a8caf78912b704e4a8964");
  cr_expect_neq(fingerprint("one"), fingerprint("two"));
}

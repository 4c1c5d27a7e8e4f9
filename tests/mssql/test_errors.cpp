#include "mssql/errors.hpp"
#include "tests/support/error_of.hpp"

using namespace rowferry;
using namespace rowferry::mssql;

namespace {
Error of(std::string number) {
  ServerFault fault;
  fault.number = std::move(number);
  fault.message = "what the server said";
  Error error(Category::server, "server_error", "what the server said");
  error.with_fault(std::move(fault)).with_column("c").with_row(7);
  return explained(error);
}
}  // namespace

Test(server_errors, get_a_code_and_a_hint) {
  for (const auto* number : {"18456", "4060", "1205", "1222", "2627", "547", "9002", "1105", "229", "262"}) {
    const Error error = of(number);
    cr_expect(not error.hint().empty(), "%s", number);
    cr_expect(error.code() != "server_error", "%s", number);
    cr_expect(error.detail() == "what the server said");
    cr_expect(error.fault()->number == number);
    cr_expect(error.context().column == "c" && error.context().row == 7U);
  }
  cr_expect(of("229").category() == Category::forbidden);
  cr_expect(of("2627").code() == "duplicate_key" && of("2627").category() == Category::data);
}

Test(server_errors, only_what_may_pass_is_transient) {
  cr_expect(of("1205").transient());
  cr_expect(of("1222").transient());
  cr_expect(of("40613").transient());
  cr_expect(not of("2627").transient());
  cr_expect(not of("9002").transient());
  // Azure's wrapping: transient only where the error inside is
  cr_expect(of("40197").code() == "server_error" && not of("40197").transient());
  Error busy(Category::server, "server_error", "x");
  busy.with_fault({.number = "40197"}).mark_transient();
  cr_expect(explained(busy).code() == "server_busy" && explained(busy).transient());
}

Test(server_errors, others_stay_as_they_are) {
  const Error error = of("50000");
  cr_expect(error.code() == "server_error" && error.hint().empty());
  cr_expect_eq(fault_number(error), 50000);
  cr_expect_eq(fault_number(Error(Category::timeout, "timeout", "x")), 0);
}

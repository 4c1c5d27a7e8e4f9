// The measure for the source side: a bare nonblocking libpq loop that receives the rows of one COPY and frees them.
//
//   libpq_drain DSN "COPY (SELECT …) TO STDOUT (FORMAT binary)"
#include <libpq-fe.h>
#include <poll.h>

#include <cstdint>
#include <cstdio>

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: libpq_drain DSN COPY-STATEMENT\n");
    return 2;
  }
  PGconn* conn = PQconnectdb(argv[1]);
  if (PQstatus(conn) != CONNECTION_OK) {
    std::fprintf(stderr, "%s", PQerrorMessage(conn));
    return 1;
  }
  PGresult* started = PQexec(conn, argv[2]);
  if (PQresultStatus(started) != PGRES_COPY_OUT) {
    std::fprintf(stderr, "%s", PQerrorMessage(conn));
    return 1;
  }
  PQclear(started);
  PQsetnonblocking(conn, 1);
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;
  while (true) {
    char* row = nullptr;
    const int got = PQgetCopyData(conn, &row, 1);
    if (got > 0) {
      ++rows;
      bytes += static_cast<std::uint64_t>(got);
      PQfreemem(row);
    } else if (got == 0) {
      pollfd wait{.fd = PQsocket(conn), .events = POLLIN, .revents = 0};
      poll(&wait, 1, -1);
      PQconsumeInput(conn);
    } else {
      break;
    }
  }
  std::printf("%llu messages, %llu bytes\n", static_cast<unsigned long long>(rows),
              static_cast<unsigned long long>(bytes));
  PQfinish(conn);
  return 0;
}

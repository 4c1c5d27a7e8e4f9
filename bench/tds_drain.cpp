// The measure for the route from SQL Server: receives the answer of one SELECT, strips the packets and sends the same
// bytes on to a socket whose other end drops them. Nothing is decoded. Bytes and seconds as JSON.
//
//   BENCH_PASSWORD=… tds_drain HOST PORT DATABASE USER "SELECT …"
//
// The dropping end is a process of its own that nobody waits for, so that its CPU is not counted as this one's.
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "tds/wire/login7.hpp"
#include "tds/wire/packet.hpp"
#include "tds/wire/prelogin.hpp"

namespace {

using namespace rowferry;  // NOLINT(google-build-using-namespace): a program of its own

constexpr std::size_t packet_bytes = 32764;
constexpr std::size_t piece_bytes = 128 * 1024;

[[noreturn]] void fail(const std::string& what) { throw std::runtime_error(what); }

sockaddr_in loopback(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = loopback(port);
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) fail("cannot connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

// A connection to a new process that reads and drops.
int open_sink() {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address = loopback(0);
  socklen_t size = sizeof address;
  if (bind(listener, reinterpret_cast<const sockaddr*>(&address), size) != 0 || listen(listener, 1) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size) != 0)
    fail("cannot listen");
  const pid_t child = fork();
  if (child < 0) fail("cannot fork");
  if (child == 0) {
    // Whoever waits for this program's output must not wait for the dropping end.
    const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int fd : {0, 1, 2}) dup2(nothing, fd);
    const int fd = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    std::vector<std::uint8_t> part(piece_bytes);
    while (recv(fd, part.data(), part.size(), 0) > 0) {
    }
    _exit(0);
  }
  const int sink = connect_to(ntohs(address.sin_port));
  close(listener);
  return sink;
}

void send_all(int fd, ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) fail("cannot send");
    bytes = bytes.subspan(static_cast<std::size_t>(sent));
  }
}

void request(int fd, tds::PacketType type, const ByteBuffer& body, std::size_t size) {
  tds::PacketWriter writer(size);
  writer.begin(type);
  writer.write(body.view());
  writer.finish();
  send_all(fd, writer.ready());
}

// Moves payload to the front of what was received; a header may be cut anywhere.
class Stripper {
 public:
  // Returns how many bytes of payload there are. ended() is true behind the message's last packet.
  std::size_t strip(std::uint8_t* bytes, std::size_t n) {
    std::size_t at = 0, kept = 0;
    while (at < n) {
      if (left_ == 0) {
        header_[have_++] = bytes[at++];
        if (have_ < tds::packet_header_bytes) continue;
        const tds::PacketHeader header = tds::load_header(header_);
        left_ = header.length - tds::packet_header_bytes;
        last_ = (header.status & tds::status_eom) != 0;
        have_ = 0;
        continue;
      }
      const std::size_t part = std::min(left_, n - at);
      std::memmove(bytes + kept, bytes + at, part);
      kept += part;
      at += part;
      left_ -= part;
    }
    return kept;
  }
  bool ended() const noexcept { return last_ && left_ == 0 && have_ == 0; }

 private:
  std::uint8_t header_[tds::packet_header_bytes] = {};
  std::size_t have_ = 0;
  std::size_t left_ = 0;
  bool last_ = false;
};

// One whole answer; its payload goes to `sink`, or nowhere (-1). Returns the bytes of payload.
std::uint64_t receive(int fd, int sink) {
  std::vector<std::uint8_t> part(piece_bytes);
  std::uint64_t bytes = 0;
  Stripper stripper;
  while (!stripper.ended()) {
    const ssize_t got = recv(fd, part.data(), part.size(), 0);
    if (got <= 0) fail("the server closed the connection");
    const std::size_t kept = stripper.strip(part.data(), static_cast<std::size_t>(got));
    if (sink >= 0) send_all(sink, {part.data(), kept});
    bytes += kept;
  }
  return bytes;
}

ByteBuffer batch_request(std::string_view sql) {
  ByteBuffer body;
  for (const std::uint32_t word : {22U, 18U}) body.put_le(word);
  body.put_le<std::uint16_t>(2);
  body.put_le<std::uint64_t>(0);
  body.put_le<std::uint32_t>(1);
  for (const char c : sql) body.put_le<std::uint16_t>(static_cast<unsigned char>(c));
  return body;
}

void drain(char** arguments, const char* password) {
  const int fd = connect_to(static_cast<std::uint16_t>(std::stoul(arguments[2])));
  ByteBuffer prelogin;
  tds::put_prelogin(prelogin, tds::PreloginEncryption::not_supported);
  request(fd, tds::PacketType::prelogin, prelogin, tds::packet_bytes_default);
  receive(fd, -1);
  ByteBuffer login;
  tds::put_login7(login, {.client_name = "bench",
                          .user = arguments[4],
                          .password = password,
                          .application_name = "tds_drain",
                          .server_name = arguments[1],
                          .database = arguments[3],
                          .packet_bytes = packet_bytes});
  request(fd, tds::PacketType::login7, login, tds::packet_bytes_default);
  receive(fd, -1);
  const int sink = open_sink();
  const auto began = std::chrono::steady_clock::now();
  request(fd, tds::PacketType::sql_batch, batch_request(arguments[5]), packet_bytes);
  const std::uint64_t bytes = receive(fd, sink);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  fmt::print("{{\"bytes\": {}, \"seconds\": {:.6f}}}\n", bytes, seconds);
}

}  // namespace

int main(int argc, char** argv) {
  const char* password = std::getenv("BENCH_PASSWORD");  // NOLINT(concurrency-mt-unsafe): one thread
  if (argc != 6 || password == nullptr) {
    fmt::print(stderr, "usage: BENCH_PASSWORD=... tds_drain 127.0.0.1 PORT DATABASE USER SELECT\n");
    return 2;
  }
  try {
    drain(argv, password);
    return 0;
  } catch (const std::exception& error) {
    fmt::print(stderr, "tds_drain: {}\n", error.what());
    return 1;
  }
}

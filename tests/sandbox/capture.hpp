// The client's packets of a recorded session.
#pragma once

#include <criterion/criterion.h>

#include <fstream>
#include <string>
#include <vector>

#include "tests/support/hex.hpp"

namespace rowferry::test {

// One string of bytes a packet, header included; `side` is 'C' or 'S'.
inline std::vector<std::string> capture_packets(const std::string& name, char side) {
  const std::string path = std::string(CAPTURES) + "/" + name;
  std::ifstream file(path);
  cr_assert(file.good(), "no capture %s", path.c_str());
  std::vector<std::string> packets;
  for (std::string line; std::getline(file, line);) {
    if (line.size() > 2 && line[0] == side && line[1] == ' ') packets.push_back(from_hex(line.substr(2)));
  }
  cr_assert(!packets.empty(), "capture %s has no packets", path.c_str());
  return packets;
}

}  // namespace rowferry::test

// Reading files that others have named: whole, never without end, never a folder.
#pragma once

#include <cstddef>
#include <string>

namespace rowferry {

enum class FileKind : unsigned char {
  any,      // pipes too, as a shell's <(…) gives them: reading waits for their writer
  regular,  // nothing that could wait
};

struct FileText {
  std::string text;
  std::string problem;  // why it could not be read ("Is a directory"); empty: `text` is all of it
};

// At most `most` bytes; a longer file (or one without end) is a problem, not a part of it. "-" is a name like any
// other.
FileText read_whole_file(const std::string& path, std::size_t most, FileKind kind);
// The same of an open descriptor, which stays open.
FileText read_whole_descriptor(int fd, std::size_t most);

}  // namespace rowferry

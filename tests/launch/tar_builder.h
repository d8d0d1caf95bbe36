// Builds tar archives byte by byte, also such that no honest tool would write.
#pragma once

#include <cstdio>
#include <cstring>
#include <string>
#include <string_view>

namespace tp::testing {

class TarBuilder {
 public:
  TarBuilder& File(std::string_view name, std::string_view content, unsigned mode = 0644) {
    Header(name, '0', content.size(), mode, "");
    bytes_ += content;
    bytes_.append((512 - content.size() % 512) % 512, '\0');
    return *this;
  }
  TarBuilder& Directory(std::string_view name, unsigned mode = 0755) { return Header(name, '5', 0, mode, ""); }
  TarBuilder& Symlink(std::string_view name, std::string_view target) { return Header(name, '2', 0, 0777, target); }
  TarBuilder& HardLink(std::string_view name, std::string_view target) { return Header(name, '1', 0, 0644, target); }
  TarBuilder& Special(std::string_view name, char type) { return Header(name, type, 0, 0644, ""); }

  // A pax header that gives the next entry this path.
  TarBuilder& PaxPath(std::string_view path) {
    size_t size = path.size() + 8;
    std::string record;
    do {
      record = std::to_string(size) + " path=" + std::string(path) + "\n";
    } while (record.size() != size && (size = record.size()));
    Header("pax", 'x', record.size(), 0644, "");
    bytes_ += record;
    bytes_.append((512 - record.size() % 512) % 512, '\0');
    return *this;
  }

  std::string Bytes() const { return bytes_ + std::string(1024, '\0'); }

 private:
  TarBuilder& Header(std::string_view name, char type, size_t size, unsigned mode, std::string_view target) {
    char header[512] = {};
    std::memcpy(header, name.data(), name.size());
    std::snprintf(header + 100, 8, "%07o", mode);
    std::snprintf(header + 108, 8, "%07o", 0);
    std::snprintf(header + 116, 8, "%07o", 0);
    std::snprintf(header + 124, 12, "%011zo", size);
    std::snprintf(header + 136, 12, "%011o", 1700000000);
    std::memset(header + 148, ' ', 8);
    header[156] = type;
    std::memcpy(header + 157, target.data(), target.size());
    std::memcpy(header + 257, "ustar\00000", 8);
    unsigned sum = 0;
    for (const char c : header) sum += static_cast<unsigned char>(c);
    std::snprintf(header + 148, 8, "%06o", sum);
    bytes_.append(header, sizeof header);
    return *this;
  }

  std::string bytes_;
};

}  // namespace tp::testing

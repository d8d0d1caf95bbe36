// Runs a fuzz target over files: `replay DIRECTORY...`. Each file is given as it is, and behind
// each of the bytes that tell the target what it is.
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace {

void RunOne(const std::string& bytes) {
  LLVMFuzzerTestOneInput(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size());
}

int RunFile(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
  RunOne(bytes);
  for (const char kind : {'\0', '\1', '\2'}) RunOne(kind + bytes);
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(argv[i])) {
      if (entry.is_regular_file()) files += RunFile(entry.path());
    }
  }
  std::printf("%d files\n", files);
  return files > 100 ? 0 : 1;
}

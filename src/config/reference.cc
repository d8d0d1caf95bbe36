#include "config/reference.h"

#include <set>

#include <fmt/format.h>

#include "config/registry_file.h"
#include "config/server_config.h"

namespace tp::config {
namespace {

using decode::FieldDoc;
using decode::RecordDoc;

class PageWriter {
 public:
  void Title(const std::string& text) { out_ += fmt::format("# {}\n\n", text); }
  void Paragraph(const std::string& text) { out_ += text + "\n\n"; }

  // A record, then the records of its keys that are not on the page yet.
  void Add(const RecordDoc& doc, int level) {
    if (!written_.insert(&doc).second) return;
    out_ += fmt::format("{} {}\n\n| key | value | default | meaning |\n| --- | --- | --- | --- |\n",
                        std::string(static_cast<size_t>(level), '#'), doc.name);
    for (const FieldDoc& field : doc.fields) AddRow(field);
    out_ += "\n";
    for (const FieldDoc& field : doc.fields) {
      if (field.record) Add(*field.record, std::min(level + 1, kDeepestHeading));
    }
  }

  std::string Take() {
    out_.pop_back();  // one newline at the end
    return std::move(out_);
  }

 private:
  static constexpr int kDeepestHeading = 4;

  void AddRow(const FieldDoc& field) {
    const std::string fallback = field.fallback.empty() ? "" : fmt::format("`{}`", field.fallback);
    out_ += fmt::format("| `{}` | {} | {} | {} |\n", field.key, field.type, field.required ? "required" : fallback,
                        field.sentence);
  }

  std::set<const RecordDoc*> written_;
  std::string out_;
};

}  // namespace

std::string ReferencePage() {
  PageWriter page;
  page.Title("Configuration reference");
  page.Paragraph(
      "Made from the decoder's own descriptions by `config_reference`; see configuration.md for how the "
      "files work together.");
  page.Add(*ServerFileType().record, 2);
  page.Add(*RegistryFileType().record, 2);
  return page.Take();
}

}  // namespace tp::config

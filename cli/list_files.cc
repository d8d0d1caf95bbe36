#include "cli/list_files.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/human_bytes.h"
#include "cli/collect.h"
#include "cli/render/table.h"

namespace tp::cli {
namespace {

std::string Described(const snapshot::Entry& entry) {
  switch (entry.kind) {
    case snapshot::EntryKind::kFile:
      return entry.path;
    case snapshot::EntryKind::kDirectory:
      return entry.path + "/";
    case snapshot::EntryKind::kSymlink:
      return fmt::format("{} -> {}", entry.path, entry.link_target);
  }
  return entry.path;
}

std::string Described(const IgnoreRule& rule) {
  if (rule.file.empty()) return fmt::format("default: {}", rule.text);
  return fmt::format("{}:{}: {}", rule.file, rule.line, rule.text);
}

std::string SizeOf(const snapshot::Entry& entry, bool wide) {
  if (entry.kind != snapshot::EntryKind::kFile) return "";
  return wide ? std::to_string(entry.bytes) : HumanBytes(entry.bytes);
}

std::string Page(const FileTree& tree, bool wide, const Terminal& terminal) {
  Table sent({{"SIZE", Align::kRight}, {"PATH", Align::kLeft, true}});
  for (const snapshot::Entry& entry : tree.entries) sent.AddRow({{SizeOf(entry, wide)}, {Described(entry)}});
  std::string page = sent.Render(terminal);
  page += fmt::format("{} file(s), {}\n", tree.files, HumanBytes(tree.bytes));
  if (tree.left_out.empty()) return page;
  Table left_out({{"LEFT OUT", Align::kLeft, true}, {"BY"}});
  for (const LeftOut& one : tree.left_out) left_out.AddRow({{one.path}, {Described(one.rule)}});
  return page + "\n" + left_out.Render(terminal);
}

Json ToJson(const snapshot::Entry& entry) {
  Json object;
  object["path"] = entry.path;
  switch (entry.kind) {
    case snapshot::EntryKind::kFile:
      object["kind"] = "FILE";
      object["bytes"] = entry.bytes;
      object["executable"] = entry.executable;
      break;
    case snapshot::EntryKind::kDirectory:
      object["kind"] = "DIRECTORY";
      break;
    case snapshot::EntryKind::kSymlink:
      object["kind"] = "SYMLINK";
      object["link_target"] = entry.link_target;
      break;
  }
  return object;
}

Json ToJson(const LeftOut& one) {
  Json object;
  object["path"] = one.path;
  object["rule"] = one.rule.text;
  object["file"] = one.rule.file.empty() ? Json() : Json(one.rule.file);
  object["line"] = one.rule.file.empty() ? Json() : Json(one.rule.line);
  return object;
}

}  // namespace

Answer ListFiles(const Context& context, const FileTree& tree) {
  Answer answer;
  answer.table = [&](bool wide) { return Page(tree, wide, context.terminal()); };
  answer.fill = [&](Json& document) {
    document["files"] = tree.files;
    document["bytes"] = tree.bytes;
    document["entries"] = Json::array();
    for (const snapshot::Entry& entry : tree.entries) document["entries"].push_back(ToJson(entry));
    document["left_out"] = Json::array();
    for (const LeftOut& one : tree.left_out) document["left_out"].push_back(ToJson(one));
  };
  answer.names = Collect(tree.entries, [](const snapshot::Entry& entry) { return entry.path; });
  return answer;
}

}  // namespace tp::cli

#include "snapshot/link_check.h"

#include <string>
#include <vector>

#include "base/printable.h"
#include "base/status.h"
#include "snapshot/path.h"

namespace tp::snapshot {
namespace {

constexpr int kMaxLinksFollowed = 40;  // the kernel gives up here too
constexpr int kMaxSteps = 4096;        // what one link may cost us

// The way of one link through the tree.
class Walk {
 public:
  Walk(const Entry& link, const EntryMap& tree) : link_(link), tree_(tree), at_(ParentOf(link.path)) {}

  absl::Status Follow() {
    TP_RETURN_IF_ERROR(Enter(link_));
    for (int steps = 0; !ahead_.empty(); ++steps) {
      if (steps == kMaxSteps) return InvalidArgument("{} leads through too many names", Name());
      const std::string_view part = ahead_.back();
      ahead_.pop_back();
      if (part.empty() || part == ".") continue;
      TP_RETURN_IF_ERROR(part == ".." ? Climb() : Descend(part));
    }
    return absl::OkStatus();
  }

 private:
  std::string Name() const { return fmt::format("the link {} -> {}", Quoted(link_.path), Quoted(link_.link_target)); }

  absl::Status Outside() const {
    return InvalidArgument("{} leaves the directory: copy what it points to, or remove it", Name());
  }

  // What the link says comes next, before what was ahead.
  absl::Status Enter(const Entry& link) {
    if (link.link_target.empty() || link.link_target.front() == '/') return Outside();
    std::vector<std::string_view> parts;
    for (std::string_view rest = link.link_target; !rest.empty();) parts.push_back(TakePart(&rest));
    ahead_.insert(ahead_.end(), parts.rbegin(), parts.rend());
    return absl::OkStatus();
  }

  absl::Status Climb() {
    if (at_.empty()) return Outside();
    at_ = std::string(ParentOf(at_));
    return absl::OkStatus();
  }

  absl::Status Descend(std::string_view part) {
    std::string next = at_.empty() ? std::string(part) : fmt::format("{}/{}", at_, part);
    const auto found = tree_.find(next);
    if (found == tree_.end() || found->second->kind != EntryKind::kSymlink) {
      at_ = std::move(next);
      return absl::OkStatus();
    }
    if (++followed_ > kMaxLinksFollowed) {
      ahead_.clear();  // leads nowhere
      return absl::OkStatus();
    }
    return Enter(*found->second);
  }

  const Entry& link_;
  const EntryMap& tree_;
  std::string at_;                       // a directory; empty: the root
  std::vector<std::string_view> ahead_;  // last first
  int followed_ = 0;
};

}  // namespace

absl::Status CheckLink(const Entry& link, const EntryMap& tree) {
  if (link.link_target.size() > kMaxPathBytes) {
    return InvalidArgument("the link {} has a target of {} bytes, the longest has {}", Quoted(link.path),
                           link.link_target.size(), kMaxPathBytes);
  }
  if (link.link_target.find('\0') != std::string::npos) {
    return InvalidArgument("the link {} has a target with a NUL byte", Quoted(link.path));
  }
  return Walk(link, tree).Follow();
}

}  // namespace tp::snapshot
